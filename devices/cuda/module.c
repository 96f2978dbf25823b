/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/*
 * Modules from ELF (cubin), PTX or a fat binary. Loading, looking a kernel up and unloading may wait for all work of
 * the device; a task's path has none of them: a kernel is loaded when its symbol is asked for, so the first launch is
 * like any other also where the driver loads lazily.
 */
#include "internal.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

/* The driver gets no length: PTX must end with a zero byte. */
static void *image_copy(const void *image, size_t bytes)
{
    char *copy = malloc(bytes + 1);
    if (!copy) return NULL;
    memcpy(copy, image, bytes);
    copy[bytes] = '\0';
    return copy;
}

static bool is_elf(const void *image, size_t bytes)
{
    return bytes >= sizeof(Elf64_Ehdr) && !memcmp(image, ELFMAG, SELFMAG);
}

static int image_load(struct cuda_device *device, const void *image, struct driver_module **module_out)
{
    char log[512] = "";
    enum driver_jit_option options[] = {(enum driver_jit_option)DRIVER_JIT_ERROR_LOG,
                                        (enum driver_jit_option)DRIVER_JIT_ERROR_LOG_BYTES};
    void *values[] = {log, (void *)(uintptr_t)sizeof log};
    int rc = DRIVER(device, module_load, module_out, image, 2, options, values);
    log[sizeof log - 1] = '\0';
    if (rc && log[0]) {
        char text[192];
        strncpy(text, weir__cuda_last_error(device), sizeof text - 1);
        text[sizeof text - 1] = '\0';
        weir__cuda_fail(rc, "%s: %s", text, log);
    }
    return rc;
}

int weir__cuda_module_load(void *handle, const void *image, size_t bytes, void **module_out)
{
    struct cuda_device *device = handle;
    struct cuda_guard guard;
    struct cuda_module *module = calloc(1, sizeof *module);
    void *copy = is_elf(image, bytes) ? NULL : image_copy(image, bytes);
    if (!module || (!copy && !is_elf(image, bytes))) {
        free(module);
        free(copy);
        return weir__cuda_fail(WEIR_E_NO_MEMORY, "no memory for an image");
    }
    int rc = weir__cuda_enter(device, &guard);
    if (!rc) {
        rc = image_load(device, copy ? copy : image, &module->handle);
        weir__cuda_leave(&guard);
    }
    free(copy);
    if (rc) {
        free(module);
        return rc;
    }
    module->device = device;
    pthread_mutex_init(&module->lock, NULL);
    *module_out = module;
    return WEIR_OK;
}

void weir__cuda_module_unload(void *handle)
{
    struct cuda_module *module = handle;
    struct cuda_device *device = module->device;
    struct cuda_guard guard;
    if (!weir__cuda_is_forked()) {
        weir__cuda_enter_anyway(device, &guard);
        if (weir__cuda_is_lost(device)) weir__cuda_streams_drain(device); /* nobody has waited for its work */
        (void)weir__cuda_driver->module_unload(module->handle);
        weir__cuda_leave(&guard);
    }
    while (module->kernels) {
        struct cuda_kernel *kernel = module->kernels;
        module->kernels = kernel->next;
        free(kernel);
    }
    pthread_mutex_destroy(&module->lock);
    free(module);
}

static int kernel_new(struct cuda_module *module, const char *name, struct cuda_kernel **kernel_out)
{
    struct cuda_device *device = module->device;
    struct driver_function *function;
    int rc = DRIVER(device, module_function, &function, module->handle, name);
    if (rc) return rc;
    struct cuda_kernel *kernel = calloc(1, sizeof *kernel + strlen(name) + 1);
    if (!kernel) return weir__cuda_fail(WEIR_E_NO_MEMORY, "no memory for a kernel");
    strcpy(kernel->name, name);
    kernel->module = module;
    kernel->function = function;
    rc = DRIVER(device, function_attribute, &kernel->static_bytes,
                (enum driver_function_attribute)DRIVER_FUNCTION_SHARED_BYTES, function);
    /* A driver without it loads a kernel when its function is asked for. */
    if (!rc && weir__cuda_driver->function_load) rc = DRIVER(device, function_load, function);
    if (rc)
        free(kernel);
    else
        *kernel_out = kernel;
    return rc;
}

/* Symbols are looked up when an image is loaded: no other path waits for the module's lock. */
static int kernel_find_locked(struct cuda_module *module, const char *name, struct cuda_kernel **kernel_out)
{
    struct cuda_kernel *kernel = module->kernels;
    while (kernel && strcmp(kernel->name, name)) kernel = kernel->next;
    if (!kernel) {
        int rc = kernel_new(module, name, &kernel);
        if (rc) return rc;
        kernel->next = module->kernels;
        module->kernels = kernel;
    }
    *kernel_out = kernel;
    return WEIR_OK;
}

int weir__cuda_module_symbol(void *handle, const char *name, void **address_out, size_t *bytes_out)
{
    struct cuda_module *module = handle;
    struct cuda_device *device = module->device;
    struct cuda_guard guard;
    struct cuda_kernel *kernel;
    WEIR__DRIVER_ADDRESS address = 0;
    size_t bytes = 0;
    int rc = weir__cuda_enter(device, &guard);
    if (rc) return rc;
    pthread_mutex_lock(&module->lock);
    rc = kernel_find_locked(module, name, &kernel);
    pthread_mutex_unlock(&module->lock);
    bool is_kernel = !rc;
    if (rc == WEIR_E_NOT_FOUND) rc = DRIVER(device, module_variable, &address, &bytes, module->handle, name);
    weir__cuda_leave(&guard);
    if (rc) return rc;
    *address_out = is_kernel ? (void *)kernel : (void *)(uintptr_t)address;
    if (bytes_out) *bytes_out = bytes;
    return WEIR_OK;
}

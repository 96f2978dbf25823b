/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Libraries: images without a context; each context gets a module of its own when a kernel is first needed there. */
#include "module.h"

#include <stdlib.h>
#include <string.h>

struct library {
    struct object object;
    void *image;
    struct kernel *kernels;
    struct library_module {
        struct module *module;   /* ends with @context at the latest */
        struct context *context; /* to the end of the process */
        struct library_module *next;
    } *modules;
};

struct kernel {
    struct object object;
    struct library *library;
    char *name;
    struct kernel *next;
};

static int module_in(struct library *library, struct context *context, struct module **module_out)
{
    for (struct library_module *known = library->modules; known; known = known->next) {
        *module_out = known->module;
        if (known->context == context) return 0;
    }
    int code = emulator__module_load(library->image, context, module_out);
    if (code) return code;
    struct library_module *entry = emulator__allocate(sizeof *entry);
    entry->module = *module_out;
    entry->module->is_library = true;
    entry->context = context;
    entry->next = library->modules;
    library->modules = entry;
    return 0;
}

int emulator__cuLibraryLoadData(void **handle, const void *image, int *jit, void **jit_values, unsigned jit_count,
                                int *options, void **values, unsigned count)
{
    size_t bytes;
    if (!handle || !image || (jit_count && (!jit || !jit_values)) || (count && (!options || !values)))
        return CUDA_INVALID_VALUE;
    int code = emulator__image_bytes(image, &bytes);
    if (code) return code;
    struct library *library = emulator__allocate(sizeof *library);
    library->object = (struct object){.kind = LIBRARY};
    library->image = emulator__allocate(bytes);
    memcpy(library->image, image, bytes);
    *handle = emulator__handle_create(&library->object);
    return *handle ? 0 : CUDA_OUT_OF_MEMORY;
}

int emulator__cuLibraryUnload(void *handle)
{
    struct library *library = emulator__handle_find(handle, LIBRARY);
    if (!library) return CUDA_INVALID_HANDLE;
    emulator__handle_destroy(&library->object);
    while (library->modules) {
        struct library_module *entry = library->modules;
        library->modules = entry->next;
        if (!entry->context->is_destroyed) emulator__module_unload(entry->module);
        free(entry);
    }
    while (library->kernels) {
        struct kernel *kernel = library->kernels;
        library->kernels = kernel->next;
        emulator__handle_destroy(&kernel->object);
        free(kernel->name);
        free(kernel);
    }
    free(library->image);
    free(library);
    return 0;
}

/* Whether the name exists is known only in a context. */
int emulator__cuLibraryGetKernel(void **handle, void *library_handle, const char *name)
{
    struct module *module;
    struct library *library = emulator__handle_find(library_handle, LIBRARY);
    if (!handle || !name) return CUDA_INVALID_VALUE;
    if (!library) return CUDA_INVALID_HANDLE;
    struct context *context = emulator__current();
    if (context && !context->is_destroyed) {
        int code = module_in(library, context, &module);
        if (code) return code;
        if (!emulator__module_function(module, name)) return CUDA_NOT_FOUND;
    }
    struct kernel *kernel = library->kernels;
    while (kernel && strcmp(kernel->name, name)) kernel = kernel->next;
    if (!kernel) {
        kernel = emulator__allocate(sizeof *kernel);
        kernel->object = (struct object){.kind = KERNEL};
        kernel->library = library;
        kernel->name = strdup(name);
        kernel->next = library->kernels;
        library->kernels = kernel;
        if (!kernel->name || !emulator__handle_create(&kernel->object)) abort();
    }
    *handle = emulator__handle_of(&kernel->object);
    return 0;
}

struct function *emulator__kernel_function(const void *handle, struct context *context, int *code)
{
    struct module *module;
    struct kernel *kernel = emulator__handle_peek(handle, KERNEL);
    *code = 0;
    if (!kernel) return NULL;
    *code = module_in(kernel->library, context, &module);
    if (*code) return NULL;
    struct function *function = emulator__module_function(module, kernel->name);
    if (!function) *code = CUDA_NOT_FOUND;
    return function;
}

int emulator__cuKernelGetFunction(void **function, void *kernel)
{
    int code;
    if (!function) return CUDA_INVALID_VALUE;
    struct function *found = emulator__kernel_function(kernel, emulator__call.context, &code);
    if (found) *function = emulator__handle_of(&found->object);
    return found || code ? code : CUDA_INVALID_HANDLE;
}

int emulator__cuLibraryGetGlobal(uint64_t *address, size_t *bytes, void *handle, const char *name)
{
    struct module *module;
    struct library *library = emulator__handle_find(handle, LIBRARY);
    if (!library) return CUDA_INVALID_HANDLE;
    int code = module_in(library, emulator__call.context, &module);
    return code ? code : emulator__module_global(module, name, address, bytes);
}

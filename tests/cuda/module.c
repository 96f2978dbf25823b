/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Modules, their kernels and variables. */
#include "module.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emulator.h"

#define SHARED_DEFAULT 49152
#define SHARED_OPTIN   101376
#define NAME_ROOM      1024

int emulator__module_load(const void *image, struct context *context, struct module **module_out)
{
    size_t bytes;
    if (!image) return CUDA_INVALID_VALUE;
    struct module *module = emulator__allocate(sizeof *module);
    pthread_mutex_unlock(&emulator__state.lock);
    int code = emulator__image_bytes(image, &bytes);
    if (!code) code = emulator__image_load(image, bytes, &module->image);
    pthread_mutex_lock(&emulator__state.lock);
    if (!code) {
        module->object = (struct object){.kind = MODULE, .context = context};
        if (!emulator__handle_create(&module->object)) code = CUDA_OUT_OF_MEMORY;
    }
    if (code) {
        free(module);
        return code;
    }
    module->device = context->device;
    module->range =
        emulator__range_add(MODULE_RANGE, module->image.start, module->image.end - module->image.start, context);
    module->next = module->device->modules;
    module->device->modules = module;
    emulator__guard_module(module, module->device->opened > 0);
    *module_out = module;
    return 0;
}

static void free_function(struct function *function)
{
    free(function->name);
    free(function->sizes);
    free(function);
}

void emulator__module_unload(struct module *module)
{
    if (module->pending) emulator__report("the module has %u launches in flight", module->pending);
    emulator__context_drain(module->object.context);
    while (module->pending) emulator__host_wait(); /* after an error a kernel may still be running */
    struct module **link = &module->device->modules;
    while (*link != module) link = &(*link)->next;
    *link = module->next;
    emulator__guard_module(module, true);
    emulator__range_remove(module->range);
    while (module->functions) {
        struct function *function = module->functions;
        module->functions = function->next;
        emulator__handle_destroy(&function->object);
        free_function(function);
    }
    emulator__handle_destroy(&module->object);
    pthread_mutex_unlock(&emulator__state.lock);
    emulator__image_unload(&module->image);
    free(module);
    pthread_mutex_lock(&emulator__state.lock);
}

/* ---- names ---- */

static void *symbol(struct module *module, const char *name, size_t *bytes)
{
    pthread_mutex_unlock(&emulator__state.lock);
    void *address = emulator__image_symbol(&module->image, name, bytes);
    pthread_mutex_lock(&emulator__state.lock);
    return address;
}

/* The table "<kernel>_parameters": a count and as many sizes. It is read once, since it may lie in closed memory. */
static void read_sizes(struct function *function)
{
    char name[NAME_ROOM];
    snprintf(name, sizeof name, "%s_parameters", function->name);
    const uint32_t *table = symbol(function->module, name, NULL);
    if (!table) return;
    uint32_t devices = 1u << function->module->device->ordinal;
    emulator__memory_open(devices);
    function->size_count = table[0];
    uint32_t *sizes = emulator__allocate((function->size_count + 1) * sizeof *sizes);
    memcpy(sizes, table + 1, function->size_count * sizeof *sizes);
    emulator__memory_close(devices);
    function->sizes = sizes;
}

static struct function *find_function(struct module *module, const char *name)
{
    struct function *function = module->functions;
    while (function && strcmp(function->name, name)) function = function->next;
    return function;
}

struct function *emulator__module_function(struct module *module, const char *name)
{
    struct function *known = find_function(module, name);
    if (known) return known;
    void *code = symbol(module, name, NULL);
    if (!code || !emulator__image_is_code(code)) return NULL;
    struct function *function = emulator__allocate(sizeof *function);
    function->object = (struct object){.kind = FUNCTION, .context = module->object.context};
    function->module = module;
    function->code = code;
    function->shared_limit = SHARED_DEFAULT;
    function->name = strdup(name);
    read_sizes(function);
    known = find_function(module, name); /* another thread may have been faster */
    if (known || !function->name || !emulator__handle_create(&function->object)) {
        free_function(function);
        return known;
    }
    function->next = module->functions;
    module->functions = function;
    return function;
}

int emulator__module_global(struct module *module, const char *name, uint64_t *address, size_t *bytes)
{
    size_t size;
    if (!name || (!address && !bytes)) return CUDA_INVALID_VALUE;
    void *variable = symbol(module, name, &size);
    if (!variable) return CUDA_NOT_FOUND;
    if (address) *address = (uintptr_t)variable;
    if (bytes) *bytes = size;
    return 0;
}

int emulator__function_need(struct function *function)
{
    struct context *context = function->object.context;
    if (function->is_loaded) return 0;
    function->is_loaded = true;
    if (!emulator__state.settings.lazy) return 0;
    context->loader = emulator__thread_number();
    int code = emulator__context_drain(context);
    context->loader = 0;
    emulator__wake();
    return code;
}

struct function *emulator__function_find(const void *handle, struct context *context, int *code)
{
    struct function *function = emulator__kernel_function(handle, context, code);
    if (function || *code) return function;
    function = emulator__handle_find(handle, FUNCTION);
    if (!function) *code = CUDA_INVALID_HANDLE;
    return function;
}

/* ---- calls ---- */

int emulator__cuModuleLoadData(void **handle, const void *image)
{
    struct module *module;
    if (!handle) return CUDA_INVALID_VALUE;
    int code = emulator__module_load(image, emulator__call.context, &module);
    if (!code) *handle = emulator__handle_of(&module->object);
    return code;
}

int emulator__cuModuleLoadFatBinary(void **handle, const void *image)
{
    return emulator__cuModuleLoadData(handle, image);
}

int emulator__cuModuleLoadDataEx(void **handle, const void *image, unsigned count, int *options, void **values)
{
    if (count && (!options || !values)) return CUDA_INVALID_VALUE;
    return emulator__cuModuleLoadData(handle, image);
}

int emulator__cuModuleUnload(void *handle)
{
    struct module *module = emulator__handle_find(handle, MODULE);
    if (!module) return CUDA_INVALID_HANDLE;
    if (module->is_library) return CUDA_NOT_PERMITTED;
    emulator__module_unload(module);
    return 0;
}

int emulator__cuModuleGetFunction(void **handle, void *module_handle, const char *name)
{
    if (!handle || !name || !*name) return CUDA_INVALID_VALUE;
    struct module *module = emulator__handle_find(module_handle, MODULE);
    if (!module) return CUDA_INVALID_HANDLE;
    struct function *function = emulator__module_function(module, name);
    if (!function) return CUDA_NOT_FOUND;
    int code = emulator__function_need(function);
    if (!code) *handle = emulator__handle_of(&function->object);
    return code;
}

int emulator__cuModuleGetGlobal_v2(uint64_t *address, size_t *bytes, void *handle, const char *name)
{
    struct module *module = emulator__handle_find(handle, MODULE);
    return module ? emulator__module_global(module, name, address, bytes) : CUDA_INVALID_HANDLE;
}

int emulator__cuModuleGetLoadingMode(int *mode)
{
    if (!mode) return CUDA_INVALID_VALUE;
    *mode = emulator__state.settings.lazy ? 2 : 1;
    return 0;
}

int emulator__cuFuncGetAttribute(int *value, int attribute, void *handle)
{
    int code;
    struct function *function = emulator__function_find(handle, emulator__call.context, &code);
    if (!value) return CUDA_INVALID_VALUE;
    if (!function) return code;
    switch (attribute) {
    case 0: /* threads per block */
        *value = 1024;
        return 0;
    case 1: /* shared, constant and local bytes */
    case 2:
    case 3:
        *value = 0;
        return 0;
    case 4: /* registers */
        *value = 32;
        return 0;
    case 5: /* PTX and binary version */
    case 6:
        *value = 90;
        return 0;
    case 8:
        *value = function->shared_limit;
        return 0;
    default:
        return CUDA_INVALID_VALUE;
    }
}

int emulator__cuFuncSetAttribute(void *handle, int attribute, int value)
{
    int code;
    struct function *function = emulator__function_find(handle, emulator__call.context, &code);
    if (!function) return code;
    if (attribute == 9) return value >= -1 && value <= 100 ? 0 : CUDA_INVALID_VALUE; /* a hint */
    if (attribute != 8 || value < 0 || value > SHARED_OPTIN) return CUDA_INVALID_VALUE;
    function->shared_limit = value > SHARED_DEFAULT ? value : SHARED_DEFAULT;
    return 0;
}

int emulator__cuFuncLoad(void *handle)
{
    int code;
    struct function *function = emulator__function_find(handle, emulator__call.context, &code);
    return function ? emulator__function_need(function) : code;
}

int emulator__cuFuncIsLoaded(int *loaded, void *handle)
{
    int code;
    struct function *function = emulator__function_find(handle, emulator__call.context, &code);
    if (!loaded) return CUDA_INVALID_VALUE;
    if (function) *loaded = function->is_loaded;
    return code;
}

int emulator__cuFuncGetParamInfo(void *handle, size_t index, size_t *offset, size_t *bytes)
{
    int code;
    struct function *function = emulator__function_find(handle, emulator__call.context, &code);
    if (!offset) return CUDA_INVALID_VALUE;
    if (!function) return code;
    if (!function->sizes) return CUDA_NOT_SUPPORTED;
    if (index >= function->size_count) return CUDA_INVALID_VALUE;
    size_t place = 0;
    for (size_t i = 0; i <= index; i++) {
        size_t size = function->sizes[i];
        place = (place + size - 1) & ~(size - 1);
        *offset = place;
        if (bytes) *bytes = size;
        place += size;
    }
    return 0;
}

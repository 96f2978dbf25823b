/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Modules and functions. They are freed by the unload, which waits for the operations that point to them. */
#ifndef WEIR_EMULATOR_MODULE_H
#define WEIR_EMULATOR_MODULE_H

#include "image.h"

struct module {
    struct object object;
    struct loaded_image image;
    struct device *device;
    struct function *functions;
    struct range *range;
    unsigned pending; /* launches in flight */
    bool is_library;  /* belongs to a library and goes with it */
    struct module *next;
};

struct function {
    struct object object;
    struct module *module;
    void *code;
    uint32_t *sizes; /* [size_count] of the parameters, or NULL: 8 bytes each, ended by a null pointer */
    uint32_t size_count;
    int shared_limit;
    bool is_loaded;
    char *name;
    struct function *next;
};

/* Both give the lock up while the loader works; the second one frees the module and its functions. */
int emulator__module_load(const void *image, struct context *context, struct module **module_out);
void emulator__module_unload(struct module *module);
/* NULL if the module has no such kernel. */
struct function *emulator__module_function(struct module *module, const char *name);
int emulator__module_global(struct module *module, const char *name, uint64_t *address, size_t *bytes);
/* The function that a handle of a function or a library's kernel means in @context; NULL with *code set. */
struct function *emulator__function_find(const void *handle, struct context *context, int *code);
/* The same for a handle that is a kernel of a library; NULL if it is none. */
struct function *emulator__kernel_function(const void *handle, struct context *context, int *code);
/* Kernels of a module that are loaded when they are first needed: the whole context is waited for, and calls of other
 * threads in it are held up meanwhile. */
int emulator__function_need(struct function *function);

#endif

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Launches. A kernel is a host function with integer arguments of up to 8 bytes, called once whatever its grid is. The
 * arguments are copied during the call. Where the image has no table of sizes, each one is read as 8 bytes and the
 * array must end with a null pointer, which the real driver does not look at.
 */
#include <ffi.h>
#include <stdlib.h>
#include <string.h>

#include "emulator.h"
#include "module.h"

#define MAX_ARGUMENTS 512 /* 4096 bytes */

struct arguments {
    uint32_t count;
    uint64_t values[MAX_ARGUMENTS];
};

struct launch_operation {
    struct operation operation;
    struct emulator_launch launch;
    struct function *function;
    uint32_t count;
    uint64_t arguments[];
};

static _Thread_local const struct emulator_launch *running __attribute__((tls_model("initial-exec")));

const struct emulator_launch *emulator_launch(void)
{
    return running;
}

/* ---- execution ---- */

static void call(void *arg)
{
    struct launch_operation *what = arg;
    ffi_cif cif;
    ffi_type *types[MAX_ARGUMENTS];
    void *values[MAX_ARGUMENTS];
    for (uint32_t i = 0; i < what->count; i++) {
        types[i] = &ffi_type_uint64;
        values[i] = &what->arguments[i];
    }
    if (ffi_prep_cif(&cif, FFI_DEFAULT_ABI, what->count, &ffi_type_void, types) != FFI_OK) abort();
    void (*code)(void);
    memcpy(&code, &what->function->code, sizeof code);
    ffi_call(&cif, code, NULL, values);
}

static int run_kernel(struct operation *operation)
{
    struct launch_operation *what = (struct launch_operation *)operation;
    running = &what->launch;
    int code = emulator__guard_run(call, what);
    running = NULL;
    return code;
}

static void launch_over(struct operation *operation, int status)
{
    (void)status;
    ((struct launch_operation *)operation)->function->module->pending--;
    emulator__operation_free(operation);
}

static void launch_copied(struct operation *operation)
{
    ((struct launch_operation *)operation)->function->module->pending++;
}

/* ---- arguments ---- */

static int read_array(const struct function *function, void **arguments, struct arguments *to)
{
    static void *none[] = {NULL};
    if (!arguments) arguments = none;
    uint32_t limit = function->sizes ? function->size_count : MAX_ARGUMENTS;
    for (; arguments[to->count]; to->count++) {
        uint32_t i = to->count;
        if (i == limit || (function->sizes && function->sizes[i] > 8)) return CUDA_LAUNCH_OUT_OF_RESOURCES;
        to->values[i] = 0;
        memcpy(&to->values[i], arguments[i], function->sizes ? function->sizes[i] : 8);
    }
    return !function->sizes || to->count == limit ? 0 : CUDA_LAUNCH_OUT_OF_RESOURCES;
}

static int read_buffer(const struct function *function, const char *buffer, size_t bytes, struct arguments *to)
{
    size_t place = 0;
    uint32_t count = function->sizes ? function->size_count : (uint32_t)(bytes / 8);
    if (count > MAX_ARGUMENTS) return CUDA_LAUNCH_OUT_OF_RESOURCES;
    for (uint32_t i = 0; i < count; i++) {
        size_t size = function->sizes ? function->sizes[i] : 8;
        place = (place + size - 1) & ~(size - 1);
        if (size > 8 || place + size > bytes) return CUDA_LAUNCH_OUT_OF_RESOURCES;
        to->values[i] = 0;
        memcpy(&to->values[i], buffer + place, size);
        place += size;
    }
    to->count = count;
    return place == bytes ? 0 : CUDA_LAUNCH_OUT_OF_RESOURCES;
}

static int read_extra(const struct function *function, void **extra, struct arguments *to)
{
    const char *buffer = NULL;
    const size_t *bytes = NULL;
    for (; *extra != (void *)CUDA_LAUNCH_END; extra += 2) {
        if ((uintptr_t)extra[0] == CUDA_LAUNCH_BUFFER_POINTER)
            buffer = extra[1];
        else if ((uintptr_t)extra[0] == CUDA_LAUNCH_BUFFER_SIZE)
            bytes = extra[1];
        else
            return CUDA_INVALID_VALUE;
    }
    return buffer && bytes ? read_buffer(function, buffer, *bytes, to) : CUDA_INVALID_VALUE;
}

/* Device memory that the arguments name directly; what is reached through it is not known. */
static void hold_ranges(struct launch_operation *what)
{
    for (uint32_t i = 0; i < what->count; i++) {
        struct range *range = emulator__range_find(what->arguments[i]);
        if (range && range->is_freed)
            emulator__report("argument %u, %#llx, is used after cuMemFreeAsync", i,
                             (unsigned long long)what->arguments[i]);
        else if (range && range->kind != MODULE_RANGE)
            emulator__operation_hold(&what->operation, range);
        else if (!range && emulator__arena_of(what->arguments[i]))
            emulator__report("argument %u, %#llx, is device memory that was freed", i,
                             (unsigned long long)what->arguments[i]);
    }
}

/* ---- submission ---- */

static int check_size(const struct emulator_launch *launch, const struct function *function)
{
    const unsigned *grid = launch->grid, *block = launch->block;
    if (!grid[0] || !grid[1] || !grid[2] || !block[0] || !block[1] || !block[2]) return CUDA_INVALID_VALUE;
    if (grid[0] > 2147483647u || grid[1] > 65535 || grid[2] > 65535) return CUDA_INVALID_VALUE;
    if (block[0] > 1024 || block[1] > 1024 || block[2] > 64) return CUDA_INVALID_VALUE;
    if ((uint64_t)block[0] * block[1] * block[2] > 1024) return CUDA_INVALID_VALUE;
    return launch->shared_bytes > (unsigned)function->shared_limit ? CUDA_INVALID_VALUE : 0;
}

static struct launch_operation *new_operation(struct function *function, const struct emulator_launch *launch,
                                              const struct arguments *arguments)
{
    struct context *context = function->object.context;
    size_t bytes = arguments->count * sizeof *arguments->values;
    struct launch_operation *what = emulator__allocate(sizeof *what + bytes);
    what->launch = *launch;
    what->launch.device = context->device->ordinal;
    what->function = function;
    what->count = arguments->count;
    memcpy(what->arguments, arguments->values, bytes);
    what->operation.bytes = sizeof *what + bytes;
    what->operation.copied = launch_copied;
    what->operation.run = run_kernel;
    what->operation.over = launch_over;
    what->operation.opens = 1u << context->device->ordinal | context->peers;
    return what;
}

static int make(void *handle, const struct emulator_launch *launch, struct context *context, void **arguments,
                void **extra, struct operation **operation_out)
{
    int code;
    struct function *function = emulator__function_find(handle, context, &code);
    if (!function) return code;
    if (context != function->object.context || context != emulator__call.context) {
        emulator__report("the function, the stream and the current context do not belong together");
        return CUDA_INVALID_HANDLE;
    }
    if (arguments && extra) return CUDA_INVALID_VALUE;
    code = check_size(launch, function);
    if (!code) code = emulator__function_need(function);
    if (code) return code;
    struct arguments read;
    read.count = 0;
    code = extra ? read_extra(function, extra, &read) : read_array(function, arguments, &read);
    if (code) return code;
    struct launch_operation *what = new_operation(function, launch, &read);
    hold_ranges(what);
    function->module->pending++;
    *operation_out = &what->operation;
    return 0;
}

static int submit(void *handle, const struct emulator_launch *launch, void *stream_handle, void **arguments,
                  void **extra)
{
    int code;
    struct operation *operation;
    struct stream *stream = emulator__stream_find(stream_handle, &code);
    if (!stream) return code;
    code = make(handle, launch, stream->object.context, arguments, extra, &operation);
    if (!code) emulator__submit(stream, operation);
    return code;
}

int emulator__kernel_operation(const struct cuda_kernel_node *kernel, struct operation **operation_out)
{
    struct emulator_launch launch = {.grid = {kernel->grid[0], kernel->grid[1], kernel->grid[2]},
                                     .block = {kernel->block[0], kernel->block[1], kernel->block[2]},
                                     .shared_bytes = kernel->shared_bytes};
    return make(kernel->function ? kernel->function : kernel->kernel, &launch, emulator__call.context,
                kernel->arguments, kernel->extra, operation_out);
}

#define LAUNCH                                                                                                         \
    &(struct emulator_launch){                                                                                         \
        .grid = {grid_x, grid_y, grid_z}, .block = {block_x, block_y, block_z}, .shared_bytes = shared_bytes}

int emulator__cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                             unsigned block_y, unsigned block_z, unsigned shared_bytes, void *stream, void **arguments,
                             void **extra)
{
    return submit(function, LAUNCH, stream, arguments, extra);
}

int emulator__cuLaunchKernelEx(const struct cuda_launch_config *config, void *function, void **arguments, void **extra)
{
    if (!config || (config->attribute_count && !config->attributes)) return CUDA_INVALID_VALUE;
    struct emulator_launch launch = {.grid = {config->grid_x, config->grid_y, config->grid_z},
                                     .block = {config->block_x, config->block_y, config->block_z},
                                     .shared_bytes = config->shared_bytes};
    return submit(function, &launch, config->stream, arguments, extra);
}

static int blocks_per_processor(int threads)
{
    return threads > 0 && threads <= 1024 ? 2048 / threads < 32 ? 2048 / threads : 32 : 0;
}

int emulator__cuLaunchCooperativeKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                                        void *stream, void **arguments)
{
    int processors;
    emulator__cuDeviceGetAttribute(&processors, CUDA_ATTRIBUTE_SM_COUNT, emulator__call.context->device->ordinal);
    uint64_t threads = (uint64_t)block_x * block_y * block_z, blocks = (uint64_t)grid_x * grid_y * grid_z;
    if (threads && threads <= 1024 && blocks > (uint64_t)(processors * blocks_per_processor((int)threads)))
        return CUDA_COOPERATIVE_LAUNCH_TOO_LARGE;
    return submit(function, LAUNCH, stream, arguments, NULL);
}

int emulator__cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void *handle, int block, size_t shared_bytes)
{
    int code;
    struct function *function = emulator__function_find(handle, emulator__call.context, &code);
    if (!blocks || block <= 0) return CUDA_INVALID_VALUE;
    if (!function) return code;
    *blocks = shared_bytes > (size_t)function->shared_limit ? 0 : blocks_per_processor(block);
    return 0;
}

int emulator__cuOccupancyMaxPotentialBlockSize(int *grid, int *block, void *handle, size_t (*shared_bytes)(int),
                                               size_t fixed_bytes, int limit)
{
    int code, processors;
    (void)shared_bytes;
    (void)fixed_bytes;
    struct function *function = emulator__function_find(handle, emulator__call.context, &code);
    if (!grid || !block || limit < 0) return CUDA_INVALID_VALUE;
    if (!function) return code;
    emulator__cuDeviceGetAttribute(&processors, CUDA_ATTRIBUTE_SM_COUNT, emulator__call.context->device->ordinal);
    *block = limit && limit < 1024 ? limit : 1024;
    *grid = processors * blocks_per_processor(*block);
    return 0;
}

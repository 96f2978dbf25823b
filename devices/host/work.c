/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What the commands of a stream are and do. A kernel has 8-byte integer arguments and no result. With few arguments it
 * is called directly, which the machines' calling conventions define for any such kernel; libffi needs some 500
 * instructions for the same and is there for the rest.
 */
#include <ffi.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "internal.h"

struct function_command {
    struct host_command head;
    int (*function)(void *arg);
    void *arg;
};

/* Behind it either the arguments, or (HOST_LAUNCH_MANY) a pointer to a struct launch_block. */
struct launch_command {
    struct host_command head;
    void *kernel;
    uint64_t args[];
};

struct launch_block {
    ffi_cif cif;
    ffi_type **types;
    void **values;
    uint64_t args[];
};

struct wait_command {
    struct host_command head;
    struct host_point points[];
};

struct wait_many_command {
    struct host_command head;
    struct host_point *points;
};

struct copy_command {
    struct host_command head;
    void *to;
    const void *from;
    size_t bytes;
};

struct copy_block_command {
    struct host_command head;
    struct weir__copy copy;
};

struct fill_command { /* also HOST_FREE: @to */
    struct host_command head;
    void *to;
    size_t bytes;
};

#define WORDS(type) ((uint16_t)(sizeof(type) / sizeof(uint64_t)))
#define POINT_WORDS (sizeof(struct host_point) / sizeof(uint64_t))

/* Constant after weir__host_work_init(). */
static ffi_cif call[HOST_INLINE_ARGS + 1];
static ffi_type *call_types[HOST_INLINE_ARGS];
static bool call_failed;

static void prepare_calls(void)
{
    for (unsigned i = 0; i < HOST_INLINE_ARGS; i++) call_types[i] = &ffi_type_uint64;
    for (unsigned n = 0; n <= HOST_INLINE_ARGS && !call_failed; n++)
        call_failed = ffi_prep_cif(&call[n], FFI_DEFAULT_ABI, n, &ffi_type_void, call_types) != FFI_OK;
}

int weir__host_work_init(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, prepare_calls);
    return call_failed ? weir__host_fail(WEIR_E_SYSTEM, "libffi cannot prepare calls of kernels") : WEIR_OK;
}

/* ---- queueing ---- */

int weir__host_queue_function(struct host_stream *stream, int (*function)(void *arg), void *arg)
{
    stream->writer.is_short = false;
    struct function_command *command = weir__host_queue_claim(stream, HOST_FUNCTION, WORDS(struct function_command), 0);
    if (!command) return WEIR_E_NO_MEMORY;
    command->function = function;
    command->arg = arg;
    return WEIR_OK;
}

static struct launch_block *new_launch_block(const struct weir__launch *launch)
{
    size_t n = launch->nargs;
    struct launch_block *block = malloc(sizeof *block + n * (sizeof(uint64_t) + sizeof(void *) + sizeof(ffi_type *)));
    if (!block) {
        weir__host_fail(WEIR_E_NO_MEMORY, "no memory for %u kernel arguments", launch->nargs);
        return NULL;
    }
    memcpy(block->args, launch->args, n * sizeof(uint64_t));
    block->values = (void **)(block->args + n);
    block->types = (ffi_type **)(block->values + n);
    for (size_t i = 0; i < n; i++) {
        block->values[i] = &block->args[i];
        block->types[i] = &ffi_type_uint64;
    }
    if (ffi_prep_cif(&block->cif, FFI_DEFAULT_ABI, launch->nargs, &ffi_type_void, block->types) != FFI_OK) {
        free(block);
        weir__host_fail(WEIR_E_NO_MEMORY, "libffi cannot prepare a call with %u arguments", launch->nargs);
        return NULL;
    }
    return block;
}

int weir__host_queue_launch(struct host_stream *stream, const struct weir__launch *launch)
{
    uint32_t n = launch->nargs;
    bool can_be_short = stream->device->short_ns && n <= HOST_INLINE_ARGS;
    bool is_short = can_be_short && weir__host_kernel_is_short(launch->kernel);
    stream->writer.kernel = launch->kernel;
    stream->writer.is_short &= is_short;
    if (n > HOST_INLINE_ARGS) {
        struct launch_block *block = new_launch_block(launch);
        if (!block) return WEIR_E_NO_MEMORY;
        struct launch_command *command =
            weir__host_queue_claim(stream, HOST_LAUNCH_MANY, WORDS(struct launch_command) + 1, n);
        if (!command) {
            free(block);
            return WEIR_E_NO_MEMORY;
        }
        command->kernel = launch->kernel;
        command->args[0] = (uintptr_t)block;
        return WEIR_OK;
    }
    struct launch_command *command =
        weir__host_queue_claim(stream, can_be_short && !is_short ? HOST_LAUNCH_MEASURED : HOST_LAUNCH,
                               (uint16_t)(WORDS(struct launch_command) + n), n);
    if (!command) return WEIR_E_NO_MEMORY;
    command->kernel = launch->kernel;
    for (uint32_t i = 0; i < n; i++) command->args[i] = launch->args[i];
    return WEIR_OK;
}

int weir__host_queue_copy(struct host_stream *stream, const struct weir__copy *copy)
{
    bool is_block = copy->count[0] > 1 || copy->count[1] > 1;
    stream->writer.is_short &= !is_block && copy->bytes <= HOST_SHORT_BYTES;
    if (is_block) {
        struct copy_block_command *block =
            weir__host_queue_claim(stream, HOST_COPY_BLOCK, WORDS(struct copy_block_command), 0);
        if (!block) return WEIR_E_NO_MEMORY;
        block->copy = *copy;
        return WEIR_OK;
    }
    struct copy_command *command = weir__host_queue_claim(stream, HOST_COPY, WORDS(struct copy_command), 0);
    if (!command) return WEIR_E_NO_MEMORY;
    command->to = copy->to;
    command->from = copy->from;
    command->bytes = copy->bytes;
    return WEIR_OK;
}

int weir__host_queue_fill(struct host_stream *stream, void *to, uint8_t value, size_t bytes)
{
    stream->writer.is_short &= bytes <= HOST_SHORT_BYTES;
    struct fill_command *command = weir__host_queue_claim(stream, HOST_FILL, WORDS(struct fill_command), value);
    if (!command) return WEIR_E_NO_MEMORY;
    command->to = to;
    command->bytes = bytes;
    return WEIR_OK;
}

int weir__host_queue_free(struct host_stream *stream, void *address)
{
    stream->writer.is_short = stream->writer.is_short && malloc_usable_size(address) <= HOST_SHORT_FREE;
    struct fill_command *command = weir__host_queue_claim(stream, HOST_FREE, WORDS(struct fill_command), 0);
    if (!command) return WEIR_E_NO_MEMORY;
    command->to = address;
    command->bytes = 0;
    return WEIR_OK;
}

int weir__host_queue_wait(struct host_stream *stream, const struct host_point *points, size_t n)
{
    size_t needed = 0;
    for (size_t i = 0; i < n; i++)
        needed += points[i].stream != stream && !weir__host_stream_reached(points[i].stream, points[i].position);
    if (!needed) return WEIR_OK;
    /* Points may be reached from here on: the command holds at most the first @needed that are not. */
    struct host_point *kept = NULL;
    uint32_t *count;
    if (needed > HOST_INLINE_ARGS / POINT_WORDS) {
        kept = needed <= UINT32_MAX ? malloc(needed * sizeof *kept) : NULL;
        if (!kept) return weir__host_fail(WEIR_E_NO_MEMORY, "no memory for a wait for %zu streams", needed);
        struct wait_many_command *command =
            weir__host_queue_claim(stream, HOST_WAIT_MANY, WORDS(struct wait_many_command), 0);
        if (!command) {
            free(kept);
            return WEIR_E_NO_MEMORY;
        }
        command->points = kept;
        count = &command->head.count;
    } else {
        struct wait_command *command =
            weir__host_queue_claim(stream, HOST_WAIT, (uint16_t)(WORDS(struct wait_command) + needed * POINT_WORDS), 0);
        if (!command) return WEIR_E_NO_MEMORY;
        kept = command->points;
        count = &command->head.count;
    }
    for (size_t i = 0; i < n && *count < needed; i++)
        if (points[i].stream != stream && !weir__host_stream_reached(points[i].stream, points[i].position))
            kept[(*count)++] = points[i];
    return WEIR_OK;
}

const struct host_point *weir__host_wait_points(const struct host_command *command)
{
    return command->kind == HOST_WAIT_MANY ? ((const struct wait_many_command *)command)->points
                                           : ((const struct wait_command *)command)->points;
}

/* ---- running ---- */

void weir__host_delay(struct host_stream *stream)
{
    uint64_t random = stream->reader.random * 6364136223846793005u + 1442695040888963407u;
    stream->reader.random = random;
    struct timespec pause = {.tv_nsec = (long)((random >> 33) % ((uint64_t)stream->device->delay_us + 1)) * 1000};
    if (pause.tv_nsec) nanosleep(&pause, NULL);
}

#if defined(__clang__)
__attribute__((no_sanitize("function"))) /* pointers are passed as integers */
#endif
static bool call_directly(void (*kernel)(void), const uint64_t *a, uint32_t n)
{
#define U uint64_t
    switch (n) {
    case 0:
        kernel();
        return true;
    case 1:
        ((void (*)(U))kernel)(a[0]);
        return true;
    case 2:
        ((void (*)(U, U))kernel)(a[0], a[1]);
        return true;
    case 3:
        ((void (*)(U, U, U))kernel)(a[0], a[1], a[2]);
        return true;
    case 4:
        ((void (*)(U, U, U, U))kernel)(a[0], a[1], a[2], a[3]);
        return true;
    case 5:
        ((void (*)(U, U, U, U, U))kernel)(a[0], a[1], a[2], a[3], a[4]);
        return true;
    case 6:
        ((void (*)(U, U, U, U, U, U))kernel)(a[0], a[1], a[2], a[3], a[4], a[5]);
        return true;
    case 7:
        ((void (*)(U, U, U, U, U, U, U))kernel)(a[0], a[1], a[2], a[3], a[4], a[5], a[6]);
        return true;
    case 8:
        ((void (*)(U, U, U, U, U, U, U, U))kernel)(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7]);
        return true;
    }
#undef U
    return false;
}

static void run_launch(struct launch_command *command)
{
    void (*kernel)(void);
    memcpy(&kernel, &command->kernel, sizeof kernel);
    if (command->head.kind == HOST_LAUNCH_MANY) {
        struct launch_block *block = (struct launch_block *)(uintptr_t)command->args[0];
        ffi_call(&block->cif, kernel, NULL, block->values);
        free(block);
        return;
    }
    void *values[HOST_INLINE_ARGS];
    uint32_t n = command->head.count;
    if (call_directly(kernel, command->args, n)) return;
    for (uint32_t i = 0; i < n; i++) values[i] = &command->args[i];
    ffi_call(&call[n], kernel, NULL, values);
}

static void run_measured(struct host_stream *stream, struct launch_command *command)
{
    uint64_t begin = weir__host_now_ns();
    const void *kernel = command->kernel;
    run_launch(command);
    weir__host_kernel_measured(kernel, weir__host_now_ns() - begin, stream->device->short_ns);
}

static void run_copy_block(const struct weir__copy *copy)
{
    size_t rows = copy->count[0] ? copy->count[0] : 1, planes = copy->count[1] ? copy->count[1] : 1;
    for (size_t plane = 0; plane < planes; plane++) {
        char *to = (char *)copy->to + (planes > 1 ? plane * copy->to_pitch[1] : 0);
        const char *from = (const char *)copy->from + (planes > 1 ? plane * copy->from_pitch[1] : 0);
        for (size_t row = 0; row < rows; row++) {
            memmove(to, from, copy->bytes);
            to += copy->to_pitch[0];
            from += copy->from_pitch[0];
        }
    }
}

static void run_function(struct host_stream *stream, const struct function_command *command)
{
    int status = command->function(command->arg);
    /* Relaxed: the runner's own. The first failure of a stretch stays. */
    if (status && !atomic_load_explicit(&stream->failure, memory_order_relaxed))
        atomic_store_explicit(&stream->failure, status < 0 ? status : WEIR_E_TASK, memory_order_relaxed);
}

void weir__host_execute(struct host_stream *stream, struct host_command *command)
{
    switch (command->kind) {
    case HOST_FUNCTION:
        run_function(stream, (struct function_command *)command);
        break;
    case HOST_LAUNCH:
    case HOST_LAUNCH_MANY:
        run_launch((struct launch_command *)command);
        break;
    case HOST_LAUNCH_MEASURED:
        run_measured(stream, (struct launch_command *)command);
        break;
    case HOST_COPY: {
        const struct copy_command *copy = (struct copy_command *)command;
        memmove(copy->to, copy->from, copy->bytes);
        break;
    }
    case HOST_COPY_BLOCK:
        run_copy_block(&((struct copy_block_command *)command)->copy);
        break;
    case HOST_FILL: {
        const struct fill_command *fill = (struct fill_command *)command;
        memset(fill->to, (int)command->count, fill->bytes);
        break;
    }
    case HOST_FREE:
        free(((struct fill_command *)command)->to);
        break;
    }
}

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Copies. A copy in a stream reads and writes pinned and device memory when its turn comes. Pageable memory is read
 * during the call, into a buffer, and written to by a call that does not return before. The synchronous forms are
 * actions of the default stream; only those that end in device memory return before they are done.
 */
#include "copy.h"

#include <stdlib.h>
#include <string.h>

#define CHECKED_BYTES 65536 /* of a pinned source are compared with what they were at the call */

struct copy_operation {
    struct operation operation;
    struct copy copy;
    void *staged;
    uint64_t sum;
    bool is_summed;
};

/* ---- what the addresses are ---- */

size_t emulator__copy_extent(const struct copy *copy, const struct copy_side *side)
{
    if (!copy->width || !copy->height || !copy->depth) return 0;
    return ((copy->depth - 1) * side->rows + copy->height - 1) * side->pitch + copy->width;
}

static int look_up(const struct copy *copy, struct copy_side *side)
{
    size_t bytes = emulator__copy_extent(copy, side);
    struct range *range = emulator__range_find(side->address);
    bool is_device = emulator__arena_of(side->address) || (range && range->kind == MODULE_RANGE);
    if (side->expected == CUDA_MEMORY_DEVICE && !is_device && !range) {
        emulator__report("%#llx is host memory where device memory is expected", (unsigned long long)side->address);
        return CUDA_INVALID_VALUE;
    }
    if (side->expected == CUDA_MEMORY_HOST && is_device) {
        emulator__report("%#llx is device memory where host memory is expected", (unsigned long long)side->address);
        return CUDA_INVALID_VALUE;
    }
    side->is_device = is_device;
    side->range = range;
    if (is_device) return emulator__range_check(side->address, bytes, &side->range);
    if (!side->address) return CUDA_INVALID_VALUE;
    if (range && bytes > range->bytes - (side->address - range->base)) side->range = NULL; /* pinned in part only */
    return 0;
}

/* ---- execution ---- */

static uint64_t sum_of(const struct copy *copy, const struct copy_side *side)
{
    const unsigned char *bytes = emulator__view(side->address);
    size_t count = emulator__copy_extent(copy, side);
    uint64_t sum = 14695981039346656037u;
    for (size_t i = 0; i < count && i < CHECKED_BYTES; i++) sum = (sum ^ bytes[i]) * 1099511628211u;
    return sum;
}

static void move(const struct copy *copy, unsigned char *to, const unsigned char *from)
{
    for (size_t z = 0; z < copy->depth; z++)
        for (size_t y = 0; y < copy->height; y++)
            memmove(to + (z * copy->to.rows + y) * copy->to.pitch, from + (z * copy->from.rows + y) * copy->from.pitch,
                    copy->width);
}

static int run_copy(struct operation *operation)
{
    struct copy_operation *what = (struct copy_operation *)operation;
    const void *from = what->staged ? what->staged : emulator__view(what->copy.from.address);
    if (what->is_summed && sum_of(&what->copy, &what->copy.from) != what->sum) {
        pthread_mutex_lock(&emulator__state.lock);
        emulator__report("the pinned source %#llx of a queued copy was changed before it ran",
                         (unsigned long long)what->copy.from.address);
        pthread_mutex_unlock(&emulator__state.lock);
    }
    move(&what->copy, emulator__view(what->copy.to.address), from);
    return 0;
}

static void copy_over(struct operation *operation, int status)
{
    (void)status;
    free(((struct copy_operation *)operation)->staged);
    emulator__operation_free(operation);
}

static struct copy_operation *new_operation(const struct copy *copy)
{
    struct copy_operation *what = emulator__allocate(sizeof *what);
    what->copy = *copy;
    what->operation.run = run_copy;
    what->operation.bytes = sizeof *what;
    what->operation.over = copy_over;
    const struct copy_side *sides[] = {&copy->from, &copy->to};
    for (int i = 0; i < 2; i++) {
        struct range *range = sides[i]->range;
        if (!range) continue;
        emulator__operation_hold(&what->operation, range);
        if (range->kind == MODULE_RANGE) what->operation.opens |= 1u << range->device->ordinal;
    }
    return what;
}

static void stage(struct copy_operation *what)
{
    size_t bytes = emulator__copy_extent(&what->copy, &what->copy.from);
    what->staged = malloc(bytes ? bytes : 1);
    if (!what->staged) abort();
    /* The rows as they stand; what is between them belongs to the source as well, but for the last row. */
    memcpy(what->staged, (const void *)(uintptr_t)what->copy.from.address, bytes);
}

/* ---- submission ---- */

static int check(struct copy *copy)
{
    int code = look_up(copy, &copy->from);
    return code ? code : look_up(copy, &copy->to);
}

static bool is_pageable(const struct copy_side *side)
{
    return !side->is_device && !side->range;
}

static int submit_async(struct stream *stream, struct copy *copy)
{
    struct context *context = stream->object.context;
    bool from_pageable = is_pageable(&copy->from), to_pageable = is_pageable(&copy->to);
    if ((from_pageable || to_pageable) && emulator__state.settings.report_hidden_sync)
        emulator__report("an asynchronous copy names pageable memory");
    int code = 0;
    if (stream->capture) { /* all memory is accessed when the node runs */
        emulator__submit(stream, &new_operation(copy)->operation);
        return 0;
    }
    if (from_pageable && emulator__state.settings.pageable_blocks) code = emulator__stream_drain(stream);
    if (code) return code;
    struct copy_operation *what = new_operation(copy);
    if (from_pageable && !to_pageable) {
        stage(what);
    } else if (emulator__state.settings.strict && !copy->from.is_device && !emulator__state.host_functions) {
        /* A host function that is queued before may be the one that writes it. */
        what->sum = sum_of(copy, &copy->from);
        what->is_summed = true;
    }
    struct point point = emulator__submit(stream, &what->operation);
    bool waits = to_pageable && (from_pageable || emulator__state.settings.pageable_blocks);
    return waits ? emulator__point_wait(point, context) : 0;
}

/* Ordered also behind and before everything of the other side's default stream. */
static void join_peer(struct operation *operation, struct context *context)
{
    if (context->error) return;
    struct point point = emulator__submit(context->legacy, emulator__allocate(sizeof(struct operation)));
    emulator__operation_after(operation, point);
}

static int submit_sync(struct stream *stream, struct copy *copy)
{
    struct context *context = stream->object.context;
    struct context *peers[] = {copy->from.is_device ? copy->from.range->context : context,
                               copy->to.is_device ? copy->to.range->context : context};
    struct copy_operation *what = new_operation(copy);
    int code = 0;
    for (int i = 0; i < 2; i++)
        if (peers[i] != context) join_peer(&what->operation, peers[i]);
    bool staged = is_pageable(&copy->from) && copy->to.is_device;
    if (staged) code = emulator__stream_drain(stream);
    if (code) {
        copy_over(&what->operation, code);
        return code;
    }
    if (staged) stage(what);
    struct point point = emulator__submit(stream, &what->operation);
    for (int i = 0; i < 2; i++) {
        if (peers[i] == context || peers[i]->error) continue;
        struct operation *behind = emulator__allocate(sizeof *behind);
        emulator__operation_after(behind, point);
        emulator__submit(peers[i]->legacy, behind);
    }
    bool returns_early = copy->to.is_device && (copy->from.is_device || staged);
    return returns_early ? 0 : emulator__point_wait(point, context);
}

int emulator__copy_async(struct copy *copy, void *handle)
{
    int code;
    struct stream *stream = emulator__stream_find(handle, &code);
    if (!stream) return code;
    if (!copy->width || !copy->height || !copy->depth) return 0;
    code = check(copy);
    return code ? code : submit_async(stream, copy);
}

int emulator__copy_sync(struct copy *copy)
{
    struct stream *stream = emulator__stream_default(emulator__call.context);
    if (emulator__state.settings.report_legacy) emulator__report("stream 0 is used");
    if (!copy->width || !copy->height || !copy->depth) return 0;
    int code = emulator__capture_forbid_legacy(emulator__call.context);
    if (!code) code = check(copy);
    return code ? code : submit_sync(stream, copy);
}

static struct copy line(uint64_t to, int to_type, uint64_t from, int from_type, size_t bytes)
{
    return (struct copy){
        .to = {.address = to, .expected = to_type, .pitch = bytes, .rows = 1},
        .from = {.address = from, .expected = from_type, .pitch = bytes, .rows = 1},
        .width = bytes,
        .height = 1,
        .depth = 1,
    };
}

/* ---- calls ---- */

#define ANY_MEMORY 0

int emulator__cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes)
{
    struct copy copy = line(to, CUDA_MEMORY_DEVICE, (uintptr_t)from, CUDA_MEMORY_HOST, bytes);
    return emulator__copy_sync(&copy);
}

int emulator__cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes)
{
    struct copy copy = line((uintptr_t)to, CUDA_MEMORY_HOST, from, CUDA_MEMORY_DEVICE, bytes);
    return emulator__copy_sync(&copy);
}

int emulator__cuMemcpyDtoD_v2(uint64_t to, uint64_t from, size_t bytes)
{
    struct copy copy = line(to, CUDA_MEMORY_DEVICE, from, CUDA_MEMORY_DEVICE, bytes);
    return emulator__copy_sync(&copy);
}

int emulator__cuMemcpy(uint64_t to, uint64_t from, size_t bytes)
{
    struct copy copy = line(to, ANY_MEMORY, from, ANY_MEMORY, bytes);
    return emulator__copy_sync(&copy);
}

int emulator__cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *stream)
{
    struct copy copy = line(to, CUDA_MEMORY_DEVICE, (uintptr_t)from, CUDA_MEMORY_HOST, bytes);
    return emulator__copy_async(&copy, stream);
}

int emulator__cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *stream)
{
    struct copy copy = line((uintptr_t)to, CUDA_MEMORY_HOST, from, CUDA_MEMORY_DEVICE, bytes);
    return emulator__copy_async(&copy, stream);
}

int emulator__cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void *stream)
{
    struct copy copy = line(to, CUDA_MEMORY_DEVICE, from, CUDA_MEMORY_DEVICE, bytes);
    return emulator__copy_async(&copy, stream);
}

int emulator__cuMemcpyAsync(uint64_t to, uint64_t from, size_t bytes, void *stream)
{
    struct copy copy = line(to, ANY_MEMORY, from, ANY_MEMORY, bytes);
    return emulator__copy_async(&copy, stream);
}

/* Each side's memory must be of the context that is named for it. */
static int check_peers(uint64_t to, void *to_context, uint64_t from, void *from_context)
{
    struct context *contexts[] = {emulator__handle_find(to_context, CONTEXT),
                                  emulator__handle_find(from_context, CONTEXT)};
    uint64_t addresses[] = {to, from};
    for (int i = 0; i < 2; i++) {
        if (!contexts[i]) return CUDA_INVALID_CONTEXT;
        struct range *range = emulator__range_find(addresses[i]);
        if (range && range->device == contexts[i]->device) continue;
        emulator__report("%#llx is no memory of the context named for it", (unsigned long long)addresses[i]);
        return CUDA_INVALID_VALUE;
    }
    return 0;
}

int emulator__cuMemcpyPeer(uint64_t to, void *to_context, uint64_t from, void *from_context, size_t bytes)
{
    int code = check_peers(to, to_context, from, from_context);
    return code ? code : emulator__cuMemcpyDtoD_v2(to, from, bytes);
}

int emulator__cuMemcpyPeerAsync(uint64_t to, void *to_context, uint64_t from, void *from_context, size_t bytes,
                                void *stream)
{
    int code = check_peers(to, to_context, from, from_context);
    return code ? code : emulator__cuMemcpyDtoDAsync_v2(to, from, bytes, stream);
}

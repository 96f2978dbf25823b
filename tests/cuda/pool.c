/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Stream-ordered memory. An allocation gets its address at once and may be used behind its place in the stream; a free
 * takes effect when the stream reaches it. Without room an allocation takes over, in this order, a range that the same
 * stream gives back, or waits for what others give back, as the driver does by an order of its own between streams.
 */
#include "internal.h"

#include <stdlib.h>

struct free_operation {
    struct operation operation;
    struct range *range;
};

struct pool *emulator__pool_create(struct device *device)
{
    struct pool *pool = emulator__allocate(sizeof *pool);
    pool->object = (struct object){.kind = POOL};
    pool->device = device;
    pool->follow_event = pool->opportunistic = pool->internal_dependencies = 1;
    if (emulator__handle_create(&pool->object)) return pool;
    free(pool);
    return NULL;
}

int emulator__cuDeviceGetDefaultMemPool(void **pool, int ordinal)
{
    struct device *device = emulator__device(ordinal);
    if (!pool) return CUDA_INVALID_VALUE;
    if (!device) return CUDA_INVALID_DEVICE;
    if (!emulator__state.settings.pools) return CUDA_NOT_SUPPORTED;
    *pool = emulator__handle_of(&device->pool->object);
    return 0;
}

static int *policy_of(struct pool *pool, int attribute)
{
    switch (attribute) {
    case CUDA_POOL_FOLLOW_EVENT:
        return &pool->follow_event;
    case CUDA_POOL_OPPORTUNISTIC:
        return &pool->opportunistic;
    case CUDA_POOL_INTERNAL_DEPENDENCIES:
        return &pool->internal_dependencies;
    default:
        return NULL;
    }
}

static uint64_t *size_of(struct pool *pool, int attribute)
{
    switch (attribute) {
    case CUDA_POOL_RELEASE_THRESHOLD:
        return &pool->threshold;
    case CUDA_POOL_RESERVED_CURRENT:
        return &pool->used; /* nothing is kept */
    case CUDA_POOL_RESERVED_HIGH:
        return &pool->reserved_high;
    case CUDA_POOL_USED_CURRENT:
        return &pool->used;
    case CUDA_POOL_USED_HIGH:
        return &pool->used_high;
    default:
        return NULL;
    }
}

int emulator__cuMemPoolGetAttribute(void *handle, int attribute, void *value)
{
    struct pool *pool = emulator__handle_find(handle, POOL);
    if (!pool || !value) return CUDA_INVALID_VALUE;
    if (policy_of(pool, attribute))
        *(int *)value = *policy_of(pool, attribute);
    else if (size_of(pool, attribute))
        *(uint64_t *)value = *size_of(pool, attribute);
    else
        return CUDA_INVALID_VALUE;
    return 0;
}

int emulator__cuMemPoolSetAttribute(void *handle, int attribute, void *value)
{
    struct pool *pool = emulator__handle_find(handle, POOL);
    if (!pool || !value) return CUDA_INVALID_VALUE;
    if (policy_of(pool, attribute)) {
        *policy_of(pool, attribute) = *(int *)value;
        return 0;
    }
    bool is_high = attribute == CUDA_POOL_RESERVED_HIGH || attribute == CUDA_POOL_USED_HIGH;
    if (attribute != CUDA_POOL_RELEASE_THRESHOLD && !is_high) return CUDA_INVALID_VALUE;
    if (is_high && *(uint64_t *)value) return CUDA_INVALID_VALUE; /* they can only be reset */
    *size_of(pool, attribute) = is_high ? pool->used : *(uint64_t *)value;
    return 0;
}

int emulator__cuMemPoolTrimTo(void *handle, size_t bytes)
{
    (void)bytes;
    return emulator__handle_find(handle, POOL) ? 0 : CUDA_INVALID_VALUE;
}

/* ---- allocation ---- */

/* Some range that a queued operation is going to give back, of that device. */
static struct range *find_freed(const struct device *device)
{
    struct range *range;
    for (size_t i = 0; (range = emulator__range_next(NULL, &i));)
        if (range->is_freed && range->device == device) return range;
    return NULL;
}

static uint64_t take(struct pool *pool, size_t bytes, struct context *context)
{
    uint64_t address;
    while (!(address = emulator__arena_take(pool->device, bytes)) && pool->internal_dependencies) {
        struct range *freed = find_freed(pool->device);
        if (!freed) break;
        if (emulator__state.settings.report_hidden_sync) emulator__report("waits for memory that others give back");
        if (emulator__point_wait(freed->ready, context)) break;
    }
    return address;
}

static int allocate(uint64_t *address, size_t bytes, struct pool *pool, void *handle)
{
    int code;
    if (!address || !bytes) return CUDA_INVALID_VALUE;
    if (!emulator__state.settings.pools) return CUDA_NOT_SUPPORTED;
    struct stream *stream = emulator__stream_find(handle, &code);
    if (stream) code = emulator__capture_forbid(stream); /* nodes of memory are not emulated */
    if (code) return code;
    struct context *context = stream->object.context;
    if (!pool) pool = context->device->pool;
    uint64_t taken = take(pool, bytes, context);
    if (!taken) return context->error ? context->error : CUDA_OUT_OF_MEMORY;
    struct range *range = emulator__range_add(DEVICE_RANGE, taken, bytes, context);
    range->is_async = true;
    range->device = pool->device;
    pool->used += bytes;
    if (pool->used > pool->used_high) pool->used_high = pool->used;
    if (pool->used > pool->reserved_high) pool->reserved_high = pool->used;
    range->references++;
    range->ready = emulator__point_retain(emulator__submit(stream, emulator__allocate(sizeof(struct operation))));
    emulator__range_release(range);
    *address = taken;
    return 0;
}

int emulator__cuMemAllocAsync(uint64_t *address, size_t bytes, void *stream)
{
    return allocate(address, bytes, NULL, stream);
}

int emulator__cuMemAllocFromPoolAsync(uint64_t *address, size_t bytes, void *handle, void *stream)
{
    struct pool *pool = emulator__handle_find(handle, POOL);
    return pool ? allocate(address, bytes, pool, stream) : CUDA_INVALID_VALUE;
}

static void free_over(struct operation *operation, int status)
{
    struct range *range = ((struct free_operation *)operation)->range;
    (void)status;
    emulator__range_remove(range);
    emulator__operation_free(operation);
}

int emulator__cuMemFreeAsync(uint64_t address, void *handle)
{
    int code;
    struct range *range;
    struct stream *stream = emulator__stream_find(handle, &code);
    if (stream) code = emulator__capture_forbid(stream);
    if (!code) code = emulator__range_check(address, 1, &range);
    if (code) return code;
    if (range->base != address || range->kind != DEVICE_RANGE) return CUDA_INVALID_VALUE;
    struct free_operation *what = emulator__allocate(sizeof *what);
    what->operation.over = free_over;
    what->range = range;
    emulator__order_free(range, stream->timeline);
    range->is_freed = true;
    range->references++;
    struct point before = range->ready;
    struct point point = emulator__point_retain(emulator__submit(stream, &what->operation));
    emulator__timeline_release(before.timeline);
    range->ready = point;
    emulator__range_release(range);
    return 0;
}

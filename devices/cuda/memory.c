/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/*
 * Device memory. Blocks that are given back are kept on lists by size and used again without a call of the driver; what
 * is given back in a stream's order comes to the list when the position is seen done, so that every stream may use it.
 * The driver is asked only if a list is empty, and gets memory back only when it has no more, when more than a quarter
 * of the device lies unused, or at the end: freeing may wait for all work of the device, and no path of a task in
 * steady state does it. This is also why cuMemAllocAsync is not used: its memory belongs to a stream, and alloc() here
 * is for all of them.
 *
 * Sizes are powers of two in eight steps, from 512 bytes: an eighth is wasted at most.
 */
#include "internal.h"

#include <stdlib.h>

enum { SMALLEST_LOG2 = 9 };

static uint32_t class_of(size_t bytes)
{
    if (bytes <= (size_t)1 << SMALLEST_LOG2) return 0;
    uint32_t log2 = 63 - (uint32_t)__builtin_clzll(bytes - 1); /* 2^log2 < bytes ≤ 2^(log2 + 1) */
    return (log2 - SMALLEST_LOG2) * 8 + (uint32_t)((bytes - 1 - ((size_t)1 << log2)) >> (log2 - 3)) + 1;
}

static size_t class_bytes(uint32_t size)
{
    if (size == 0) return (size_t)1 << SMALLEST_LOG2;
    uint32_t log2 = SMALLEST_LOG2 + (size - 1) / 8;
    return ((size_t)1 << log2) + ((size_t)((size - 1) % 8 + 1) << (log2 - 3));
}

static struct cuda_block **chain_of(struct cuda_device *device, WEIR__DRIVER_ADDRESS address)
{
    return &device->blocks[(uint64_t)(address * UINT64_C(0x9e3779b97f4a7c15)) >> 54];
}

/* NULL: it is no block in use. */
static struct cuda_block *used_find_locked(struct cuda_device *device, const void *address)
{
    struct cuda_block *block = *chain_of(device, (uintptr_t)address);
    while (block && block->address != (uintptr_t)address) block = block->chain;
    return block && block->used ? block : NULL;
}

bool weir__cuda_block_put(struct cuda_device *device, void *address)
{
    pthread_mutex_lock(&device->memory_lock);
    struct cuda_block *block = used_find_locked(device, address);
    if (block) {
        block->used = false;
        block->next = device->unused[block->size];
        device->unused[block->size] = block;
        device->unused_bytes += class_bytes(block->size);
    }
    pthread_mutex_unlock(&device->memory_lock);
    return block != NULL;
}

static struct cuda_block *block_take(struct cuda_device *device, uint32_t size)
{
    pthread_mutex_lock(&device->memory_lock);
    struct cuda_block *block = device->unused[size];
    if (block) {
        device->unused[size] = block->next;
        device->unused_bytes -= class_bytes(size);
        block->used = true;
    }
    pthread_mutex_unlock(&device->memory_lock);
    return block;
}

static void block_unchain_locked(struct cuda_device *device, struct cuda_block *block)
{
    struct cuda_block **link = chain_of(device, block->address);
    while (*link != block) link = &(*link)->chain;
    *link = block->chain;
}

/* Give unused memory back to the driver. */
static void trim(struct cuda_device *device)
{
    struct cuda_block *list = NULL;
    pthread_mutex_lock(&device->memory_lock);
    for (uint32_t size = 0; size < SIZE_CLASSES; size++) {
        while (device->unused[size]) {
            struct cuda_block *block = device->unused[size];
            device->unused[size] = block->next;
            block_unchain_locked(device, block);
            block->next = list;
            list = block;
        }
    }
    device->unused_bytes = 0;
    pthread_mutex_unlock(&device->memory_lock);
    while (list) {
        struct cuda_block *block = list;
        list = block->next;
        (void)weir__cuda_driver->memory_free(block->address);
        free(block);
    }
}

static bool has_frees(struct cuda_stream *stream)
{
    bool found = false;
    pthread_mutex_lock(&stream->lock);
    for (struct cuda_item *item = stream->first; item && !found; item = item->next) found = item->kind == ITEM_FREE;
    pthread_mutex_unlock(&stream->lock);
    return found;
}

/* Memory may be on its way back: wait for the streams that have some. */
static void collect(struct cuda_device *device)
{
    pthread_mutex_lock(&device->stream_lock);
    for (struct cuda_stream *stream = device->streams; stream; stream = stream->next) {
        /* Acquire: what was recorded then was queued then; pairs with the release in event.c. */
        uint64_t position = atomic_load_explicit(&stream->recorded, memory_order_acquire);
        if (has_frees(stream) && !DRIVER(device, stream_sync, stream->handle)) weir__cuda_settle(stream, position);
    }
    pthread_mutex_unlock(&device->stream_lock);
}

static int block_new(struct cuda_device *device, uint32_t size, struct cuda_block **block_out)
{
    struct cuda_block *block = malloc(sizeof *block);
    if (!block) return weir__cuda_fail(WEIR_E_NO_MEMORY, "no memory to keep account of device memory");
    *block = (struct cuda_block){.size = size, .used = true};
    int rc = DRIVER(device, memory_alloc, &block->address, class_bytes(size));
    if (rc) {
        free(block);
        return rc;
    }
    COUNT(device, memory_blocks);
    pthread_mutex_lock(&device->memory_lock);
    struct cuda_block **chain = chain_of(device, block->address);
    block->chain = *chain;
    *chain = block;
    pthread_mutex_unlock(&device->memory_lock);
    *block_out = block;
    return WEIR_OK;
}

static bool is_much_unused(struct cuda_device *device)
{
    pthread_mutex_lock(&device->memory_lock);
    bool much = device->unused_bytes > device->memory_bytes / 4;
    pthread_mutex_unlock(&device->memory_lock);
    return much;
}

int weir__cuda_alloc(void *handle, size_t bytes, void **address_out)
{
    struct cuda_device *device = handle;
    struct cuda_guard guard;
    if (!bytes) return weir__cuda_fail(WEIR_E_INVALID, "no bytes to allocate");
    if (bytes > device->memory_bytes) return weir__cuda_fail(WEIR_E_NO_MEMORY, "the device has less memory");
    uint32_t size = class_of(bytes);
    struct cuda_block *block = weir__cuda_is_lost(device) ? NULL : block_take(device, size);
    if (block) {
        COUNT(device, memory_reused);
    } else {
        int rc = weir__cuda_enter(device, &guard);
        if (rc) return rc;
        if (is_much_unused(device)) trim(device);
        rc = block_new(device, size, &block);
        if (rc == WEIR_E_NO_MEMORY) {
            collect(device);
            trim(device);
            rc = block_new(device, size, &block);
        }
        weir__cuda_leave(&guard);
        if (rc) return rc;
    }
    *address_out = (void *)(uintptr_t)block->address;
    return WEIR_OK;
}

static int fail_not_used(void)
{
    return weir__cuda_fail(WEIR_E_INVALID, "no memory of this device, or freed before");
}

int weir__cuda_free(void *handle, void *address)
{
    int rc = weir__cuda_check_fork();
    if (rc) return rc;
    return weir__cuda_block_put(handle, address) ? WEIR_OK : fail_not_used();
}

int weir__cuda_free_on_stream(void *handle, void *address)
{
    struct cuda_stream *stream = handle;
    struct cuda_device *device = stream->device;
    int rc = weir__cuda_check_fork();
    if (rc) return rc;
    pthread_mutex_lock(&device->memory_lock);
    bool used = used_find_locked(device, address) != NULL;
    pthread_mutex_unlock(&device->memory_lock);
    if (!used) return fail_not_used();
    struct cuda_item *item = weir__cuda_item_get(stream, ITEM_FREE);
    if (!item) return WEIR_E_NO_MEMORY;
    item->address = address;
    weir__cuda_item_put(stream, item);
    return WEIR_OK;
}

void weir__cuda_memory_close(struct cuda_device *device)
{
    for (uint32_t i = 0; i < BLOCK_CHAINS; i++) {
        while (device->blocks[i]) {
            struct cuda_block *block = device->blocks[i];
            device->blocks[i] = block->chain;
            (void)weir__cuda_driver->memory_free(block->address);
            free(block);
        }
    }
}

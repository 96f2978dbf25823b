/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/*
 * Pinned memory for copies from and to pageable memory. Slots are allocated sixteen at a time and never given back
 * before the device is closed; a stream fills one with small copies until it is full. A bounce buffer belongs to one
 * stream: what uses it is in the order of the stream, so it needs no other protection.
 *
 * Pinned memory is allocated without any lock: the driver may wait for the device meanwhile.
 */
#include "internal.h"

#include <stdlib.h>

static struct cuda_slot *slot_pop(struct cuda_device *device)
{
    pthread_mutex_lock(&device->pinned_lock);
    struct cuda_slot *slot = device->slots;
    if (slot) device->slots = slot->next;
    pthread_mutex_unlock(&device->pinned_lock);
    return slot;
}

static void slot_push(struct cuda_device *device, struct cuda_slot *slot)
{
    pthread_mutex_lock(&device->pinned_lock);
    slot->next = device->slots;
    device->slots = slot;
    pthread_mutex_unlock(&device->pinned_lock);
}

/* May another slab be allocated? Then it is counted already. */
static bool slab_claim(struct cuda_device *device)
{
    pthread_mutex_lock(&device->pinned_lock);
    bool may = device->nslabs < STAGE_SLABS_MOST;
    if (may) device->nslabs++;
    pthread_mutex_unlock(&device->pinned_lock);
    return may;
}

static struct cuda_slot *slab_new(struct cuda_device *device)
{
    struct cuda_slab *slab = slab_claim(device) ? malloc(sizeof *slab) : NULL;
    if (!slab) return NULL;
    if (DRIVER(device, pinned_alloc, &slab->memory, (size_t)STAGE_BYTES * STAGE_SLAB_SLOTS, DRIVER_HOST_PORTABLE)) {
        free(slab); /* it stays counted: there is no more to be had */
        return NULL;
    }
    COUNT(device, pinned_blocks);
    for (uint32_t i = 0; i < STAGE_SLAB_SLOTS; i++) {
        slab->slots[i] = (struct cuda_slot){.memory = (unsigned char *)slab->memory + (size_t)i * STAGE_BYTES};
        if (i > 0) slot_push(device, &slab->slots[i]);
    }
    pthread_mutex_lock(&device->pinned_lock);
    slab->next = device->slabs;
    device->slabs = slab;
    pthread_mutex_unlock(&device->pinned_lock);
    return &slab->slots[0];
}

/* The current slot has no room: take another, or this one again if nobody reads it any more. */
static bool slot_renew(struct cuda_stream *stream)
{
    pthread_mutex_lock(&stream->lock);
    bool again = stream->slot && stream->slot->uses == 0;
    pthread_mutex_unlock(&stream->lock);
    if (!again) {
        struct cuda_slot *slot = slot_pop(stream->device);
        if (!slot) slot = slab_new(stream->device);
        if (!slot) return false;
        pthread_mutex_lock(&stream->lock);
        struct cuda_slot *old = stream->slot;
        stream->slot = slot;
        if (old && old->uses == 0) slot_push(stream->device, old);
        pthread_mutex_unlock(&stream->lock);
    }
    stream->slot_used = 0;
    return true;
}

bool weir__cuda_stage(struct cuda_stream *stream, struct cuda_item *item, size_t bytes)
{
    size_t size = (bytes + 63) & ~(size_t)63;
    if (!stream->slot || STAGE_BYTES - stream->slot_used < size)
        if (!slot_renew(stream)) return false;
    item->slot = stream->slot;
    item->rows.pinned = stream->slot->memory + stream->slot_used;
    stream->slot_used += size;
    pthread_mutex_lock(&stream->lock);
    item->slot->uses++;
    pthread_mutex_unlock(&stream->lock);
    return true;
}

void weir__cuda_unstage_locked(struct cuda_stream *stream, struct cuda_item *item)
{
    if (--item->slot->uses == 0 && item->slot != stream->slot) slot_push(stream->device, item->slot);
    item->slot = NULL;
}

int weir__cuda_bounce(struct cuda_stream *stream)
{
    void *memory;
    if (stream->bounce) return WEIR_OK;
    int rc = DRIVER(stream->device, pinned_alloc, &memory, BOUNCE_BYTES, DRIVER_HOST_PORTABLE);
    if (rc) return rc;
    COUNT(stream->device, pinned_blocks);
    stream->bounce = memory;
    return WEIR_OK;
}

void weir__cuda_staging_close(struct cuda_device *device)
{
    while (device->slabs) {
        struct cuda_slab *slab = device->slabs;
        device->slabs = slab->next;
        (void)weir__cuda_driver->pinned_free(slab->memory);
        free(slab);
    }
}

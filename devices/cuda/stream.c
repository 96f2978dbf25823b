/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/*
 * Streams. They do not synchronise with the legacy stream. Creating one is slow and destroying one may wait for the
 * device, so one that is not used any more is kept for the next that is asked for, and destroyed when the device is
 * closed.
 */
#include "internal.h"

#include <stdlib.h>

/* Larger is more urgent in weir, smaller in CUDA; the driver has a few steps only. */
static int priority_of(const struct cuda_device *device, int32_t priority)
{
    int64_t wanted = -(int64_t)priority;
    if (wanted > device->priority_least) return device->priority_least;
    if (wanted < device->priority_greatest) return device->priority_greatest;
    return (int)wanted;
}

static struct cuda_stream *idle_take(struct cuda_device *device, int priority)
{
    pthread_mutex_lock(&device->stream_lock);
    struct cuda_stream **link = &device->idle_streams;
    while (*link && (*link)->priority != priority) link = &(*link)->next;
    struct cuda_stream *stream = *link;
    if (stream) *link = stream->next;
    pthread_mutex_unlock(&device->stream_lock);
    return stream;
}

static int stream_new(struct cuda_device *device, int priority, struct cuda_stream **stream_out)
{
    struct cuda_stream *stream = calloc(1, sizeof *stream);
    if (!stream) return weir__cuda_fail(WEIR_E_NO_MEMORY, "no memory for a stream");
    int rc = DRIVER(device, stream_create, &stream->handle, DRIVER_STREAM_NON_BLOCKING, priority);
    if (rc) {
        free(stream);
        return rc;
    }
    COUNT(device, streams_created);
    stream->device = device;
    stream->priority = priority;
    stream->last = &stream->first;
    pthread_mutex_init(&stream->lock, NULL);
    *stream_out = stream;
    return WEIR_OK;
}

int weir__cuda_stream_create(void *handle, void *owner, int32_t wanted, void **stream_out)
{
    struct cuda_device *device = handle;
    struct cuda_guard guard;
    (void)owner; /* comes with notices, which are the adapter's */
    int rc = weir__cuda_enter(device, &guard);
    if (rc) return rc;
    int priority = priority_of(device, wanted);
    struct cuda_stream *stream = idle_take(device, priority);
    if (!stream) rc = stream_new(device, priority, &stream);
    weir__cuda_leave(&guard);
    if (rc) return rc;
    pthread_mutex_lock(&device->stream_lock);
    stream->next = device->streams;
    device->streams = stream;
    pthread_mutex_unlock(&device->stream_lock);
    *stream_out = stream;
    return WEIR_OK;
}

int weir__cuda_stream_sync(void *handle)
{
    struct cuda_stream *stream = handle;
    struct cuda_guard guard;
    int rc = weir__cuda_enter(stream->device, &guard);
    if (rc) return weir__cuda_distrust(stream->device, rc);
    /* Acquire: pairs with the release in event.c. */
    uint64_t position = atomic_load_explicit(&stream->recorded, memory_order_acquire);
    rc = DRIVER(stream->device, stream_sync, stream->handle);
    if (!rc) weir__cuda_settle(stream, position);
    weir__cuda_leave(&guard);
    return weir__cuda_distrust(stream->device, rc);
}

void weir__cuda_stream_destroy(void *handle)
{
    struct cuda_stream *stream = handle;
    struct cuda_device *device = stream->device;
    if (weir__cuda_is_forked()) return;
    (void)!weir__cuda_stream_sync(stream); /* lost: nothing runs any more */
    weir__cuda_settle_end(stream);
    pthread_mutex_lock(&device->stream_lock);
    struct cuda_stream **link = &device->streams;
    while (*link != stream) link = &(*link)->next;
    *link = stream->next;
    stream->next = device->idle_streams;
    device->idle_streams = stream;
    pthread_mutex_unlock(&device->stream_lock);
}

/* What others enqueue is not known here: it may read what a late copy writes, and write anything. */
static void expect_others(struct cuda_stream *stream)
{
    struct cuda_guard guard;
    if (stream->late_position && !weir__cuda_enter(stream->device, &guard)) {
        (void)!weir__cuda_call_settle_own(stream); /* without memory for it the copy stays late */
        weir__cuda_leave(&guard);
    }
    weir__cuda_writes_anything(stream);
}

void *weir__cuda_stream_native(void *handle)
{
    struct cuda_stream *stream = handle;
    expect_others(stream);
    return stream->handle;
}

void weir__cuda_stream_lend(void *handle, bool on)
{
    struct cuda_stream *stream = handle;
    expect_others(stream);
    stream->lent = on;
}

/* A broken context answers at once. */
void weir__cuda_streams_drain(struct cuda_device *device)
{
    pthread_mutex_lock(&device->stream_lock);
    struct cuda_stream *lists[] = {device->streams, device->idle_streams};
    for (int i = 0; i < 2; i++)
        for (struct cuda_stream *stream = lists[i]; stream; stream = stream->next)
            (void)weir__cuda_driver->stream_sync(stream->handle);
    pthread_mutex_unlock(&device->stream_lock);
}

static void stream_free(struct cuda_stream *stream)
{
    (void)weir__cuda_driver->stream_destroy(stream->handle);
    if (stream->bounce) (void)weir__cuda_driver->pinned_free(stream->bounce);
    struct cuda_item *lists[] = {stream->free_items, stream->grave};
    for (int i = 0; i < 2; i++) {
        for (struct cuda_item *item = lists[i], *next; item; item = next) {
            next = item->next;
            free(item);
        }
    }
    weir__cuda_notices_free(stream);
    pthread_mutex_destroy(&stream->lock);
    free(stream);
}

void weir__cuda_streams_close(struct cuda_device *device)
{
    while (device->idle_streams) {
        struct cuda_stream *stream = device->idle_streams;
        device->idle_streams = stream->next;
        stream_free(stream);
    }
    while (device->foreign) {
        struct cuda_item *item = device->foreign;
        device->foreign = item->next;
        weir__cuda_call_end(item);
        free(item);
    }
}

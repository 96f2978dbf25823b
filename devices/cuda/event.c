/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/*
 * Events: without timing, which makes them cheap to record, and with a wait that sleeps, since nobody may spin for a
 * device. The adapter (devices/events.c) pools them, so that a record is never made while a former one is pending.
 *
 * An event is told to be done only after weir__cuda_settle(): late copies are in place and memory that was freed in
 * stream order is free. The record publishes what was queued before it (R1, release), for those who look at a stream
 * from outside.
 */
#include "internal.h"

#include <stdlib.h>
#include <time.h>

int weir__cuda_event_create(void *handle, void **event_out)
{
    struct cuda_device *device = handle;
    struct cuda_guard guard;
    struct cuda_event *event = malloc(sizeof *event);
    if (!event) return weir__cuda_fail(WEIR_E_NO_MEMORY, "no memory for an event");
    *event = (struct cuda_event){.device = device};
    int rc = weir__cuda_enter(device, &guard);
    if (!rc) {
        rc = DRIVER(device, event_create, &event->handle, DRIVER_EVENT_DISABLE_TIMING | DRIVER_EVENT_BLOCKING_SYNC);
        weir__cuda_leave(&guard);
    }
    if (rc) {
        free(event);
        return rc;
    }
    COUNT(device, events_created);
    *event_out = event;
    return WEIR_OK;
}

void weir__cuda_event_destroy(void *handle)
{
    struct cuda_event *event = handle;
    struct cuda_guard guard;
    if (weir__cuda_is_forked()) return;
    weir__cuda_enter_anyway(event->device, &guard);
    (void)weir__cuda_driver->event_destroy(event->handle);
    weir__cuda_leave(&guard);
    free(event);
}

int weir__cuda_event_record(void *stream_handle, void *event_handle)
{
    struct cuda_stream *stream = stream_handle;
    struct cuda_event *event = event_handle;
    struct cuda_guard guard;
    int rc = weir__cuda_enter(stream->device, &guard);
    if (rc) return rc;
    rc = DRIVER(stream->device, event_record, event->handle, stream->handle);
    weir__cuda_leave(&guard);
    if (rc) return rc;
    atomic_store_explicit(&event->asked_ns, 0, memory_order_relaxed);
    event->stream = stream;
    event->position = weir__cuda_next_position(stream);
    event->writes_host = weir__cuda_is_written(stream, NULL, SIZE_MAX);
    bool has_late = stream->late_position > atomic_load_explicit(&stream->done, memory_order_acquire); /* S2 */
    event->late = has_late ? stream->late : 0;
    atomic_store_explicit(&stream->recorded, event->position, memory_order_release); /* R1 */
    return WEIR_OK;
}

/* Later work of the stream is behind @event, and behind its late copies. */
static int wait_one(struct cuda_stream *stream, const struct cuda_event *event)
{
    struct cuda_stream *from = event->stream;
    int rc = DRIVER(stream->device, stream_wait, stream->handle, event->handle, 0);
    if (rc || atomic_load_explicit(&from->done, memory_order_acquire) >= event->position) return rc; /* S2 */
    if (event->writes_host) weir__cuda_writes_anything(stream);
    return event->late ? weir__cuda_call_settle(stream, from, event->late) : WEIR_OK;
}

int weir__cuda_event_wait(void *handle, void *const *events, size_t n)
{
    struct cuda_stream *stream = handle;
    struct cuda_guard guard;
    int rc = weir__cuda_enter(stream->device, &guard);
    if (rc) return rc;
    for (size_t i = 0; i < n && !rc; i++) rc = wait_one(stream, events[i]);
    weir__cuda_leave(&guard);
    return rc;
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Needs no current context. A submitter looks at all streams for an idle one: what was pending a moment ago is still
 * taken for pending, since a question costs the driver more than a look at the clock. */
int weir__cuda_event_query(void *handle)
{
    struct cuda_event *event = handle;
    struct cuda_device *device = event->device;
    struct cuda_stream *stream = event->stream;
    int rc = weir__cuda_check(device);
    if (rc) return rc;
    if (atomic_load_explicit(&stream->done, memory_order_acquire) >= event->position) return WEIR_OK; /* S2 */
    /* Relaxed: an old value costs a question. */
    uint64_t now = now_ns(), asked = atomic_load_explicit(&event->asked_ns, memory_order_relaxed);
    if (now - asked < ASK_AGAIN_NS) return WEIR_E_PENDING;
    rc = DRIVER(device, event_query, event->handle);
    if (rc == WEIR_E_PENDING) atomic_store_explicit(&event->asked_ns, now, memory_order_relaxed);
    if (!rc) weir__cuda_settle(stream, event->position);
    return weir__cuda_distrust(device, rc);
}

int weir__cuda_event_sync(void *handle)
{
    struct cuda_event *event = handle;
    struct cuda_stream *stream = event->stream;
    struct cuda_guard guard;
    if (atomic_load_explicit(&stream->done, memory_order_acquire) >= event->position) return WEIR_OK; /* S2 */
    int rc = weir__cuda_enter(event->device, &guard);
    if (rc) return weir__cuda_distrust(event->device, rc);
    rc = DRIVER(event->device, event_sync, event->handle);
    if (!rc) weir__cuda_settle(stream, event->position);
    weir__cuda_leave(&guard);
    return weir__cuda_distrust(event->device, rc);
}

/* ---- streams and events of others ---- */

/* A wait for what is outside of a capture ends it. */
static int refuse_capture(struct cuda_device *device, struct driver_stream *native)
{
    enum driver_capture_status status = (enum driver_capture_status)0;
    int rc = DRIVER(device, stream_capturing, native, &status);
    return rc || !status ? rc : weir__cuda_fail(WEIR_E_STATE, "the stream captures a graph");
}

/* @native may be a stream of any context; the event may be waited for from all of them. */
int weir__cuda_event_signal(void *handle, void *native)
{
    struct cuda_event *event = handle;
    struct cuda_device *device = event->device;
    struct driver_context *theirs = NULL;
    struct cuda_guard guard, inner = {.pushed = false};
    int rc = weir__cuda_enter(device, &guard);
    if (rc) return rc;
    rc = refuse_capture(device, native);
    if (!rc) rc = DRIVER(device, stream_context, native, &theirs);
    if (!rc && theirs != weir__cuda_context(device)) {
        rc = DRIVER(device, context_push, theirs);
        inner.pushed = !rc;
    }
    if (!rc) rc = DRIVER(device, stream_wait, native, event->handle, 0);
    if (!rc && event->late) rc = weir__cuda_call_settle_foreign(native, event->stream, event->late);
    weir__cuda_leave(&inner);
    weir__cuda_leave(&guard);
    return rc;
}

int weir__cuda_foreign_wait(void *handle, void *native_event)
{
    struct cuda_stream *stream = handle;
    struct cuda_guard guard;
    int rc = weir__cuda_enter(stream->device, &guard);
    if (rc) return rc;
    rc = DRIVER(stream->device, stream_wait, stream->handle, native_event, 0);
    weir__cuda_writes_anything(stream);
    weir__cuda_leave(&guard);
    return rc;
}

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Events. A record takes a place in its stream and the event's state is that place from the call on; waits and queries
 * look at the state at their call, so that a later record does not move them.
 */
#include "capture.h"

#include <stdlib.h>

#include "emulator.h"

struct event {
    struct object object;
    unsigned flags;
    bool is_recorded;
    struct point point;
    struct stamp *stamp;
    struct clock known;      /* what its record came after */
    struct capture *capture; /* that it was recorded in, and the nodes before it */
    struct node_set *captured_at;
    uint64_t id;
    uint64_t recorder;      /* number of the thread that is recording it; 0: none */
    unsigned synchronising; /* threads */
};

/* When a record was reached; kept by the event and by the operation. */
struct stamp {
    unsigned references;
    uint64_t ns; /* 0: not yet */
};

struct record_operation {
    struct operation operation;
    struct stamp *stamp;
};

static void release_stamp(struct stamp *stamp)
{
    if (stamp && --stamp->references == 0) free(stamp);
}

static void forget_capture(struct event *event)
{
    emulator__capture_release(event->capture);
    emulator__node_set_release(event->captured_at);
    event->capture = NULL;
    event->captured_at = NULL;
}

int emulator__cuEventCreate(void **handle, unsigned flags)
{
    if (!handle || flags & ~7u || (flags & CUDA_EVENT_INTERPROCESS && !(flags & CUDA_EVENT_NO_TIMING)))
        return CUDA_INVALID_VALUE;
    struct event *event = emulator__allocate(sizeof *event);
    event->object = (struct object){.kind = EVENT, .context = emulator__call.context};
    event->flags = flags;
    event->id = ++emulator__state.next_id;
    void *created = emulator__handle_create(&event->object);
    if (!created) {
        free(event);
        return CUDA_OUT_OF_MEMORY;
    }
    *handle = created;
    return 0;
}

void emulator__event_free(struct object *object)
{
    struct event *event = (struct event *)object;
    emulator__handle_destroy(object);
    emulator__timeline_release(event->point.timeline);
    release_stamp(event->stamp);
    forget_capture(event);
    free(event->known.entries);
    free(event);
}

/* One thread at a time may change an event. */
static void check_sharing(const struct event *event, const char *what)
{
    if (event->recorder && event->recorder != emulator__thread_number())
        emulator__report("event %p is %s while another thread records it", emulator__handle_of(&event->object), what);
}

/* It is there, and still the same one, after the lock was given up. */
static struct event *find_again(void *handle, uint64_t id)
{
    struct event *event = emulator__handle_peek(handle, EVENT);
    return event && event->id == id ? event : NULL;
}

int emulator__cuEventDestroy_v2(void *handle)
{
    struct event *event = emulator__handle_find(handle, EVENT);
    if (!event) return CUDA_INVALID_HANDLE;
    check_sharing(event, "destroyed");
    emulator__event_free(&event->object);
    return 0;
}

static void record_over(struct operation *operation, int status)
{
    struct record_operation *record = (struct record_operation *)operation;
    (void)status;
    record->stamp->ns = emulator__now_ns();
    release_stamp(record->stamp);
    emulator__operation_free(operation);
}

/* Legal, but not for events that are thought to be free. */
static void note_rerecord(const struct event *event)
{
    bool is_pending = event->is_recorded && !emulator__point_is_complete(event->point);
    if (!is_pending && !event->synchronising) return;
    emulator__state.rerecords++;
    if (!emulator__state.settings.report_rerecord) return;
    emulator__report("event %p is recorded while %s", emulator__handle_of(&event->object),
                     is_pending ? "its former record is pending" : "a thread synchronises on it");
}

uint64_t emulator_rerecords(void)
{
    pthread_mutex_lock(&emulator__state.lock);
    uint64_t rerecords = emulator__state.rerecords;
    pthread_mutex_unlock(&emulator__state.lock);
    return rerecords;
}

int emulator__cuEventRecordWithFlags(void *handle, void *stream_handle, unsigned flags)
{
    int code;
    if (flags) return CUDA_INVALID_VALUE; /* external is for captures */
    struct event *event = emulator__handle_find(handle, EVENT);
    if (!event) return CUDA_INVALID_HANDLE;
    struct stream *stream = emulator__stream_find(stream_handle, &code);
    if (!stream) return code;
    if (stream->object.context != event->object.context) {
        emulator__report("event %p and stream %p are of different contexts", handle, stream_handle);
        return CUDA_INVALID_HANDLE;
    }
    if (stream->capture) {
        forget_capture(event);
        event->capture = stream->capture;
        event->capture->references++;
        event->captured_at = emulator__node_set_join(stream->captured_at, NULL);
        return 0;
    }
    struct record_operation *record = emulator__allocate(sizeof *record);
    struct stamp *stamp = emulator__allocate(sizeof *stamp);
    stamp->references = 2;
    record->stamp = stamp;
    record->operation.over = record_over;
    note_rerecord(event);
    check_sharing(event, "recorded");
    uint64_t id = event->id;
    event->recorder = emulator__thread_number();
    emulator__let_others_in();
    struct point point = emulator__point_retain(emulator__submit(stream, &record->operation));
    event = find_again(handle, id);
    if (!event) { /* destroyed while the launch queue was full */
        emulator__timeline_release(point.timeline);
        release_stamp(stamp);
        return CUDA_INVALID_HANDLE;
    }
    emulator__timeline_release(event->point.timeline);
    release_stamp(event->stamp);
    event->recorder = 0;
    event->point = point;
    event->stamp = stamp;
    event->is_recorded = true;
    forget_capture(event);
    emulator__clock_snapshot(&event->known, stream->timeline);
    return 0;
}

int emulator__cuEventRecord(void *event, void *stream)
{
    return emulator__cuEventRecordWithFlags(event, stream, 0);
}

/* A wait that has to do with a capture: the stream is led into it, or the wait does not belong there. */
static int wait_in_capture(struct stream *stream, struct event *event)
{
    bool is_captured = event->capture && event->capture->is_active;
    if (!is_captured) {
        emulator__capture_invalidate(stream->capture);
        return CUDA_CAPTURE_ISOLATION;
    }
    if (stream->capture && stream->capture != event->capture) {
        emulator__capture_invalidate(stream->capture);
        emulator__capture_invalidate(event->capture);
        return CUDA_CAPTURE_MERGE;
    }
    if (stream == stream->object.context->legacy) {
        emulator__capture_invalidate(event->capture);
        return CUDA_CAPTURE_IMPLICIT;
    }
    emulator__capture_follow(stream, event->capture, event->captured_at);
    return 0;
}

int emulator__cuStreamWaitEvent(void *stream_handle, void *handle, unsigned flags)
{
    int code;
    if (flags) return CUDA_INVALID_VALUE;
    struct event *event = emulator__handle_find(handle, EVENT);
    if (!event) return CUDA_INVALID_HANDLE;
    struct stream *stream = emulator__stream_find(stream_handle, &code);
    if (!stream) return code;
    if (stream->capture || (event->capture && event->capture->is_active)) return wait_in_capture(stream, event);
    if (!event->is_recorded) emulator__report("waits for event %p, which was never recorded", handle);
    struct operation *wait = emulator__allocate(sizeof *wait);
    emulator__operation_after(wait, event->point);
    emulator__clock_join(&stream->timeline->known, &event->known);
    emulator__submit(stream, wait);
    return 0;
}

/* And then the capture has come to an end. */
static bool is_captured(struct event *event)
{
    if (!event->capture || !event->capture->is_active) return false;
    emulator__capture_invalidate(event->capture);
    return true;
}

int emulator__cuEventQuery(void *handle)
{
    struct event *event = emulator__handle_find(handle, EVENT);
    if (!event) return CUDA_INVALID_HANDLE;
    if (event->object.context->error) return event->object.context->error;
    if (is_captured(event)) return CUDA_CAPTURED_EVENT;
    return emulator__point_is_complete(event->point) ? 0 : CUDA_NOT_READY;
}

int emulator__cuEventSynchronize(void *handle)
{
    struct event *event = emulator__handle_find(handle, EVENT);
    if (!event) return CUDA_INVALID_HANDLE;
    if (is_captured(event)) return CUDA_CAPTURED_EVENT;
    uint64_t id = event->id;
    event->synchronising++;
    int code = emulator__point_wait(event->point, event->object.context);
    event = find_again(handle, id);
    if (event) event->synchronising--;
    return code;
}

int emulator__cuEventElapsedTime_v2(float *ms, void *start_handle, void *end_handle)
{
    struct event *start = emulator__handle_find(start_handle, EVENT);
    struct event *end = emulator__handle_find(end_handle, EVENT);
    if (!ms) return CUDA_INVALID_VALUE;
    if (!start || !end || !start->is_recorded || !end->is_recorded) return CUDA_INVALID_HANDLE;
    if ((start->flags | end->flags) & CUDA_EVENT_NO_TIMING) return CUDA_INVALID_HANDLE;
    if (start->object.context->device != end->object.context->device) return CUDA_INVALID_HANDLE;
    if (end->object.context->error) return end->object.context->error;
    if (!emulator__point_is_complete(start->point) || !emulator__point_is_complete(end->point)) return CUDA_NOT_READY;
    *ms = (float)((double)(int64_t)(end->stamp->ns - start->stamp->ns) / 1e6);
    return 0;
}

int emulator__cuEventElapsedTime(float *ms, void *start, void *end)
{
    return emulator__cuEventElapsedTime_v2(ms, start, end);
}

/* ---- all streams of a context ---- */

int emulator__cuCtxRecordEvent(void *context_handle, void *handle)
{
    struct context *context = emulator__handle_find(context_handle, CONTEXT);
    struct event *event = emulator__handle_find(handle, EVENT);
    if (!context || !event || event->object.context != context) return CUDA_INVALID_HANDLE;
    /* A place in a stream of its own that comes after the ends of all others. */
    struct stream *stream = emulator__stream_create(context, CUDA_STREAM_NON_BLOCKING, 0);
    if (!stream) return CUDA_OUT_OF_MEMORY;
    struct operation *join = emulator__allocate(sizeof *join);
    for (struct stream *other = context->streams; other; other = other->context_next)
        emulator__operation_after(join, emulator__stream_tail(other));
    emulator__submit(stream, join);
    void *stream_handle = emulator__handle_of(&stream->object);
    int code = emulator__cuEventRecordWithFlags(handle, stream_handle, 0);
    emulator__cuStreamDestroy_v2(stream_handle);
    return code;
}

int emulator__cuCtxWaitEvent(void *context_handle, void *handle)
{
    struct context *context = emulator__handle_find(context_handle, CONTEXT);
    if (!context || !emulator__handle_find(handle, EVENT)) return CUDA_INVALID_HANDLE;
    int code = 0;
    for (struct stream *stream = context->streams; stream && !code; stream = stream->context_next)
        if (!stream->is_destroyed) code = emulator__cuStreamWaitEvent(emulator__handle_of(&stream->object), handle, 0);
    return code;
}

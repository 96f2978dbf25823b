/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * include/weir/host.h: what users queue by themselves. A native stream is the stream itself; a native event names a
 * position of it. Streams are kept for ever, so an event needs no reference: after its stream is gone the position is
 * reached.
 */
#include <sched.h>
#include <stdlib.h>

#include <weir/host.h>

#include "internal.h"

#define HOST_EVENT_MAGIC 0x776569726576656eu

struct host_event {
    uint64_t magic;
    struct host_point point;
};

static int check_stream(void *native_stream, struct host_stream **stream_out)
{
    struct host_stream *stream = native_stream;
    if (!stream || (uintptr_t)stream % alignof(struct host_stream) || stream->magic != HOST_STREAM_MAGIC)
        return weir__host_fail(WEIR_E_INVALID, "not a stream of a CPU device");
    if (weir__host_is_foreign_process(stream->generation)) return weir__host_fail_forked();
    *stream_out = stream;
    return WEIR_OK;
}

/* On streams that are theirs, or lent to them, what users queue starts by itself. */
static void user_queued(struct host_stream *stream)
{
    if (stream->own || stream->lent) weir__host_stream_flush(stream);
}

int weir_host_enqueue(void *native_stream, int (*function)(void *arg), void *arg)
{
    struct host_stream *stream = NULL;
    int code = check_stream(native_stream, &stream);
    if (code) return code;
    if (!function) return weir__host_fail(WEIR_E_INVALID, "no function to queue");
    code = weir__host_queue_function(stream, function, arg);
    if (!code) user_queued(stream);
    return code;
}

int weir__host_stream_open(void *device, void **native_stream_out)
{
    struct host_device *host = device;
    if (!host || !native_stream_out)
        return weir__host_fail(WEIR_E_INVALID, "no CPU device, or no place for the stream");
    if (weir__host_is_foreign_process(host->generation)) return weir__host_fail_forked();
    struct host_stream *stream = NULL;
    int code = weir__host_stream_make(host, NULL, 0, true, &stream);
    if (!code) *native_stream_out = stream;
    return code;
}

int weir_host_stream_wait(void *native_stream)
{
    struct host_stream *stream = NULL;
    uint64_t position;
    int code = check_stream(native_stream, &stream);
    if (code) return code;
    /* On a stream of exec/ the stretch must not end here: its failure is the task's as well. */
    code = weir__host_stream_record(stream, stream->own ? HOST_RECORD : HOST_MARK, &position);
    if (code) return code;
    weir__host_sync(stream, position);
    if (stream->own) {
        code = weir__host_stream_first_failure(stream);
        weir__host_stream_forget(stream, position);
    } else {
        /* Relaxed: written before the position was reached (A1); nothing is queued behind it. */
        code = atomic_load_explicit(&stream->failure, memory_order_relaxed);
    }
    return code ? weir__host_fail(code, "a function on the stream failed with %d", code) : WEIR_OK;
}

void weir_host_stream_destroy(void *native_stream)
{
    struct host_stream *stream = NULL;
    uint64_t position;
    if (!native_stream || check_stream(native_stream, &stream) || !stream->own) return;
    if (!weir__host_stream_record(stream, HOST_MARK, &position)) weir__host_sync(stream, position);
    weir__host_stream_end(stream);
}

int weir_host_event_record(void *native_stream, void **native_event_out)
{
    struct host_stream *stream = NULL;
    int code = check_stream(native_stream, &stream);
    if (code) return code;
    if (!native_event_out) return weir__host_fail(WEIR_E_INVALID, "no place for the event");
    struct host_event *event = malloc(sizeof *event);
    if (!event) return weir__host_fail(WEIR_E_NO_MEMORY, "no memory for an event");
    event->magic = HOST_EVENT_MAGIC;
    event->point.stream = stream;
    code = weir__host_stream_record(stream, HOST_MARK, &event->point.position);
    if (code) {
        free(event);
        return code;
    }
    user_queued(stream);
    *native_event_out = event;
    return WEIR_OK;
}

void weir_host_event_destroy(void *native_event)
{
    struct host_event *event = native_event;
    if (!event || event->magic != HOST_EVENT_MAGIC) return;
    free(event);
}

int weir__host_foreign_wait(void *stream, void *native_event)
{
    struct host_stream *waiting = stream;
    const struct host_event *event = native_event;
    if (weir__host_is_foreign_process(waiting->generation)) return weir__host_fail_forked();
    if (!event || event->magic != HOST_EVENT_MAGIC)
        return weir__host_fail(WEIR_E_INVALID, "not an event of a CPU device");
    return weir__host_queue_wait(waiting, &event->point, 1);
}

/* Queues on @native_stream as its submitter: calls on one native stream must not overlap, from whichever thread. */
int weir__host_foreign_signal(void *stream, uint64_t position, void *native_stream)
{
    struct host_stream *producer = stream, *waiting = NULL;
    int code = check_stream(native_stream, &waiting);
    if (code) return code;
    struct host_point point = {.stream = producer, .position = producer->base + position};
    code = weir__host_queue_wait(waiting, &point, 1);
    if (!code) user_queued(waiting);
    return code;
}

void weir__host_lend(void *stream, bool on)
{
    struct host_stream *host = stream;
    if (weir__host_is_foreign_process(host->generation)) return;
    host->lent = on;
    if (on) weir__host_stream_flush(host);
}

/* ---- gates ---- */

/*
 * A gate is a stream without commands that counts as being run for as long as it is closed, so that nobody claims it and
 * whoever waits for its next position sleeps; opening it is what its runner would do at a record.
 */
int weir__host_gate_create(void *device, void **gate_out)
{
    struct host_device *host = device;
    struct host_stream *gate = NULL;
    if (weir__host_is_foreign_process(host->generation)) return weir__host_fail_forked();
    int code = weir__host_stream_make(host, NULL, 0, true, &gate);
    if (code) return code;
    while (!weir__host_stream_claim(gate)) sched_yield(); /* a late look at its former life may have it for a moment */
    *gate_out = gate;
    return WEIR_OK;
}

int weir__host_gate_wait(void *stream, void *gate)
{
    struct host_stream *host = stream, *producer = gate;
    if (weir__host_is_foreign_process(host->generation)) return weir__host_fail_forked();
    struct host_point point = {.stream = producer, .position = producer->writer.recorded + 1};
    return weir__host_queue_wait(host, &point, 1);
}

void weir__host_gate_open(void *gate)
{
    struct host_stream *host = gate;
    if (weir__host_is_foreign_process(host->generation)) return;
    host->writer.recorded++;
    weir__host_stream_reach(host);
    weir__host_stream_leave(host, HOST_RUNNING, host->reader.done);
    weir__host_stream_end(host);
}

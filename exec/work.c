/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <exec/work.h>

#include <sched.h>

#include <devices/host/host.h>
#include <exec/issue.h>
#include <exec/submit.h>
#include <exec/trace.h>
#include <weir/host.h>

const struct weir__device_ops *weir__device_ops_of(const struct weir_device *device)
{
    return device->ops;
}

void *weir__device_handle_of(const struct weir_device *device)
{
    return device->handle;
}

const struct weir__device_info *weir__device_info_of(const struct weir_device *device)
{
    return &device->info;
}

/* The stream of a task between begin and end, or inside its issue function. */
static struct weir__stream *open_stream(const struct weir_task *task)
{
    if (task != NULL && atomic_load_explicit(&task->state, memory_order_relaxed) == WEIR__TASK_OPEN) return weir__task_stream_of(task);
    weir__fail(WEIR_E_STATE, "the task is not open");
    return NULL;
}

static int tell(struct weir__stream *stream, int rc, const char *what)
{
    if (rc == WEIR_OK) return rc;
    return weir__fail(rc, "%s: no %s: %s", stream->device->info.name, what, stream->ops->last_error(stream->device->handle));
}

static __attribute__((noinline)) void log_work(const struct weir_task *task, const char *what, size_t bytes)
{
    struct weir__stream *stream = weir__task_stream_of(task);
    char                 name[96];

    weir__task_describe(task, name, sizeof name);
    if (bytes == 0) weir__log(4, "%s: stream %u: %s of %s", stream->device->info.name, stream->id, what, name);
    else weir__log(4, "%s: stream %u: %s of %zu bytes of %s", stream->device->info.name, stream->id, what, bytes, name);
}

int weir__task_launch(struct weir_task *task, const struct weir__launch *launch)
{
    struct weir__stream *stream = open_stream(task);

    if (stream == NULL) return WEIR_E_STATE;
    if (weir__log_is(4)) log_work(task, "launch", 0);
    return tell(stream, stream->ops->launch(stream->handle, launch), "launch");
}

static size_t copied_bytes(const struct weir__copy *copy)
{
    return copy->bytes * (copy->count[0] != 0 ? copy->count[0] : 1) * (copy->count[1] != 0 ? copy->count[1] : 1);
}

int weir__task_copy(struct weir_task *task, const struct weir__copy *copy)
{
    struct weir__stream *stream = open_stream(task);
    struct weir__copy    asked = *copy;
    uint32_t             way = WEIR__WAY_DIRECT;
    size_t               bytes = copied_bytes(copy);
    int                  rc;

    if (stream == NULL) return WEIR_E_STATE;
    if (weir__log_is(4)) log_work(task, "copy", copy->bytes);
    asked.way_out = &way;
    rc = stream->ops->copy(stream->handle, &asked);
    if (rc != WEIR_OK) return tell(stream, rc, "copy");
    /* Relaxed: counters. */
    atomic_fetch_add_explicit(&task->pool->scope->copies[way], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&task->pool->scope->copied[way], bytes, memory_order_relaxed);
    if (weir__record_is_on()) weir__trace_copy(task, copy->kind, way, bytes);
    return WEIR_OK;
}

int weir__task_fill(struct weir_task *task, void *to, uint8_t value, size_t bytes)
{
    struct weir__stream *stream = open_stream(task);

    if (stream == NULL) return WEIR_E_STATE;
    if (weir__log_is(4)) log_work(task, "fill", bytes);
    if (weir__record_is_on()) weir__trace_copy(task, 0, 0, bytes);
    return tell(stream, stream->ops->fill(stream->handle, to, value, bytes), "fill");
}

int weir__task_host_function(struct weir_task *task, int (*function)(void *arg), void *arg)
{
    struct weir__stream *stream = open_stream(task);

    if (stream == NULL) return WEIR_E_STATE;
    if (stream->ops->host_function == NULL) return weir__fail(WEIR_E_UNSUPPORTED, "%s has no host functions", stream->device->info.name);
    if (weir__log_is(4)) log_work(task, "host function", 0);
    return tell(stream, stream->ops->host_function(stream->handle, function, arg), "host function");
}

int weir__task_free(struct weir_task *task, void *address)
{
    struct weir__stream *stream = open_stream(task);

    if (stream == NULL) return WEIR_E_STATE;
    if (stream->ops->free_on_stream == NULL) return weir__fail(WEIR_E_UNSUPPORTED, "%s cannot free on a stream", stream->device->info.name);
    if (weir__log_is(4)) log_work(task, "free", 0);
    return tell(stream, stream->ops->free_on_stream(stream->handle, address), "free");
}

int weir__task_mark(struct weir_task *task, struct weir__point *point_out)
{
    struct weir__stream *stream = open_stream(task);
    uint64_t             position;
    int                  rc = WEIR_OK;

    if (stream == NULL) return WEIR_E_STATE;
    if (stream->ops->reserve != NULL) rc = tell(stream, stream->ops->reserve(stream->handle), "room");
    if (rc == WEIR_OK) rc = tell(stream, stream->ops->record(stream->handle, &position), "record");
    if (rc != WEIR_OK) return rc;
    stream->recorded = position;
    atomic_store_explicit(&stream->issued, position, memory_order_release); /* as weir__stream_enter() */
    if (stream->ops->reserve != NULL) rc = tell(stream, stream->ops->reserve(stream->handle), "room");
    point_out->value = weir__point_pack(stream->id, position);
    return rc;
}

void *weir__point_native(const struct weir_context *context, struct weir__point point)
{
    const struct weir__stream *stream = context->streams[weir__point_stream(point.value)];

    return stream->ops->stream_native(stream->handle);
}

struct weir__point weir__task_next_mark(const struct weir_task *task)
{
    const struct weir__stream *stream = open_stream(task);

    return (struct weir__point){stream == NULL ? 0 : weir__point_pack(stream->id, stream->recorded + 1)};
}

int weir__task_wait_point(struct weir_task *task, struct weir__point point)
{
    struct weir__stream *stream = open_stream(task), *other;

    if (stream == NULL) return WEIR_E_STATE;
    if (point.value == 0) return WEIR_OK;
    other = stream->device->context->streams[weir__point_stream(point.value)];
    if (other == stream) return WEIR_OK; /* in order */
    /* Acquire: pairs with the release of who recorded it. Only points of weir__task_next_mark() are not there yet. */
    while (atomic_load_explicit(&other->issued, memory_order_acquire) < weir__point_position(point.value)) sched_yield();
    return weir__issue_wait_point(stream, point.value);
}

int weir__point_test(struct weir_context *context, struct weir__point point)
{
    if (point.value == 0 || weir__stream_reached(context->streams[weir__point_stream(point.value)], weir__point_position(point.value))) {
        return WEIR_OK;
    }
    return WEIR_E_PENDING;
}

int weir__point_wait(struct weir_context *context, struct weir__point point)
{
    struct weir__stream *stream;
    uint64_t             began;
    int                  rc;

    if (point.value == 0) return WEIR_OK;
    stream = context->streams[weir__point_stream(point.value)];
    began = weir__trace_now();
    rc = tell(stream, stream->ops->sync(stream->handle, weir__point_position(point.value)), "wait");
    if (began != 0) weir__trace_waited(began, WEIR__WAIT_POINT, NULL, 0, NULL, NULL);
    return rc;
}

/* ---- public ---- */

int weir_task_copy(struct weir_task *task, void *to, struct weir_device *to_device, const void *from,
                   struct weir_device *from_device, size_t bytes)
{
    struct weir__copy    copy = {.to = to, .from = from, .bytes = bytes};
    struct weir__stream *stream;

    if (task == NULL) return weir__fail(WEIR_E_INVALID, "weir_task_copy: the task is NULL");
    if ((stream = open_stream(task)) == NULL) return WEIR_E_STATE;
    if (to == NULL || from == NULL || bytes == 0) return weir__fail(WEIR_E_INVALID, "weir_task_copy: NULL or 0 bytes");
    if (to_device != NULL && to_device != stream->device) {
        return weir__fail(WEIR_E_INVALID, "weir_task_copy: the task is on %s, not on %s", stream->device->info.name, to_device->info.name);
    }
    if (to_device == NULL && from_device == NULL) return weir__fail(WEIR_E_INVALID, "weir_task_copy: no device on either side");
    if (to_device == NULL && from_device != stream->device) return weir__fail(WEIR_E_INVALID, "weir_task_copy: wrong device");
    if (from_device == NULL) copy.kind = WEIR__COPY_TO_DEVICE;
    else if (to_device == NULL) copy.kind = WEIR__COPY_TO_HOST;
    else if (from_device == to_device) copy.kind = WEIR__COPY_ON_DEVICE;
    else copy.kind = WEIR__COPY_PEER, copy.peer = from_device->handle;
    if (copy.kind == WEIR__COPY_PEER && from_device->ops != to_device->ops) {
        return weir__fail(WEIR_E_UNSUPPORTED, "no copy from %s to %s", from_device->info.name, to_device->info.name);
    }
    return weir__task_copy(task, &copy);
}

int weir_host_stream_create(struct weir_device *device, void **native_stream_out)
{
    int rc;

    if (device == NULL || native_stream_out == NULL) return weir__fail(WEIR_E_INVALID, "weir_host_stream_create: NULL");
    if (device->ops != &weir__host_ops) return weir__fail(WEIR_E_INVALID, "%s is not a CPU device", device->info.name);
    rc = weir__host_stream_open(device->handle, native_stream_out);
    return rc == WEIR_OK ? rc : weir__fail(rc, "%s: %s", device->info.name, device->ops->last_error(device->handle));
}

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Events and queues of the plugin. An event names a position of a queue's stream and is read in one piece under the
 * lock of the handles; whoever waits goes on with what he read, whatever becomes of the event.
 *
 * There are no statuses of single pieces of work to hand on: what the plugin queues cannot fail once it is queued,
 * unless the device does, and that is what sync() of the backend returns.
 */
#include <exec/work.h>

#include "interop/plugin/object.h"
#include "interop/plugin/report.h"

#define OPS (&weir__host_ops)

static int32_t unknown(const char *call, const void *event, int32_t id)
{
    return weir__plugin_fail("%s: %p is no event of device %d, or none any more", call, event, id);
}

int32_t __tgt_rtl_create_event(int32_t id, void **event_out)
{
    if (!event_out) return weir__plugin_fail("create_event: no place for the event");
    struct plugin_device *device = weir__plugin_device_enter("create_event", id);
    if (!device) return -1;
    struct plugin_object *event = weir__plugin_object_get(PLUGIN_EVENT, id);
    if (event) *event_out = weir__plugin_object_handle(event);
    weir__plugin_device_leave(device);
    if (event) weir__log(4, "plugin: device %d: event %p created", id, *event_out);
    return event ? 0 : weir__plugin_fail("create_event: no memory for an event of device %d", id);
}

/* @queue is locked, NULL: nothing was ever queued. */
static int32_t set_event(int32_t id, const void *handle, struct plugin_object *queue)
{
    struct plugin_object *event = weir__plugin_object_find_and_lock(PLUGIN_EVENT, handle);
    if (event && event->device != id) event = NULL;
    if (event) {
        event->recorded = true;
        event->source = queue;
        event->position = queue ? queue->last : 0;
    }
    weir__plugin_object_unlock();
    return event ? 0 : unknown("record_event", handle, id);
}

int32_t __tgt_rtl_record_event(int32_t id, void *event, struct weir__plugin_async *async)
{
    struct plugin_device *device = weir__plugin_device_enter("record_event", id);
    if (!device) return -1;
    int32_t result = -1;
    if (!async || async->queue) {
        struct plugin_object *queue = weir__plugin_queue_enter("record_event", id, device, async);
        if (queue) {
            int code = weir__plugin_queue_record(queue);
            result = code ? weir__plugin_fail_backend("record_event", code) : set_event(id, event, queue);
            weir__plugin_queue_leave(queue);
        }
    } else {
        result = set_event(id, event, NULL);
    }
    weir__plugin_device_leave(device);
    if (!result) {
        weir__plugin_count(WEIR__PLUGIN_RECORDS);
        weir__log(4, "plugin: device %d: event %p recorded on queue %p", id, event, async ? async->queue : NULL);
    }
    return result;
}

/* *source_out NULL: complete. */
static int32_t read_event(const char *call, int32_t id, const void *handle, struct plugin_object **source_out,
                          uint64_t *position_out)
{
    struct plugin_object *event = weir__plugin_object_find_and_lock(PLUGIN_EVENT, handle);
    bool known = event && event->device == id, recorded = known && event->recorded;
    if (recorded) {
        *source_out = event->position ? event->source : NULL;
        *position_out = event->position;
    }
    weir__plugin_object_unlock();
    if (!known) return unknown(call, handle, id);
    return recorded ? 0 : weir__plugin_fail("%s: event %p of device %d was never recorded", call, handle, id);
}

int32_t __tgt_rtl_wait_event(int32_t id, void *event, struct weir__plugin_async *async)
{
    struct plugin_device *device = weir__plugin_device_enter("wait_event", id);
    if (!device) return -1;
    struct plugin_object *source = NULL, *queue;
    uint64_t position = 0;
    int32_t result = read_event("wait_event", id, event, &source, &position);
    if (!result && (queue = weir__plugin_queue_enter("wait_event", id, device, async)) == NULL) result = -1;
    if (!result) {
        int code = 0;
        if (source && source != queue) {
            code = OPS->position_wait(queue->stream, &source->stream, &position, 1);
            if (!code) queue->dirty = true;
        }
        if (code) result = weir__plugin_fail_backend("wait_event", code);
        weir__plugin_queue_leave(queue);
    }
    weir__plugin_device_leave(device);
    if (!result) {
        bool needed = source && source != queue;
        weir__plugin_count(needed ? WEIR__PLUGIN_WAITS : WEIR__PLUGIN_WAITS_NONE);
        weir__log(4, "plugin: device %d: queue %p waits for event %p%s", id, async->queue, event,
                  needed ? "" : ", which takes nothing");
    }
    return result;
}

int32_t __tgt_rtl_sync_event(int32_t id, void *event)
{
    struct plugin_device *device = weir__plugin_device_enter("sync_event", id);
    if (!device) return -1;
    struct plugin_object *source = NULL;
    uint64_t position = 0;
    int32_t result = read_event("sync_event", id, event, &source, &position);
    int code = !result && source ? OPS->sync(source->stream, position) : 0;
    if (code) result = weir__plugin_fail_backend("sync_event", code);
    weir__plugin_device_leave(device);
    if (!result) weir__log(4, "plugin: device %d: event %p waited for by the host", id, event);
    return result;
}

int32_t __tgt_rtl_destroy_event(int32_t id, void *event)
{
    struct plugin_device *device = weir__plugin_device_enter("destroy_event", id);
    if (!device) return -1;
    bool known = weir__plugin_object_drop(PLUGIN_EVENT, id, event);
    weir__plugin_device_leave(device);
    if (known) weir__log(4, "plugin: device %d: event %p destroyed", id, event);
    return known ? 0 : unknown("destroy_event", event, id);
}

/* ---- queues ---- */

/* Let go of the queue of @async, locked here. @block: when its work is done, else only if it is. */
static int32_t finish(const char *call, int32_t id, struct weir__plugin_async *async, bool block)
{
    if (!async) return weir__plugin_fail("%s: no async object", call);
    struct plugin_device *device = weir__plugin_device_enter(call, id);
    if (!device) return -1;
    struct plugin_object *queue = async->queue ? weir__plugin_queue_enter(call, id, device, async) : NULL;
    int32_t result = async->queue && !queue ? -1 : 0;
    if (queue) {
        int code = weir__plugin_queue_record(queue);
        uint64_t last = queue->last;
        weir__plugin_queue_leave(queue);
        if (!code && block) code = OPS->sync(queue->stream, last);
        bool done = !code && (block || OPS->completed(queue->stream, &code) >= last);
        if (code) result = weir__plugin_fail_backend(call, code);
        if (done) {
            weir__log(4, "plugin: device %d: queue %p is done", id, async->queue);
            weir__plugin_object_put(queue);
            async->queue = NULL;
        }
    }
    weir__plugin_device_leave(device);
    return result;
}

int32_t __tgt_rtl_synchronize(int32_t id, struct weir__plugin_async *async)
{
    return finish("synchronize", id, async, true);
}

int32_t __tgt_rtl_query_async(int32_t id, struct weir__plugin_async *async)
{
    return finish("query_async", id, async, false);
}

int32_t __tgt_rtl_init_async_info(int32_t id, struct weir__plugin_async **async_out)
{
    if (!async_out) return weir__plugin_fail("init_async_info: no place for the async object");
    struct plugin_device *device = weir__plugin_device_enter("init_async_info", id);
    if (!device) return -1;
    struct plugin_object *info = weir__plugin_object_get(PLUGIN_ASYNC, id);
    struct plugin_object *queue = NULL;
    if (!info)
        weir__plugin_fail("init_async_info: no memory for an async object of device %d", id);
    else if ((queue = weir__plugin_queue_enter("init_async_info", id, device, &info->async)) == NULL)
        weir__plugin_object_put(info);
    if (queue) {
        weir__plugin_queue_leave(queue);
        *async_out = &info->async;
    }
    weir__plugin_device_leave(device);
    return queue ? 0 : -1;
}

int32_t __tgt_rtl_release_async_info(int32_t id, struct weir__plugin_async *async)
{
    struct plugin_device *device = weir__plugin_device_enter("release_async_info", id);
    if (!device) return -1;
    int32_t result = -1;
    struct plugin_object *info = weir__plugin_async_find(id, async), *queue = NULL;
    if (!info) {
        weir__plugin_fail("release_async_info: %p is no async object of device %d", (void *)async, id);
    } else if (!async->queue || (queue = weir__plugin_queue_enter("release_async_info", id, device, async)) != NULL) {
        int code = queue ? weir__plugin_queue_record(queue) : 0;
        if (queue) weir__plugin_queue_leave(queue);
        if (queue && !code) weir__plugin_object_put(queue);
        result = code ? weir__plugin_fail_backend("release_async_info", code) : 0;
        if (!code) weir__plugin_object_put(info);
    }
    weir__plugin_device_leave(device);
    return result;
}

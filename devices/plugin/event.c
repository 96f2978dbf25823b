/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Events. A record is queued for the stream's thread like any work, so who waits for it, there or on the host, first
 * waits until the thread has come to it. Without events of the plugin it is done then; else the plugin's event is
 * recorded. Its interface has no question whether one is done: it is known to be when somebody has waited for it, as
 * notice.c does.
 */
#include <devices/plugin/internal.h>

#include <stdlib.h>

int weir__rtl_event_create(void *handle, void **event_out)
{
    struct rtl_device *device = handle;
    struct rtl_event *event = calloc(1, sizeof *event);
    if (!event) return weir__rtl_fail(WEIR_E_NO_MEMORY, "no memory for an event");
    if (device->backend->events && device->backend->rtl.create_event(device->id, &event->handle)) {
        free(event);
        return weir__rtl_fail(WEIR_E_SYSTEM, "%s: create_event failed", device->backend->name);
    }
    event->device = device;
    pthread_mutex_init(&event->lock, NULL);
    pthread_cond_init(&event->moved, NULL);
    *event_out = event;
    return WEIR_OK;
}

void weir__rtl_event_destroy(void *handle)
{
    struct rtl_event *event = handle;
    struct rtl_backend *backend = event->device->backend;
    if (backend->events) (void)backend->rtl.destroy_event(event->device->id, event->handle); /* nobody could help it */
    pthread_cond_destroy(&event->moved);
    pthread_mutex_destroy(&event->lock);
    free(event);
}

/* RTL_RECORD or RTL_WAIT. */
static int put(struct rtl_stream *stream, enum rtl_item_kind kind, struct rtl_event *event)
{
    struct rtl_item *item = weir__rtl_item_new(kind, 0);
    if (!item) return WEIR_E_NO_MEMORY;
    pthread_mutex_lock(&event->lock);
    if (kind == RTL_RECORD) {
        event->queued++;
        event->stream = stream;
    }
    item->event.event = event;
    item->event.number = event->queued;
    pthread_mutex_unlock(&event->lock);
    weir__rtl_put(stream, item);
    return WEIR_OK;
}

int weir__rtl_event_record(void *stream, void *event)
{
    return put(stream, RTL_RECORD, event);
}

int weir__rtl_event_wait(void *stream, void *const *events, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int code = put(stream, RTL_WAIT, events[i]);
        if (code) return code; /* to have waited for the others does no harm */
    }
    return WEIR_OK;
}

int weir__rtl_event_issue(struct rtl_stream *stream, struct rtl_event *event, uint64_t number)
{
    struct rtl_device *device = stream->device;
    bool nothing = !device->backend->events || !stream->async.queue;
    int code = nothing ? 0 : device->backend->rtl.record_event(device->id, event->handle, &stream->async);
    pthread_mutex_lock(&stream->lock);
    int failure = stream->failure ? stream->failure : code ? WEIR_E_DEVICE : 0;
    stream->failure = 0;
    pthread_mutex_unlock(&stream->lock);
    pthread_mutex_lock(&event->lock);
    event->nothing = nothing || code;
    event->status = failure;
    event->issued = number;
    pthread_cond_broadcast(&event->moved);
    pthread_mutex_unlock(&event->lock);
    return WEIR_OK;
}

/* Returns true if the plugin has to be asked. */
static bool wait_until_issued(struct rtl_event *event, uint64_t number)
{
    pthread_mutex_lock(&event->lock);
    while (event->issued < number) pthread_cond_wait(&event->moved, &event->lock);
    bool ask = event->done < number && !event->nothing;
    pthread_mutex_unlock(&event->lock);
    return ask;
}

int weir__rtl_event_hold(struct rtl_stream *stream, struct rtl_event *event, uint64_t number)
{
    if (!wait_until_issued(event, number)) return WEIR_OK;
    struct rtl_device *device = stream->device;
    if (!device->backend->rtl.wait_event(device->id, event->handle, &stream->async)) return WEIR_OK;
    return device->backend->rtl.sync_event(device->id, event->handle) ? WEIR_E_DEVICE : WEIR_OK;
}

int weir__rtl_event_query(void *handle)
{
    struct rtl_event *event = handle;
    pthread_mutex_lock(&event->lock);
    bool done = event->done == event->queued || (event->issued == event->queued && event->nothing);
    int status = done ? event->status : WEIR_E_PENDING;
    pthread_mutex_unlock(&event->lock);
    return status;
}

int weir__rtl_event_wait_for(struct rtl_event *event, uint64_t number)
{
    struct rtl_device *device = event->device;
    int code = wait_until_issued(event, number) ? device->backend->rtl.sync_event(device->id, event->handle) : 0;
    pthread_mutex_lock(&event->lock);
    if (event->done < number) event->done = number;
    int status = code ? WEIR_E_DEVICE : event->status;
    pthread_mutex_unlock(&event->lock);
    return code ? weir__rtl_fail(status, "%s: sync_event failed", device->backend->name) : status;
}

int weir__rtl_event_sync(void *handle)
{
    struct rtl_event *event = handle;
    pthread_mutex_lock(&event->lock);
    uint64_t number = event->queued;
    pthread_mutex_unlock(&event->lock);
    return weir__rtl_event_wait_for(event, number);
}

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/*
 * Notices. A waiter sleeps in the driver for the oldest event of one stream that somebody wants to hear of, tells, and
 * goes on with that stream's next, or with another stream's. There are at most as many waiters as streams with notices
 * at a time, so that none is told late because another stream's work takes long; they are started as needed and stay. A
 * notice that is asked for behind a younger one of its stream is told with that: the work in between is queued already
 * and does not wait for the host. Without notices nobody runs, and nobody looks at the device.
 *
 * It costs one call of the driver, and the query by which the adapter moves the position. A function in stream order
 * would cost a wait and a function on a stream beside, and a query; it comes later, and not at all after an error
 * (docs/cuda.md).
 */
#include "internal.h"

#include <stdlib.h>

#include <devices/thread.h>

static struct cuda_notice *first_locked(struct cuda_stream *stream)
{
    struct cuda_notice *notice = stream->notices;
    if (notice) stream->notices = notice->next;
    return notice;
}

static void serve(struct cuda_device *device, struct cuda_stream *stream)
{
    struct cuda_notice *notice;
    while ((notice = first_locked(stream))) {
        void (*done)(void *arg, int status) = notice->done;
        void *arg = notice->arg;
        struct cuda_event *event = notice->event;
        notice->next = stream->free_notices;
        stream->free_notices = notice;
        pthread_mutex_unlock(&device->waiter_lock);
        int status = weir__cuda_event_sync(event);
        done(arg, status);
        pthread_mutex_lock(&device->waiter_lock);
    }
    stream->served = false;
}

static void *waiter_main(void *arg)
{
    struct cuda_device *device = arg;
    weir__cuda_settle_thread(device);
    pthread_mutex_lock(&device->waiter_lock);
    for (;;) {
        struct cuda_stream *stream = device->notified;
        if (stream) {
            device->notified = stream->next_notified;
            if (!device->notified) device->notified_tail = &device->notified;
            serve(device, stream);
        } else if (device->closing) {
            break;
        } else {
            device->idle_waiters++;
            pthread_cond_wait(&device->waiter_wake, &device->waiter_lock);
            device->idle_waiters--;
        }
    }
    pthread_mutex_unlock(&device->waiter_lock);
    return NULL;
}

static int waiter_start_locked(struct cuda_device *device)
{
    pthread_t *waiters = realloc(device->waiters, (device->nwaiters + 1) * sizeof *waiters);
    if (!waiters) return weir__cuda_fail(WEIR_E_NO_MEMORY, "no memory for a waiter");
    device->waiters = waiters;
    if (weir__thread_start(&waiters[device->nwaiters], waiter_main, device))
        return weir__cuda_fail(WEIR_E_SYSTEM, "no thread to wait for events");
    device->nwaiters++;
    COUNT(device, waiters_started);
    return WEIR_OK;
}

/* Make the stream one that has notices and no waiter, and see that a waiter will come. */
static int offer_locked(struct cuda_device *device, struct cuda_stream *stream)
{
    uint32_t offered = 1;
    for (const struct cuda_stream *other = device->notified; other; other = other->next_notified) offered++;
    if (offered > device->idle_waiters) {
        int rc = waiter_start_locked(device);
        if (rc && device->nwaiters == 0) return rc; /* else one of them comes when it is through with its stream */
    }
    stream->served = true;
    stream->next_notified = NULL;
    *device->notified_tail = stream;
    device->notified_tail = &stream->next_notified;
    pthread_cond_signal(&device->waiter_wake);
    return WEIR_OK;
}

/* Oldest first. */
static void insert_locked(struct cuda_stream *stream, struct cuda_notice *notice)
{
    struct cuda_notice **link = &stream->notices;
    while (*link && (*link)->position <= notice->position) link = &(*link)->next;
    notice->next = *link;
    *link = notice;
}

/* Make sure that a free one is there. */
static int notice_reserve_locked(struct cuda_stream *stream)
{
    if (stream->free_notices) return WEIR_OK;
    struct cuda_notice *notice = malloc(sizeof *notice);
    if (!notice) return weir__cuda_fail(WEIR_E_NO_MEMORY, "no memory for a notice");
    notice->next = NULL;
    stream->free_notices = notice;
    return WEIR_OK;
}

int weir__cuda_event_notify(void *handle, void (*done)(void *arg, int status), void *arg)
{
    struct cuda_event *event = handle;
    struct cuda_device *device = event->device;
    struct cuda_stream *stream = event->stream;
    int rc = weir__cuda_check(device);
    if (rc) return rc;
    pthread_mutex_lock(&device->waiter_lock);
    rc = notice_reserve_locked(stream);
    if (!rc && !stream->served) rc = offer_locked(device, stream);
    if (!rc) {
        struct cuda_notice *notice = stream->free_notices;
        stream->free_notices = notice->next;
        *notice = (struct cuda_notice){.event = event, .position = event->position, .done = done, .arg = arg};
        insert_locked(stream, notice);
    }
    pthread_mutex_unlock(&device->waiter_lock);
    return rc;
}

void weir__cuda_waiters_close(struct cuda_device *device)
{
    pthread_mutex_lock(&device->waiter_lock);
    device->closing = true;
    pthread_cond_broadcast(&device->waiter_wake);
    pthread_mutex_unlock(&device->waiter_lock);
    for (uint32_t i = 0; i < device->nwaiters; i++) pthread_join(device->waiters[i], NULL);
    free(device->waiters);
}

void weir__cuda_notices_free(struct cuda_stream *stream)
{
    while (stream->free_notices) {
        struct cuda_notice *notice = stream->free_notices;
        stream->free_notices = notice->next;
        free(notice);
    }
}

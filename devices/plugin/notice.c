/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Who wants to be told that an event is done. A second thread of the stream, made when it is first needed, waits for
 * the events in the order of their records; that of another stream must not be in its way, since a kernel there may go
 * on only after somebody was told.
 */
#include <devices/plugin/internal.h>

#include <stdlib.h>

#include <devices/thread.h>

struct rtl_notice {
    struct rtl_notice *next;
    struct rtl_event *event;
    uint64_t number;
    void (*done)(void *arg, int status);
    void *arg;
};

static void *tell(void *handle)
{
    struct rtl_stream *stream = handle;
    pthread_mutex_lock(&stream->lock);
    for (;;) {
        struct rtl_notice *notice = stream->notices;
        if (!notice) {
            if (stream->ending) break;
            pthread_cond_wait(&stream->noticed, &stream->lock);
            continue;
        }
        stream->notices = notice->next;
        if (!stream->notices) stream->last_notice = &stream->notices;
        pthread_mutex_unlock(&stream->lock);
        int status = weir__rtl_event_wait_for(notice->event, notice->number);
        notice->done(notice->arg, status);
        free(notice);
        pthread_mutex_lock(&stream->lock);
    }
    pthread_mutex_unlock(&stream->lock);
    return NULL;
}

static bool teller_runs_locked(struct rtl_stream *stream)
{
    if (!stream->tells) stream->tells = !weir__thread_start(&stream->teller, tell, stream);
    return stream->tells;
}

int weir__rtl_event_notify(void *handle, void (*done)(void *arg, int status), void *arg)
{
    struct rtl_event *event = handle;
    struct rtl_notice *notice = malloc(sizeof *notice);
    if (!notice) return weir__rtl_fail(WEIR_E_NO_MEMORY, "no memory for a notice");
    pthread_mutex_lock(&event->lock);
    struct rtl_stream *stream = event->stream;
    *notice = (struct rtl_notice){.event = event, .number = event->queued, .done = done, .arg = arg};
    pthread_mutex_unlock(&event->lock);
    pthread_mutex_lock(&stream->lock);
    bool runs = teller_runs_locked(stream);
    if (runs) {
        *stream->last_notice = notice;
        stream->last_notice = &notice->next;
        pthread_cond_signal(&stream->noticed);
    }
    pthread_mutex_unlock(&stream->lock);
    if (runs) return WEIR_OK;
    free(notice);
    return weir__rtl_fail(WEIR_E_SYSTEM, "no thread to wait for events");
}

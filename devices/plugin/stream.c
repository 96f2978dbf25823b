/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Streams of a plugin: a queue of items and the thread that hands them over. */
#include <devices/plugin/internal.h>

#include <stdlib.h>
#include <string.h>

#include <devices/thread.h>

static void *run(void *arg)
{
    struct rtl_stream *stream = arg;
    pthread_mutex_lock(&stream->lock);
    for (;;) {
        struct rtl_item *item = stream->first;
        if (!item) {
            if (stream->ending) break;
            pthread_cond_wait(&stream->queued, &stream->lock);
            continue;
        }
        stream->first = item->next;
        if (!stream->first) stream->last = &stream->first;
        pthread_mutex_unlock(&stream->lock);
        bool own = item->kind != RTL_SETTLE; /* else its caller's, who waits for it */
        int code = weir__rtl_item_run(stream, item);
        if (own) free(item);
        pthread_mutex_lock(&stream->lock);
        if (code && !stream->failure) stream->failure = code;
        stream->done++;
        pthread_cond_broadcast(&stream->moved);
    }
    pthread_mutex_unlock(&stream->lock);
    return NULL;
}

int weir__rtl_stream_create(void *device, void *owner, int32_t priority, void **stream_out)
{
    (void)owner, (void)priority; /* positions are the adapter's, and the interface knows no priority */
    struct rtl_stream *stream = calloc(1, sizeof *stream);
    if (!stream) return weir__rtl_fail(WEIR_E_NO_MEMORY, "no memory for a stream");
    stream->device = device;
    stream->last = &stream->first;
    stream->last_notice = &stream->notices;
    pthread_cond_init(&stream->noticed, NULL);
    pthread_mutex_init(&stream->lock, NULL);
    pthread_cond_init(&stream->queued, NULL);
    pthread_cond_init(&stream->moved, NULL);
    if (weir__thread_start(&stream->thread, run, stream)) {
        pthread_cond_destroy(&stream->moved);
        pthread_cond_destroy(&stream->noticed);
        pthread_cond_destroy(&stream->queued);
        pthread_mutex_destroy(&stream->lock);
        free(stream);
        return weir__rtl_fail(WEIR_E_SYSTEM, "no thread for a stream");
    }
    *stream_out = stream;
    return WEIR_OK;
}

void weir__rtl_stream_destroy(void *handle)
{
    struct rtl_stream *stream = handle;
    pthread_mutex_lock(&stream->lock);
    stream->ending = true;
    pthread_cond_signal(&stream->queued);
    pthread_cond_signal(&stream->noticed);
    bool tells = stream->tells;
    pthread_mutex_unlock(&stream->lock);
    pthread_join(stream->thread, NULL);
    if (tells) pthread_join(stream->teller, NULL);
    (void)!weir__rtl_settle(stream); /* whoever wanted to know has asked before */
    pthread_cond_destroy(&stream->noticed);
    pthread_cond_destroy(&stream->moved);
    pthread_cond_destroy(&stream->queued);
    pthread_mutex_destroy(&stream->lock);
    free(stream);
}

/* An async object of the plugin's interface. */
void *weir__rtl_stream_native(void *handle)
{
    struct rtl_stream *stream = handle;
    return &stream->async;
}

/* Returns its number on the stream. */
static uint64_t put(struct rtl_stream *stream, struct rtl_item *item)
{
    item->next = NULL;
    pthread_mutex_lock(&stream->lock);
    *stream->last = item;
    stream->last = &item->next;
    uint64_t number = ++stream->put;
    pthread_cond_signal(&stream->queued);
    pthread_mutex_unlock(&stream->lock);
    return number;
}

void weir__rtl_put(struct rtl_stream *stream, struct rtl_item *item)
{
    (void)put(stream, item);
}

int weir__rtl_stream_sync(void *handle)
{
    struct rtl_stream *stream = handle;
    struct rtl_item item = {.kind = RTL_SETTLE};
    uint64_t number = put(stream, &item);
    pthread_mutex_lock(&stream->lock);
    while (stream->done < number) pthread_cond_wait(&stream->moved, &stream->lock);
    int failure = stream->failure;
    stream->failure = 0;
    pthread_mutex_unlock(&stream->lock);
    return failure ? weir__rtl_fail(failure, "%s: work failed", stream->device->backend->name) : WEIR_OK;
}

struct rtl_item *weir__rtl_item_new(enum rtl_item_kind kind, uint32_t nargs)
{
    struct rtl_item *item = malloc(sizeof *item + nargs * sizeof item->args[0]);
    if (item)
        item->kind = kind;
    else
        (void)weir__rtl_fail(WEIR_E_NO_MEMORY, "no memory for work");
    return item;
}

/* ---- slots ---- */

int weir__rtl_copy(void *stream, const struct weir__copy *copy)
{
    struct rtl_item *item = weir__rtl_item_new(RTL_COPY, 0);
    if (!item) return WEIR_E_NO_MEMORY;
    item->copy = *copy;
    weir__rtl_put(stream, item);
    return WEIR_OK;
}

int weir__rtl_fill(void *stream, void *to, uint8_t value, size_t bytes)
{
    struct rtl_item *item = weir__rtl_item_new(RTL_FILL, 0);
    if (!item) return WEIR_E_NO_MEMORY;
    item->fill.to = to;
    item->fill.bytes = bytes;
    item->fill.value = value;
    weir__rtl_put(stream, item);
    return WEIR_OK;
}

int weir__rtl_launch(void *stream, const struct weir__launch *launch)
{
    struct rtl_item *item = weir__rtl_item_new(RTL_LAUNCH, 2 * launch->nargs); /* arguments, and offsets that are 0 */
    if (!item) return WEIR_E_NO_MEMORY;
    item->launch = *launch;
    item->launch.args = item->args;
    if (launch->nargs) memcpy(item->args, launch->args, launch->nargs * sizeof item->args[0]);
    memset(item->args + launch->nargs, 0, launch->nargs * sizeof item->args[0]);
    weir__rtl_put(stream, item);
    return WEIR_OK;
}

int weir__rtl_host_function(void *stream, int (*function)(void *arg), void *arg)
{
    struct rtl_item *item = weir__rtl_item_new(RTL_FUNCTION, 0);
    if (!item) return WEIR_E_NO_MEMORY;
    item->function.call = function;
    item->function.arg = arg;
    weir__rtl_put(stream, item);
    return WEIR_OK;
}

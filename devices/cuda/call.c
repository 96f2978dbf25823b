/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/*
 * Functions of the host in the order of a stream (cuLaunchHostFunc). The driver runs them on a thread of its own,
 * usually one after another for all streams; they must not call the driver, and take no lock that is held around a call
 * of it. After an error of the context they are not called at all. The item's state tells whether it was:
 *
 *      QUEUED ── the driver calls ──► RUNNING ──► RAN
 *         └───── the device is lost ──► DROPPED            (C1: whoever exchanges QUEUED first)
 *
 * Whoever drops one that is running waits for its end, so that the caller's function is not entered, nor still run,
 * after the stream was destroyed.
 */
#include "internal.h"

#include <sched.h>
#include <stdlib.h>

enum { CALL_QUEUED, CALL_RUNNING, CALL_RAN, CALL_DROPPED };

static void on_call(void *arg)
{
    struct cuda_item *item = arg;
    int expected = CALL_QUEUED;
    if (!atomic_compare_exchange_strong_explicit(&item->state, &expected, CALL_RUNNING, memory_order_acq_rel,
                                                 memory_order_acquire)) /* C1 */
        return;
    item->run(item);
    /* Release: what it did; pairs with the acquire in weir__cuda_call_end(). */
    atomic_store_explicit(&item->state, CALL_RAN, memory_order_release);
}

void weir__cuda_call_end(struct cuda_item *item)
{
    int state = CALL_QUEUED;
    if (atomic_compare_exchange_strong_explicit(&item->state, &state, CALL_DROPPED, memory_order_acq_rel,
                                                memory_order_acquire)) /* C1 */
        return;
    while (atomic_load_explicit(&item->state, memory_order_acquire) == CALL_RUNNING) sched_yield(); /* see on_call() */
}

int weir__cuda_call(struct cuda_stream *stream, struct cuda_item *item)
{
    /* Before the call: the function may run before it returns. */
    weir__cuda_item_put(stream, item);
    int rc = DRIVER(stream->device, stream_call, stream->handle, on_call, item);
    if (rc) weir__cuda_call_end(item); /* it stays in the stream's list until the next position is done */
    return rc;
}

/* ---- functions of the caller ---- */

static void run_function(struct cuda_item *item)
{
    (void)item->function(item->arg); /* the adapter keeps its status */
}

int weir__cuda_host_function(void *handle, int (*function)(void *arg), void *arg)
{
    struct cuda_stream *stream = handle;
    struct cuda_guard guard;
    int rc = weir__cuda_enter(stream->device, &guard);
    if (rc) return rc;
    rc = weir__cuda_call_settle_own(stream);
    struct cuda_item *item = rc ? NULL : weir__cuda_item_get(stream, ITEM_CALL);
    if (item) {
        item->run = run_function;
        item->function = function;
        item->arg = arg;
        rc = weir__cuda_call(stream, item);
        weir__cuda_writes_anything(stream);
    } else if (!rc) {
        rc = WEIR_E_NO_MEMORY;
    }
    weir__cuda_leave(&guard);
    return rc;
}

/* ---- late copies that somebody waits for on a device ---- */

static void run_settle(struct cuda_item *item)
{
    weir__cuda_settle_late(item->settled, item->until);
}

int weir__cuda_call_settle(struct cuda_stream *stream, struct cuda_stream *from, uint64_t number)
{
    struct cuda_item *item = weir__cuda_item_get(stream, ITEM_CALL);
    if (!item) return WEIR_E_NO_MEMORY;
    item->run = run_settle;
    item->settled = from;
    item->until = number;
    COUNT(stream->device, settle_calls);
    return weir__cuda_call(stream, item);
}

/* One that has returned, or a new one; on the device's list. */
static struct cuda_item *foreign_get(struct cuda_device *device)
{
    pthread_mutex_lock(&device->stream_lock);
    struct cuda_item *item = device->foreign;
    /* Acquire: it does not look at the item any more; pairs with the release in on_call(). */
    while (item && atomic_load_explicit(&item->state, memory_order_acquire) != CALL_RAN) item = item->next;
    if (item) {
        atomic_store_explicit(&item->state, CALL_QUEUED, memory_order_relaxed); /* nobody else has it */
    } else if ((item = calloc(1, sizeof *item))) {
        item->next = device->foreign;
        device->foreign = item;
    }
    pthread_mutex_unlock(&device->stream_lock);
    return item;
}

int weir__cuda_call_settle_foreign(struct driver_stream *native, struct cuda_stream *from, uint64_t number)
{
    struct cuda_device *device = from->device;
    struct cuda_item *item = foreign_get(device);
    if (!item) return weir__cuda_fail(WEIR_E_NO_MEMORY, "no memory for work on a stream");
    item->run = run_settle;
    item->settled = from;
    item->until = number;
    COUNT(device, settle_calls);
    int rc = DRIVER(device, stream_call, native, on_call, item);
    if (rc) atomic_store_explicit(&item->state, CALL_RAN, memory_order_release); /* as if: free again */
    return rc;
}

int weir__cuda_call_settle_own(struct cuda_stream *stream)
{
    if (stream->late_position <= atomic_load_explicit(&stream->done, memory_order_acquire)) return WEIR_OK; /* S2 */
    int rc = weir__cuda_call_settle(stream, stream, stream->late);
    if (!rc) stream->late_position = 0; /* in order now */
    return rc;
}

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The threads of a device and its run queue. A thread is started or woken only if no other one is awake to find the
 * work:
 *  - `waking`: one was woken and has not looked yet. It wakes the next one itself if the queue is not empty behind it.
 *  - `lingering`: one has drained its stream and watches that stream and the queue for a moment. D1 it stores false and
 *    then D2 loads `queued`; whoever pushes D3 stores `queued` and then D4 loads `lingering`; all seq_cst, so one of
 * them sees the other. Threads that run kernels may block in them, so a stream that is queued while all run gets a
 * further thread, one start at a time, up to HOST_WORKERS_MAX. They sleep until work comes and end with the device.
 */
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <devices/thread.h>

#include "internal.h"

static _Thread_local struct host_device *deferred __attribute__((tls_model("initial-exec")));

void weir__host_futex_wait(_Atomic uint32_t *word, uint32_t value)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

void weir__host_futex_wake(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

struct host_device *weir__host_device_defer(struct host_device *device)
{
    struct host_device *outer = deferred;
    deferred = device;
    return outer;
}

/* ---- waking ---- */

static void *worker_main(void *arg);

/* The worker to wake, or to start if it has no thread yet (*start_out); NULL: none. wake_up() must follow. */
static struct host_worker *pick_locked(struct host_device *device, bool *start_out)
{
    *start_out = false;
    /* D4: pairs with D1. */
    if (!device->queue_first || device->waking || device->closing ||
        atomic_load_explicit(&device->lingering, memory_order_seq_cst))
        return NULL;
    struct host_worker *worker = device->parked;
    if (worker) {
        device->parked = worker->parked_below;
        device->nparked--;
    } else {
        /* Relaxed: written under the lock. */
        uint32_t n = atomic_load_explicit(&device->nworkers, memory_order_relaxed);
        if (n == HOST_WORKERS_MAX) return NULL;
        worker = &device->workers[n];
        atomic_store_explicit(&device->nworkers, n + 1, memory_order_relaxed);
        device->starting++;
        *start_out = true;
    }
    device->waking = true;
    device->wakes++;
    return worker;
}

static void start_thread(struct host_worker *worker)
{
    struct host_device *device = worker->device;
    int error = weir__thread_start(&worker->thread, worker_main, worker);
    pthread_mutex_lock(&device->lock);
    device->starting--;
    if (error) {
        /* Threads that exist take the work when they can; else the next flush, notify or sync tries again. */
        device->waking = false;
        atomic_fetch_sub_explicit(&device->nworkers, 1, memory_order_relaxed);
    }
    pthread_mutex_unlock(&device->lock);
}

bool weir__host_device_has_threads(struct host_device *device)
{
    bool some, unsure;
    do {
        pthread_mutex_lock(&device->lock);
        unsure = device->starting != 0; /* another thread is inside weir__thread_start() */
        /* Relaxed: counted up under the lock; counted down under it, too. */
        some = atomic_load_explicit(&device->nworkers, memory_order_relaxed) > (uint32_t)device->starting;
        pthread_mutex_unlock(&device->lock);
        if (!some && unsure) sched_yield();
    } while (!some && unsure);
    return some;
}

static void wake_up(struct host_worker *worker, bool start)
{
    if (!worker) return;
    if (start) {
        start_thread(worker);
        return;
    }
    atomic_store_explicit(&worker->word, 1, memory_order_release); /* pairs with the load in next_stream() */
    weir__host_futex_wake(&worker->word);
}

void weir__host_device_wake(struct host_device *device)
{
    bool start;
    pthread_mutex_lock(&device->lock);
    struct host_worker *worker = pick_locked(device, &start);
    pthread_mutex_unlock(&device->lock);
    wake_up(worker, start);
}

/* ---- run queue ---- */

void weir__host_device_push(struct host_stream *stream)
{
    struct host_device *device = stream->device;
    struct host_worker *worker = NULL;
    bool start = false;
    pthread_mutex_lock(&device->lock);
    bool front = stream->priority > 0;
    stream->queue_previous = front ? NULL : device->queue_last;
    stream->queue_next = front ? device->queue_first : NULL;
    *(stream->queue_previous ? &stream->queue_previous->queue_next : &device->queue_first) = stream;
    *(stream->queue_next ? &stream->queue_next->queue_previous : &device->queue_last) = stream;
    stream->listed = true;
    atomic_fetch_add_explicit(&device->queued, 1, memory_order_seq_cst); /* D3: pairs with D2 */
    if (device != deferred) worker = pick_locked(device, &start);
    pthread_mutex_unlock(&device->lock);
    wake_up(worker, start);
}

static void unlist_locked(struct host_device *device, struct host_stream *stream)
{
    *(stream->queue_previous ? &stream->queue_previous->queue_next : &device->queue_first) = stream->queue_next;
    *(stream->queue_next ? &stream->queue_next->queue_previous : &device->queue_last) = stream->queue_previous;
    stream->listed = false;
    atomic_fetch_sub_explicit(&device->queued, 1, memory_order_seq_cst);
    /* Seq_cst for the order with S1 as for every change of the state; the lock pairs with the push. */
    atomic_store_explicit(&stream->state, HOST_RUNNING, memory_order_seq_cst);
}

bool weir__host_device_unlist(struct host_stream *stream)
{
    struct host_device *device = stream->device;
    pthread_mutex_lock(&device->lock);
    bool listed = stream->listed;
    if (listed) unlist_locked(device, stream);
    pthread_mutex_unlock(&device->lock);
    return listed;
}

/* ---- workers ---- */

/* Sleeps until there is a stream to run. NULL: the device closes. */
static struct host_stream *next_stream(struct host_worker *self)
{
    struct host_device *device = self->device;
    pthread_mutex_lock(&device->lock);
    for (;;) {
        struct host_stream *stream = device->queue_first;
        if (stream) {
            bool start;
            unlist_locked(device, stream);
            struct host_worker *worker = pick_locked(device, &start);
            pthread_mutex_unlock(&device->lock);
            wake_up(worker, start);
            return stream;
        }
        if (device->closing) break;
        /* Relaxed: ordered by the lock. */
        atomic_store_explicit(&self->word, 0, memory_order_relaxed);
        self->parked_below = device->parked;
        device->parked = self;
        device->nparked++;
        pthread_mutex_unlock(&device->lock);
        while (!atomic_load_explicit(&self->word, memory_order_acquire)) weir__host_futex_wait(&self->word, 0);
        pthread_mutex_lock(&device->lock);
        device->waking = false;
    }
    pthread_mutex_unlock(&device->lock);
    return NULL;
}

/* The stream is drained and in state LINGER. true: it got work and is claimed again. */
static bool linger(struct host_device *device, struct host_stream *stream, uint64_t done)
{
    /* Relaxed loads: the look at the queue under the lock follows in any case. */
    if (atomic_load_explicit(&device->queued, memory_order_relaxed) ||
        atomic_load_explicit(&device->lingering, memory_order_relaxed) ||
        atomic_exchange_explicit(&device->lingering, true, memory_order_seq_cst))
        return false;
    bool work = false;
    for (unsigned i = 0; i < HOST_SPINS && !work; i++) {
        if (atomic_load_explicit(&device->queued, memory_order_relaxed) ||
            atomic_load_explicit(&stream->state, memory_order_relaxed) != HOST_LINGER)
            break;
        work = atomic_load_explicit(&stream->tail, memory_order_relaxed) != done;
        weir__host_relax();
    }
    atomic_store_explicit(&device->lingering, false, memory_order_seq_cst); /* D1: pairs with D4 */
    uint32_t expected = HOST_LINGER;
    if (!work || !atomic_compare_exchange_strong(&stream->state, &expected, HOST_RUNNING)) return false;
    /* D2: pairs with D3. */
    if (atomic_load_explicit(&device->queued, memory_order_seq_cst)) weir__host_device_wake(device);
    return true;
}

static void drain(struct host_device *device, struct host_stream *stream)
{
    for (;;) {
        if (weir__host_stream_run(stream, UINT64_MAX, HOST_WORKER) == HOST_RUN_BLOCKED) return;
        uint64_t done = stream->reader.done;
        /* Release: hands the reader to whoever claims the stream now. */
        atomic_store_explicit(&stream->state, HOST_LINGER, memory_order_release);
        if (linger(device, stream, done)) continue;
        struct host_device *outer = weir__host_device_defer(device);
        weir__host_stream_leave(stream, HOST_LINGER, done);
        weir__host_device_defer(outer);
        return;
    }
}

static void *worker_main(void *arg)
{
    struct host_worker *self = arg;
    struct host_device *device = self->device;
    char name[16];
    snprintf(name, sizeof name, "weir-host-%u", device->number % 10000u);
    pthread_setname_np(pthread_self(), name);
    pthread_mutex_lock(&device->lock);
    device->waking = false;
    pthread_mutex_unlock(&device->lock);
    for (struct host_stream *stream; (stream = next_stream(self));) drain(device, stream);
    return NULL;
}

void weir__host_device_stop(struct host_device *device)
{
    pthread_mutex_lock(&device->lock);
    device->closing = true;
    while (device->starting) {
        pthread_mutex_unlock(&device->lock);
        sched_yield();
        pthread_mutex_lock(&device->lock);
    }
    struct host_worker *parked = device->parked;
    device->parked = NULL;
    device->nparked = 0;
    pthread_mutex_unlock(&device->lock);
    while (parked) {
        struct host_worker *below = parked->parked_below; /* may park no more: closing is set */
        wake_up(parked, false);
        parked = below;
    }
    /* Relaxed: closing is set, so the number stays. */
    uint32_t n = atomic_load_explicit(&device->nworkers, memory_order_relaxed);
    for (uint32_t i = 0; i < n; i++) pthread_join(device->workers[i].thread, NULL);
    atomic_store_explicit(&device->nworkers, 0, memory_order_relaxed);
    device->waking = false;
}

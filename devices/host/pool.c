/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Devices and streams are kept for ever and used again (internal.h says why): devices in a list of the process, streams
 * in a list of their device. So memory is bounded by the most that were open at once.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "internal.h"

static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;
static struct host_device *pool; /* under pool_lock */

/* Held for a few instructions only: whoever finds it taken spins before it sleeps. */
static void lock_init(pthread_mutex_t *lock)
{
    pthread_mutexattr_t adaptive;
    pthread_mutexattr_init(&adaptive);
    pthread_mutexattr_settype(&adaptive, PTHREAD_MUTEX_ADAPTIVE_NP);
    pthread_mutex_init(lock, &adaptive);
    pthread_mutexattr_destroy(&adaptive);
}

/* In the child of a fork the locks may be held by threads that are gone: start anew with nothing. */
void weir__host_pool_forked(void)
{
    pthread_mutex_init(&pool_lock, NULL);
    pool = NULL;
}

struct host_device *weir__host_device_get(const struct host_backend *backend, uint32_t number,
                                          const struct weir__device_notice *notice)
{
    pthread_mutex_lock(&pool_lock);
    struct host_device *device = pool;
    if (device) pool = device->pool_next;
    pthread_mutex_unlock(&pool_lock);
    if (!device) {
        device = weir__host_allocate(sizeof *device);
        if (!device) return NULL;
        memset(device, 0, sizeof *device);
        lock_init(&device->lock);
        for (unsigned i = 0; i < HOST_WORKERS_MAX; i++) device->workers[i].device = device;
    }
    pthread_mutex_lock(&device->lock);
    device->notice = notice;
    device->number = number;
    device->generation = backend->generation;
    device->delay_us = backend->options.delay_us;
    device->delay_seed = backend->options.delay_seed;
    device->short_ns = device->delay_us ? 0 : backend->options.short_ns;
    device->wakes = 0;
    device->closing = false;
    pthread_mutex_unlock(&device->lock);
    return device;
}

void weir__host_device_put(struct host_device *device)
{
    weir__host_device_stop(device);
    pthread_mutex_lock(&pool_lock);
    device->pool_next = pool;
    pool = device;
    pthread_mutex_unlock(&pool_lock);
}

static struct host_stream *new_stream(struct host_device *device)
{
    struct host_stream *stream = weir__host_allocate(sizeof *stream);
    if (!stream) return NULL;
    memset(stream, 0, sizeof *stream);
    stream->device = device;
    stream->failures = stream->failures_few;
    stream->failures_capacity = sizeof stream->failures_few / sizeof stream->failures_few[0];
    lock_init(&stream->lock);
    /* Relaxed: not shared yet. */
    atomic_store_explicit(&stream->interest, HOST_NO_INTEREST, memory_order_relaxed);
    return stream;
}

static void put_stream(struct host_stream *stream)
{
    pthread_mutex_lock(&stream->device->lock);
    stream->queue_next = stream->device->dead;
    stream->device->dead = stream;
    pthread_mutex_unlock(&stream->device->lock);
}

int weir__host_stream_make(struct host_device *device, void *owner, int32_t priority, bool own,
                           struct host_stream **stream_out)
{
    pthread_mutex_lock(&device->lock);
    struct host_stream *stream = device->dead;
    if (stream) device->dead = stream->queue_next;
    pthread_mutex_unlock(&device->lock);
    if (!stream && !(stream = new_stream(device))) return WEIR_E_NO_MEMORY;
    if (weir__host_queue_init(stream)) {
        put_stream(stream);
        return WEIR_E_NO_MEMORY;
    }
    stream->owner = owner;
    stream->priority = priority;
    stream->own = own;
    stream->lent = false;
    weir__host_queue_restart(stream);
    stream->generation = device->generation;
    stream->base = stream->writer.recorded;
    stream->reader.random = device->delay_seed ^ ((uint64_t)(device->number + 1) << 32) ^ (uintptr_t)stream;
    stream->magic = HOST_STREAM_MAGIC;
    /* Relaxed: the store of the state publishes them. */
    atomic_store_explicit(&stream->failure, 0, memory_order_relaxed);
    atomic_store_explicit(&stream->nfailures, 0, memory_order_relaxed);
    atomic_store_explicit(&stream->state, HOST_IDLE, memory_order_seq_cst);
    *stream_out = stream;
    return WEIR_OK;
}

void weir__host_stream_end(struct host_stream *stream)
{
    atomic_store_explicit(&stream->tail, stream->writer.queued, memory_order_release); /* P1 */
    while (!weir__host_stream_claim(stream)) {
        /* Its runner is about to leave: everything recorded is reached. */
        struct timespec pause = {.tv_nsec = 20000};
        nanosleep(&pause, NULL);
    }
    while (weir__host_stream_run(stream, UINT64_MAX, HOST_HOLD) == HOST_RUN_WAITING)
        weir__host_sync(stream->reader.wanted.stream, stream->reader.wanted.position);
    weir__host_queue_fini(stream);
    pthread_mutex_lock(&stream->lock); /* a late look of somebody who wanted to wait */
    free(stream->notices);
    stream->notices = NULL;
    stream->nnotices = stream->notices_capacity = 0;
    pthread_mutex_unlock(&stream->lock);
    stream->magic = 0;
    atomic_store_explicit(&stream->state, HOST_DEAD, memory_order_seq_cst);
    put_stream(stream);
}

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Who runs a stream, and who waits for it. The argument stands in internal.h; seq_cst accesses are named after it:
 * S1/S2 flushed and state (submitter), S3/S4 state and flushed or interest (runner that leaves), W1/W2 interest and
 * completed (waiter), C1/C2 completed and interest (runner), K1 state (waiter, behind W1).
 */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

static _Thread_local int current_device __attribute__((tls_model("initial-exec"))) = -1;

int weir__host_current_device(void)
{
    return current_device;
}

/* ---- claims ---- */

void weir__host_stream_kick(struct host_stream *stream)
{
    /* S2, K1: load of the state behind S1 or W1; pairs with S3. */
    uint32_t state = atomic_load_explicit(&stream->state, memory_order_seq_cst);
    if (state == HOST_IDLE) {
        if (atomic_compare_exchange_strong(&stream->state, &state, HOST_QUEUED)) weir__host_device_push(stream);
    } else if (state == HOST_QUEUED &&
               /* Relaxed: without a thread (none could be started) nobody else would try again. */
               !atomic_load_explicit(&stream->device->nworkers, memory_order_relaxed)) {
        weir__host_device_wake(stream->device);
    }
}

void weir__host_stream_flush(struct host_stream *stream)
{
    weir__host_queue_restart(stream);
    weir__host_stream_publish(stream);
    weir__host_stream_kick(stream);
}

bool weir__host_stream_claim(struct host_stream *stream)
{
    /* Relaxed: only a guess. */
    uint32_t state = atomic_load_explicit(&stream->state, memory_order_relaxed);
    if (state == HOST_IDLE || state == HOST_LINGER)
        return atomic_compare_exchange_strong(&stream->state, &state, HOST_RUNNING);
    return state == HOST_QUEUED && weir__host_device_unlist(stream);
}

void weir__host_stream_leave(struct host_stream *stream, uint32_t from, uint64_t done)
{
    /* S3: seq_cst, pairs with S2 and K1, and hands the reader to the next runner. */
    if (from == HOST_RUNNING)
        atomic_store_explicit(&stream->state, HOST_IDLE, memory_order_seq_cst);
    else if (!atomic_compare_exchange_strong(&stream->state, &from, HOST_IDLE))
        return;
    /* S4: pairs with S1 and W1. */
    if (atomic_load_explicit(&stream->flushed, memory_order_seq_cst) > done ||
        atomic_load_explicit(&stream->interest, memory_order_seq_cst) != HOST_NO_INTEREST)
        weir__host_stream_kick(stream);
}

/* ---- waiters ---- */

static void set_interest_locked(struct host_stream *stream)
{
    uint64_t lowest = HOST_NO_INTEREST;
    for (struct host_waiter *waiter = stream->waiters; waiter; waiter = waiter->next)
        if (waiter->position < lowest) lowest = waiter->position;
    if (stream->nnotices && stream->notices[0] < lowest) lowest = stream->notices[0];
    atomic_store_explicit(&stream->interest, lowest, memory_order_seq_cst); /* W1: pairs with C2, S4 */
}

bool weir__host_stream_add_waiter(struct host_stream *stream, struct host_waiter *waiter)
{
    pthread_mutex_lock(&stream->lock);
    waiter->next = stream->waiters;
    stream->waiters = waiter;
    /* Relaxed: written under the lock only. A lower one means that the runner will come under the lock anyway. */
    if (waiter->position < atomic_load_explicit(&stream->interest, memory_order_relaxed))
        atomic_store_explicit(&stream->interest, waiter->position, memory_order_seq_cst); /* W1 */
    /* W2: pairs with C1. */
    bool reached = atomic_load_explicit(&stream->completed, memory_order_seq_cst) >= waiter->position;
    if (reached) {
        stream->waiters = waiter->next;
        set_interest_locked(stream);
    }
    pthread_mutex_unlock(&stream->lock);
    return !reached;
}

static void resume_waiters(struct host_waiter *waiter)
{
    while (waiter) {
        struct host_waiter *next = waiter->next; /* the waiter is gone once it is told */
        if (waiter->stream) {
            /* Release: hands the reader of the parked stream on; pairs with the claim. */
            atomic_store_explicit(&waiter->stream->state, HOST_QUEUED, memory_order_seq_cst);
            weir__host_device_push(waiter->stream);
        } else {
            atomic_store_explicit(&waiter->word, 1, memory_order_release); /* pairs with the loads in sync.c */
            weir__host_futex_wake(&waiter->word);
        }
        waiter = next;
    }
}

/* Notices are kept in ascending order; nearly all come in it. */
static void notices_add(struct host_stream *stream, uint64_t position)
{
    uint32_t at = stream->nnotices++;
    for (; at && stream->notices[at - 1] > position; at--) stream->notices[at] = stream->notices[at - 1];
    stream->notices[at] = position;
}

/* Those that are reached. False: none. */
static bool notices_take(struct host_stream *stream, uint64_t position)
{
    uint32_t gone = 0;
    while (gone < stream->nnotices && stream->notices[gone] <= position) gone++;
    stream->nnotices -= gone;
    if (gone) memmove(stream->notices, stream->notices + gone, stream->nnotices * sizeof *stream->notices);
    return gone != 0;
}

/* Tell everybody whose position is reached. Runner only, no lock held. */
static void tell(struct host_stream *stream, uint64_t position, uint32_t flags)
{
    struct host_waiter *ready = NULL;
    pthread_mutex_lock(&stream->lock);
    for (struct host_waiter **link = &stream->waiters; *link;) {
        struct host_waiter *waiter = *link;
        if (waiter->position <= position) {
            *link = waiter->next;
            waiter->next = ready;
            ready = waiter;
        } else {
            link = &waiter->next;
        }
    }
    bool notice = notices_take(stream, position);
    set_interest_locked(stream);
    pthread_mutex_unlock(&stream->lock);

    struct host_device *outer = weir__host_device_defer(flags & HOST_WORKER ? stream->device : NULL);
    resume_waiters(ready);
    if (notice) {
        int device = current_device;
        current_device = -1;
        stream->device->notice->reached(stream->owner, position - stream->base);
        current_device = device;
    }
    weir__host_device_defer(outer);
}

int weir__host_stream_notify(struct host_stream *stream, uint64_t position)
{
    pthread_mutex_lock(&stream->lock);
    if (stream->nnotices == stream->notices_capacity) {
        uint32_t capacity = stream->notices_capacity ? 2 * stream->notices_capacity : 8;
        uint64_t *notices = realloc(stream->notices, capacity * sizeof *notices);
        if (!notices) {
            pthread_mutex_unlock(&stream->lock);
            return weir__host_fail(WEIR_E_NO_MEMORY, "no memory to note a position that is waited for");
        }
        stream->notices = notices;
        stream->notices_capacity = capacity;
    }
    notices_add(stream, position);
    set_interest_locked(stream);
    uint64_t completed = atomic_load_explicit(&stream->completed, memory_order_seq_cst); /* W2: pairs with C1 */
    if (completed >= position) {
        (void)notices_take(stream, completed); /* the notice that is given below is for all of them */
        set_interest_locked(stream);
    }
    pthread_mutex_unlock(&stream->lock);
    if (completed >= position)
        stream->device->notice->reached(stream->owner, completed - stream->base);
    else
        weir__host_stream_kick(stream);
    /* The notice stays in any case: one too many does no harm. */
    return weir__host_device_has_threads(stream->device)
               ? WEIR_OK
               : weir__host_fail(WEIR_E_SYSTEM, "no thread can be started: only a sync runs what is queued");
}

/* ---- failures ---- */

static void note_failure(struct host_stream *stream, uint64_t position, int status)
{
    pthread_mutex_lock(&stream->lock);
    /* Relaxed, here and below: written under the lock; a reader knows that the position is reached (A1). */
    uint32_t n = atomic_load_explicit(&stream->nfailures, memory_order_relaxed);
    if (n == stream->failures_capacity) {
        struct host_failure *more = malloc(2 * n * sizeof *more);
        if (more) {
            memcpy(more, stream->failures, n * sizeof *more);
            if (stream->failures != stream->failures_few) free(stream->failures);
            stream->failures = more;
            stream->failures_capacity = 2 * n;
        }
    }
    if (n < stream->failures_capacity) {
        stream->failures[n] = (struct host_failure){.first = position, .last = position, .status = status};
        atomic_store_explicit(&stream->nfailures, n + 1, memory_order_relaxed);
    } else {
        /* No memory: rather call the positions between failed as well than lose this one. */
        stream->failures[n - 1].last = position;
    }
    pthread_mutex_unlock(&stream->lock);
}

int weir__host_stream_status(struct host_stream *stream, uint64_t position)
{
    if (!atomic_load_explicit(&stream->nfailures, memory_order_relaxed)) return 0;
    int status = 0;
    pthread_mutex_lock(&stream->lock);
    uint32_t n = atomic_load_explicit(&stream->nfailures, memory_order_relaxed);
    for (uint32_t i = 0; i < n && !status; i++)
        if (stream->failures[i].first <= position && position <= stream->failures[i].last)
            status = stream->failures[i].status;
    pthread_mutex_unlock(&stream->lock);
    return status;
}

int weir__host_stream_first_failure(struct host_stream *stream)
{
    pthread_mutex_lock(&stream->lock);
    uint32_t n = atomic_load_explicit(&stream->nfailures, memory_order_relaxed);
    int status = n ? stream->failures[0].status : 0;
    pthread_mutex_unlock(&stream->lock);
    return status;
}

void weir__host_stream_forget(struct host_stream *stream, uint64_t position)
{
    if (!atomic_load_explicit(&stream->nfailures, memory_order_relaxed)) return;
    pthread_mutex_lock(&stream->lock);
    uint32_t n = atomic_load_explicit(&stream->nfailures, memory_order_relaxed), gone = 0;
    while (gone < n && stream->failures[gone].last <= position) gone++;
    if (gone) memmove(stream->failures, stream->failures + gone, (n - gone) * sizeof *stream->failures);
    atomic_store_explicit(&stream->nfailures, n - gone, memory_order_relaxed);
    pthread_mutex_unlock(&stream->lock);
}

/* ---- running ---- */

static bool park(struct host_stream *stream, struct host_point point, uint32_t flags)
{
    stream->waiter = (struct host_waiter){.position = point.position, .stream = stream};
    /* Relaxed: hints; whoever follows them checks what it finds. */
    atomic_store_explicit(&stream->blocked_on, point.stream, memory_order_relaxed);
    atomic_store_explicit(&stream->blocked_position, point.position, memory_order_relaxed);
    /* Release: the hints; pairs with the load in sync.c. The waiter's lock hands the reader on. */
    atomic_store_explicit(&stream->state, HOST_BLOCKED, memory_order_release);
    if (!weir__host_stream_add_waiter(point.stream, &stream->waiter)) {
        /* Relaxed: nobody acts on BLOCKED but the producer's runner, and that one never saw the waiter. */
        atomic_store_explicit(&stream->state, HOST_RUNNING, memory_order_relaxed);
        return false;
    }
    /* From here on the stream belongs to others. */
    struct host_device *outer = weir__host_device_defer(flags & HOST_WORKER ? stream->device : NULL);
    weir__host_stream_kick(point.stream);
    weir__host_device_defer(outer);
    return true;
}

/* HOST_RUN_REACHED: all points are. */
static enum host_run run_wait(struct host_stream *stream, const struct host_command *command, uint32_t flags)
{
    const struct host_point *points = weir__host_wait_points(command);
    struct host_reader *reader = &stream->reader;
    for (; reader->point < command->count; reader->point++) {
        struct host_point point = points[reader->point];
        if (weir__host_stream_reached(point.stream, point.position)) continue;
        if (flags & HOST_HOLD) {
            reader->wanted = point;
            return HOST_RUN_WAITING;
        }
        if (park(stream, point, flags)) return HOST_RUN_BLOCKED;
    }
    reader->point = 0;
    if (command->kind == HOST_WAIT_MANY) free((void *)points);
    return HOST_RUN_REACHED;
}

static inline bool is_timed(const struct host_device *device)
{
    /* Acquire: pairs with the release of who turns it on: now() can be called. */
    const _Atomic uint32_t *timing = device->notice->timing;
    return __builtin_expect(timing && atomic_load_explicit(timing, memory_order_acquire), 0);
}

static void tell_times(struct host_stream *stream, uint64_t position)
{
    const struct weir__device_notice *notice = stream->device->notice;
    uint64_t end = notice->now(), begin = stream->reader.began ? stream->reader.began : end;
    stream->reader.began = 0;
    if (stream->owner) notice->ran(stream->owner, position - stream->base, begin, end);
}

/* A record was reached. Returns true if streams may have become runnable that no thread was woken for. */
static bool reach(struct host_stream *stream, uint16_t kind, uint32_t flags)
{
    uint64_t position = ++stream->reader.position;
    /* Relaxed: the runner's own; others read it behind A1. */
    int failure = atomic_load_explicit(&stream->failure, memory_order_relaxed);
    if (failure && kind == HOST_RECORD) {
        note_failure(stream, position, failure);
        /* Release: before C1; pairs with the loads of whoever was given weir__device_info.failures. */
        atomic_fetch_add_explicit(&stream->device->failures, 1, memory_order_release);
        atomic_store_explicit(&stream->failure, 0, memory_order_relaxed);
    }
    if (is_timed(stream->device)) tell_times(stream, position);
    /* C1: seq_cst, pairs with W2 and A1. C2: pairs with W1. */
    atomic_store_explicit(&stream->completed, position, memory_order_seq_cst);
    if (atomic_load_explicit(&stream->interest, memory_order_seq_cst) > position) return false;
    tell(stream, position, flags);
    return flags & HOST_WORKER;
}

void weir__host_stream_reach(struct host_stream *stream)
{
    (void)reach(stream, HOST_MARK, 0);
}

static enum host_run run_commands(struct host_stream *stream, uint64_t until, uint32_t flags)
{
    struct host_reader *reader = &stream->reader;
    uint64_t limit = reader->done;
    bool owed = false; /* a wake-up, before anything that may take long */
    /* A former runner may have got there before the claim. Work behind it may wait for a stream that the caller holds.
     */
    if (reader->position >= until) return HOST_RUN_REACHED;
    for (;;) {
        if (reader->done == limit) {
            limit = atomic_load_explicit(&stream->tail, memory_order_acquire); /* pairs with P1 */
            if (reader->done == limit) return HOST_RUN_DRAINED;
        }
        struct host_command *command = weir__host_queue_next(stream);
        uint16_t kind = command->kind, words = command->words;
        if (kind == HOST_WAIT || kind == HOST_WAIT_MANY) {
            if (stream->device->delay_us) weir__host_delay(stream);
            enum host_run result = run_wait(stream, command, flags);
            if (result != HOST_RUN_REACHED) return result;
        } else if (kind != HOST_RECORD && kind != HOST_MARK) {
            if (owed) weir__host_device_wake(stream->device);
            owed = false;
            if (stream->device->delay_us) weir__host_delay(stream);
            if (!reader->began && is_timed(stream->device)) reader->began = stream->device->notice->now();
            weir__host_execute(stream, command);
        }
        reader->read += words;
        reader->done++;
        if (kind == HOST_RECORD || kind == HOST_MARK) {
            owed |= reach(stream, kind, flags);
            if (reader->position >= until) return HOST_RUN_REACHED;
        }
    }
}

enum host_run weir__host_stream_run(struct host_stream *stream, uint64_t until, uint32_t flags)
{
    int outer = current_device;
    current_device = (int)stream->device->number;
    enum host_run result = run_commands(stream, until, flags);
    current_device = outer;
    return result;
}

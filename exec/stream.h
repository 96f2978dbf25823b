/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_EXEC_STREAM_H
#define WEIR_EXEC_STREAM_H

/*
 * A stream as exec/ sees it: an id, positions, a clock, and the tasks that were issued and not yet retired.
 *
 * One thread at a time queues work: it holds the lease. Nobody ever waits for a lease, another stream is taken instead.
 * Retiring (finding out that positions were reached and finishing their tasks) is done by whoever needs it, under
 * .retiring. The clock is read by consumers of other streams under .clock_lock, a few instructions each.
 */

#include <exec/context.h>
#include <graph/clock.h>

#define WEIR__POINT_BITS 44 /* of a position; the stream id is above */

struct weir__issued {
    struct weir_task *task;
    uint64_t          position;
};

/* Where a task failed, by itself or behind the task @root (0: not known). */
struct weir__failed {
    uint64_t position, root;
};

struct weir__stream {
    struct weir_device            *device;
    const struct weir__device_ops *ops;
    void                          *handle;
    const _Atomic uint64_t        *counter; /* the backend's, or NULL; counts from .base */
    uint64_t                       base;
    uint32_t                       id;
    _Atomic bool                   leased;
    _Atomic uint64_t               issued;  /* newest position recorded and known to others */
    uint64_t                       recorded; /* the lessee's: newest position recorded */
    /* Issued tasks in stream order. The lessee enters at .entered; retiring takes at .taken; replaced under .retiring. */
    struct weir__issued           *ring;
    uint64_t                       capacity;
    _Atomic uint64_t               entered;
    uint64_t                       taken;     /* under .retiring */
    uint64_t                       room_seen; /* the lessee's: an older .taken */
    uint64_t                       asked;     /* newest position whose status was asked for; under failure_lock */
    pthread_mutex_t                retiring;
    _Atomic uint64_t               retired; /* newest position found reached; written under .retiring */
    _Atomic uint64_t               seen;    /* newest position that somebody saw reached; may be older than .retired */
    _Atomic uint64_t               soon;    /* position of the notice that weir__stream_want_soon() has asked for, or 0 */
    _Atomic uint64_t               wanted;  /* newest position that weir__context_notify() has asked a notice for */
    _Atomic uint64_t               behind;  /* newest position that a notice came for before it was entered */
    struct weir__failed           *failed;  /* by position, ascending; under failure_lock */
    uint32_t                       nfailed, cfailed;
    uint64_t                       certified; /* the lessee's: position of the newest certificate record */
    uint32_t                       traced;    /* the lessee's: the recording that knows the stream, weir__record_round() */
    struct weir__spin              clock_lock;
    struct weir__clock             clock;
};

static inline uint64_t weir__point_pack(uint32_t stream, uint64_t position)
{
    return (uint64_t)stream << WEIR__POINT_BITS | position;
}

static inline uint32_t weir__point_stream(uint64_t point)
{
    return (uint32_t)(point >> WEIR__POINT_BITS);
}

static inline uint64_t weir__point_position(uint64_t point)
{
    return point & (((uint64_t)1 << WEIR__POINT_BITS) - 1);
}

static inline bool weir__stream_try_lease(struct weir__stream *stream)
{
    /* Relaxed: a hint. Acquire: pairs with the release in unlease, the lessee's fields are ours now. */
    return !atomic_load_explicit(&stream->leased, memory_order_relaxed) &&
           !atomic_exchange_explicit(&stream->leased, true, memory_order_acquire);
}

static inline void weir__stream_unlease(struct weir__stream *stream)
{
    atomic_store_explicit(&stream->leased, false, memory_order_release); /* pairs with try_lease */
}

/* The newest position reached, as the backend says. */
static inline uint64_t weir__stream_completed(const struct weir__stream *stream)
{
    /* Acquire: pairs with the backend's release, what the work did is visible. */
    if (stream->counter != NULL) return atomic_load_explicit(stream->counter, memory_order_acquire) - stream->base;
    return stream->ops->completed(stream->handle, NULL);
}

static inline void weir__stream_position_up(_Atomic uint64_t *position, uint64_t to)
{
    /* Release: what the tasks up to there did is visible to whoever sees the position; pairs with weir__stream_reached(). */
    if (atomic_load_explicit(position, memory_order_relaxed) < to) atomic_store_explicit(position, to, memory_order_release);
}

/* Ask the backend for the newest position reached, and remember it in .seen. */
static inline uint64_t weir__stream_look(struct weir__stream *stream)
{
    uint64_t completed = weir__stream_completed(stream);

    /* Two threads may put it back to the older of what they saw: then it is asked for again. */
    weir__stream_position_up(&stream->seen, completed);
    return completed;
}

static inline bool weir__stream_reached(struct weir__stream *stream, uint64_t position)
{
    /* Acquire: pairs with weir__stream_position_up(), what the work did is visible. An older value means asking the backend. */
    return atomic_load_explicit(&stream->seen, memory_order_acquire) >= position || weir__stream_look(stream) >= position;
}

int weir__stream_create(struct weir_device *device, struct weir__stream **stream_out);
void weir__stream_destroy(struct weir__stream *stream);

/* Room in the ring for @n tasks more, no more than its first capacity. Lessee. 0 or WEIR_E_NO_MEMORY. */
int weir__stream_make_room(struct weir__stream *stream, unsigned n);

static inline int weir__stream_reserve(struct weir__stream *stream, unsigned n)
{
    /* Relaxed: the lessee's own. */
    if (atomic_load_explicit(&stream->entered, memory_order_relaxed) - stream->room_seen + n <= stream->capacity) return WEIR_OK;
    return weir__stream_make_room(stream, n);
}

/* The lessee recorded @position for @task. From here on the task can be retired by anybody. */
static inline void weir__stream_enter(struct weir__stream *stream, uint64_t position, struct weir_task *task)
{
    uint64_t entered = atomic_load_explicit(&stream->entered, memory_order_relaxed); /* the lessee's own */

    stream->ring[entered & (stream->capacity - 1)] = (struct weir__issued){task, position};
    /* Release: both publish the entry; pair with the acquires in retiring. Sequentially consistent: see .behind. */
    atomic_store_explicit(&stream->entered, entered + 1, memory_order_release);
    atomic_store_explicit(&stream->issued, position, memory_order_seq_cst);
}

/* The lessee has entered @position: did its notice come too early? Then it must be asked for once more. */
static inline bool weir__stream_is_behind(const struct weir__stream *stream, uint64_t position)
{
    /* Sequentially consistent: of the store above and the one in reached(), at least one side sees the other's. */
    return atomic_load_explicit(&stream->behind, memory_order_seq_cst) >= position;
}

/* Finish the tasks whose positions were reached. False if another thread is at it. */
bool weir__stream_retire(struct weir__stream *stream, struct weir__runner *runner);
/* Have the tasks up to a position finished when it is reached: asks the backend for a notice. */
void weir__stream_want(struct weir__stream *stream, uint64_t position);
/* The same for a task that nobody waits for in particular: some time after the position is reached, without a notice for each. */
void weir__stream_want_soon(struct weir__stream *stream, uint64_t position);
/* All streams of the context. True if a task was finished. */
bool weir__context_retire(struct weir_context *context, struct weir__runner *runner);
/* If notices failed: look for what is done. True if a task was finished. */
bool weir__context_poll(struct weir_context *context, struct weir__runner *runner);
/* Ask every stream with issued work for a notice at its newest position. True if there is such work. */
bool weir__context_notify(struct weir_context *context);
/* Is anything issued and not complete? */
bool weir__context_device_busy(struct weir_context *context);

/* How the backend tells us (struct weir__device_notice). */
extern const struct weir__device_notice weir__stream_notice;

#endif

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_EXEC_CONTEXT_H
#define WEIR_EXEC_CONTEXT_H

#include <pthread.h>

#include <exec/pool.h>
#include <exec/queue.h>
#include <exec/runner.h>
#include <exec/work.h>


#define WEIR__MAX_STREAMS 4096
#define WEIR__MAX_WORKERS 256
#define WEIR__MAX_WINDOW (1u << 24)
#define WEIR__POLL_NS 1000000u

struct weir__stream;
struct weir__certificate;

/* A task that failed by itself, for the texts of those that are cancelled because of it. */
struct weir__root {
    uint64_t id;
    char     name[96];
};

struct weir_device {
    struct weir_context            *context;
    const struct weir__device_ops  *ops;
    void                           *handle;
    struct weir__device_info        info;
    uint32_t                        number;
    uint8_t                         domain;     /* of its tasks; 0: edges go through the host */
    uint32_t                        max_streams;
    _Atomic uint32_t                nstreams;
    _Atomic uint32_t                lent;       /* streams that others queue on for long */
    _Atomic uint32_t                last;       /* index of the stream chosen last, a hint */
    _Atomic uint32_t                crowded;    /* so many choices look at few streams only; see issue.c */
    struct weir__stream            *streams[WEIR__MAX_STREAMS / 8];
};

struct weir__backend {
    const struct weir__device_ops *ops; /* adapted */
    void                          *handle;
    void                          *raw;
    void                         (*destroy)(void *raw); /* NULL: the caller's */
};

struct weir__worker {
    struct weir_context *context;
    pthread_t            thread;
    struct weir__queue   queue;
};

/*
 * Lock order: list_lock > queue.lock; create_lock, lock_of_locks, root_lock > (nothing); failure_lock > stream.retiring.
 * None is held while user code runs.
 */
struct weir_context {
    uint32_t window;
    uint32_t max_workers;
    uint32_t generation; /* of the process: fork changes it */
    uint16_t number;     /* in records of trace/ */

    struct weir_context *summary_next; /* under the lock in summary.c */

    struct weir__backend backends[8];
    uint32_t             nbackends;
    const char          *absence; /* see weir__context_absence() */
    struct weir_device  *devices[WEIR__MAX_DEVICES];
    uint32_t             ndevices;

    /* Streams of all devices by id. Written under create_lock; an id is handed out after its entry is set. */
    struct weir__stream *streams[WEIR__MAX_STREAMS];
    _Atomic uint32_t     nstreams;
    pthread_mutex_t      create_lock;

    /* Pools and scopes. */
    pthread_mutex_t      scope_lock;
    struct weir__pool   *idle_pools;
    struct weir_scope   *scopes;
    struct weir_counters past; /* of destroyed scopes */

    /* Active queues, and the thieves' notes in them. */
    struct weir__spin   list_lock;
    struct weir__queue *active;
    struct weir__queue  inject; /* of tasks that became ready on threads without a queue */

    /* Workers. A push wakes one if none is looking; a worker that finds work wakes the next. */
    pthread_mutex_t     worker_lock;
    struct weir__worker *workers[WEIR__MAX_WORKERS];
    _Atomic uint32_t    nworkers;
    _Atomic uint32_t    parked;  /* workers asleep on .event */
    _Atomic uint32_t    looking; /* workers that look for work, or were told to: see worker.c */
    _Atomic uint32_t    grants;  /* workers told to look that have not woken up yet */
    _Atomic uint32_t    blocked; /* workers asleep inside a task that waits */
    _Atomic uint32_t    noticing; /* threads of backends that finish tasks: what they have in hand is in no list */
    _Atomic uint32_t    event;   /* futex */
    _Atomic bool        stop;
    _Atomic bool        poll;    /* a notice could not be had: device work is looked for every WEIR__POLL_NS */

    /* mutexinoutset: the tails of all locks. */
    pthread_mutex_t lock_of_locks;
    /* Device work has failed at least once: streams are retired one at a time, in the order of dependences. */
    pthread_mutex_t failure_lock;
    _Atomic bool    failures;
    /* The newest failures, a ring. */
    struct weir__spin root_lock;
    struct weir__root roots[16];
    uint32_t          nroots;

    struct weir__certificate *certificate; /* NULL: nobody asked */
    pthread_mutex_t           certificate_lock;
};

/* Number of forks that this process is away from the one that loaded the library. Changes only in a child of fork, before
 * its first statement. */
extern _Atomic uint32_t weir__generation;
int weir__fail_forked(void);

/* WEIR_OK, or WEIR_E_FORKED with a text. */
static inline int weir__context_check(const struct weir_context *context)
{
    /* Relaxed: see above. */
    if (__builtin_expect(context->generation == atomic_load_explicit(&weir__generation, memory_order_relaxed), 1)) return WEIR_OK;
    return weir__fail_forked();
}

/* A queue got its first task: put it on the active list and see that somebody looks. */
void weir__context_list(struct weir_context *context, struct weir__queue *queue);
void weir__context_unlist(struct weir_context *context, struct weir__queue *queue);
/* There is work: wake a worker unless one is looking already; start one if none exists. */
void weir__context_wake(struct weir_context *context);
/* Take ready tasks of any queue: the first is returned, at most @most - 1 more go to @own (which may be NULL if @most is 1).
 * @deferred_out: leave tiny tasks to an owner who gets them done faster alone, and say so; NULL: take them all the same. */
struct weir_task *weir__context_steal(struct weir_context *context, struct weir__queue *own, uint32_t most,
                                      bool *deferred_out);
/* Is this thread one of the context's workers? */
bool weir__worker_is_current(const struct weir_context *context);
/* Stop and join the workers. */
void weir__workers_stop(struct weir_context *context);

#endif

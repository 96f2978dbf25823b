/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <exec/context.h>

#include <stdlib.h>
#include <string.h>

#include <devices/thread.h>
#include <exec/futex.h>
#include <exec/stream.h>
#include <exec/submit.h>
#include <exec/trace.h>

/*
 * Workers run host tasks. A wake-up costs 30-75 us and a cache line 90-200 ns between cores, so:
 *  - a push wakes a worker only if none is looking; a worker that finds something and leaves more behind wakes the next;
 *  - a worker leaves a scope's tasks alone while the scope's submitter submits or runs them at a rate of one a
 *    microsecond or more: tasks that small are done faster by the thread that has them in its cache. It looks again
 *    after a while, so nothing is left lying if the submitter goes away.
 *
 * Argument against lost wake-ups. A pusher enters the queue (and lists it) and then reads .looking. A worker that gives
 * up takes itself off .looking, and then looks at all queues again before it sleeps. Both sides go through the list's or
 * the queue's lock in between: if the worker's second look came first, the pusher, locking later, sees .looking without
 * it; else the worker sees the task. A granted wake-up is counted in .looking by the granter already.
 */

#define STEAL 32
#define FIRST_LOOK_NS 10000   /* two looks at an owner are that far apart at least */
#define DEFER_NS 100000       /* later looks */
#define FORGET_NS 2000000     /* older notes are worth nothing */
#define BURST_NS 500000       /* how long a submitter may only submit before others run its tasks */

static _Thread_local struct weir_context *worker_of __attribute__((tls_model("initial-exec")));

bool weir__worker_is_current(const struct weir_context *context)
{
    return worker_of == context;
}

/* ---- active queues ---- */

void weir__context_list(struct weir_context *context, struct weir__queue *queue)
{
    weir__spin_lock(&context->list_lock);
    queue->next = context->active;
    queue->prev = NULL;
    if (context->active != NULL) context->active->prev = queue;
    context->active = queue;
    queue->seen_ns = 0;
    weir__spin_unlock(&context->list_lock);
}

static void unlist_locked(struct weir_context *context, struct weir__queue *queue)
{
    if (queue->prev != NULL) queue->prev->next = queue->next;
    else context->active = queue->next;
    if (queue->next != NULL) queue->next->prev = queue->prev;
    queue->next = queue->prev = NULL;
}

void weir__context_unlist(struct weir_context *context, struct weir__queue *queue)
{
    weir__spin_lock(&context->list_lock);
    weir__spin_lock(&queue->lock);
    if (queue->listed) unlist_locked(context, queue);
    queue->listed = false;
    weir__spin_unlock(&queue->lock);
    weir__spin_unlock(&context->list_lock);
}

/* Is the owner getting on so fast that a second thread would only be in its way? Under list_lock. */
static bool owner_is_faster(struct weir__queue *queue, uint64_t now)
{
    /* Relaxed: hints. */
    uint32_t submitted = atomic_load_explicit(&queue->submitted, memory_order_relaxed) - queue->seen_submitted;
    uint32_t ran = atomic_load_explicit(&queue->ran, memory_order_relaxed) - queue->seen_ran;
    uint64_t passed = now - queue->seen_ns;
    bool     fresh = queue->seen_ns == 0 || passed > FORGET_NS;

    if (!queue->owned) return false;
    if (!fresh && passed < FIRST_LOOK_NS) return true;
    queue->seen_submitted += submitted;
    queue->seen_ran += ran;
    queue->seen_ns = now;
    if (fresh || ran * (uint64_t)1000 >= passed) {
        queue->since_ns = now;
        return true;
    }
    return submitted * (uint64_t)1000 >= passed && now - queue->since_ns < BURST_NS;
}

struct weir_task *weir__context_steal(struct weir_context *context, struct weir__queue *own, uint32_t most, bool *deferred_out)
{
    struct weir_task   *task = NULL;
    struct weir__queue *next;
    uint64_t            now = deferred_out != NULL ? weir__now_ns() : 0;

    weir__spin_lock(&context->list_lock);
    for (struct weir__queue *queue = context->active; queue != NULL && task == NULL; queue = next) {
        next = queue->next;
        if (queue == own) continue;
        if (deferred_out != NULL && atomic_load_explicit(&queue->count, memory_order_relaxed) != 0 && /* a hint */
            owner_is_faster(queue, now)) {
            *deferred_out = true;
            continue;
        }
        task = weir__queue_steal(queue, most);
        if (task != NULL) continue;
        weir__spin_lock(&queue->lock);
        if (queue->head == NULL || atomic_load_explicit(&queue->count, memory_order_relaxed) == 0) {
            queue->listed = false;
            unlist_locked(context, queue);
        }
        weir__spin_unlock(&queue->lock);
    }
    weir__spin_unlock(&context->list_lock);
    for (struct weir_task *rest = task != NULL ? weir__task_next(task) : NULL, *after; rest != NULL; rest = after) {
        after = weir__task_next(rest);
        if (weir__queue_push(own, rest)) weir__context_list(context, own);
    }
    return task;
}

/* ---- workers ---- */

struct search {
    bool     looking;  /* counted in .looking */
    unsigned deferred; /* times in a row */
};

static void stop_looking(struct weir_context *context, struct search *search)
{
    if (search->looking) atomic_fetch_sub_explicit(&context->looking, 1, memory_order_seq_cst);
    search->looking = false;
    search->deferred = 0;
}

/* Sleep until somebody grants a wake-up. False: stop. */
static bool park(struct weir__worker *worker, struct search *search, struct weir_task **task_out)
{
    struct weir_context *context = worker->context;
    uint32_t             event, grants;

    atomic_fetch_add_explicit(&context->parked, 1, memory_order_seq_cst);
    stop_looking(context, search);
    *task_out = weir__context_steal(context, &worker->queue, STEAL, NULL);
    while (*task_out == NULL) {
        /* Acquire: pairs with the release of the granter, who then raises .event. */
        event = atomic_load_explicit(&context->event, memory_order_acquire);
        if (atomic_load_explicit(&context->stop, memory_order_acquire)) break;
        grants = atomic_load_explicit(&context->grants, memory_order_acquire);
        if (grants != 0 && atomic_compare_exchange_strong_explicit(&context->grants, &grants, grants - 1,
                                                                   memory_order_acq_rel, memory_order_relaxed)) {
            search->looking = true;
            break;
        }
        if (grants == 0) weir__futex_wait(&context->event, event, 0);
    }
    atomic_fetch_sub_explicit(&context->parked, 1, memory_order_seq_cst);
    /* A grant may have been meant for us while we found a task by ourselves: hand it on. */
    grants = atomic_load_explicit(&context->grants, memory_order_acquire);
    if (*task_out != NULL && grants > atomic_load_explicit(&context->parked, memory_order_seq_cst) &&
        atomic_compare_exchange_strong_explicit(&context->grants, &grants, grants - 1, memory_order_acq_rel,
                                                memory_order_relaxed)) {
        atomic_fetch_sub_explicit(&context->looking, 1, memory_order_seq_cst);
        weir__context_wake(context);
    }
    return *task_out != NULL || search->looking;
}

static void run_all(struct weir__runner *runner, struct weir_task *task)
{
    while (task != NULL) {
        weir__runner_run(runner, task);
        weir__runner_drain(runner);
        task = runner->kept;
        runner->kept = NULL;
    }
}

static void pause_for(uint64_t ns)
{
    for (uint64_t end = weir__now_ns() + ns; weir__now_ns() < end;) {
#if defined(__x86_64__)
        for (int i = 0; i < 32; i++) __builtin_ia32_pause();
#endif
    }
}

/* A task to run; looks, waits, parks. NULL: stop. */
static struct weir_task *next_task(struct weir__worker *worker, struct weir__runner *runner, struct search *search)
{
    struct weir_context *context = worker->context;
    struct weir_task    *task;

    for (unsigned empty = 0;;) {
        bool deferred = false;

        task = weir__queue_pop(&worker->queue);
        if (task == NULL) task = weir__context_steal(context, &worker->queue, STEAL, &deferred);
        if (task != NULL) return task;
        if (runner->count != 0) weir__runner_flush(runner);
        if (!search->looking) {
            atomic_fetch_add_explicit(&context->looking, 1, memory_order_seq_cst);
            search->looking = true;
        } else if (deferred) {
            if (search->deferred++ < 2) pause_for(FIRST_LOOK_NS);
            else weir__futex_wait(&context->event, atomic_load_explicit(&context->event, memory_order_relaxed), DEFER_NS);
            if (atomic_load_explicit(&context->stop, memory_order_acquire)) return NULL;
            empty = 0;
        } else if (atomic_load_explicit(&context->poll, memory_order_seq_cst)) {
            if (weir__context_poll(context, runner)) weir__runner_drain(runner);
            else weir__futex_wait(&context->event, atomic_load_explicit(&context->event, memory_order_relaxed), WEIR__POLL_NS);
            weir__runner_flush(runner);
            if ((task = runner->kept) != NULL) {
                runner->kept = NULL;
                return task;
            }
            if (atomic_load_explicit(&context->stop, memory_order_acquire)) return NULL;
        } else if (empty++ < 2) {
            pause_for(1000);
        } else {
            if (!park(worker, search, &task)) return NULL;
            if (task != NULL) return task;
            empty = 0;
        }
    }
}

static void *work(void *arg)
{
    struct weir__worker *worker = arg;
    struct weir_context *context = worker->context;
    struct weir__runner  runner = {.context = context, .queue = &worker->queue, .keeps = true};
    struct search        search = {.looking = true}; /* counted by who started us */
    struct weir_task    *task;

    worker_of = context;
    pthread_setname_np(pthread_self(), "weir-worker");
    while ((task = next_task(worker, &runner, &search)) != NULL) {
        stop_looking(context, &search);
        /* More where this came from? */
        if (atomic_load_explicit(&worker->queue.count, memory_order_relaxed) != 0) weir__context_wake(context);
        run_all(&runner, task);
    }
    stop_looking(context, &search);
    weir__runner_flush(&runner);
    weir__record_thread_ends();
    return NULL;
}

/* One more worker, counted in .looking already. */
static bool start_worker(struct weir_context *context)
{
    struct weir__worker *worker;
    uint32_t             n;
    int                  rc = -1;

    pthread_mutex_lock(&context->worker_lock);
    /* Relaxed: written under worker_lock. */
    n = atomic_load_explicit(&context->nworkers, memory_order_relaxed);
    worker = n < WEIR__MAX_WORKERS && !atomic_load_explicit(&context->stop, memory_order_relaxed) ? calloc(1, sizeof *worker) : NULL;
    if (worker != NULL) {
        worker->context = context;
        rc = weir__thread_start(&worker->thread, work, worker);
        if (rc == 0) {
            context->workers[n] = worker;
            atomic_store_explicit(&context->nworkers, n + 1, memory_order_relaxed);
        } else {
            free(worker);
        }
    }
    pthread_mutex_unlock(&context->worker_lock);
    return rc == 0;
}

/* Counted in .looking: somebody is awake, or will be, in our name. */
static bool wake_or_start(struct weir_context *context)
{
    if (atomic_load_explicit(&context->parked, memory_order_seq_cst) >
        atomic_load_explicit(&context->grants, memory_order_relaxed)) {
        atomic_fetch_add_explicit(&context->grants, 1, memory_order_release); /* pairs with park() */
        atomic_fetch_add_explicit(&context->event, 1, memory_order_release);
        weir__futex_wake(&context->event, 1);
        return true;
    }
    /* Relaxed: estimates; a worker too many parks. */
    return atomic_load_explicit(&context->nworkers, memory_order_relaxed) <
               context->max_workers + atomic_load_explicit(&context->blocked, memory_order_relaxed) &&
           start_worker(context);
}

static bool has_active(struct weir_context *context)
{
    bool active;

    weir__spin_lock(&context->list_lock);
    active = context->active != NULL;
    weir__spin_unlock(&context->list_lock);
    return active;
}

void weir__context_wake(struct weir_context *context)
{
    uint32_t none;

    do {
        none = 0;
        /* Sequentially consistent: see the argument above. */
        if (atomic_load_explicit(&context->looking, memory_order_seq_cst) != 0) return;
        if (!atomic_compare_exchange_strong_explicit(&context->looking, &none, 1, memory_order_seq_cst, memory_order_relaxed)) {
            return;
        }
        if (wake_or_start(context)) return;
        /* All are busy and will look when they are done. Who pushed meanwhile counted on us, so look again. */
        atomic_fetch_sub_explicit(&context->looking, 1, memory_order_seq_cst);
    } while (atomic_load_explicit(&context->parked, memory_order_seq_cst) >
                 atomic_load_explicit(&context->grants, memory_order_relaxed) &&
             has_active(context));
}

void weir__workers_stop(struct weir_context *context)
{
    atomic_store_explicit(&context->stop, true, memory_order_release); /* pairs with park() */
    atomic_fetch_add_explicit(&context->event, 1, memory_order_release);
    weir__futex_wake(&context->event, INT32_MAX);
    /* Nobody starts workers any more: .stop is looked at under worker_lock. */
    pthread_mutex_lock(&context->worker_lock);
    pthread_mutex_unlock(&context->worker_lock);
    for (uint32_t i = 0; i < atomic_load_explicit(&context->nworkers, memory_order_relaxed); i++) {
        pthread_join(context->workers[i]->thread, NULL);
        weir__context_unlist(context, &context->workers[i]->queue);
        free(context->workers[i]);
    }
}

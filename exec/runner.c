/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <exec/runner.h>

#include <exec/futex.h>
#include <exec/issue.h>
#include <exec/submit.h>
#include <exec/trace.h>

#define BATCH 64 /* finished tasks are given back after as many */

/* ---- mutexinoutset: a task takes its locks when nothing else holds it back ---- */

/* Order the task behind the tail of one lock. Leaves in extra->link the point whose notice must be asked for, or 0. */
static void lock_behind(struct weir_task *task, struct weir__extra *extra, int32_t *links)
{
    struct weir__lock  *lock = (struct weir__lock *)extra->value;
    struct weir__extra *order = (struct weir__extra *)(uintptr_t)extra->link;
    struct weir__node  *tail = lock->tail.node, *node = &task->node;
    bool                device = tail != NULL && tail->domain != 0 && tail->domain == node->domain;

    extra->link = 0;
    lock->tail.node = node;
    lock->tail.id = node->id;
    if (tail == NULL || tail == node) return;
    if (weir__list_push(device ? &tail->issued : &tail->completed, (uintptr_t)order | WEIR__REF_EXTRA, &order->link)) {
        (*links)++;
        /* Sequentially consistent: see weir__issue_close(). The tail cannot be gone before it drops its locks. */
        if (!device && (tail->kind & WEIR__NODE_NOTICE) &&
            atomic_load_explicit(&tail->issued, memory_order_seq_cst) == WEIR__REF_CLOSED) {
            extra->link = tail->point;
        }
    } else {
        order->link = device ? tail->point : 0;
    }
}

/* True: the task holds its place in all of them; false: somebody before it will bring it back. */
static bool take_locks(struct weir_task *task)
{
    struct weir_context *context = task->pool->context;
    int32_t              links = 0;

    weir__task_set(task, WEIR__TASK_LOCKED);
    /* Relaxed: pending is 0, nobody else has the task. */
    atomic_store_explicit(&task->node.pending, WEIR__PENDING_BIAS, memory_order_relaxed);
    /* All locks at once, so that two tasks with two locks are in the same order in both. */
    pthread_mutex_lock(&context->lock_of_locks);
    for (uintptr_t e = (uintptr_t)task->node.extra; e != 0; e = weir__extra_of(e)->next) {
        if ((e & 7) == WEIR__EXTRA_LOCK) lock_behind(task, weir__extra_of(e), &links);
    }
    pthread_mutex_unlock(&context->lock_of_locks);
    /* A notice may come at once, on this thread, and finish tasks that have locks. */
    for (uintptr_t e = (uintptr_t)task->node.extra; e != 0; e = weir__extra_of(e)->next) {
        if ((e & 7) == WEIR__EXTRA_LOCK && weir__extra_of(e)->link != 0) weir__point_want(context, weir__extra_of(e)->link);
    }
    return atomic_fetch_sub_explicit(&task->node.pending, WEIR__PENDING_BIAS - links, memory_order_acq_rel) ==
           WEIR__PENDING_BIAS - links;
}

static void drop_locks(struct weir_task *task)
{
    struct weir_context *context = task->pool->context;

    pthread_mutex_lock(&context->lock_of_locks);
    for (uintptr_t e = (uintptr_t)task->node.extra; e != 0; e = weir__extra_of(e)->next) {
        struct weir__lock *lock = (struct weir__lock *)weir__extra_of(e)->value;

        if ((e & 7) != WEIR__EXTRA_LOCK) continue;
        if (lock->tail.node == &task->node && lock->tail.id == task->node.id) lock->tail.node = NULL;
        weir__lock_release(lock);
    }
    pthread_mutex_unlock(&context->lock_of_locks);
}

/* ---- becoming ready ---- */

static void ready_special(struct weir__runner *runner, struct weir_task *task, bool poisoned)
{
    if (!poisoned && (weir__task_flags(task) & (WEIR__TASK_HAS_LOCKS | WEIR__TASK_LOCKED)) == WEIR__TASK_HAS_LOCKS && !take_locks(task)) return;
    if (weir__task_flags(task) & WEIR__TASK_BLOCKING) {
        /* The submitter waits for this and goes on itself. Release: pairs with the acquire in its loop. */
        atomic_store_explicit(&task->state, WEIR__TASK_READY, memory_order_release);
        weir__pool_tell(task->pool);
    } else if (poisoned || task->node.kind != WEIR__TASK_HOST) {
        weir__task_push(&runner->ready, task);
    } else {
        weir__context_push(runner->context, runner->queue, task);
    }
}

static inline void ready(struct weir__runner *runner, struct weir_task *task)
{
    /* Relaxed: ordered by the last decrement of .pending. */
    bool poisoned = atomic_load_explicit(&task->node.poison, memory_order_relaxed) != 0;

    if (poisoned || task->node.kind != WEIR__TASK_HOST ||
        (weir__task_flags(task) & (WEIR__TASK_HAS_LOCKS | WEIR__TASK_LOCKED)) == WEIR__TASK_HAS_LOCKS) {
        ready_special(runner, task, poisoned);
    } else if (runner->keeps && runner->kept == NULL) {
        runner->kept = task;
    } else {
        weir__context_push(runner->context, runner->queue, task);
    }
}

void weir__runner_ready(struct weir__runner *runner, struct weir_task *task)
{
    ready(runner, task);
}

static void poison(struct weir_task *task, const struct weir_task *failed)
{
    /* Relaxed: the decrement of .pending that follows publishes both. */
    if (atomic_exchange_explicit(&task->node.poison, 1, memory_order_relaxed) != 0) return;
    if (weir__kind_is_external(task->node.kind)) return;
    task->arg = weir__task_root_through(failed);
}

static inline void release(struct weir__runner *runner, uintptr_t list, uint64_t point, const struct weir_task *failed)
{
    while (list != 0) {
        struct weir__taken taken = weir__taken_next(&list, point);

        if (taken.waiter != NULL) {
            taken.waiter->wake(taken.waiter);
            continue;
        }
        if (__builtin_expect(failed != NULL, 0) && !taken.order) poison(weir__task_of(taken.node), failed);
        if (weir__node_unblock(taken.node)) ready(runner, weir__task_of(taken.node));
    }
}

void weir__runner_release(struct weir__runner *runner, uintptr_t list, uint64_t point, const struct weir_task *failed)
{
    release(runner, list, point, failed);
}

/* ---- finishing ---- */

static inline void add_finished(struct weir__runner *runner, struct weir__pool *pool, struct weir_task *task)
{
    if (__builtin_expect(runner->pool != pool || runner->count >= BATCH, 0)) {
        weir__runner_flush(runner);
        runner->pool = pool;
    }
    runner->count++;
    if (task == NULL) return;
    if (runner->first == NULL) runner->last = task;
    weir__task_push(&runner->first, task);
}

static void call_back(struct weir_task *task, int status)
{
    for (uintptr_t e = (uintptr_t)task->node.extra; e != 0; e = weir__extra_of(e)->next) {
        struct weir__extra *extra = weir__extra_of(e);

        if ((e & 7) == WEIR__EXTRA_CALLBACK) {
            ((weir_complete_function)extra->value)(task, status, (void *)(uintptr_t)extra->link);
            return;
        }
    }
}

/* Handles, callbacks, locks, failures, device tasks that were never issued. */
static void finish_special(struct weir__runner *runner, struct weir_task *task, int status)
{
    struct weir__pool *pool = task->pool;
    struct weir_task  *failed = status != WEIR_OK ? task : NULL;
    bool               kept = false;

    if (failed != NULL || weir__task_flags(task) & WEIR__TASK_TRACED) weir__trace_end(task, status);
    if (weir__task_flags(task) & WEIR__TASK_HAS_LOCKS) drop_locks(task);
    if (failed != NULL) weir__scope_note_failure(pool->scope, task, status);
    task->node.status = status;
    release(runner, weir__node_take(&task->node.completed), 0, failed);
    /* Relaxed: only this thread can close it now. A device task that was never issued has successors there. */
    if (task->node.kind & WEIR__NODE_NOTICE &&
        atomic_load_explicit(&task->node.issued, memory_order_relaxed) != WEIR__REF_CLOSED) {
        task->node.point = 0;
        release(runner, weir__node_take(&task->node.issued), 0, failed);
    }
    if (weir__task_flags(task) & WEIR__TASK_HAS_CALLBACK) call_back(task, status);
    if (failed != NULL) kept = weir__scope_park(pool->scope, task);
    if (!kept && weir__task_flags(task) & WEIR__TASK_HAS_HANDLE) kept = !weir__task_drop(task);
    add_finished(runner, pool, kept ? NULL : task);
}

static inline void finish(struct weir__runner *runner, struct weir_task *task, int status)
{
    if (__builtin_expect(status != WEIR_OK ||
                             weir__task_flags(task) & (WEIR__TASK_HAS_HANDLE | WEIR__TASK_HAS_CALLBACK | WEIR__TASK_HAS_LOCKS | WEIR__TASK_TRACED), 0)) {
        finish_special(runner, task, status);
        return;
    }
    release(runner, weir__node_take(&task->node.completed), 0, NULL); /* .status is 0 since weir__node_open() */
    add_finished(runner, task->pool, task);
}

void weir__runner_finish(struct weir__runner *runner, struct weir_task *task, int status)
{
    finish(runner, task, status);
}

void weir__runner_flush(struct weir__runner *runner)
{
    struct weir__pool *pool = runner->pool;
    uint32_t           count = runner->count;

    if (count == 0) return;
    if (runner->first != NULL) weir__pool_return(pool, runner->first, runner->last);
    runner->first = runner->last = NULL;
    runner->count = 0;
    /* Release: what the tasks did is visible to whoever sees the count (weir__scope_is_idle()). Sequentially consistent
     * with .waiters: a waiter raises it before it looks at the count. After this the scope may be gone; the pool stays. */
    atomic_fetch_add_explicit(&pool->completed, count, memory_order_seq_cst);
    if (atomic_load_explicit(&pool->waiters, memory_order_seq_cst) != 0) weir__pool_tell(pool);
}

/* Of a host function that returned @status. WEIR_E_PREDECESSOR is for cancelled tasks; a function has it from a wait. */
static int code_of(int status)
{
    return status > 0 || status == WEIR_E_PREDECESSOR ? WEIR_E_TASK : status;
}

static __attribute__((noinline)) void run_recorded(struct weir__runner *runner, struct weir_task *task)
{
    int status = weir__trace_run(task);

    weir__runner_finish(runner, task, code_of(status));
}

void weir__runner_run(struct weir__runner *runner, struct weir_task *task)
{
    int status;

    /* Tasks of another scope may be waited for while this one runs for long. */
    if (runner->count != 0 && runner->pool != task->pool) weir__runner_flush(runner);
    if (weir__record_is_on()) {
        run_recorded(runner, task);
        return;
    }
    status = ((weir_host_function)task->node.function)((void *)task->arg);
    finish(runner, task, code_of(status));
}

/* By the way of all others, and still in the call that made it. */
static __attribute__((noinline)) void deal_ready(struct weir__runner *runner, struct weir_task *task)
{
    const struct weir_task *outer = runner->dealt;

    runner->dealt = task;
    ready(runner, task);
    weir__runner_drain(runner);
    runner->dealt = outer;
}

void weir__runner_deal(struct weir__runner *runner, struct weir_task *task)
{
    /* Relaxed: ordered by the last decrement of .pending, or never shared. */
    if (task->node.kind == WEIR__TASK_ISSUE && runner->ready == NULL && !runner->draining &&
        atomic_load_explicit(&task->node.poison, memory_order_relaxed) == 0 && !(weir__task_flags(task) & WEIR__TASK_HAS_LOCKS)) {
        runner->draining = true;
        weir__issue(runner, task, true);
        runner->draining = false;
    } else if (task->node.kind & WEIR__NODE_NOTICE) {
        deal_ready(runner, task);
    } else {
        ready(runner, task);
    }
    weir__runner_drain(runner);
}

void weir__runner_drain_ready(struct weir__runner *runner)
{
    struct weir_task *task;

    if (runner->ready == NULL || runner->draining) return; /* draining: further out on this stack */
    runner->draining = true;
    while ((task = runner->ready) != NULL) {
        runner->ready = weir__task_next(task);
        if (atomic_load_explicit(&task->node.poison, memory_order_relaxed) != 0) { /* as in weir__runner_ready() */
            finish_special(runner, task, WEIR_E_PREDECESSOR);
        } else if (task->node.kind == WEIR__TASK_EMPTY) {
            finish_special(runner, task, WEIR_OK);
        } else if (weir__kind_is_external(task->node.kind)) {
            finish_special(runner, task, (int)(intptr_t)task->arg);
        } else {
            weir__issue(runner, task, task == runner->dealt);
        }
    }
    runner->draining = false;
}

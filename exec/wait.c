/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <exec/futex.h>
#include <exec/issue.h>
#include <exec/submit.h>

/*
 * Waiting. A waiter runs ready work as long as there is some; then it finds out what devices have done; then it sleeps on
 * the pool's event.
 *
 * Argument against lost wake-ups: the waiter raises .waiters and then asks whether it is done; who completes tasks adds
 * to .completed and then reads .waiters (weir__runner_flush()). Both are sequentially consistent, so one of them sees the
 * other. Device work that is issued while we sleep is issued by a completion, and late issues always ask for a notice.
 */

void weir__pool_tell(struct weir__pool *pool)
{
    atomic_fetch_add_explicit(&pool->event, 1, memory_order_seq_cst);
    if (atomic_load_explicit(&pool->waiters, memory_order_seq_cst) != 0) weir__futex_wake(&pool->event, INT32_MAX);
}

static void sleep_on(struct weir_context *context, struct weir__pool *pool, struct weir__runner *runner,
                     bool (*done)(void *arg), void *arg, uint64_t limit_ns)
{
    bool     worker = weir__worker_is_current(context);
    uint32_t event;

    atomic_fetch_add_explicit(&pool->waiters, 1, memory_order_seq_cst);
    event = atomic_load_explicit(&pool->event, memory_order_seq_cst);
    if (!done(arg)) {
        weir__context_notify(context);
        if (!weir__context_poll(context, runner)) weir__context_retire(context, runner);
        weir__runner_drain(runner);
        weir__runner_flush(runner);
        if (!done(arg) && runner->kept == NULL) {
            if (worker) {
                /* Somebody else must be able to run what we wait for. */
                atomic_fetch_add_explicit(&context->blocked, 1, memory_order_seq_cst);
                weir__context_wake(context);
            }
            if (atomic_load_explicit(&context->poll, memory_order_seq_cst)) limit_ns = WEIR__POLL_NS;
            weir__futex_wait(&pool->event, event, limit_ns);
            if (worker) atomic_fetch_sub_explicit(&context->blocked, 1, memory_order_seq_cst);
        }
    }
    atomic_fetch_sub_explicit(&pool->waiters, 1, memory_order_seq_cst);
}

/* A ready host task, or NULL. */
static struct weir_task *next_ready(struct weir_context *context, struct weir__runner *runner)
{
    struct weir_task *task = runner->kept;

    runner->kept = NULL;
    if (task != NULL) return task;
    task = runner->queue != NULL ? weir__queue_pop(runner->queue) : NULL;
    return task != NULL ? task : weir__context_steal(context, runner->queue, 1, NULL);
}

/* @limit_ns  0: until done; else return after one sleep of that length. */
static void wait_until(struct weir_context *context, struct weir__pool *pool, struct weir__runner *runner,
                       bool (*done)(void *arg), void *arg, uint64_t limit_ns)
{
    bool kept = runner->keeps;

    runner->keeps = true;
    while (!done(arg)) {
        struct weir_task *task = next_ready(context, runner);

        if (task != NULL) {
            weir__runner_run(runner, task);
            weir__runner_drain(runner);
            if (runner->queue != NULL) {
                /* Relaxed: a hint for thieves, one writer. */
                atomic_store_explicit(&runner->queue->ran,
                                      atomic_load_explicit(&runner->queue->ran, memory_order_relaxed) + 1,
                                      memory_order_relaxed);
            }
            continue;
        }
        weir__runner_flush(runner);
        if (done(arg)) break;
        if (weir__context_retire(context, runner)) {
            weir__runner_drain(runner);
            weir__runner_flush(runner);
            continue;
        }
        sleep_on(context, pool, runner, done, arg, limit_ns);
        if (limit_ns != 0) break;
    }
    runner->keeps = kept;
    if (runner->kept != NULL) {
        weir__context_push(context, runner->queue, runner->kept);
        runner->kept = NULL;
    }
    weir__runner_flush(runner);
}

void weir__wait_until(struct weir_context *context, struct weir__pool *pool, struct weir__runner *runner,
                      bool (*done)(void *arg), void *arg)
{
    wait_until(context, pool, runner, done, arg, 0);
}

bool weir__scope_wait_until(struct weir_scope *scope, bool (*done)(void *arg), void *arg, uint64_t limit_ns, bool whole)
{
    weir__scope_own(scope);
    if (whole && limit_ns == 0 && !done(arg)) weir__scope_sync_recent(scope, &scope->runner);
    wait_until(scope->context, scope->pool, &scope->runner, done, arg, limit_ns);
    return done(arg);
}

bool weir__scope_is_idle(const struct weir_scope *scope)
{
    /* Sequentially consistent: see above; pairs with weir__runner_flush(), what the tasks did is visible. Relaxed: the caller's
     * own, or a snapshot. */
    return atomic_load_explicit(&scope->pool->completed, memory_order_seq_cst) - scope->base ==
           atomic_load_explicit(&scope->submitted, memory_order_relaxed);
}

void weir__context_push(struct weir_context *context, struct weir__queue *queue, struct weir_task *task)
{
    /* A scope's queue dies with it: it may hold tasks of that scope only. */
    if (queue == NULL || (queue->owned && queue != &task->pool->scope->queue)) queue = &context->inject;
    if (weir__queue_push(queue, task)) weir__context_list(context, queue);
    weir__context_wake(context);
}

void weir__task_want(struct weir__node *node)
{
    /* Sequentially consistent: see weir__issue_close(). */
    if (atomic_load_explicit(&node->issued, memory_order_seq_cst) != WEIR__REF_CLOSED || node->point == 0) return;
    weir__point_want(weir__task_of(node)->pool->context, node->point);
}

bool weir__task_drop(struct weir_task *task)
{
    /* Acquire/release: the last one may give away what all others are done with. */
    return atomic_fetch_sub_explicit(&task->references, 1, memory_order_acq_rel) == 1;
}

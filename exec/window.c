/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Back-pressure: what a submitter does while as many tasks are in flight as the window allows. */

#include <exec/futex.h>
#include <exec/issue.h>
#include <exec/submit.h>
#include <exec/trace.h>

#define FIRST_PATIENCE_NS 100000000u
#define MAX_PATIENCE_NS 1000000000u
#define SETTLE_NS 1000000u

/* Fewer tasks in flight than allowed? Memory that handles or failures hold does not count. */
static bool has_room(struct weir_scope *scope)
{
    uint64_t completed, submitted;

    weir__pool_collect(scope->pool);
    if (scope->pool->used < scope->limit) return true;
    /* Relaxed: .submitted is our own, an older .completed is an estimate on the safe side. */
    completed = atomic_load_explicit(&scope->pool->completed, memory_order_relaxed) - scope->base;
    submitted = atomic_load_explicit(&scope->submitted, memory_order_relaxed);
    return submitted - completed < scope->limit;
}

/* Run one ready host task of the scope's own queue. */
static bool help(struct weir_scope *scope)
{
    struct weir__runner *runner = &scope->runner;
    struct weir_task    *task = runner->kept != NULL ? runner->kept : weir__queue_pop(&scope->queue);

    runner->kept = NULL;
    if (task == NULL) return false;
    weir__runner_run(runner, task);
    weir__runner_drain(runner);
    atomic_store_explicit(&scope->queue.ran, atomic_load_explicit(&scope->queue.ran, memory_order_relaxed) + 1,
                          memory_order_relaxed); /* a hint for thieves, one writer */
    return true;
}

/* Is work in flight that somebody else finishes? */
static bool others_are_busy(struct weir_context *context)
{
    /* Relaxed: an estimate, asked for again after a short sleep. */
    return weir__context_device_busy(context) || atomic_load_explicit(&context->looking, memory_order_relaxed) != 0 ||
           atomic_load_explicit(&context->noticing, memory_order_relaxed) != 0 ||
           atomic_load_explicit(&context->nworkers, memory_order_relaxed) >
               atomic_load_explicit(&context->parked, memory_order_relaxed);
}

/* Find out what is done; finish it and what becomes ready by it. */
static void collect(struct weir_scope *scope)
{
    weir__context_retire(scope->context, &scope->runner);
    weir__runner_drain(&scope->runner);
    weir__runner_flush(&scope->runner);
}

/* Sleep until tasks of the scope are finished. False: none were in that time. */
static bool sleep_for_room(struct weir_scope *scope, uint64_t limit_ns)
{
    struct weir__pool *pool = scope->pool;
    uint64_t           now = weir__now_ns(), end = now + limit_ns;
    uint32_t           event;

    atomic_fetch_add_explicit(&pool->waiters, 1, memory_order_seq_cst); /* see wait.c */
    event = atomic_load_explicit(&pool->event, memory_order_seq_cst);
    /* It is often woken for what was told before it looked. */
    while (!has_room(scope) && now < end && atomic_load_explicit(&pool->event, memory_order_seq_cst) == event) {
        weir__context_notify(scope->context);
        weir__futex_wait(&pool->event, event, end - now);
        now = weir__now_ns();
    }
    atomic_fetch_sub_explicit(&pool->waiters, 1, memory_order_seq_cst);
    collect(scope);
    return has_room(scope) || atomic_load_explicit(&pool->event, memory_order_seq_cst) != event;
}

/* The window is full: run what is ready, collect what is done, wait a while for others. False: nothing came back. */
static bool wait_for_room(struct weir_scope *scope)
{
    struct weir__runner *runner = &scope->runner;
    uint32_t             enough = scope->limit / 2 + 1;
    unsigned             quiet = 0;

    scope->counters.window_waits++;
    runner->keeps = true;
    for (uint32_t ran = 0; ran < enough && help(scope); ran++) continue;
    runner->keeps = false;
    if (runner->kept != NULL) weir__context_push(scope->context, &scope->queue, runner->kept);
    runner->kept = NULL;
    collect(scope);
    while (!has_room(scope)) {
        if (help(scope)) {
            collect(scope);
        } else if (others_are_busy(scope->context)) {
            quiet = 0;
            if (!sleep_for_room(scope, scope->patience_ns)) return false;
        } else if (quiet++ != 0 || !sleep_for_room(scope, SETTLE_NS)) {
            /* Twice: a completion may have been on its way between a device and us. */
            return has_room(scope);
        }
    }
    scope->patience_ns = FIRST_PATIENCE_NS;
    return true;
}

int weir__scope_make_room(struct weir_scope *scope, bool force)
{
    uint64_t began = 0;

    if (scope->never_waits && !force) {
        collect(scope);
        if (!has_room(scope)) scope->limit += scope->limit / 2 + 1;
    } else if (!has_room(scope) && !force) {
        began = weir__trace_now();
        weir__runner_flush(&scope->runner);
        if (scope->patience_ns == 0) scope->patience_ns = FIRST_PATIENCE_NS;
        if (!has_room(scope) && !wait_for_room(scope)) {
            /* Nothing that is sure to finish: half as much again, and more patience the next time. */
            scope->counters.window_exceeded++;
            if (began != 0) weir__trace_fallback(WEIR__FALLBACK_WINDOW, NULL, NULL);
            scope->limit += scope->limit / 2 + 1;
            scope->patience_ns = 2 * scope->patience_ns < MAX_PATIENCE_NS ? 2 * scope->patience_ns : MAX_PATIENCE_NS;
        }
    }
    if (began != 0) weir__trace_waited(began, WEIR__WAIT_WINDOW, scope, 0, NULL, NULL);
    if (scope->pool->free != NULL || weir__pool_grow(scope->pool) == WEIR_OK) return WEIR_OK;
    return weir__fail(WEIR_E_NO_MEMORY, "no memory for a task");
}

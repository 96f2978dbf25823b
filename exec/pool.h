/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_EXEC_POOL_H
#define WEIR_EXEC_POOL_H

/*
 * The memory of one scope's tasks. Only the submitter allocates; anybody gives back, in batches. Pools outlive scopes:
 * a destroyed scope's pool waits in the context for the next one, with whatever handles are still out.
 *
 * Argument. .returned is a stack: givers push chains (CAS), the owner takes all of it (exchange), so there is no ABA. A
 * task's memory is never unmapped before the context goes, and its id changes only when the owner uses it again: a stale
 * name can always be looked at.
 */

#include <exec/task.h>

struct weir__slab;

struct weir__pool {
    struct weir_context *context;
    struct weir_scope   *scope;    /* the pool's owner now, NULL while it waits */
    struct weir__pool   *next;     /* in the context's lists */
    struct weir_task    *free;     /* owner's */
    struct weir__extras  extras;   /* owner's */
    struct weir__slab   *slabs;
    uint32_t             total;    /* tasks in slabs */
    uint32_t             used;     /* taken by the owner and not collected again: an upper bound of the tasks in flight */
    uint32_t             peak;
    /* The other cache line: written by those who finish tasks. */
    _Alignas(64) _Atomic(struct weir_task *) returned;
    _Atomic uint64_t     completed; /* tasks ever completed; scopes count from the value they found */
    _Atomic uint32_t     event;     /* futex: grows when .completed did and somebody waits */
    _Atomic uint32_t     waiters;
};

struct weir__pool *weir__pool_create(struct weir_context *context);
void weir__pool_destroy(struct weir__pool *pool);

/* Owner: collect what was given back. True if .free is not empty now. */
bool weir__pool_collect(struct weir__pool *pool);
/* Owner: more memory. 0 or WEIR_E_NO_MEMORY. */
int weir__pool_grow(struct weir__pool *pool);

/* A task whose handle somebody has, NULL: none. Nothing is in flight. */
struct weir_task *weir__pool_held(const struct weir__pool *pool);

/* Owner; .free is not empty. The task's extras of its last use are recycled. */
static inline struct weir_task *weir__pool_take(struct weir__pool *pool)
{
    struct weir_task *task = pool->free;

    pool->free = weir__task_next(task);
    pool->used++;
    if (task->node.extra != NULL) weir__extras_recycle(&pool->extras, &task->node);
    return task;
}

/* Owner: undo of take for a task that nobody has seen. */
static inline void weir__pool_untake(struct weir__pool *pool, struct weir_task *task)
{
    weir__task_push(&pool->free, task);
    pool->used--;
}

/* Anybody: a chain of tasks, linked through node.next. */
void weir__pool_return(struct weir__pool *pool, struct weir_task *first, struct weir_task *last);

#endif

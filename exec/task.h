/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_EXEC_TASK_H
#define WEIR_EXEC_TASK_H

#include <graph/depend.h>
#include <weir/task.h>

/*
 *   created ──(last predecessor)──> ready ──> running/open ──> issued ──> completed
 *      │                              │                           (device tasks only)
 *      └──────(a predecessor failed)──┴──────────────────────────────────> completed, status < 0
 *
 * Issued is node.issued == CLOSED, completed is node.completed == CLOSED; the rest is .state, for checks.
 */
enum weir__task_state { WEIR__TASK_FREE = 0, WEIR__TASK_CREATED, WEIR__TASK_OPEN, WEIR__TASK_READY, WEIR__TASK_FULFILLED, WEIR__TASK_ENDED };

enum weir__task_kind {
    WEIR__TASK_HOST = 1,
    WEIR__TASK_EXTERNAL = 2,
    WEIR__TASK_EMPTY = 3, /* complete when its predecessors are: fences between hosts, weir_scope_wait_for() */
    WEIR__TASK_ISSUE = WEIR__NODE_NOTICE | 4, /* device, by callback */
    WEIR__TASK_BEGIN = WEIR__NODE_NOTICE | 5, /* device, begin and end */
    WEIR__TASK_FENCE = WEIR__NODE_NOTICE | 6, /* device, no work of its own */
    WEIR__TASK_IMPORT = WEIR__NODE_NOTICE | 7, /* device, waits for a foreign event */
    WEIR__TASK_FOREIGN = WEIR__NODE_NOTICE | 8, /* an external task of domain WEIR__DOMAIN_FOREIGN, see weir__task_foreign() */
};

enum weir__task_flag {
    WEIR__TASK_HAS_HANDLE = 1,   /* .references counts */
    WEIR__TASK_HAS_CALLBACK = 2, /* an extra of kind CALLBACK */
    WEIR__TASK_HAS_LOCKS = 4,    /* extras of kind LOCK */
    WEIR__TASK_LOCKED = 8,       /* they are taken */
    WEIR__TASK_FAILED = 32,      /* not issued, but its place on the stream must be reached before it is complete: .arg */
    WEIR__TASK_QUIET = 64,       /* its completion may be noticed a little later */
    WEIR__TASK_TRACED = 128,     /* its end is to be recorded: trace.h */
    WEIR__TASK_BLOCKING = 16,    /* begin with block: the submitter itself issues it when it is ready */
};

/* Is it completed by weir_task_fulfill()? */
static inline bool weir__kind_is_external(unsigned kind)
{
    return kind == WEIR__TASK_EXTERNAL || kind == WEIR__TASK_FOREIGN;
}

struct weir__pool;

/* 128 bytes: two cache lines, the second one only looked at when there are many edges or the task runs. */
struct weir_task {
    struct weir__node  node;
    struct weir__pool *pool;       /* where the memory belongs; pool->scope while the task is in flight */
    uintptr_t          arg;        /* of the function; open: the stream; external: the status; failed: id of the origin */
    _Atomic uint32_t   references; /* with HAS_HANDLE: the runtime's and the users' */
    int8_t             priority;
    uint8_t            device;     /* number in the context */
    _Atomic uint8_t    flags;
    _Atomic uint8_t    state;
} __attribute__((aligned(128)));

_Static_assert(sizeof(struct weir_task) == 128, "a task is two cache lines");

/* Relaxed: a flag is set before the task is shared, or by its only holder and read by later ones. */
static inline unsigned weir__task_flags(const struct weir_task *task)
{
    return atomic_load_explicit(&task->flags, memory_order_relaxed);
}

static inline void weir__task_set(struct weir_task *task, unsigned flags)
{
    atomic_store_explicit(&task->flags, (uint8_t)(weir__task_flags(task) | flags), memory_order_relaxed);
}

static inline void weir__task_unset(struct weir_task *task, unsigned flags)
{
    atomic_store_explicit(&task->flags, (uint8_t)(weir__task_flags(task) & ~flags), memory_order_relaxed);
}

static inline struct weir_task *weir__task_of(struct weir__node *node)
{
    return (struct weir_task *)node;
}

/* Of a cancelled task: the id of the task that failed, 0 if not known. */
static inline uint64_t weir__task_root(const struct weir_task *task)
{
    return weir__kind_is_external(task->node.kind) ? 0 : (uint64_t)task->arg;
}

/* Of a task behind @failed. */
static inline uint64_t weir__task_root_through(const struct weir_task *failed)
{
    return failed->node.status == WEIR_E_PREDECESSOR ? weir__task_root(failed) : failed->node.id;
}

/* A list through node.next. */
static inline void weir__task_push(struct weir_task **head, struct weir_task *task)
{
    task->node.next = (uintptr_t)*head;
    *head = task;
}

static inline struct weir_task *weir__task_next(const struct weir_task *task)
{
    return (struct weir_task *)task->node.next;
}

#endif

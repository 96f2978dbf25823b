/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_EXEC_QUEUE_H
#define WEIR_EXEC_QUEUE_H

/*
 * Ready host tasks: one queue for each scope (its submitter pushes and, when it waits, takes) and one for each worker.
 * Anybody may take from any queue. A lock, because a batch of up to half the queue changes hands at once: that is what
 * makes stealing cheap, and an uncontended lock costs what the fence of a lock-free deque costs.
 *
 * A queue is on the context's list of active queues from its first push until a thief finds it empty (or it dies), so a
 * thousand idle scopes cost a thief nothing.
 */

#include <exec/spin.h>
#include <exec/task.h>

struct weir__queue {
    struct weir__spin   lock;
    bool                owned;  /* a scope's: its submitter may run the tasks itself */
    bool                listed; /* under the context's list lock, and read by pushers under .lock: see queue.c */
    _Atomic uint32_t    count;  /* written under .lock */
    struct weir_task   *head, *tail;
    struct weir__queue *next, *prev; /* in the context's list, under its lock */
    /* Written by the owner (tasks submitted, tasks run), read by thieves that decide whether they would help: worker.c. */
    _Atomic uint32_t submitted, ran;
    /* Thieves' notes, under the context's list lock. */
    uint32_t seen_submitted, seen_ran;
    uint64_t seen_ns, since_ns;
};

/* Put a task at the end, or at the front if its priority is above 0. True if the queue must be put on the active list. */
bool weir__queue_push(struct weir__queue *queue, struct weir_task *task);
/* The task at the front, or NULL. */
struct weir_task *weir__queue_pop(struct weir__queue *queue);
/* Move the first half, at most @most tasks, into a list. Returns its head; NULL if the queue is empty or its lock busy. */
struct weir_task *weir__queue_steal(struct weir__queue *queue, uint32_t most);

#endif

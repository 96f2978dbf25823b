/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_INTEROP_CONSTRUCT_H
#define WEIR_INTEROP_CONSTRUCT_H

/*
 * One OpenMP construct (target, target data, enter, exit, update, or a copy routine) as one device task: open it, queue
 * work on it, close it. Every path from a compiled program to a device goes through these functions.
 *
 * A nowait construct inside a target task of libomp stays behind as that task's handle: libomp asks
 * weir__construct_query() until the work is done. Everywhere else closing waits.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <weir/task.h>

#include "interop/data.h"

struct weir__target;
struct weir__thread;
struct weir__copy;
struct weir__target_task;

struct weir__construct {
    struct weir__region region; /* what the map rules keep until the end */
    struct weir_task *task;     /* open */
    struct weir__target *target;
    const char *name;                /* for messages; lives longer than the construct */
    void **handle;                   /* libomp's slot for it; NULL: closing waits */
    struct weir__target_task *owner; /* whose routine this is part of, or NULL */
    int status;
    uint32_t misses;              /* questions answered with "not yet" */
    _Atomic(uintptr_t) waiter;    /* see construct.c */
    struct weir__construct *next; /* in a thread's pool */
};

/*
 * Open a device task in the calling thread's scope.
 * @name    borrowed until the construct is done.
 * @nowait  the program does not want to wait here.
 * @construct_out  set on success only.
 * Returns  WEIR_OK; what weir_task_begin() returns: nothing has happened and the program may use the host instead.
 * Threads  any. Blocks only for back-pressure.
 */
WEIR_MUST_CHECK int weir__construct_open(struct weir__target *target, const char *name, bool nowait,
                                         struct weir__construct **construct_out);

/* These are about to be looked at. BLOCKS until the predecessors of the target task that it belongs to are complete, if
 * there is a mapper, which reads the host's data. */
void weir__construct_maps(struct weir__construct *construct, const struct weir__map_args *maps);

/*
 * All work is queued. @status: 0, or what queuing it returned; then, and if the work fails, the program ends with a
 * message: part of it may have been done, the host must not do it again.
 * Threads  the one that opened it. BLOCKS until the work is done and host pointers are restored, unless it stays behind
 *          as a handle.
 */
void weir__construct_close(struct weir__construct *construct, int status);

/*
 * Libomp's question about a handle: done? Then *handle = NULL and the construct is gone. After a few quick answers the
 * thread sleeps for a short time before it says no, or until something that it was asked about is done.
 */
void weir__construct_query(void **handle);

/* A copy by itself, complete on return. Any thread. Blocks. Returns its status. */
WEIR_MUST_CHECK int weir__construct_copy(struct weir__target *target, const struct weir__copy *copy);

/* Do nowait constructs of the calling thread wait from here on? Returns what was set before. */
bool weir__construct_set_waits(bool waits);

/* For target_task.c: a construct whose task the caller opens; NULL without memory. */
struct weir__construct *weir__construct_take(struct weir__target *target, const char *name);
/* …of which nothing is needed any more; and one whose work is complete: also free what that needed. Any thread. */
void weir__construct_give(struct weir__construct *construct);
void weir__construct_finish(struct weir__construct *construct);

/* A thread ends: give its unused constructs back. */
void weir__construct_pool_free(struct weir__thread *thread);

#endif

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/*
 * Four names that LLVM's offload library once listed as its own and never had, with the meaning that they can have
 * here: a target task's routine asks about the task that it is the routine of, and waits for what it queued. To be
 * called between the calls for its construct, on the thread that runs the routine.
 */
#include "interop/entries.h"

#include <exec/work.h>

#include "interop/abi.h"
#include "interop/libomp.h"
#include "interop/runtime.h"
#include "interop/target_task.h"

enum { FAILED = -1 };

/* The device task that the routine queues for, while predecessors may be at work; else NULL. */
static struct weir_task *open_task(void)
{
    struct weir__target_task *task = weir__target_task_current();
    return task ? weir__target_task_node(task) : NULL;
}

/* How many predecessors of the current target task are not complete: issued, or it would not run. 0: all are complete,
 * or there is no such task. */
WEIR__EXPORT int32_t __kmpc_get_target_task_npredecessors(struct weir__abi_ident *where, int32_t gtid)
{
    (void)where, (void)gtid;
    return (int32_t)weir__task_pending(open_task(), NULL, 0);
}

/* Where they are: list[n] gets the first of them; the task's stream waits for them already. Returns how many there are.
 */
WEIR__EXPORT int32_t __kmpc_get_target_task_waiting_list(struct weir__abi_ident *where, int32_t gtid, int32_t n,
                                                         struct weir__abi_waiting *list)
{
    struct weir__point points[16];
    struct weir_task *task = open_task();
    size_t most = n < 0 || !list ? 0 : (size_t)n, found;
    (void)where, (void)gtid;
    if (most > sizeof points / sizeof points[0]) most = sizeof points / sizeof points[0];
    found = weir__task_pending(task, points, most);
    for (size_t i = 0; i < most && i < found; i++) {
        uint32_t stream;
        list[i].queue = weir__point_native(weir__runtime_peek()->context, points[i]);
        weir__point_unpack(points[i], &stream, &list[i].position);
    }
    return (int32_t)found;
}

/*
 * The task's queue becomes known: to the caller if info->queue is NULL, who may queue on it; and if it is that queue,
 * an event is recorded behind what is queued. Later tasks need nothing more: they wait for the task's own event.
 * Returns 0, or -1 if there is no task that queues, or the queue is another one.
 */
WEIR__EXPORT int32_t __kmpc_set_async_info(struct weir__abi_ident *where, int32_t gtid,
                                           struct weir__abi_async_info *info)
{
    struct weir_task *task = open_task();
    struct weir__point point;
    (void)where, (void)gtid;
    if (!task || !info) return FAILED;
    void *queue = weir_task_stream(task);
    if (info->queue && info->queue != queue) return FAILED;
    if (info->queue && weir__task_mark(task, &point)) return FAILED;
    info->queue = queue;
    return 0;
}

/* Wait until what the current target task has queued, and what comes before it, is done; the thread runs device work,
 * and where it is the generating one other tasks of the host. Returns 0, or -1: there is no such task, or the device
 * failed. BLOCKS. */
WEIR__EXPORT int32_t __kmpc_target_task_yield(struct weir__abi_ident *where, int32_t gtid)
{
    struct weir__target_task *current = weir__target_task_current();
    struct weir_task *task = open_task();
    struct weir__point point;
    if (!current) return FAILED;
    if (!task) return weir_scope_wait(weir__runtime_thread()->scope) ? FAILED : 0;
    if (weir__task_mark(task, &point)) return FAILED;
    if (weir__target_task_is_submitting(current)) (void)weir__libomp()->taskyield(where, gtid, 0);
    return weir__point_wait(weir__runtime_peek()->context, point) ? FAILED : 0;
}

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_EXEC_RUNNER_H
#define WEIR_EXEC_RUNNER_H

/*
 * What a thread carries while it finishes tasks: those that became ready by it, and those it has finished and not yet
 * given back. One on the stack of each worker, waiter and notice; a scope has one for its submitter. Not shared.
 */

#include <exec/pool.h>
#include <exec/queue.h>

struct weir__runner {
    struct weir_context *context;
    struct weir__queue  *queue;  /* where ready host tasks go, beyond the one that is kept */
    struct weir_task    *kept;   /* a ready host task to run next on this thread (only if .keeps) */
    struct weir_task    *ready;  /* device, empty and cancelled tasks to be dealt with by weir__runner_drain() */
    struct weir__pool   *pool;   /* of the finished tasks below */
    struct weir_task    *first, *last;
    uint32_t             count;  /* finished, including those whose memory stays with a handle */
    const struct weir_task *dealt; /* the task that is being submitted, while it may be on .ready */
    bool                 keeps;
    bool                 draining;
};

/* A node has no outstanding predecessor: queue it, or keep it for weir__runner_drain(). */
void weir__runner_ready(struct weir__runner *runner, struct weir_task *task);
/* Issue, complete or cancel everything on .ready, and what becomes ready by it: a loop, whatever the length of a chain. */
void weir__runner_drain_ready(struct weir__runner *runner);
static inline void weir__runner_drain(struct weir__runner *runner)
{
    if (runner->ready != NULL) weir__runner_drain_ready(runner);
}

/* Both at once: a device task that nothing stands in the way of is issued without a detour. */
void weir__runner_deal(struct weir__runner *runner, struct weir_task *task);

/* Run a host task's function and finish it; does not drain. */
void weir__runner_run(struct weir__runner *runner, struct weir_task *task);
/* The task is complete with @status. Its memory may be gone afterwards. Does not drain. */
void weir__runner_finish(struct weir__runner *runner, struct weir_task *task, int status);
/* Give finished tasks back and tell waiters. Whoever stops looking for tasks calls it. */
void weir__runner_flush(struct weir__runner *runner);
/* Walk a list taken from a node. */
void weir__runner_release(struct weir__runner *runner, uintptr_t list, uint64_t point, const struct weir_task *failed);

#endif

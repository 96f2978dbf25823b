/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_INTEROP_FIRST_RUN_H
#define WEIR_INTEROP_FIRST_RUN_H

/*
 * Target tasks of an entry whose first run is not over. The first one waits until its predecessors are complete
 * (learned.h); the others are made device tasks all the same, each behind a switch that is put on by what comes first:
 * the entry is known to offload, or the task's own predecessors are complete, so that it may be run whatever it does.
 * So the tasks behind them are ordered on the device from the beginning.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "interop/learned.h"

struct weir_access;
struct weir_scope;
struct weir_task;
struct weir__first_run;

/* The calling thread generates a task of an entry of which nothing is known. True: it is the first, and
 * weir__first_run_over() will be called for it. False: another one is before it. Any thread. Never blocks. */
bool weir__first_run_begin(weir__task_routine entry, int64_t device);
/* The entry was run. Puts on the switches of those that wait for it if it @offloads, which issues them. Any thread. */
void weir__first_run_over(weir__task_routine entry, int64_t device, bool offloads);

/*
 * A switch for a task with these accesses in @scope.
 * @switch_out  the task that is to be waited for, until weir__first_run_drop().
 * Returns  NULL: no memory.
 * Threads  the one that submits into @scope. Never blocks.
 */
struct weir__first_run *weir__first_run_wait(weir__task_routine entry, int64_t device, struct weir_scope *scope,
                                             const struct weir_access *accesses, size_t naccesses,
                                             struct weir_task **switch_out);
/* The switch is on: because it is known that the entry offloads? If not, all predecessors are complete. */
bool weir__first_run_is_known(const struct weir__first_run *wait);
/* Once by the submitter, once by who has no further questions. Any thread. */
void weir__first_run_drop(struct weir__first_run *wait);

#endif

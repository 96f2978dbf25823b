/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_INTEROP_PRIORITY_H
#define WEIR_INTEROP_PRIORITY_H

struct weir__abi_task;

/*
 * libomp keeps a task with a priority in a list of its team, any other in the queue of the thread that found it ready.
 * Only a queue has the fault that priority.c tells of, so tasks of the host behind target tasks get a priority.
 */

/* Once, before the first task: libomp takes priorities into account, whatever OMP_MAX_TASK_PRIORITY says. If that says
 * that there are none, the program's have no effect, as before. */
void weir__priority_enable(void);
/* Of a task that was allocated with WEIR__ABI_TASK_PRIORITY and is about to be submitted: its own; that of a task which
 * libomp must keep in the list. The thread that submits it. */
void weir__priority_keep(struct weir__abi_task *task);
void weir__priority_raise(struct weir__abi_task *task);

#endif

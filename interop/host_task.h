/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_INTEROP_HOST_TASK_H
#define WEIR_INTEROP_HOST_TASK_H

/*
 * A task of the host with dependences, beside target tasks that libomp does not see. libomp runs it and knows its edges
 * to other tasks of the host; edges to and from target tasks are made here. For those that come before it a gate is put
 * in front of it: a proxy task that libomp holds complete only when the target tasks are. Those that come after it wait
 * for a foreign task in the siblings' scope, which is fulfilled when libomp ends it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weir__abi_depend;
struct weir__abi_ident;
struct weir__abi_task;
struct weir__depends;
struct weir__siblings;

/* __kmpc_omp_task_alloc() for a task that may be handed to weir__host_task_submit(). @waits: its constructs wait,
 * nowait or not: they map what other tasks of the thread use, too (in_reduction). */
struct weir__abi_task *weir__host_task_alloc(struct weir__abi_ident *where, int32_t gtid, int32_t flags, size_t bytes,
                                             size_t shareds, int32_t (*entry)(int32_t gtid, void *task), bool waits);
/* A task without dependences is about to be handed to libomp: its end will be noticed. */
void weir__host_task_prepare(struct weir__abi_task *task);
/* __kmpc_omp_task_with_deps(). May run the task, as libomp does. */
int32_t weir__host_task_submit(struct weir__abi_ident *where, int32_t gtid, struct weir__abi_task *task, int32_t n,
                               struct weir__abi_depend *depends, int32_t nnoalias, struct weir__abi_depend *noalias);
/* Wait in libomp until all target tasks that a task with these dependences would follow are complete. BLOCKS; runs
 * tasks. */
void weir__host_task_wait(struct weir__abi_ident *where, int32_t gtid, struct weir__siblings *siblings,
                          const struct weir__depends *depends);

/*
 * The generating task begins to wait, and has waited: in between it opens the gates itself, by
 * weir__host_task_open_gates(), so that what they held back comes to its own thread's queue. The generating thread.
 */
void weir__host_task_wait_begin(struct weir__siblings *siblings);
void weir__host_task_open_gates(struct weir__siblings *siblings, int32_t gtid);
void weir__host_task_wait_end(struct weir__siblings *siblings, int32_t gtid);

#endif

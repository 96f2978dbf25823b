/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_INTEROP_TARGET_TASK_H
#define WEIR_INTEROP_TARGET_TASK_H

/*
 * A target task with nowait, as weir's own: libomp does not see it (but see anchor.h). Its routine, which the compiler
 * made, does nothing but call the façade for one construct, so it runs when that can be queued on a stream: as soon as
 * its predecessors are issued. The construct finds the task by weir__target_task_current().
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weir__abi_depend;
struct weir__abi_ident;
struct weir__abi_task;
struct weir__construct;
struct weir__target;
struct weir__target_task;
struct weir__thread;
struct weir_task;

/* No device: what such a task does is done by the host. */
#define WEIR__TARGET_BY_HOST INT64_C(-0x80000000)

/*
 * Memory for a task, laid out as libomp does it. Arguments as __kmpc_omp_target_task_alloc(). NULL without memory.
 * Any thread of libomp.
 */
struct weir__abi_task *weir__target_task_alloc(int32_t gtid, int32_t flags, size_t bytes, size_t shareds,
                                               int32_t (*entry)(int32_t gtid, void *task), int64_t device);
/* A thread ends: free its unused memory. */
void weir__target_task_free_pool(struct weir__thread *thread);
/* Was it made by weir__target_task_alloc()? */
bool weir__target_task_is(const struct weir__abi_task *task);
/* The generating task hands it over; it is not the caller's any more. May run the routine. Never waits for
 * predecessors, except for a task of a final one. */
void weir__target_task_submit(struct weir__abi_ident *where, int32_t gtid, struct weir__abi_task *task, int32_t n,
                              const struct weir__abi_depend *depends, int32_t nnoalias,
                              const struct weir__abi_depend *noalias);

/* ---- for constructs ---- */

/* The target task whose routine the calling thread runs, or NULL. */
struct weir__target_task *weir__target_task_current(void);
/* weir__runtime_target() for a construct: in a routine the device that the task names is what it was when the task was
 * generated, whichever thread runs the routine. */
struct weir__target *weir__target_task_target(int64_t device);
/* The device task that its routine queues for, open; NULL: its constructs are tasks of their own, or run on the host. */
struct weir_task *weir__target_task_node(const struct weir__target_task *task);
/* Is the calling thread submitting it just now? */
bool weir__target_task_is_submitting(const struct weir__target_task *task);
/* Does its routine run as a task of libomp's, so that host code may follow? */
bool weir__target_task_on_host(const struct weir__target_task *task);
/*
 * A construct for the current task, to be closed by weir__target_task_close(). *construct_out is NULL if it is none of
 * the task's: the caller opens one in the usual way.
 */
int weir__target_task_open(struct weir__target_task *task, struct weir__target *target, const char *name, bool nowait,
                           struct weir__construct **construct_out);
/* The calling thread's routine offloads a kernel that is given all it needs by value. The device task that it is queued on,
 * or NULL: there is none, or the construct is to be opened in the usual way. */
struct weir_task *weir__target_task_take_plain(const struct weir__target *target, const char *name);
void weir__target_task_close(struct weir__target_task *task, struct weir__construct *construct);
/* The construct will run on the host, now: BLOCKS until the task's predecessors are complete. */
void weir__target_task_to_host(struct weir__target_task *task);
/* A mapper is about to read the host's data: BLOCKS until the task's predecessors are complete. */
void weir__target_task_maps(struct weir__target_task *task);

#endif

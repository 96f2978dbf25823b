/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_INTEROP_SHIM_H
#define WEIR_INTEROP_SHIM_H

/*
 * The functions of libomp that this library stands in front of when it comes first in symbol search order: preloaded,
 * or linked before libomp. Where the shim is off each of them is libomp's. It is off in a program without target code,
 * without devices, with OMP_TARGET_OFFLOAD=DISABLED or WEIR_SHIM=0, in the child of a fork, and on a libomp that lacks
 * something.
 */

#include <stdbool.h>
#include <stdint.h>

struct weir__abi_depend;
struct weir__abi_ident;
struct weir_task;

/* Decides at the first call in a program with target code; a load afterwards. Any thread. */
bool weir__shim_is_on(void);

/* Is it one of these functions, as far as libomp.c looks for them without knowing where they are found? */
bool weir__shim_is_own(const void *address);

/* Wait for all that the generating task which the calling thread executes has in flight here, but for tasks that only
 * libomp can run; libomp then knows of its end. BLOCKS; runs tasks. */
void weir__shim_settle(struct weir__abi_ident *where, int32_t gtid);

/*
 * The explicit task that the calling thread executes ends: wait for its target tasks, which libomp's barriers would not
 * do behind it. Not for those of an untied task that has tasks of the host, too: which threads may run these depends on
 * the tied tasks that lie under it on this thread's stack. BLOCKS; runs tasks.
 */
void weir__shim_end_task(int32_t gtid, bool is_tied);

/*
 * Wait as a task of the host with these dependences would that is executed where it is made: until all that come before
 * it are complete, here and in libomp; and until @after is, if that is not NULL. The list stays as it is. BLOCKS; runs
 * tasks.
 */
void weir__shim_wait_for(struct weir__abi_ident *where, int32_t gtid, int32_t n, const struct weir__abi_depend *list,
                         struct weir_task *after);

/*
 * Wait for the work of all threads, and for what the calling thread's generating task has with libomp. Tasks that wait
 * for tasks of the host that only other threads can run stay. Any thread without open task. BLOCKS.
 */
void weir__shim_drain(void);

#endif

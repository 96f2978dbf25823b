/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_TESTS_FAKE_WORK_H
#define WEIR_TESTS_FAKE_WORK_H

/*
 * A stand-in for exec/work.h: one device, whose memory is watched, and tasks that are streams of their own. Work runs
 * when it is queued, or stays queued until the test runs a stream; a stream that waits for another one's point then
 * runs that one so far and no further. Running the streams in the least convenient order shows whether waits are
 * missing.
 *
 * Immediate work may be queued by several threads; the rest is for one.
 */

#include <exec/work.h>

struct fake_counts {
    unsigned to, from, marks, waits, allocs, frees, host_functions;
};

/* All gone and zero; @queued: work waits for fake_run(). */
void fake_reset(bool queued);
struct weir_device *fake_device(void);
/* A task on a new stream. Freed by fake_reset(). */
struct weir_task *fake_task(void);
/* Work of the test's own in stream order: a kernel. */
void fake_kernel(struct weir_task *task, void (*kernel)(void *arg), void *arg);
/* Run everything queued on the task's stream, and what it waits for. */
void fake_run(struct weir_task *task);
void fake_run_all(void);
/* Run one piece of work of the task's stream, and what it waits for. False: there was none. */
bool fake_step(struct weir_task *task);

struct fake_counts fake_counts(void);
/* Allocations that live. */
unsigned fake_live(void);
/* Things that must not happen: memory used that is not allocated or was freed. */
unsigned fake_violations(void);
/* Fail the n-th call that can fail from now on (1: the next) and none after it; 0: none. Has it happened? */
void fake_fail_at(unsigned n);
bool fake_failed(void);
/* The same for malloc, calloc and realloc of everything but this file, in tests linked with --wrap for the three. */
void fake_fail_memory_at(unsigned n);
/* Can the device free on a stream? */
void fake_can(bool free_on_stream);

#endif

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_EXEC_TRACE_H
#define WEIR_EXEC_TRACE_H

/*
 * What the scheduler tells trace/ while recording is on: one predicted branch where it is off. A task that was made
 * while it was on carries WEIR__TASK_TRACED, which leads its end past weir__trace_end() and costs nothing otherwise.
 */

#include <exec/scope.h>
#include <exec/stream.h>
#include <exec/trace_work.h>

/* Before the accesses are entered. @options may be NULL; @peek: only looked at, nothing will be ordered behind the
 * task. */
void weir__trace_made(struct weir_scope *scope, struct weir_task *task, const struct weir_access *accesses, size_t n,
                      const struct weir_task_options *options, bool peek);
/* Run a host task's function, return what it returned. */
int weir__trace_run(struct weir_task *task);
/* The calling thread begins to issue a task. */
void weir__trace_opening(void);
/* A stream was chosen and the waits are queued. The candidates have verdicts; @edges lead to them. @early: in the call that
 * made the task. */
void weir__trace_open(const struct weir_task *task, const struct weir__stream *stream,
                      const struct weir__clock_candidate *candidates, uint64_t edges, bool early);
/* Its work is queued up to there; before the stream knows the task. */
void weir__trace_issued(const struct weir_task *task, const struct weir__stream *stream, uint64_t position);
/* The thread that issued it has run it: it was so short. */
void weir__trace_here(const struct weir__stream *stream, uint64_t position);
/* Complete with @status, before anybody is told. */
void weir__trace_end(const struct weir_task *task, int status);
/* The scope's table was emptied: later tasks are not behind earlier ones. */
void weir__trace_forget(const struct weir_scope *scope);
/* @kind, @way: of struct weir__copy; 0, 0: a fill. */
void weir__trace_copy(const struct weir_task *task, unsigned kind, unsigned way, size_t bytes);
/* A stretch of work on a stream, by the device's clock (struct weir__device_notice). */
void weir__trace_stretch(void *owner, uint64_t position, uint64_t begin, uint64_t end);
uint64_t weir__trace_clock(void);

/* Start if the environment asks for it, before the first device is opened; write at exit what it asks for. */
void weir__trace_watch(void);

#endif

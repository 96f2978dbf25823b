/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_EXEC_ISSUE_H
#define WEIR_EXEC_ISSUE_H

#include <exec/scope.h>
#include <exec/stream.h>

/*
 * Issuing a device task whose predecessors are all issued: choose a stream, decide how each edge is realised, queue the
 * waits, let the work be queued, record the point, release the successors. The decision is made in one function:
 * edges_decide() in issue.c.
 */

/* Choose and lease a stream and queue the waits. On success task->arg is the stream and the task is open. @own: on the
 * submitter's runner; @early: in the call that made the task. */
int weir__issue_open(struct weir_task *task, bool own, bool early);
/* Record the point and release successors. On failure the task is finished with the status. The lease ends. */
int weir__issue_close(struct weir__runner *runner, struct weir_task *task, bool flush);
/* As weir__issue_close() with @flush, but the lease goes on, and on failure nothing has changed. */
int weir__issue_close_and_keep(struct weir__runner *runner, struct weir_task *task);
/* The work could not be queued: give the stream back and finish the task with @status. */
void weir__issue_abandon(struct weir__runner *runner, struct weir_task *task, int status);
/* All of it for tasks by callback, fences and imports. @early as above. */
void weir__issue(struct weir__runner *runner, struct weir_task *task, bool early);

/* The leased stream's later work waits for a point; nothing if it is known. */
int weir__issue_wait_point(struct weir__stream *stream, uint64_t point);

/* The stream of an open task. */
static inline struct weir__stream *weir__task_stream_of(const struct weir_task *task)
{
    return (struct weir__stream *)task->arg;
}

#endif

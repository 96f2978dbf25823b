/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_EXEC_SUBMIT_H
#define WEIR_EXEC_SUBMIT_H

#include <exec/scope.h>

/* Give one reference of a task with HAS_HANDLE back. True if it was the last: the memory is the caller's to return. */
bool weir__task_drop(struct weir_task *task);
/* Somebody needs the completion of a device task: ask its stream for a notice, if it is issued already; else whoever
 * issues it does. */
void weir__task_want(struct weir__node *node);
/* Ask for a notice when the point is reached. */
void weir__point_want(struct weir_context *context, uint64_t point);
/* Put a ready host task on a queue (NULL: the one for tasks without a home) and see that somebody looks. */
void weir__context_push(struct weir_context *context, struct weir__queue *queue, struct weir_task *task);
/* Wake those who wait on the pool. */
void weir__pool_tell(struct weir__pool *pool);
/* Wait until @done says so: run ready work, else sleep. @pool's event is told by completions. */
void weir__wait_until(struct weir_context *context, struct weir__pool *pool, struct weir__runner *runner,
                      bool (*done)(void *arg), void *arg);
/* The same of the task that a cancelled one is behind, by weir__task_root(); only the newest failures have their names. */
void weir__root_describe(struct weir_context *context, uint64_t id, char *text, size_t bytes);

#endif

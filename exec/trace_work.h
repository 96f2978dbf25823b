/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_EXEC_TRACE_WORK_H
#define WEIR_EXEC_TRACE_WORK_H

/* What the façade in interop/ tells trace/ as well: see exec/trace.h. */

#include <trace/record.h>
#include <weir/task.h>

/* A reading of the clock for the functions below, 0 while recording is off. */
static inline uint64_t weir__trace_now(void)
{
    return weir__record_is_on() ? weir__record_now() : 0;
}

/* What an open or submitted task is called, and where: for those that have no options. @place as above. */
void weir__trace_label(const struct weir_task *task, const char *name, const char *place);
/* The same for the task of an interop construct with nowait. */
void weir__trace_interop(const struct weir_task *task, const char *place);
/* Another runtime ran it, on the calling thread. */
void weir__trace_ran(const struct weir_task *task, uint64_t began);
/* The calling thread has waited since @began. @task, @place (";file;function;line;column;;") and @caller may be 0. */
void weir__trace_waited(uint64_t began, enum weir__record_wait why, const struct weir_scope *scope, uint64_t task,
                        const char *place, const void *caller);
/* Something was done in a dearer way than it could be. As above. */
void weir__trace_fallback(enum weir__record_fallback why, const struct weir_task *task, const char *place);

#endif

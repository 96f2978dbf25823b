/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_TRACE_WRITE_H
#define WEIR_TRACE_WRITE_H

#include <stdbool.h>

#include <weir/trace.h>

struct weir__trace;

/* As weir_trace_write(), for a trace that was read. */
WEIR_MUST_CHECK int weir__trace_write(const struct weir__trace *trace, const char *file, enum weir_trace_format format);

/* What a program is to write at its end: as the variables WEIR_GRAPH, WEIR_TRACE and WEIR_REPORT say it. NULL: nothing.
 * @report: "1" (text on stderr), "json" (on stderr), or a file's name. */
struct weir__outputs {
    const char *graph, *timeline, *report;
};
/* Is such a report for stderr, and not the name of a file? */
bool weir__report_is_stream(const char *report);
/* Write all of them; the first failure's code is returned, all are told by @tell. */
int weir__outputs_write(const struct weir__trace *trace, const struct weir__outputs *outputs,
                        void (*tell)(const char *text));
/* Can the name be one of that kind? A text says why not. */
WEIR_MUST_CHECK int weir__outputs_check(const struct weir__outputs *outputs);

#endif

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_TRACE_WRITE_H
#define WEIR_TRACE_WRITE_H

#include <stdbool.h>

#include <weir/trace.h>

struct weir__trace;

/* As weir_trace_write(), for a trace that was read. */
WEIR_MUST_CHECK int weir__trace_write(const struct weir__trace *trace, const char *file, enum weir_trace_format format);

/* What a program is to write at its end: as the variables WEIR_GRAPH, WEIR_TRACE and WEIR_REPORT say it. NULL: nothing.
 * A report may be "1" (text on stderr) or "json" (on stderr) instead of a file's name. */
enum weir__output { WEIR__OUTPUT_GRAPH, WEIR__OUTPUT_TIMELINE, WEIR__OUTPUT_REPORT, WEIR__OUTPUTS };
struct weir__outputs {
    const char *name[WEIR__OUTPUTS];
};
/* Is such a report for stderr, and not the name of a file? */
bool weir__report_is_stream(const char *report);
/* A device, a pipe, a socket: written to as it is, and no place to have a file beside. */
bool weir__output_is_special(const char *name);
/* Write all of them; the first failure's code is returned, all are told by @tell. */
int weir__outputs_write(const struct weir__trace *trace, const struct weir__outputs *outputs,
                        void (*tell)(const char *text));
/* Can that be written to such a name, as far as one can see now? A text says why not: WEIR_E_INVALID, the name is another
 * kind's; WEIR_E_SYSTEM, the folder is not there or not ours. */
WEIR_MUST_CHECK int weir__output_check(enum weir__output what, const char *name);

#endif

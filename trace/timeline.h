/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_TRACE_TIMELINE_H
#define WEIR_TRACE_TIMELINE_H

#include <trace/model.h>

/* What happened when, for Perfetto: a lane a stream and a lane a thread. @file is looked at for errors by the caller.
 */
void weir__timeline_write(const struct weir__trace *trace, FILE *file);

#endif

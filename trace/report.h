/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_TRACE_REPORT_H
#define WEIR_TRACE_REPORT_H

#include <trace/model.h>

/* One screen of text, each line with "weir: " in front; or the same as one JSON object. @file is looked at for errors
 * by the caller. */
void weir__report_write(const struct weir__trace *trace, bool json, FILE *file);

#endif

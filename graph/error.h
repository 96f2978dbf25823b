/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_GRAPH_ERROR_H
#define WEIR_GRAPH_ERROR_H

/* Of no layer: every folder may include this one. */

#include <weir/error.h>

/* Set the calling thread's weir_error_text() and return @code. printf rules; truncates, never allocates. */
int weir__fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_INTEROP_TRACE_H
#define WEIR_INTEROP_TRACE_H

/* What OpenMP programs add to a recording: names, places in the source, waits. Nothing while none is made. */

#include <exec/trace_work.h>

#include "interop/abi.h"

struct weir__construct;
struct weir__map_args;

static inline const char *weir__trace_source(const struct weir__abi_ident *where)
{
    return where ? where->source : NULL;
}

/* An open construct: the task's name, its place, and the variables that it maps. */
void weir__trace_construct(const struct weir_task *task, const char *name,
                           const struct weir__abi_ident *where, const struct weir__map_args *maps);
/* A directive has waited since @began for tasks of a scope. @why as far as the caller knows: a barrier is recognised.
 */
void weir__trace_directive(uint64_t began, enum weir__record_wait why, const struct weir_scope *scope,
                           const struct weir__abi_ident *where);

#endif

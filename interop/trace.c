/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "interop/trace.h"

#include <devices/thread.h>
#include <weir/trace.h>

#include "interop/construct.h"
#include "interop/data.h"

/* Of an ident's flags (LLVM's kmp.h, ident_t): barriers that the program names, and those that a construct implies. */
enum { IDENT_BARRIER = 0x20 | 0x40 };

/* What this thread named lately: a loop maps the same variables again and again. */
enum { REMEMBERED = 64 };
struct named {
    const void *address, *name;
    int64_t bytes;
};
static _Thread_local void *remembered __attribute__((tls_model("initial-exec")));

static void name_map(const void *begin, int64_t bytes, const char *name)
{
    unsigned slot = (unsigned)(((uintptr_t)begin >> 3 ^ (uintptr_t)begin >> 12) % REMEMBERED);
    if (!name || bytes < 0) return;
    struct named *all = weir__thread_memory(&remembered, REMEMBERED * sizeof *all);
    if (all && all[slot].address == begin && all[slot].name == name && all[slot].bytes == bytes) return;
    if (all) all[slot] = (struct named){begin, name, bytes};
    weir_trace_name(begin, (size_t)bytes, name);
}

void weir__trace_construct(const struct weir_task *task, const char *name,
                           const struct weir__abi_ident *where, const struct weir__map_args *maps)
{
    weir__trace_label(task, name, weir__trace_source(where));
    for (uint32_t i = 0; maps->names && i < maps->n; i++) name_map(maps->begins[i], maps->sizes[i], maps->names[i]);
}

void weir__trace_directive(uint64_t began, enum weir__record_wait why, const struct weir_scope *scope,
                           const struct weir__abi_ident *where)
{
    if (why == WEIR__WAIT_TASKWAIT && where && where->flags & IDENT_BARRIER) why = WEIR__WAIT_BARRIER;
    weir__trace_waited(began, why, scope, 0, weir__trace_source(where), NULL);
}

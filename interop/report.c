/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "interop/report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "interop/runtime.h"
#include "interop/shim.h"

/* What did not happen is not told. */
static void line(const char *text, uint64_t value)
{
    if (value) fprintf(stderr, "weir:   %-58s %12" PRIu64 "\n", text, value);
}

static uint64_t get(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed); /* a sum that nobody else has */
}

static void tasks(uint64_t here)
{
    struct weir__task_counts n;
    weir__runtime_task_counts(&n);
    fprintf(stderr, "weir: target tasks with nowait\n");
    if (!weir__shim_is_on()) {
        fprintf(stderr, "weir:   left to libomp: weir does not stand in front of it, or was told not to\n");
        return;
    }
    line("issued by the thread that generated them", get(&n.early));
    line("... and run by it: shorter than handing them to a CPU device", here);
    line("issued when a task of the host had finished", get(&n.released));
    line("run when predecessors were complete: first run of an entry", get(&n.first));
    line("run when predecessors were complete: code of the host", get(&n.host));
    line("run when predecessors were complete: a mapper reads data", get(&n.mapper));
    line("waited for when they were generated: final", get(&n.included));
    line("handed to libomp, and waited for: task reductions", get(&n.plain));
    line("waited inside: the device did not take the construct", get(&n.refused));
    fprintf(stderr, "weir: interop constructs with nowait\n");
    line("made tasks", get(&n.interop));
    line("of these behind a task of the host: foreign work held", get(&n.gated));
    line("of these waited for: the device cannot hold foreign work", get(&n.ungated));
    fprintf(stderr, "weir: tasks of the host with dependences\n");
    line("in all", get(&n.hosted));
    line("that had to wait for target tasks", get(&n.gates));
    line("ends of tasks that waited for target tasks they had made", get(&n.orphans));
    line("waits of the host for target tasks", get(&n.waits));
}

static void at_exit(void)
{
    struct weir__runtime *rt = weir__runtime_peek();
    if (!rt || weir__runtime_in_kernel()) return;
    struct weir_counters c;
    weir_context_counters(rt->context, &c);
    flockfile(stderr);
    tasks(c.run_here);
    funlockfile(stderr);
}

void weir__report_watch(void)
{
    const char *report = getenv("WEIR_REPORT"); /* exec/trace_watch.c reads it, too */
    if (report && !strcmp(report, "1")) (void)atexit(at_exit);
}

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "interop/report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <exec/environment.h>

#include "interop/runtime.h"
#include "interop/shim.h"

#define LINE(text, value) fprintf(stderr, "weir:   %-58s %12" PRIu64 "\n", text, (uint64_t)(value))

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
    LINE("issued by the thread that generated them", get(&n.early));
    LINE("... and run by it: shorter than handing them to a CPU device", here);
    LINE("issued when a task of the host had finished", get(&n.released));
    LINE("run when predecessors were complete: first run of an entry", get(&n.first));
    LINE("run when predecessors were complete: code of the host", get(&n.host));
    LINE("run when predecessors were complete: a mapper reads data", get(&n.mapper));
    LINE("waited for when they were generated: final", get(&n.included));
    LINE("handed to libomp, and waited for: task reductions", get(&n.plain));
    LINE("waited inside: the device did not take the construct", get(&n.refused));
    fprintf(stderr, "weir: interop constructs with nowait\n");
    LINE("made tasks", get(&n.interop));
    LINE("of these behind a task of the host: foreign work held", get(&n.gated));
    LINE("of these waited for: the device cannot hold foreign work", get(&n.ungated));
    fprintf(stderr, "weir: tasks of the host with dependences\n");
    LINE("in all", get(&n.hosted));
    LINE("that had to wait for target tasks", get(&n.gates));
    LINE("ends of tasks that waited for target tasks they had made", get(&n.orphans));
    LINE("waits of the host for target tasks", get(&n.waits));
}

static void edges(const struct weir_counters *c)
{
    fprintf(stderr, "weir: dependences between them\n");
    LINE("predecessor complete: nothing to do", c->edges_done);
    LINE("same stream: nothing to do", c->edges_stream);
    LINE("implied by another: nothing to do", c->edges_implied);
    LINE("by an event on the device", c->edges_event);
    LINE("by completion: a task of the host on one side", c->edges_host);
    LINE("through the host: devices that cannot wait for each other", c->edges_host_only);
    LINE("event waits queued", c->event_waits);
    LINE("most tasks of one generating task in flight at once", c->peak_in_flight);
}

static void at_exit(void)
{
    struct weir__runtime *rt = weir__runtime_peek();
    if (!rt || weir__runtime_in_kernel()) return;
    struct weir_counters c;
    weir_context_counters(rt->context, &c);
    flockfile(stderr);
    tasks(c.run_here);
    edges(&c);
    funlockfile(stderr);
}

void weir__report_watch(void)
{
    if (weir__environment_number("WEIR_REPORT", 0, 0, 1)) (void)atexit(at_exit);
}

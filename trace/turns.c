/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <stdlib.h>

#include <trace/model.h>

/*
 * Who came after whom in a mutexinoutset group: no dependence tells it, only the times at which they ended, which is
 * when they let the next one have its turn. (When an external task began nobody knows.)
 */

struct turn {
    const struct weir__trace_member *member;
    uint64_t begin, end;
};

static int by_turn(const void *a, const void *b)
{
    const struct turn *x = a, *y = b;
    if (x->member->group != y->member->group) return x->member->group < y->member->group ? -1 : 1;
    if (x->end != y->end) return x->end < y->end ? -1 : 1;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return x->member->task < y->member->task ? -1 : x->member->task > y->member->task;
}

static int by_ends(const void *a, const void *b)
{
    const struct weir__trace_edge *x = a, *y = b;
    if (x->from != y->from) return x->from < y->from ? -1 : 1;
    if (x->to != y->to) return x->to < y->to ? -1 : 1;
    return x->address < y->address ? -1 : x->address > y->address;
}

/* One for each two tasks; how often they met is told. */
static void join_equal(struct weir__trace *trace)
{
    size_t n = 0;
    if (trace->nturns) qsort(trace->turns, trace->nturns, sizeof *trace->turns, by_ends);
    for (size_t i = 0; i < trace->nturns; i++) {
        struct weir__trace_edge *newest = n ? &trace->turns[n - 1] : NULL;
        if (newest && newest->from == trace->turns[i].from && newest->to == trace->turns[i].to)
            newest->more++;
        else
            trace->turns[n++] = trace->turns[i];
    }
    trace->nturns = n;
}

int weir__trace_find_turns(struct weir__trace *trace)
{
    struct turn *turns = malloc((trace->nmembers + 1) * sizeof *turns);
    size_t n = 0;
    int rc = turns ? WEIR_OK : WEIR_E_NO_MEMORY;
    for (size_t i = 0; !rc && i < trace->nmembers; i++) {
        const struct weir__trace_task *task = &trace->tasks[trace->members[i].task];
        if (task->end != WEIR__NEVER) turns[n++] = (struct turn){&trace->members[i], task->begin, task->end};
    }
    if (!rc) qsort(turns, n, sizeof *turns, by_turn);
    for (size_t i = 1; i < n && !rc; i++) {
        const struct weir__trace_member *from = turns[i - 1].member, *to = turns[i].member;
        if (from->group != to->group || from->task == to->task) continue;
        struct weir__trace_edge *edge = WEIR__MORE(trace, turns);
        if (!edge) {
            rc = WEIR_E_NO_MEMORY;
            break;
        }
        *edge = (struct weir__trace_edge){.from = from->task,
                                          .to = to->task,
                                          .kind = WEIR__EDGE_TURN,
                                          .how = WEIR__HOW_OPEN,
                                          .by = WEIR__NONE,
                                          .address = to->address};
        weir__trace_decide(trace, edge);
    }
    free(turns);
    if (!rc) join_equal(trace);
    return rc;
}

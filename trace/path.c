/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <stdlib.h>

#include <trace/model.h>

/*
 * The critical path: from the task that ended last back to the one that it had to wait for longest, a predecessor or
 * the task before it on its stream or thread, and so on. What lies between the end of one and the begin of the next is
 * waiting.
 */

struct seat {
    uint32_t lane, task;
    uint64_t begin;
};

static int by_seat(const void *a, const void *b)
{
    const struct seat *x = a, *y = b;
    if (x->lane != y->lane) return x->lane < y->lane ? -1 : 1;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return x->task < y->task ? -1 : x->task > y->task;
}

static uint32_t lane_of(const struct weir__trace *trace, const struct weir__trace_task *task)
{
    if (task->stream != WEIR__NONE) return task->stream;
    return task->ran_on != WEIR__NONE ? (uint32_t)trace->nstreams + task->ran_on : WEIR__NONE;
}

static bool has_times(const struct weir__trace_task *task)
{
    return weir__trace_is_node(task) && task->begin != WEIR__NEVER && task->end != WEIR__NEVER;
}

/* Task before each one on its lane, in .before. Without memory there is none. */
static void find_lane_before(struct weir__trace *trace)
{
    struct seat *seats = malloc((trace->ntasks + 1) * sizeof *seats);
    size_t n = 0;
    for (uint32_t i = 0; seats && i < trace->ntasks; i++) {
        uint32_t lane = lane_of(trace, &trace->tasks[i]);
        if (lane != WEIR__NONE && has_times(&trace->tasks[i]))
            seats[n++] = (struct seat){lane, i, trace->tasks[i].begin};
    }
    if (seats) qsort(seats, n, sizeof *seats, by_seat);
    for (size_t i = 1; i < n; i++)
        if (seats[i].lane == seats[i - 1].lane) trace->tasks[seats[i].task].before = seats[i - 1].task;
    free(seats);
}

/*
 * What was only seen complete had completed some time before: before its consumers began, or had ended if they were
 * only seen, too. And it did not begin before its predecessors had ended. Edges lead from earlier tasks to later ones,
 * so that one pass back and one forth are enough.
 */
static void settle_estimates(struct weir__trace *trace)
{
    for (size_t i = trace->nedges; i-- > 0;) {
        const struct weir__trace_task *to = &trace->tasks[trace->edges[i].to];
        struct weir__trace_task *from = &trace->tasks[trace->edges[i].from];
        uint64_t bound = to->estimated || to->kind == WEIR__TRACE_EXTERNAL ? to->end : to->begin;
        if (!from->estimated || to->status != WEIR__NODE_COMPLETE || bound == WEIR__NEVER || from->end <= bound)
            continue;
        from->end = bound;
        if (from->begin > bound) from->begin = bound;
    }
    for (size_t i = 0; i < trace->nedges; i++) {
        const struct weir__trace_task *from = &trace->tasks[trace->edges[i].from];
        struct weir__trace_task *to = &trace->tasks[trace->edges[i].to];
        if (!to->estimated || from->status != WEIR__NODE_COMPLETE || from->end == WEIR__NEVER || from->end <= to->begin)
            continue;
        to->begin = from->end < to->end ? from->end : to->end;
    }
}

/* The latest end of what the task was behind, which is not later than its own. NONE: nothing. */
static uint32_t latest_before(const struct weir__trace *trace, const struct weir__trace_task *task,
                              uint32_t lane_before, struct weir__trace_edge **edge_out)
{
    uint32_t latest = WEIR__NONE;
    *edge_out = NULL;
    for (uint32_t i = 0; i < task->nedges; i++) {
        struct weir__trace_edge *edge = &trace->edges[task->first_edge + i];
        const struct weir__trace_task *from = &trace->tasks[edge->from];
        if (!has_times(from) || from->end > task->end) continue;
        if (latest != WEIR__NONE && trace->tasks[latest].end >= from->end) continue;
        latest = edge->from;
        *edge_out = edge;
    }
    if (lane_before == WEIR__NONE || trace->tasks[lane_before].end > task->begin) return latest;
    if (latest != WEIR__NONE && trace->tasks[latest].end >= trace->tasks[lane_before].end) return latest;
    *edge_out = NULL;
    return lane_before;
}

void weir__trace_find_path(struct weir__trace *trace)
{
    settle_estimates(trace);
    find_lane_before(trace);
    uint32_t at = WEIR__NONE;
    for (uint32_t i = 0; i < trace->ntasks; i++) {
        const struct weir__trace_task *task = &trace->tasks[i];
        if (has_times(task) && (at == WEIR__NONE || task->end > trace->tasks[at].end)) at = i;
    }
    trace->last = at;
    /* Each step leads to an earlier begin or an earlier task: it ends. The bound is for damaged files. */
    for (size_t steps = 0; at != WEIR__NONE && steps <= trace->ntasks; steps++) {
        struct weir__trace_task *task = &trace->tasks[at];
        struct weir__trace_edge *edge;
        uint32_t before = task->critical ? WEIR__NONE : latest_before(trace, task, task->before, &edge);
        task->critical = true;
        task->before = before;
        trace->path_tasks++;
        if (before == WEIR__NONE) {
            trace->path_ns = trace->tasks[trace->last].end - task->begin;
            trace->path_ran_ns += task->end - task->begin;
            break;
        }
        if (edge) edge->critical = true;
        uint64_t from = trace->tasks[before].end > task->begin ? trace->tasks[before].end : task->begin;
        trace->path_ran_ns += task->end > from ? task->end - from : 0;
        at = before;
    }
}

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <trace/model.h>

/* How each edge was realised: see edges.c. */

static bool is_device(const struct weir__trace_task *task)
{
    return task->kind == WEIR__TRACE_DEVICE || task->kind == WEIR__TRACE_BEGIN || task->kind == WEIR__TRACE_FENCE ||
           task->kind == WEIR__TRACE_IMPORT;
}

/* The decision about a predecessor's point that was made when @task was opened. NULL: the point was none of its. */
static const struct weir__trace_point *decision(const struct weir__trace *trace, const struct weir__trace_task *task,
                                                uint64_t point)
{
    for (uint32_t i = 0; i < task->npoints; i++) {
        const struct weir__trace_point *at = &trace->points[task->first_point + i];
        if (at->point == point) return at;
    }
    return NULL;
}

/* A fence stands for a large group: it is behind the predecessor, and the task is behind it. */
static const struct weir__trace_point *through_fence(const struct weir__trace *trace,
                                                     const struct weir__trace_task *from,
                                                     const struct weir__trace_task *to, uint32_t *fence_out)
{
    uint16_t context = trace->scopes[to->scope].context;
    for (uint32_t i = 0; i < to->npoints; i++) {
        const struct weir__trace_point *at = &trace->points[to->first_point + i];
        uint32_t fence = weir__trace_task_by_point(trace, context, at->point);
        if (fence == WEIR__NONE || trace->tasks[fence].kind != WEIR__TRACE_FENCE) continue;
        if (!decision(trace, &trace->tasks[fence], from->point)) continue;
        *fence_out = fence;
        return at;
    }
    return NULL;
}

static bool was_complete(const struct weir__trace_task *from, uint64_t at)
{
    uint64_t end = from->end != WEIR__NEVER ? from->end : from->done;
    return end != WEIR__NEVER && end <= at;
}

static void decide(const struct weir__trace *trace, struct weir__trace_edge *edge)
{
    const struct weir__trace_task *from = &trace->tasks[edge->from], *to = &trace->tasks[edge->to];
    if (from->kind == WEIR__TRACE_FOREIGN && to->kind == WEIR__TRACE_FOREIGN) {
        edge->how = WEIR__HOW_FOREIGN;
        return;
    }
    if (!is_device(from) || !is_device(to)) {
        bool begun = to->begin != WEIR__NEVER || to->end != WEIR__NEVER || to->open != WEIR__NEVER;
        edge->how = was_complete(from, to->made) ? WEIR__HOW_DONE : begun ? WEIR__HOW_HOST : WEIR__HOW_OPEN;
        return;
    }
    const struct weir__trace_point *found = from->point ? decision(trace, to, from->point) : NULL;
    uint32_t fence = WEIR__NONE;
    if (!found && from->point) found = through_fence(trace, from, to, &fence);
    if (found) {
        uint32_t by = weir__trace_task_by_point(trace, trace->scopes[to->scope].context, found->by);
        edge->how = found->how;
        edge->by = fence != WEIR__NONE ? fence : by != edge->from ? by : WEIR__NONE;
    } else if (to->open == WEIR__NEVER) {
        edge->how = was_complete(from, to->made) ? WEIR__HOW_DONE : WEIR__HOW_OPEN;
    } else {
        bool apart = from->stream != WEIR__NONE && to->stream != WEIR__NONE &&
                     trace->streams[from->stream].domain != trace->streams[to->stream].domain;
        bool none = to->stream != WEIR__NONE && trace->streams[to->stream].domain == 0;
        edge->how = (apart || none) && !was_complete(from, to->made) ? WEIR__HOW_DOMAIN : WEIR__HOW_DONE;
    }
}

void weir__trace_find_how(struct weir__trace *trace)
{
    for (size_t i = 0; i < trace->nedges; i++) decide(trace, &trace->edges[i]);
}

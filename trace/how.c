/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <stdlib.h>

#include <trace/model.h>

/* How each edge was realised: see edges.c. */

static bool is_device(const struct weir__trace_task *task)
{
    return task->kind == WEIR__TRACE_DEVICE || task->kind == WEIR__TRACE_BEGIN || task->kind == WEIR__TRACE_FENCE ||
           task->kind == WEIR__TRACE_IMPORT;
}

static int by_point(const void *a, const void *b)
{
    const struct weir__trace_point *x = a, *y = b;
    return x->point < y->point ? -1 : x->point > y->point;
}

/* The decision about a predecessor's point that was made when @task was opened. NULL: none, it had been reached. */
static const struct weir__trace_point *decision(const struct weir__trace *trace, const struct weir__trace_task *task,
                                                uint64_t point)
{
    struct weir__trace_point key = {.point = point};
    if (!point || !task->npoints) return NULL;
    return bsearch(&key, trace->points + task->first_point, task->npoints, sizeof key, by_point);
}

/* Fences stand for large groups: one is behind the predecessor, and the task is behind it. */
struct fences {
    WEIR__LIST(fence, fence);
};

struct fence {
    uint32_t task;
    const struct weir__trace_point *at;
};

static int find_fences(const struct weir__trace *trace, const struct weir__trace_task *task, struct fences *fences)
{
    uint16_t context = trace->scopes[task->scope].context;
    fences->nfence = 0;
    for (uint32_t i = 0; i < task->npoints; i++) {
        const struct weir__trace_point *at = &trace->points[task->first_point + i];
        uint32_t fence = weir__trace_task_by_point(trace, context, at->point);
        if (fence == WEIR__NONE || trace->tasks[fence].kind != WEIR__TRACE_FENCE) continue;
        struct fence *more = WEIR__MORE(fences, fence);
        if (!more) return WEIR_E_NO_MEMORY;
        *more = (struct fence){fence, at};
    }
    return WEIR_OK;
}

static const struct weir__trace_point *through_fence(const struct weir__trace *trace, const struct fences *fences,
                                                     uint64_t point, uint32_t *fence_out)
{
    for (size_t i = 0; i < fences->nfence; i++) {
        if (!decision(trace, &trace->tasks[fences->fence[i].task], point)) continue;
        *fence_out = fences->fence[i].task;
        return fences->fence[i].at;
    }
    return NULL;
}

static bool was_complete(const struct weir__trace_task *from, uint64_t at)
{
    uint64_t end = from->end != WEIR__NEVER ? from->end : from->done;
    return end != WEIR__NEVER && end <= at;
}

static void decide(const struct weir__trace *trace, const struct fences *fences, struct weir__trace_edge *edge)
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
    const struct weir__trace_point *found = decision(trace, to, from->point);
    uint32_t fence = WEIR__NONE;
    if (!found) found = through_fence(trace, fences, from->point, &fence);
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

void weir__trace_decide(const struct weir__trace *trace, struct weir__trace_edge *edge)
{
    const struct fences none = {0};
    decide(trace, &none, edge);
}

int weir__trace_find_how(struct weir__trace *trace)
{
    struct fences fences = {0};
    int rc = WEIR_OK;
    for (size_t i = 0; i < trace->ntasks; i++) {
        const struct weir__trace_task *task = &trace->tasks[i];
        if (task->npoints > 1) qsort(trace->points + task->first_point, task->npoints, sizeof *trace->points, by_point);
    }
    for (size_t i = 0; i < trace->ntasks && !rc; i++) {
        const struct weir__trace_task *task = &trace->tasks[i];
        if (task->nedges) rc = find_fences(trace, task, &fences);
        for (uint32_t e = 0; e < task->nedges && !rc; e++) decide(trace, &fences, &trace->edges[task->first_edge + e]);
    }
    free(fences.fence);
    return rc;
}

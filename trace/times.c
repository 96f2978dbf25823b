/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <stdlib.h>
#include <string.h>

#include <trace/model.h>

#define POSITION(point) ((point) & ((UINT64_C(1) << WEIR__RECORD_POINT_BITS) - 1))

static void widen(struct weir__trace_task *task, uint64_t begin, uint64_t end)
{
    if (begin != WEIR__NEVER && (task->begin == WEIR__NEVER || begin < task->begin)) task->begin = begin;
    if (end != WEIR__NEVER && (task->end == WEIR__NEVER || end > task->end)) task->end = end;
}

static void host_times(struct weir__trace *trace)
{
    for (size_t i = 0; i < trace->nruns; i++) {
        const struct weir__trace_run *run = &trace->runs[i];
        struct weir__trace_task *task = &trace->tasks[run->task];
        widen(task, run->begin, run->end);
        task->ran_on = run->thread;
        if (task->kind == WEIR__TRACE_HOST &&
            (task->status == WEIR__NODE_WAITING || task->status == WEIR__NODE_RUNNING))
            task->status = WEIR__NODE_COMPLETE;
    }
}

/* ---- streams ---- */

static int by_stretch(const void *a, const void *b)
{
    const struct weir__trace_stretch *x = a, *y = b;
    if (x->stream != y->stream) return x->stream < y->stream ? -1 : 1;
    return x->position < y->position ? -1 : x->position > y->position;
}

struct place {
    uint32_t stream, task;
    uint64_t position;
};

static int by_place(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->stream != y->stream) return x->stream < y->stream ? -1 : 1;
    if (x->position != y->position) return x->position < y->position ? -1 : 1;
    return x->task < y->task ? -1 : x->task > y->task; /* a task before a mark */
}

/* Tasks with a point, and marks, in the order of their streams. NULL: none, or no memory (then times are not known). */
static struct place *places_of(const struct weir__trace *trace, size_t *n_out)
{
    struct place *places = malloc((trace->ntasks + trace->nmarks + 1) * sizeof *places);
    size_t n = 0;
    for (size_t i = 0; places && i < trace->nmarks; i++)
        places[n++] = (struct place){trace->marks[i].stream, WEIR__NONE, trace->marks[i].position};
    for (uint32_t i = 0; places && i < trace->ntasks; i++) {
        const struct weir__trace_task *task = &trace->tasks[i];
        if (task->point && task->stream != WEIR__NONE)
            places[n++] = (struct place){task->stream, i, POSITION(task->point)};
    }
    if (places) qsort(places, n, sizeof *places, by_place);
    *n_out = n;
    return places;
}

/* What the clock of the device does not say: it was complete when somebody saw it, and did not begin before the one
 * before it ended, at @before. */
static void estimate(struct weir__trace_task *task, uint64_t before)
{
    if (task->end == WEIR__NEVER)
        task->end = task->done;
    else if (task->begin != WEIR__NEVER)
        return;
    if (task->end == WEIR__NEVER) return;
    task->estimated = true;
    task->begin = before != WEIR__NEVER && before > task->issued ? before : task->issued;
    if (task->begin > task->end) task->begin = task->end;
}

/* A task's stretches are those behind the task or mark before it, up to its own position. */
static void device_times(struct weir__trace *trace)
{
    size_t n = 0, s = 0;
    struct place *places = places_of(trace, &n);
    if (trace->nstretches) qsort(trace->stretches, trace->nstretches, sizeof *trace->stretches, by_stretch);
    for (size_t i = 0; places && i < n; i++) {
        struct weir__trace_task *task = places[i].task != WEIR__NONE ? &trace->tasks[places[i].task] : NULL;
        bool known = i > 0 && places[i - 1].stream == places[i].stream && places[i - 1].task != WEIR__NONE;
        for (; s < trace->nstretches; s++) {
            const struct weir__trace_stretch *stretch = &trace->stretches[s];
            if (stretch->stream > places[i].stream) break;
            if (stretch->stream == places[i].stream && stretch->position > places[i].position) break;
            if (stretch->stream < places[i].stream) continue;
            if (task) widen(task, stretch->begin, stretch->end);
        }
        if (!task) continue;
        estimate(task, known ? trace->tasks[places[i - 1].task].end : WEIR__NEVER);
        if (task->status != WEIR__NODE_WAITING) continue;
        task->status = task->end != WEIR__NEVER ? WEIR__NODE_COMPLETE : WEIR__NODE_ISSUED;
    }
    free(places);
}

/* ---- tasks that others complete, and those of several parts ---- */

static void part_times(struct weir__trace *trace)
{
    /* What ran on a device counts; if nothing did, what ran on the host. */
    for (int device = 1; device >= 0; device--) {
        for (uint32_t i = 0; i < trace->ntasks; i++) {
            const struct weir__trace_task *part = &trace->tasks[i];
            if (part->whole == WEIR__NONE || (part->kind == WEIR__TRACE_BEGIN) != (device == 1)) continue;
            struct weir__trace_task *whole = &trace->tasks[part->whole];
            if (!device && whole->end != WEIR__NEVER) continue;
            widen(whole, part->begin, part->end);
            whole->estimated |= part->estimated;
            if (!device) whole->ran_on = part->ran_on;
            if (part->status == WEIR__NODE_FAILED) whole->status = WEIR__NODE_FAILED, whole->code = part->code;
        }
    }
}

static void external_times(struct weir__trace *trace)
{
    for (uint32_t i = 0; i < trace->ntasks; i++) {
        struct weir__trace_task *task = &trace->tasks[i];
        bool external = task->kind == WEIR__TRACE_EXTERNAL || task->kind == WEIR__TRACE_FOREIGN;
        if (!external || task->done == WEIR__NEVER) continue;
        if (task->end == WEIR__NEVER) task->end = task->done;
        if (task->begin == WEIR__NEVER) task->begin = task->kind == WEIR__TRACE_FOREIGN ? task->end : task->made;
    }
}

/* ---- phases: a wait of the submitter for all its tasks begins a new one ---- */

static int by_wait(const void *a, const void *b)
{
    const struct weir__trace_wait *x = *(struct weir__trace_wait *const *)a, *y = *(struct weir__trace_wait *const *)b;
    return x->end < y->end ? -1 : x->end > y->end;
}

static void find_phases(struct weir__trace *trace)
{
    struct weir__trace_wait **waits = malloc((trace->nwaits + 1) * sizeof(struct weir__trace_wait *));
    uint32_t *phase = calloc(trace->nscopes + 1, sizeof *phase);
    size_t n = 0, at = 0;
    for (size_t i = 0; waits && i < trace->nwaits; i++) {
        struct weir__trace_wait *wait = &trace->waits[i];
        bool whole = wait->why == WEIR__WAIT_SCOPE || wait->why == WEIR__WAIT_TASKWAIT ||
                     wait->why == WEIR__WAIT_BARRIER || wait->why == WEIR__WAIT_GROUP;
        if (whole && wait->scope != WEIR__NONE) waits[n++] = wait;
    }
    if (waits && phase) {
        qsort(waits, n, sizeof(struct weir__trace_wait *), by_wait);
        for (uint32_t i = 0; i < trace->ntasks; i++) {
            for (; at < n && waits[at]->end <= trace->tasks[i].made; at++) phase[waits[at]->scope]++;
            trace->tasks[i].phase = phase[trace->tasks[i].scope];
        }
    }
    free(waits);
    free(phase);
}

void weir__trace_find_times(struct weir__trace *trace)
{
    host_times(trace);
    device_times(trace);
    part_times(trace);
    external_times(trace);
    find_phases(trace);
}

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fault.h"
#include "timeline_rules.h"

/* Times are microseconds with three decimals: compared as nanoseconds. */
struct slice {
    long pid, tid;
    int64_t begin, end;
    const char *name;
};

struct arrow {
    long id;
    const struct json *from, *to;
};

struct judge {
    struct slice *slices; /* by lane, begin, and the longer one first */
    size_t nslices;
    const struct json *events;
    struct timeline_counts *counts;
};

static int64_t ns(const struct json *event, const char *key)
{
    return llround(json_number(event, key) * 1000);
}

static bool has_number(const struct json *event, const char *key)
{
    const struct json *value = json_get(event, key);
    return value && value->kind == JSON_NUMBER;
}

static bool is(const struct json *event, const char *key, const char *word)
{
    return strcmp(json_text(event, key), word) == 0;
}

static int by_lane(const void *a, const void *b)
{
    const struct slice *x = a, *y = b;
    if (x->pid != y->pid) return x->pid < y->pid ? -1 : 1;
    if (x->tid != y->tid) return x->tid < y->tid ? -1 : 1;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return x->end > y->end ? -1 : x->end < y->end;
}

static size_t *count_of(struct timeline_counts *counts, const struct json *event)
{
    static size_t others;
    if (is(event, "cat", "device")) return &counts->device;
    if (is(event, "cat", "host")) return &counts->host;
    if (is(event, "cat", "issue")) return &counts->issue;
    return is(event, "cat", "wait") ? &counts->waits : &others;
}

/* Each event has what its phase asks for. */
static const char *check_event(struct judge *judge, const struct json *event)
{
    const char *phase = json_text(event, "ph"), *name = json_text(event, "name");
    const struct json *args = json_get(event, "args");
    if (strlen(phase) != 1 || !strchr("XMCisfbe", phase[0])) return fault("an event of phase '%s'", phase);
    if (!name[0] || !has_number(event, "pid") || !has_number(event, "tid"))
        return fault("a %s without name or lane", phase);
    if (phase[0] == 'M')
        return args && args->kind == JSON_OBJECT && args->n == 1 ? "" : fault("%s names nothing", name);
    if (!has_number(event, "ts") || ns(event, "ts") < 0) return fault("%s %s has no time", phase, name);
    if (!json_text(event, "cat")[0]) return fault("%s %s has no category", phase, name);
    if (strchr("sfbe", phase[0]) && !has_number(event, "id")) return fault("%s %s has no id", phase, name);
    if (phase[0] == 'i' && !is(event, "s", "t")) return fault("%s is an instant of no thread", name);
    judge->counts->instants += phase[0] == 'i';
    if (phase[0] == 'C') {
        if (!args || !args->n || args->items[0].kind != JSON_NUMBER || args->items[0].number < 0)
            return fault("the counter %s counts nothing, or less", name);
        judge->counts->counters++;
    }
    if (phase[0] != 'X') return "";
    if (!has_number(event, "dur") || ns(event, "dur") < 0) return fault("the slice %s has no length", name);
    ++*count_of(judge->counts, event);
    judge->slices[judge->nslices++] = (struct slice){(long)json_number(event, "pid"), (long)json_number(event, "tid"),
                                                     ns(event, "ts"), ns(event, "ts") + ns(event, "dur"), name};
    return "";
}

/* Slices of a lane lie side by side or within each other; viewers drop those that cross. */
static const char *check_nesting(const struct judge *judge)
{
    const struct slice **open = malloc((judge->nslices + 1) * sizeof(struct slice *));
    const char *wrong = "";
    size_t n = 0;
    for (size_t i = 0; i < judge->nslices && !wrong[0]; i++) {
        const struct slice *slice = &judge->slices[i];
        if (i && (slice[-1].pid != slice->pid || slice[-1].tid != slice->tid)) n = 0;
        while (n && open[n - 1]->end <= slice->begin) n--;
        if (n && open[n - 1]->end < slice->end)
            wrong = fault("%ld/%ld: %s begins within %s and ends behind it", slice->pid, slice->tid, slice->name,
                          open[n - 1]->name);
        open[n++] = slice;
    }
    free(open);
    return wrong;
}

/* Each lane with slices has a name. */
static const char *check_names(const struct judge *judge)
{
    for (size_t i = 0; i < judge->nslices; i++) {
        const struct slice *slice = &judge->slices[i];
        bool lane = false, process = false;
        if (i && slice[-1].pid == slice->pid && slice[-1].tid == slice->tid) continue;
        for (size_t e = 0; e < judge->events->n; e++) {
            const struct json *event = &judge->events->items[e];
            if (!is(event, "ph", "M") || (long)json_number(event, "pid") != slice->pid) continue;
            process |= is(event, "name", "process_name");
            lane |= is(event, "name", "thread_name") && (long)json_number(event, "tid") == slice->tid;
        }
        if (!lane || !process) return fault("the lane %ld/%ld has no name", slice->pid, slice->tid);
    }
    return "";
}

static bool in_slice(const struct judge *judge, const struct json *event)
{
    long pid = (long)json_number(event, "pid"), tid = (long)json_number(event, "tid");
    int64_t at = ns(event, "ts");
    for (size_t i = 0; i < judge->nslices; i++) {
        const struct slice *slice = &judge->slices[i];
        if (slice->pid == pid && slice->tid == tid && slice->begin <= at && at < slice->end) return true;
    }
    return false;
}

static int by_id(const void *a, const void *b)
{
    const struct arrow *x = a, *y = b;
    if (x->id != y->id) return x->id < y->id ? -1 : 1;
    return (x->from == NULL) - (y->from == NULL);
}

/* A begin and an end for each id, in this order. @from, @to: their phases. */
static const char *check_pairs(struct judge *judge, const char *from, const char *to, size_t *n_out)
{
    struct arrow *ends = malloc((judge->events->n + 1) * sizeof *ends);
    const char *wrong = "";
    size_t n = 0;
    for (size_t e = 0; e < judge->events->n; e++) {
        const struct json *event = &judge->events->items[e];
        bool begins = is(event, "ph", from);
        if (!begins && !is(event, "ph", to)) continue;
        ends[n++] = (struct arrow){(long)json_number(event, "id"), begins ? event : NULL, begins ? NULL : event};
    }
    qsort(ends, n, sizeof *ends, by_id);
    if (n % 2) wrong = fault("an odd number of %s and %s", from, to);
    for (size_t i = 0; i < n && !wrong[0]; i += 2) {
        const struct json *begin = ends[i].from, *end = ends[i + 1].to;
        if (!begin || !end || ends[i].id != ends[i + 1].id || (i + 2 < n && ends[i + 2].id == ends[i].id))
            wrong = fault("%s and %s of id %ld are no pair", from, to, ends[i].id);
        else if (ns(begin, "ts") > ns(end, "ts"))
            wrong = fault("%s of id %ld is behind its %s", from, ends[i].id, to);
        else if (strcmp(json_text(begin, "cat"), json_text(end, "cat")) ||
                 strcmp(json_text(begin, "name"), json_text(end, "name")))
            wrong = fault("%s and %s of id %ld have two names", from, to, ends[i].id);
        else if (from[0] == 's' && (!in_slice(judge, begin) || !in_slice(judge, end)))
            wrong = fault("the arrow %ld begins or ends in no slice", ends[i].id);
        else if (from[0] == 's' && !is(end, "bp", "e"))
            wrong = fault("the arrow %ld leads to the slice behind its end", ends[i].id);
    }
    free(ends);
    *n_out = n / 2;
    return wrong;
}

const char *timeline_fault(const struct json *timeline, struct timeline_counts *counts_out)
{
    const struct json *events = json_get(timeline, "traceEvents");
    struct judge judge = {.events = events, .counts = counts_out};
    const char *wrong = "";
    *counts_out = (struct timeline_counts){0};
    if (!events || events->kind != JSON_ARRAY) return fault("no list of events");
    judge.slices = malloc((events->n + 1) * sizeof *judge.slices);
    for (size_t i = 0; i < events->n && !wrong[0]; i++) wrong = check_event(&judge, &events->items[i]);
    qsort(judge.slices, judge.nslices, sizeof *judge.slices, by_lane);
    counts_out->slices = judge.nslices;
    if (!wrong[0]) wrong = check_nesting(&judge);
    if (!wrong[0]) wrong = check_names(&judge);
    if (!wrong[0]) wrong = check_pairs(&judge, "s", "f", &counts_out->arrows);
    if (!wrong[0]) wrong = check_pairs(&judge, "b", "e", &counts_out->asynchronous);
    free(judge.slices);
    return wrong;
}

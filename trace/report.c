/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <trace/report.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <trace/out.h>

enum { LONGEST = 5, PLACES = 3 };

struct sums {
    uint64_t device, host, external, failed, cancelled, pending;
    uint64_t early, released, waited, left, synchronous, here, interop, held, foreign, behind;
    uint64_t in_flight; /* at most */
    uint64_t how[WEIR__HOW_KINDS], edges;
    uint64_t waits[WEIR__WAIT_KINDS], wait_ns[WEIR__WAIT_KINDS];
    uint64_t fallbacks[WEIR__FALLBACK_KINDS];
    uint64_t copies, copied, busy_ns, host_ns;
    uint64_t ways[WEIR__RECORD_WAYS], way_bytes[WEIR__RECORD_WAYS];
    const struct weir__trace_wait *longest[LONGEST];
};

static void add_task(struct sums *sums, const struct weir__trace_task *task)
{
    if (task->peek || !weir__trace_is_node(task)) return;
    bool device = task->stream != WEIR__NONE || task->kind == WEIR__TRACE_DEVICE || task->kind == WEIR__TRACE_IMPORT;
    sums->device += device;
    sums->external += !device && task->kind == WEIR__TRACE_EXTERNAL;
    sums->host += !device && task->kind != WEIR__TRACE_EXTERNAL;
    sums->failed += task->status == WEIR__NODE_FAILED;
    sums->cancelled += task->status == WEIR__NODE_CANCELLED;
    sums->pending += task->status < WEIR__NODE_COMPLETE;
    if (task->token)
        sums->waited++;
    else if (task->kind == WEIR__TRACE_BEGIN)
        sums->synchronous++;
    else if (device && task->open != WEIR__NEVER)
        sums->released += !task->early, sums->early += task->early;
    sums->here += task->here;
    sums->interop += task->interop;
    sums->held += task->interop && !task->early;
    sums->foreign += task->kind == WEIR__TRACE_FOREIGN;
    sums->copies += task->ncopies;
    sums->copied += task->copied;
    if (task->begin == WEIR__NEVER || task->end == WEIR__NEVER) return;
    if (device)
        sums->busy_ns += task->end - task->begin;
    else if (task->kind == WEIR__TRACE_HOST || task->kind == WEIR__TRACE_FOREIGN)
        sums->host_ns += task->end - task->begin;
}

static void add_wait(struct sums *sums, const struct weir__trace_wait *wait)
{
    uint64_t took = wait->end - wait->begin;
    if (wait->why >= WEIR__WAIT_KINDS || wait->end < wait->begin) return;
    sums->waits[wait->why]++;
    sums->wait_ns[wait->why] += took;
    for (int i = 0; i < LONGEST; i++) {
        if (sums->longest[i] && sums->longest[i]->end - sums->longest[i]->begin >= took) continue;
        memmove(&sums->longest[i + 1], &sums->longest[i], (size_t)(LONGEST - 1 - i) * sizeof sums->longest[0]);
        sums->longest[i] = wait;
        return;
    }
}

/* An edge that a task of libomp's is held back by, and the first one of it. */
static bool holds_host_task(const struct weir__trace *trace, size_t i)
{
    const struct weir__trace_edge *edge = &trace->edges[i];
    if (trace->tasks[edge->to].kind != WEIR__TRACE_FOREIGN || edge->how != WEIR__HOW_HOST) return false;
    for (size_t before = i; before-- > 0 && trace->edges[before].to == edge->to;)
        if (trace->edges[before].how == WEIR__HOW_HOST) return false;
    return true;
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Tasks that were made and not complete, at most. 0 without memory. */
static uint64_t most_in_flight(const struct weir__trace *trace)
{
    uint64_t *made = malloc((trace->ntasks + 1) * 2 * sizeof *made), *ended = made + trace->ntasks, most = 0;
    size_t n = 0, nended = 0;
    for (size_t i = 0; made && i < trace->ntasks; i++) {
        const struct weir__trace_task *task = &trace->tasks[i];
        uint64_t end = task->end != WEIR__NEVER ? task->end : task->done;
        if (task->peek || !weir__trace_is_node(task)) continue;
        made[n++] = task->made;
        if (end != WEIR__NEVER) ended[nended++] = end > task->made ? end : task->made;
    }
    if (made) qsort(made, n, sizeof *made, by_value), qsort(ended, nended, sizeof *ended, by_value);
    for (size_t i = 0, gone = 0; i < n; i++) {
        while (gone < nended && ended[gone] <= made[i]) gone++;
        if (i + 1 - gone > most) most = i + 1 - gone;
    }
    free(made);
    return most;
}

static void add_up(const struct weir__trace *trace, struct sums *sums)
{
    memset(sums, 0, sizeof *sums);
    for (size_t i = 0; i < trace->ntasks; i++) add_task(sums, &trace->tasks[i]);
    for (size_t i = 0; i < trace->nedges; i++) {
        const struct weir__trace_edge *edge = &trace->edges[i];
        if (trace->tasks[edge->to].peek || !weir__trace_is_node(&trace->tasks[edge->to])) continue;
        sums->how[edge->how]++;
        sums->edges++;
        sums->behind += holds_host_task(trace, i);
    }
    sums->in_flight = most_in_flight(trace);
    for (size_t i = 0; i < trace->nwaits; i++) add_wait(sums, &trace->waits[i]);
    for (size_t i = 0; i < trace->ncopies; i++) {
        sums->ways[trace->copies[i].way]++;
        sums->way_bytes[trace->copies[i].way] += trace->copies[i].bytes;
    }
    for (size_t i = 0; i < trace->nfallbacks; i++)
        if (trace->fallbacks[i].why < WEIR__FALLBACK_KINDS) sums->fallbacks[trace->fallbacks[i].why]++;
    /* Opened in the same way: libomp calls when the predecessors are complete. */
    uint64_t left = sums->fallbacks[WEIR__FALLBACK_LIBOMP];
    sums->left = left < sums->synchronous ? left : sums->synchronous;
    sums->synchronous -= sums->left;
}

/* Up to some places of a kind of fallback, each once. */
static void fallback_places(const struct weir__trace *trace, unsigned why, char *text, size_t bytes)
{
    char places[PLACES][256];
    struct weir__room room = {text, bytes};
    text[0] = '\0';
    for (size_t i = 0, n = 0; i < trace->nfallbacks && n < PLACES; i++) {
        const struct weir__trace_fallback *fallback = &trace->fallbacks[i];
        size_t k = 0;
        if (fallback->why != why) continue;
        if (fallback->task != WEIR__NONE)
            weir__task_name(&trace->tasks[weir__trace_node(trace, fallback->task)], places[n], sizeof places[n]);
        else
            weir__place_name(fallback->place, 0, places[n], sizeof places[n]);
        while (strcmp(places[k], places[n]) != 0) k++;
        if (k < n || !places[n][0]) continue;
        weir__room_add(&room, "%s%s", n ? ", " : "", places[n]);
        n++;
    }
}

/* ---- text ---- */

#define LINE(...) (fputs("weir: ", file), fprintf(file, __VA_ARGS__), fputc('\n', file))

static double percent(uint64_t part, uint64_t whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 0;
}

static const char *way_name(unsigned way)
{
    static const char *const names[WEIR__RECORD_WAYS] = {"", "direct", "staged", "bounced"};
    return names[way];
}

static void text_tasks(const struct weir__trace *trace, const struct sums *sums, FILE *file)
{
    char took[32];
    char cut[256];
    LINE("report of %s, process %u: %s", trace->program, trace->pid, weir__time_name(trace->end, took, sizeof took));
    if (weir__trace_cut(trace, cut, sizeof cut)[0]) LINE("  %s", cut);
    LINE("tasks      %" PRIu64 " on devices, %" PRIu64 " on the host, %" PRIu64 " external; %" PRIu64
         " failed, %" PRIu64 " cancelled, %" PRIu64 " not complete; at most %" PRIu64 " in flight",
         sums->device, sums->host, sums->external, sums->failed, sums->cancelled, sums->pending, sums->in_flight);
    LINE("  issued   %" PRIu64 " early, in the call that made them; %" PRIu64
         " at release, when a predecessor had come so far",
         sums->early, sums->released);
    LINE("           %" PRIu64 " when their predecessors were complete, by weir; %" PRIu64 " by libomp; %" PRIu64
         " synchronous, by the caller",
         sums->waited, sums->left, sums->synchronous);
    if (sums->here)
        LINE("  run      %" PRIu64 " by the thread that issued them: shorter than handing them to a CPU device", sums->here);
    if (sums->interop)
        LINE("  interop  %" PRIu64 " constructs with nowait, %" PRIu64 " of these issued at release", sums->interop, sums->held);
    if (sums->foreign)
        LINE("  libomp   %" PRIu64 " of its tasks of the host have dependences, %" PRIu64 " of these waited for target tasks",
             sums->foreign, sums->behind);
    if (sums->copies) LINE("  copies   %" PRIu64 ", %" PRIu64 " bytes", sums->copies, sums->copied);
    for (unsigned way = 1; way < WEIR__RECORD_WAYS; way++)
        if (sums->ways[way])
            LINE("  %10" PRIu64 " %s, %" PRIu64 " bytes", sums->ways[way], way_name(way), sums->way_bytes[way]);
    LINE("edges      %" PRIu64, sums->edges);
    for (unsigned how = 1; how < WEIR__HOW_KINDS; how++)
        if (sums->how[how]) LINE("  %10" PRIu64 " %s", sums->how[how], weir__how_name(how));
}

static void text_waits(const struct weir__trace *trace, const struct sums *sums, FILE *file)
{
    char took[32], place[512];
    if (trace->nwaits) LINE("waits of the host");
    for (unsigned why = 1; why < WEIR__WAIT_KINDS; why++)
        if (sums->waits[why])
            LINE("  %10" PRIu64 " %s, in all %s", sums->waits[why], weir__wait_name(why),
                 weir__time_name(sums->wait_ns[why], took, sizeof took));
    for (int i = 0; i < LONGEST && sums->longest[i]; i++) {
        const struct weir__trace_wait *wait = sums->longest[i];
        weir__time_name(wait->end - wait->begin, took, sizeof took);
        weir__wait_place(trace, wait, place, sizeof place);
        LINE("  %s %10s %s%s%s", i == 0 ? "longest" : "       ", took, weir__wait_name(wait->why), place[0] ? ", " : "",
             place);
    }
    for (unsigned why = 1; why < WEIR__FALLBACK_KINDS; why++) {
        if (!sums->fallbacks[why]) continue;
        fallback_places(trace, why, place, sizeof place);
        LINE("fallback   %" PRIu64 " %s%s%s", sums->fallbacks[why], weir__fallback_name(why), place[0] ? ": " : "",
             place);
    }
}

static void text_end(const struct weir__trace *trace, const struct sums *sums, FILE *file)
{
    char a[32], b[32];
    uint64_t waited = trace->path_ns - trace->path_ran_ns;
    LINE("critical path  %zu tasks, %s, of which %s (%.0f %%) is waiting", trace->path_tasks,
         weir__time_name(trace->path_ns, a, sizeof a), weir__time_name(waited, b, sizeof b),
         percent(waited, trace->path_ns));
    LINE("work           %s on devices, %s in host tasks: %.1f times the critical path",
         weir__time_name(sums->busy_ns, a, sizeof a), weir__time_name(sums->host_ns, b, sizeof b),
         trace->path_ns ? (double)(sums->busy_ns + sums->host_ns) / (double)trace->path_ns : 0.0);
    if (trace->peak_kb)
        LINE("memory         %.1f MiB resident at most; threads of weir's own used %.3f s of processor time",
             (double)trace->peak_kb / 1024.0, (double)trace->cpu_ns / 1e9);
    else
        LINE("memory         not known: the process did not end by itself");
}

/* ---- JSON ---- */

static void json_counts(FILE *file, const char *key, const uint64_t *counts, unsigned n,
                        const char *(*name)(unsigned i))
{
    bool first = true;
    fprintf(file, ",\n\"%s\":{", key);
    for (unsigned i = 1; i < n; i++) {
        if (!counts[i]) continue;
        if (!first) fputc(',', file);
        weir__out_json(file, name(i));
        fprintf(file, ":%" PRIu64, counts[i]);
        first = false;
    }
    fputc('}', file);
}

static void json(const struct weir__trace *trace, const struct sums *sums, FILE *file)
{
    char place[512];
    fputs("{\"program\":", file);
    weir__out_json(file, trace->program);
    fprintf(file, ",\"process\":%u,\"time_ns\":%" PRIu64 ",\"dropped_records\":%" PRIu64, trace->pid, trace->end,
            trace->dropped);
    if (trace->dropped) {
        fputs(",\"dropped\":", file);
        weir__out_json(file, weir__trace_cut(trace, place, sizeof place));
    }
    fprintf(file,
            ",\n\"tasks\":{\"device\":%" PRIu64 ",\"host\":%" PRIu64 ",\"external\":%" PRIu64 ",\"failed\":%" PRIu64
            ",\"cancelled\":%" PRIu64 ",\"not_complete\":%" PRIu64 ",\"early\":%" PRIu64 ",\"at_release\":%" PRIu64
            ",\"waited\":%" PRIu64 ",\"left_to_libomp\":%" PRIu64 ",\"synchronous\":%" PRIu64 ",\"run_here\":%" PRIu64 ",\"most_in_flight\":%" PRIu64
            ",\n \"interop\":%" PRIu64 ",\"interop_at_release\":%" PRIu64 ",\"libomp\":%" PRIu64
            ",\"libomp_behind_target\":%" PRIu64 "}",
            sums->device, sums->host, sums->external, sums->failed, sums->cancelled, sums->pending, sums->early,
            sums->released, sums->waited, sums->left, sums->synchronous, sums->here, sums->in_flight, sums->interop, sums->held,
            sums->foreign, sums->behind);
    fprintf(file, ",\n\"copies\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"edges\":%" PRIu64, sums->copies, sums->copied,
            sums->edges);
    json_counts(file, "copies_by_way", sums->ways, WEIR__RECORD_WAYS, way_name);
    json_counts(file, "bytes_by_way", sums->way_bytes, WEIR__RECORD_WAYS, way_name);
    json_counts(file, "edges_by_realisation", sums->how, WEIR__HOW_KINDS, weir__how_name);
    json_counts(file, "waits", sums->waits, WEIR__WAIT_KINDS, weir__wait_name);
    json_counts(file, "wait_ns", sums->wait_ns, WEIR__WAIT_KINDS, weir__wait_name);
    json_counts(file, "fallbacks", sums->fallbacks, WEIR__FALLBACK_KINDS, weir__fallback_name);
    fputs(",\n\"longest_waits\":[", file);
    for (int i = 0; i < LONGEST && sums->longest[i]; i++) {
        const struct weir__trace_wait *wait = sums->longest[i];
        fprintf(file, "%s{\"ns\":%" PRIu64 ",\"why\":", i ? "," : "", wait->end - wait->begin);
        weir__out_json(file, weir__wait_name(wait->why));
        fputs(",\"place\":", file);
        weir__out_json(file, weir__wait_place(trace, wait, place, sizeof place));
        fputs("}", file);
    }
    fprintf(file, "],\n\"critical_path\":{\"tasks\":%zu,\"ns\":%" PRIu64 ",\"waiting_ns\":%" PRIu64 "}",
            trace->path_tasks, trace->path_ns, trace->path_ns - trace->path_ran_ns);
    fprintf(file,
            ",\n\"device_ns\":%" PRIu64 ",\"host_ns\":%" PRIu64 ",\"peak_kib\":%" PRIu64 ",\"own_cpu_ns\":%" PRIu64
            "}\n",
            sums->busy_ns, sums->host_ns, trace->peak_kb, trace->cpu_ns);
}

void weir__report_write(const struct weir__trace *trace, bool as_json, FILE *file)
{
    struct sums sums;
    add_up(trace, &sums);
    if (as_json) {
        json(trace, &sums, file);
        return;
    }
    text_tasks(trace, &sums, file);
    text_waits(trace, &sums, file);
    text_end(trace, &sums, file);
}

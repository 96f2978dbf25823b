/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <trace/timeline.h>

#include <inttypes.h>
#include <stdlib.h>

#include <trace/out.h>

/*
 * Chrome's trace event format (Trace Event Format, JSON Object Format), which Perfetto and chrome://tracing read.
 * Process 1 are the threads of the host, the others the devices, with a thread for each stream. Times are microseconds.
 */

enum { HOST = 1, FIRST_DEVICE = 2 };

struct writer {
    const struct weir__trace *trace;
    FILE *file;
    bool any;
    uint32_t flows;
};

static uint32_t process_of(const struct weir__trace_stream *stream)
{
    return FIRST_DEVICE + stream->context * 256u + stream->device;
}

static void time_put(struct writer *w, const char *key, uint64_t ns)
{
    fprintf(w->file, ",\"%s\":%" PRIu64 ".%03u", key, ns / 1000, (unsigned)(ns % 1000));
}

/* An event up to its arguments, which the caller adds before end(). */
static void begin(struct writer *w, const char *phase, const char *category, const char *name, uint32_t pid,
                  uint32_t tid, uint64_t at)
{
    fputs(w->any ? ",\n{\"ph\":\"" : "\n{\"ph\":\"", w->file);
    w->any = true;
    fprintf(w->file, "%s\",\"cat\":\"%s\",\"pid\":%u,\"tid\":%u,\"name\":", phase, category, pid, tid);
    weir__out_json(w->file, name);
    time_put(w, "ts", at);
}

static void end(struct writer *w)
{
    fputs("}", w->file);
}

/* What a process or thread is called, and where it stands among the others. */
static void name_put(struct writer *w, const char *what, uint32_t pid, uint32_t tid, const char *name, size_t place)
{
    fprintf(w->file,
            "%s{\"ph\":\"M\",\"pid\":%u,\"tid\":%u,\"name\":\"%s_name\",\"args\":{\"name\":", w->any ? ",\n" : "\n",
            pid, tid, what);
    w->any = true;
    weir__out_json(w->file, name);
    fprintf(w->file,
            "}},\n{\"ph\":\"M\",\"pid\":%u,\"tid\":%u,\"name\":\"%s_sort_index\",\"args\":{\"sort_index\":%zu}}", pid,
            tid, what, place);
}

static bool is_first_of_device(const struct weir__trace *trace, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (process_of(&trace->streams[k]) == process_of(&trace->streams[i])) return false;
    return true;
}

static void names(struct writer *w)
{
    const struct weir__trace *trace = w->trace;
    char text[128];
    name_put(w, "process", HOST, 0, "host threads", 0);
    for (size_t i = 0; i < trace->nthreads; i++) {
        snprintf(text, sizeof text, "%s %u", trace->threads[i].name, trace->threads[i].number);
        name_put(w, "thread", HOST, trace->threads[i].number, text, i);
    }
    for (size_t i = 0; i < trace->nstreams; i++) {
        const struct weir__trace_stream *stream = &trace->streams[i];
        const char *device = stream->device_name ? stream->device_name : "device";
        if (is_first_of_device(trace, i)) name_put(w, "process", process_of(stream), 0, device, process_of(stream));
        snprintf(text, sizeof text, "stream %u", stream->number);
        name_put(w, "thread", process_of(stream), stream->number, text, stream->number);
    }
}

/* ---- slices ---- */

static void task_args(struct writer *w, const struct weir__trace_task *task)
{
    char text[512];
    fprintf(w->file, ",\"args\":{\"task\":%" PRIu64 ",\"status\":\"%s\"", task->id,
            weir__node_status_name(task->status));
    if (weir__place_name(task->file, task->line, text, sizeof text)[0]) {
        fputs(",\"place\":", w->file);
        weir__out_json(w->file, text);
    }
    if (task->ncopies) fprintf(w->file, ",\"copies\":%u,\"bytes\":%" PRIu64, task->ncopies, task->copied);
    if (task->critical) fputs(",\"critical\":true", w->file);
    if (task->estimated) fputs(",\"clock\":\"as the host saw it\"", w->file);
    fputs("}", w->file);
}

/* As begin(). */
static void slice(struct writer *w, const char *category, const char *name, uint32_t pid, uint32_t tid, uint64_t from,
                  uint64_t to)
{
    begin(w, "X", category, name, pid, tid, from);
    time_put(w, "dur", to > from ? to - from : 0);
}

static void task_slice(struct writer *w, const char *category, const char *name, uint32_t pid, uint32_t tid,
                       uint64_t from, uint64_t to, const struct weir__trace_task *task)
{
    slice(w, category, name, pid, tid, from, to);
    if (task->status == WEIR__NODE_FAILED) fputs(",\"cname\":\"terrible\"", w->file);
    task_args(w, task);
    end(w);
}

/* The part of a task that ran on a device shows the whole's name. */
static const struct weir__trace_task *named(const struct weir__trace *trace, const struct weir__trace_task *task)
{
    return task->whole != WEIR__NONE && !task->name ? &trace->tasks[task->whole] : task;
}

static void tasks(struct writer *w)
{
    const struct weir__trace *trace = w->trace;
    char name[256], text[280];
    for (size_t i = 0; i < trace->ntasks; i++) {
        const struct weir__trace_task *task = &trace->tasks[i];
        if (task->kind == WEIR__TRACE_FENCE || task->stream == WEIR__NONE) continue;
        const struct weir__trace_stream *stream = &trace->streams[task->stream];
        if (task->kind == WEIR__TRACE_EXTERNAL || task->kind == WEIR__TRACE_FOREIGN) continue; /* its parts are there */
        weir__task_name(named(trace, task), name, sizeof name);
        if (task->open != WEIR__NEVER && task->issued != WEIR__NEVER) {
            snprintf(text, sizeof text, "issue %s", name);
            task_slice(w, "issue", text, HOST, trace->threads[task->opener].number, task->open, task->issued, task);
        }
        if (task->begin == WEIR__NEVER || task->end == WEIR__NEVER) continue;
        task_slice(w, "device", name, process_of(stream), stream->number, task->begin, task->end, task);
    }
    for (size_t i = 0; i < trace->nruns; i++) {
        const struct weir__trace_run *run = &trace->runs[i];
        const struct weir__trace_task *task = &trace->tasks[run->task];
        weir__task_name(named(trace, task), name, sizeof name);
        snprintf(text, sizeof text, "%s%s", task->whole != WEIR__NONE ? "host part of " : "", name);
        task_slice(w, "host", text, HOST, trace->threads[run->thread].number, run->begin, run->end, task);
    }
    /* Those that somebody else completes have no lane: asynchronous events of their own. */
    for (size_t i = 0; i < trace->ntasks; i++) {
        const struct weir__trace_task *task = &trace->tasks[i];
        if (task->kind != WEIR__TRACE_EXTERNAL || task->stream != WEIR__NONE || task->token || task->end == WEIR__NEVER)
            continue;
        weir__task_name(task, name, sizeof name);
        begin(w, "b", "external", name, HOST, 0, task->begin);
        fprintf(w->file, ",\"id\":%" PRIu64, task->id);
        task_args(w, task);
        end(w);
        begin(w, "e", "external", name, HOST, 0, task->end);
        fprintf(w->file, ",\"id\":%" PRIu64, task->id);
        end(w);
    }
}

static void waits(struct writer *w)
{
    const struct weir__trace *trace = w->trace;
    char text[512];
    for (size_t i = 0; i < trace->nwaits; i++) {
        const struct weir__trace_wait *wait = &trace->waits[i];
        slice(w, "wait", weir__wait_name(wait->why), HOST, trace->threads[wait->thread].number, wait->begin, wait->end);
        if (weir__wait_place(trace, wait, text, sizeof text)[0]) {
            fputs(",\"args\":{\"place\":", w->file);
            weir__out_json(w->file, text);
            fputs("}", w->file);
        }
        end(w);
    }
    for (size_t i = 0; i < trace->nfallbacks; i++) {
        const struct weir__trace_fallback *fallback = &trace->fallbacks[i];
        begin(w, "i", "fallback", weir__fallback_name(fallback->why), HOST, trace->threads[fallback->thread].number,
              fallback->at);
        fputs(",\"s\":\"t\"", w->file);
        end(w);
    }
}

/* ---- arrows: of event waits ---- */

/* An arrow is tied to the slices that it begins and ends in, which must have some length for that. */
static bool has_slice(const struct weir__trace_task *task)
{
    return task->stream != WEIR__NONE && task->begin != WEIR__NEVER && task->end != WEIR__NEVER &&
           task->end > task->begin && task->kind != WEIR__TRACE_FENCE;
}

static void arrows(struct writer *w, const struct weir__trace_edge *edges, size_t n)
{
    const struct weir__trace *trace = w->trace;
    char text[768];
    for (size_t i = 0; i < n; i++) {
        const struct weir__trace_edge *edge = &edges[i];
        const struct weir__trace_task *from = &trace->tasks[edge->from], *to = &trace->tasks[edge->to];
        if (edge->how != WEIR__HOW_EVENT || !has_slice(from) || !has_slice(to)) continue;
        const struct weir__trace_stream *a = &trace->streams[from->stream], *b = &trace->streams[to->stream];
        weir__edge_story(trace, edge, text, sizeof text);
        begin(w, "s", "event", "event wait", process_of(a), a->number, from->end - 1);
        fprintf(w->file, ",\"id\":%u,\"args\":{\"why\":", ++w->flows);
        weir__out_json(w->file, text);
        fputs("}", w->file);
        end(w);
        begin(w, "f", "event", "event wait", process_of(b), b->number, to->begin);
        fprintf(w->file, ",\"bp\":\"e\",\"id\":%u", w->flows);
        end(w);
    }
}

/* ---- counters ---- */

struct change {
    uint64_t at;
    int32_t tasks;
    uint64_t bytes;
};

static int by_change(const void *a, const void *b)
{
    const struct change *x = a, *y = b;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* Without memory there are none. */
static void counters(struct writer *w)
{
    const struct weir__trace *trace = w->trace;
    struct change *changes = malloc((2 * trace->ntasks + trace->ncopies + 1) * sizeof *changes);
    size_t n = 0;
    int64_t in_flight = 0;
    uint64_t bytes = 0;
    for (size_t i = 0; changes && i < trace->ntasks; i++) {
        const struct weir__trace_task *task = &trace->tasks[i];
        uint64_t done = task->end != WEIR__NEVER ? task->end : task->done;
        if (!weir__trace_is_node(task) || task->peek) continue;
        changes[n++] = (struct change){task->made, 1, 0};
        if (done != WEIR__NEVER) changes[n++] = (struct change){done > task->made ? done : task->made, -1, 0};
    }
    for (size_t i = 0; changes && i < trace->ncopies; i++) {
        const struct weir__trace_task *task = &trace->tasks[trace->copies[i].task];
        changes[n++] =
            (struct change){task->end != WEIR__NEVER ? task->end : trace->copies[i].at, 0, trace->copies[i].bytes};
    }
    if (changes) qsort(changes, n, sizeof *changes, by_change);
    for (size_t i = 0; changes && i < n; i++) {
        in_flight += changes[i].tasks;
        bytes += changes[i].bytes;
        if (i + 1 < n && changes[i + 1].at < changes[i].at + 1000 && changes[i].bytes == 0)
            continue; /* one a microsecond is enough */
        begin(w, "C", "counter", "tasks in flight", HOST, 0, changes[i].at);
        fprintf(w->file, ",\"args\":{\"tasks\":%" PRId64 "}", in_flight);
        end(w);
        if (!changes[i].bytes) continue;
        begin(w, "C", "counter", "bytes moved", HOST, 0, changes[i].at);
        fprintf(w->file, ",\"args\":{\"bytes\":%" PRIu64 "}", bytes);
        end(w);
    }
    free(changes);
}

void weir__timeline_write(const struct weir__trace *trace, FILE *file)
{
    struct writer w = {.trace = trace, .file = file};
    fputs("{\"displayTimeUnit\":\"ns\",\"otherData\":{\"program\":", file);
    weir__out_json(file, trace->program);
    fprintf(file, ",\"process\":%u,\"monotonic_ns\":%" PRIu64 ",\"dropped_records\":%" PRIu64 "},\"traceEvents\":[",
            trace->pid, trace->begin_ns, trace->dropped);
    names(&w);
    tasks(&w);
    waits(&w);
    arrows(&w, trace->edges, trace->nedges);
    arrows(&w, trace->turns, trace->nturns);
    counters(&w);
    fputs("\n]}\n", file);
}

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/*
 * Records into lists, in three passes: names of things, tasks, and what happened to them. A record that names something
 * unknown is left out: what was recorded before a start, or dropped, is not there.
 */

#include <stdlib.h>
#include <string.h>

#include <trace/index.h>
#include <trace/model.h>
#include <trace/read.h>

struct weir__index {
    struct weir__map ids, points, texts, streams, scopes, tokens;
};

struct pass {
    struct weir__trace *trace;
    const struct weir__records *records;
    uint32_t thread, task; /* of the slot: the newest */
    int rc;
};

static uint64_t ns(const struct pass *pass, uint64_t ticks)
{
    uint64_t at = weir__records_ns(pass->records, ticks);
    if (at > pass->trace->end) pass->trace->end = at;
    return at;
}

static const char *text_of(const struct weir__trace *trace, uint64_t number)
{
    uint32_t i = weir__map_get(&trace->index->texts, number, WEIR__NONE);
    return i != WEIR__NONE ? trace->texts[i].text : NULL;
}

static uint64_t stream_key(uint64_t context, uint64_t number)
{
    return (context << 32 | number) + 1;
}

/* No two contexts' points are the same: position, 12 bits of stream (exec/stream.h), 8 of context. */
static uint64_t point_key(uint64_t context, uint64_t point)
{
    return point ^ context * UINT64_C(0xD6E8FEB86659FD93);
}

uint32_t weir__trace_task_by_id(const struct weir__trace *trace, uint64_t id)
{
    return weir__map_get(&trace->index->ids, id, WEIR__NONE);
}

uint32_t weir__trace_task_by_point(const struct weir__trace *trace, uint16_t context, uint64_t point)
{
    return point ? weir__map_get(&trace->index->points, point_key(context, point), WEIR__NONE) : WEIR__NONE;
}

static void note(struct pass *pass, const void *item)
{
    if (!item) pass->rc = WEIR_E_NO_MEMORY;
}

#define MORE(list) WEIR__MORE(pass->trace, list)

/* ---- first pass ---- */

static void on_text(struct pass *pass, const uint64_t *at, unsigned a, uint32_t b)
{
    struct weir__trace_text *text = MORE(texts);
    if (text && (text->text = malloc(a + 1u))) {
        memcpy(text->text, at + 1, a);
        text->text[a] = '\0';
        text->number = b;
        note(pass, weir__map_put(&pass->trace->index->texts, b, (uint32_t)pass->trace->ntexts - 1));
    } else {
        pass->rc = WEIR_E_NO_MEMORY;
    }
}

static void on_thread(struct pass *pass, const uint64_t *at, uint32_t b)
{
    struct weir__trace *trace = pass->trace;
    for (uint32_t i = 0; i < trace->nthreads; i++)
        if (trace->threads[i].number == b) return;
    struct weir__trace_thread *thread = MORE(threads);
    note(pass, thread);
    if (!thread) return;
    thread->number = b;
    memcpy(thread->name, at + 1, 16);
}

/* There is one record for each time that recording began or went on. */
static void on_stream(struct pass *pass, const uint64_t *at, unsigned a, uint32_t b)
{
    struct weir__trace_mark *mark = MORE(marks);
    note(pass, mark);
    if (!mark) return;
    mark->position = at[3];
    mark->stream = weir__map_get(&pass->trace->index->streams, stream_key(a, b), (uint32_t)pass->trace->nstreams);
    if (mark->stream < pass->trace->nstreams) return;
    struct weir__trace_stream *stream = MORE(streams);
    note(pass, stream);
    if (!stream) return;
    stream->number = b;
    stream->context = (uint16_t)a;
    stream->device = (uint8_t)at[1];
    stream->domain = (uint8_t)(at[1] >> 32);
    stream->device_name = text_of(pass->trace, at[2]);
    note(pass, weir__map_put(&pass->trace->index->streams, stream_key(a, b), (uint32_t)pass->trace->nstreams - 1));
}

static void on_scope(struct pass *pass, const uint64_t *at, unsigned a, uint32_t b)
{
    struct weir__trace_scope *scope = MORE(scopes);
    note(pass, scope);
    if (!scope) return;
    *scope = (struct weir__trace_scope){b, (uint16_t)a, at[1] != 0};
    note(pass, weir__map_put(&pass->trace->index->scopes, b, (uint32_t)pass->trace->nscopes - 1));
}

static void name_things(struct pass *pass, const uint64_t *at, unsigned kind, unsigned a, uint32_t b)
{
    if (kind == WEIR__RECORD_STRING_TEXT)
        on_text(pass, at, a, b);
    else if (kind == WEIR__RECORD_THREAD)
        on_thread(pass, at, b);
    else if (kind == WEIR__RECORD_STREAM)
        on_stream(pass, at, a, b);
    else if (kind == WEIR__RECORD_SCOPE)
        on_scope(pass, at, a, b);
}

/* ---- second pass: tasks ---- */

static void add_accesses(struct pass *pass, const uint64_t *from, const uint64_t *end)
{
    struct weir__trace *trace = pass->trace;
    for (; from + 1 < end; from += 2) {
        struct weir__trace_access *access = MORE(accesses);
        note(pass, access);
        if (!access) return;
        *access = (struct weir__trace_access){from[0], from[1] >> 4, (uint32_t)(from[1] & 15)};
        trace->tasks[pass->task].naccesses++;
    }
}

static void on_task(struct pass *pass, const uint64_t *at, const uint64_t *end, unsigned a, uint32_t b)
{
    uint32_t scope = weir__map_get(&pass->trace->index->scopes, b, WEIR__NONE);
    const uint64_t *next = at + 3;
    pass->task = WEIR__NONE;
    if (scope == WEIR__NONE || weir__records_is_past(pass->records, at[2])) return;
    struct weir__trace_task *task = MORE(tasks);
    note(pass, task);
    if (!task) return;
    pass->task = (uint32_t)pass->trace->ntasks - 1;
    task->id = at[1];
    task->scope = scope;
    task->kind = a & WEIR__RECORD_TASK_KIND;
    task->device = (uint8_t)(a >> 8);
    task->peek = (a & WEIR__RECORD_TASK_PEEK) != 0;
    task->inner = task->kind == WEIR__TRACE_FENCE || task->kind == WEIR__TRACE_EMPTY;
    task->status = WEIR__NODE_WAITING;
    task->root = task->whole = task->stream = task->ran_on = task->before = WEIR__NONE;
    task->made = ns(pass, at[2]);
    task->open = task->issued = task->begin = task->end = task->done = WEIR__NEVER;
    if (a & WEIR__RECORD_TASK_NAME) {
        task->name = text_of(pass->trace, next[0] >> 32);
        task->file = text_of(pass->trace, next[0] & UINT32_MAX);
        task->line = (uint32_t)next[1];
        next += 2;
    } else {
        task->function = *next++;
    }
    if (a & WEIR__RECORD_TASK_TOKEN) task->token = *next++;
    task->first_access = (uint32_t)pass->trace->naccesses;
    add_accesses(pass, next, end);
}

static void make_tasks(struct pass *pass, const uint64_t *at, unsigned kind, unsigned words, unsigned a, uint32_t b)
{
    if (kind == WEIR__RECORD_TASK)
        on_task(pass, at, at + words, a, b);
    else if (kind == WEIR__RECORD_ACCESSES && pass->task != WEIR__NONE)
        add_accesses(pass, at + 1, at + words);
}

static int by_time(const void *a, const void *b)
{
    const struct weir__trace_task *x = a, *y = b;
    if (x->made != y->made) return x->made < y->made ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* ---- third pass ---- */

static struct weir__trace_task *task_of(const struct pass *pass, uint64_t id)
{
    uint32_t i = weir__trace_task_by_id(pass->trace, id);
    return i != WEIR__NONE ? &pass->trace->tasks[i] : NULL;
}

static void on_open(struct pass *pass, const uint64_t *at, const uint64_t *end, unsigned a, uint32_t b)
{
    struct weir__trace_task *task = task_of(pass, at[1]);
    if (!task) return;
    if (task->open == WEIR__NEVER) {
        task->open = ns(pass, at[2]);
        task->opener = pass->thread;
        task->early = (b & WEIR__RECORD_EARLY) != 0;
        task->first_point = (uint32_t)pass->trace->npoints;
        task->stream = weir__map_get(&pass->trace->index->streams, stream_key(a, b & ~WEIR__RECORD_EARLY), WEIR__NONE);
    }
    for (at += 3; at + 1 < end; at += 2) {
        struct weir__trace_point *point = MORE(points);
        note(pass, point);
        if (!point) return;
        *point = (struct weir__trace_point){at[0], at[1] & ((UINT64_C(1) << 60) - 1),
                                            (uint32_t)(task - pass->trace->tasks), (uint8_t)(at[1] >> 60)};
        task->npoints++;
    }
}

static void on_issued(struct pass *pass, const uint64_t *at, unsigned a)
{
    struct weir__trace_task *task = task_of(pass, at[1]);
    if (!task) return;
    task->issued = ns(pass, at[2]);
    task->point = at[3];
    if (task->stream == WEIR__NONE)
        task->stream =
            weir__map_get(&pass->trace->index->streams, stream_key(a, at[3] >> WEIR__RECORD_POINT_BITS), WEIR__NONE);
    note(pass, weir__map_put(&pass->trace->index->points, point_key(a, at[3]), (uint32_t)(task - pass->trace->tasks)));
}

static void on_here(struct pass *pass, const uint64_t *at, unsigned a)
{
    uint32_t task = weir__map_get(&pass->trace->index->points, point_key(a, at[1]), WEIR__NONE);
    if (task != WEIR__NONE) pass->trace->tasks[task].here = true;
}

static void on_run(struct pass *pass, const uint64_t *at, unsigned words, uint32_t took)
{
    uint64_t end = words > 3 ? at[3] : at[2] + took;
    struct weir__trace_task *task = task_of(pass, at[1]);
    struct weir__trace_run *run = task ? MORE(runs) : NULL;
    if (!run) {
        if (task) pass->rc = WEIR_E_NO_MEMORY;
        return;
    }
    *run =
        (struct weir__trace_run){(uint32_t)(task - pass->trace->tasks), pass->thread, ns(pass, at[2]), ns(pass, end)};
}

static void on_stretch(struct pass *pass, const uint64_t *at, unsigned a, uint32_t b)
{
    if (weir__records_is_past(pass->records, at[3])) return;
    struct weir__trace_stretch *stretch = MORE(stretches);
    note(pass, stretch);
    if (!stretch) return;
    *stretch = (struct weir__trace_stretch){weir__map_get(&pass->trace->index->streams, stream_key(a, b), WEIR__NONE),
                                            at[1], at[2] ? ns(pass, at[2]) : WEIR__NEVER, ns(pass, at[3])};
    if (stretch->stream == WEIR__NONE) pass->trace->nstretches--;
}

static void on_done(struct pass *pass, const uint64_t *at, uint32_t b)
{
    struct weir__trace_task *task = task_of(pass, at[1]);
    if (!task) return;
    task->done = ns(pass, at[2]);
    task->code = (int32_t)b;
    task->status = task->code == WEIR_OK              ? WEIR__NODE_COMPLETE
                   : task->code == WEIR_E_PREDECESSOR ? WEIR__NODE_CANCELLED
                                                      : WEIR__NODE_FAILED;
    if (task->code != WEIR_OK) task->root = weir__trace_task_by_id(pass->trace, at[3]);
}

static void on_wait(struct pass *pass, const uint64_t *at, unsigned a, uint32_t b)
{
    if (weir__records_is_past(pass->records, at[3])) return;
    struct weir__trace_wait *wait = MORE(waits);
    note(pass, wait);
    if (!wait) return;
    *wait = (struct weir__trace_wait){(uint8_t)a,
                                      weir__map_get(&pass->trace->index->scopes, b, WEIR__NONE),
                                      weir__trace_task_by_id(pass->trace, at[1]),
                                      pass->thread,
                                      ns(pass, at[2]),
                                      ns(pass, at[3]),
                                      at[5],
                                      text_of(pass->trace, at[4])};
}

static void on_fallback(struct pass *pass, const uint64_t *at, unsigned a)
{
    if (weir__records_is_past(pass->records, at[2])) return;
    struct weir__trace_fallback *fallback = MORE(fallbacks);
    note(pass, fallback);
    if (!fallback) return;
    *fallback = (struct weir__trace_fallback){(uint8_t)a, weir__trace_task_by_id(pass->trace, at[1]), pass->thread,
                                              ns(pass, at[2]), text_of(pass->trace, at[3])};
}

static void on_copy(struct pass *pass, const uint64_t *at, unsigned a, uint32_t b)
{
    struct weir__trace_task *task = task_of(pass, at[1]);
    struct weir__trace_copy *copy = task ? MORE(copies) : NULL;
    if (!copy) {
        if (task) pass->rc = WEIR_E_NO_MEMORY;
        return;
    }
    *copy = (struct weir__trace_copy){.task = (uint32_t)(task - pass->trace->tasks),
                                      .kind = (uint8_t)a,
                                      .way = b < WEIR__RECORD_WAYS ? (uint8_t)b : 0,
                                      .at = ns(pass, at[2]),
                                      .bytes = at[3]};
    task->copied += at[3];
    task->ncopies++;
}

static void on_label(struct pass *pass, const uint64_t *at, unsigned a)
{
    struct weir__trace_task *task = task_of(pass, at[1]);
    const char *name = text_of(pass->trace, at[2] >> 32), *place = text_of(pass->trace, at[2] & UINT32_MAX);
    if (task && name) task->name = name;
    if (task && place) task->file = place;
    if (task && a) task->interop = true;
}

static void on_memory(struct pass *pass, const uint64_t *at)
{
    struct weir__trace_memory *memory = MORE(memory);
    note(pass, memory);
    if (!memory) return;
    *memory = (struct weir__trace_memory){at[1], at[2], pass->trace->nmemory, text_of(pass->trace, at[3])};
    if (!memory->name) pass->trace->nmemory--;
}

static void on_forget(struct pass *pass, const uint64_t *at, uint32_t b)
{
    if (weir__records_is_past(pass->records, at[1])) return;
    struct weir__trace_forget *forget = MORE(forgets);
    note(pass, forget);
    if (forget) *forget = (struct weir__trace_forget){b, ns(pass, at[1])};
}

static void tell_tasks(struct pass *pass, const uint64_t *at, unsigned kind, unsigned words, unsigned a, uint32_t b)
{
    switch (kind) {
    case WEIR__RECORD_OPEN:
        on_open(pass, at, at + words, a, b);
        break;
    case WEIR__RECORD_ISSUED:
        on_issued(pass, at, a);
        break;
    case WEIR__RECORD_HERE:
        on_here(pass, at, a);
        break;
    case WEIR__RECORD_RUN:
        on_run(pass, at, words, b);
        break;
    case WEIR__RECORD_STRETCH:
        on_stretch(pass, at, a, b);
        break;
    case WEIR__RECORD_DONE:
        on_done(pass, at, b);
        break;
    case WEIR__RECORD_WAIT:
        on_wait(pass, at, a, b);
        break;
    case WEIR__RECORD_FALLBACK:
        on_fallback(pass, at, a);
        break;
    case WEIR__RECORD_COPY:
        on_copy(pass, at, a, b);
        break;
    case WEIR__RECORD_LABEL:
        on_label(pass, at, a);
        break;
    case WEIR__RECORD_MEMORY:
        on_memory(pass, at);
        break;
    case WEIR__RECORD_FORGET:
        on_forget(pass, at, b);
        break;
    default:
        break;
    }
}

/* ---- passes ---- */

static uint32_t thread_index(const struct weir__trace *trace, uint32_t number)
{
    uint32_t i = 0;
    while (i < trace->nthreads && trace->threads[i].number != number) i++;
    return i < trace->nthreads ? i : 0;
}

static void walk(struct pass *pass, int which)
{
    const struct weir__records *records = pass->records;
    for (size_t p = 0; p < records->npieces && !pass->rc; p++) {
        const struct weir__piece *piece = &records->pieces[p];
        if (p == 0 || records->pieces[p - 1].slot != piece->slot) pass->thread = 0, pass->task = WEIR__NONE;
        for (uint64_t i = 0; i < piece->used && !pass->rc;) {
            const uint64_t *at = piece->words + i;
            unsigned kind = at[0] & 0xff, words = at[0] >> 8 & 0xff, a = at[0] >> 16 & 0xffff;
            uint32_t b = (uint32_t)(at[0] >> 32);
            if (!words || words > piece->used - i || kind >= WEIR__RECORD_KINDS) break; /* damaged: the rest is lost */
            if (which != 0 && kind == WEIR__RECORD_THREAD) pass->thread = thread_index(pass->trace, b);
            if (which == 0)
                name_things(pass, at, kind, a, b);
            else if (which == 1)
                make_tasks(pass, at, kind, words, a, b);
            else
                tell_tasks(pass, at, kind, words, a, b);
            i += words;
        }
    }
}

static int by_address(const void *a, const void *b)
{
    const struct weir__trace_memory *x = a, *y = b;
    if (x->address != y->address) return x->address < y->address ? -1 : 1;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

/* By address; of several names of one range the newest stays. */
static void sort_memory(struct weir__trace *trace)
{
    size_t n = 0;
    if (trace->nmemory) qsort(trace->memory, trace->nmemory, sizeof *trace->memory, by_address);
    for (size_t i = 0; i < trace->nmemory; i++) {
        const struct weir__trace_memory *memory = &trace->memory[i];
        if (n && trace->memory[n - 1].address == memory->address && trace->memory[n - 1].bytes == memory->bytes) n--;
        trace->memory[n++] = *memory;
    }
    trace->nmemory = n;
}

/* Tasks with the same token are parts of the one that is in the table of accesses. */
static void join_parts(struct pass *pass)
{
    struct weir__trace *trace = pass->trace;
    for (uint32_t i = 0; i < trace->ntasks; i++) {
        const struct weir__trace_task *task = &trace->tasks[i];
        if (task->token && task->kind == WEIR__TRACE_EXTERNAL)
            note(pass, weir__map_put(&trace->index->tokens, task->token, i));
    }
    for (uint32_t i = 0; i < trace->ntasks; i++) {
        struct weir__trace_task *task = &trace->tasks[i];
        uint32_t whole = task->token ? weir__map_get(&trace->index->tokens, task->token, WEIR__NONE) : WEIR__NONE;
        if (whole == WEIR__NONE || whole == i) continue;
        task->whole = whole;
        struct weir__trace_task *of = &trace->tasks[whole];
        if (task->kind == WEIR__TRACE_BEGIN) of->stream = task->stream, of->device = task->device;
        if (task->name) of->name = task->name;
        if (task->file) of->file = task->file, of->line = task->line;
        of->copied += task->copied;
        of->ncopies += task->ncopies;
    }
}

int weir__trace_collect(struct weir__trace *trace, const struct weir__records *records)
{
    struct pass pass = {.trace = trace, .records = records};
    trace->last = WEIR__NONE;
    if (!(trace->index = calloc(1, sizeof *trace->index))) return WEIR_E_NO_MEMORY;
    walk(&pass, 0);
    if (!trace->nthreads) note(&pass, WEIR__MORE(trace, threads));
    walk(&pass, 1);
    if (trace->ntasks) qsort(trace->tasks, trace->ntasks, sizeof *trace->tasks, by_time);
    for (uint32_t i = 0; i < trace->ntasks && !pass.rc; i++)
        note(&pass, weir__map_put(&trace->index->ids, trace->tasks[i].id, i));
    walk(&pass, 2);
    for (size_t p = 0; p < records->npieces && !pass.rc; p++) {
        struct weir__trace_task *task = records->pieces[p].running ? task_of(&pass, records->pieces[p].running) : NULL;
        if (task && task->status == WEIR__NODE_WAITING) task->status = WEIR__NODE_RUNNING;
    }
    sort_memory(trace);
    if (!pass.rc) join_parts(&pass);
    return pass.rc;
}

void weir__trace_free(struct weir__trace *trace)
{
    if (!trace) return;
    for (size_t i = 0; i < trace->ntexts; i++) free(trace->texts[i].text);
    if (trace->index) {
        struct weir__map *maps[] = {&trace->index->ids,     &trace->index->points, &trace->index->texts,
                                    &trace->index->streams, &trace->index->scopes, &trace->index->tokens};
        for (size_t i = 0; i < sizeof maps / sizeof maps[0]; i++) free(maps[i]->slots);
    }
    void *lists[] = {trace->turns,  trace->members, trace->tasks,     trace->edges,     trace->accesses,
                     trace->points, trace->runs,    trace->stretches, trace->scopes,    trace->streams,
                     trace->marks,  trace->threads, trace->waits,     trace->fallbacks, trace->copies,
                     trace->memory, trace->forgets, trace->texts,     trace->index};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) free(lists[i]);
    free(trace);
}

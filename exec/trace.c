/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <exec/trace.h>

#include <exec/submit.h>

#define AT_ONCE 60 /* accesses or points of one record */

_Static_assert(WEIR__POINT_BITS == WEIR__RECORD_POINT_BITS, "points are recorded as they are");
_Static_assert((int)WEIR__RECORD_DIRECT == WEIR__WAY_DIRECT && (int)WEIR__RECORD_STAGED == WEIR__WAY_STAGED &&
                   (int)WEIR__RECORD_BOUNCED == WEIR__WAY_BOUNCED,
               "ways of copies are recorded as they are");

static inline void words(uint64_t *at, const uint64_t *from, unsigned n)
{
    for (unsigned i = 0; i < n; i++) at[i] = from[i];
}

/* A record with no array; inlined where its length is known. */
static inline void put(enum weir__record_kind kind, unsigned a, uint32_t b, const uint64_t *from, unsigned n)
{
    uint64_t *at = weir__record_claim(1 + n);
    if (!at) return;
    weir__record_head(at, kind, 1 + n, a, b);
    words(at + 1, from, n);
    weir__record_commit(1 + n);
}

#define PUT(kind, a, b, ...)                                                                                           \
    put(kind, a, b, (const uint64_t[]){__VA_ARGS__}, sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

/* ---- tasks ---- */

static unsigned kind_of(const struct weir_task *task)
{
    switch (task->node.kind) {
    case WEIR__TASK_HOST:
        return WEIR__TRACE_HOST;
    case WEIR__TASK_EXTERNAL:
        return WEIR__TRACE_EXTERNAL;
    case WEIR__TASK_EMPTY:
        return WEIR__TRACE_EMPTY;
    case WEIR__TASK_ISSUE:
        return WEIR__TRACE_DEVICE;
    case WEIR__TASK_BEGIN:
        return WEIR__TRACE_BEGIN;
    case WEIR__TASK_FENCE:
        return WEIR__TRACE_FENCE;
    case WEIR__TASK_IMPORT:
        return WEIR__TRACE_IMPORT;
    default:
        return WEIR__TRACE_FOREIGN;
    }
}

static void put_accesses(uint64_t *at, const struct weir_access *accesses, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct weir_access *access = &accesses[i];
        *at++ = access->kind == WEIR_ACCESS_AFTER ? ((const struct weir_task *)access->address)->node.id
                                                  : (uint64_t)(uintptr_t)access->address;
        *at++ = (uint64_t)access->bytes << 4 | access->kind;
    }
}

static void note_scope(struct weir_scope *scope)
{
    scope->traced = true;
    PUT(WEIR__RECORD_SCOPE, scope->context->number, scope->number, scope->depend.ranges != NULL);
}

/* Of a task that another one stands for in the table: its routine, and the device work that this begins. */
static bool can_be_part(const struct weir_task *task, size_t n, bool peek)
{
    return peek || task->node.kind == WEIR__TASK_EXTERNAL || (task->node.kind == WEIR__TASK_BEGIN && n == 0);
}

void weir__trace_made(struct weir_scope *scope, struct weir_task *task, const struct weir_access *accesses, size_t n,
                      const struct weir_task_options *options, bool peek)
{
    uint64_t name = options ? weir__record_text(options->name) : 0;
    uint64_t token = weir__record_writer && can_be_part(task, n, peek) ? weir__record_writer->token : 0;
    unsigned what = kind_of(task) | (peek ? WEIR__RECORD_TASK_PEEK : 0u) | (unsigned)task->device << 8;
    size_t first = n < AT_ONCE ? n : AT_ONCE;
    unsigned size = 3 + (name ? 2u : 1u) + (token ? 1u : 0u) + 2 * (unsigned)first;
    uint64_t file = name ? weir__record_text(options->file) : 0;
    if (task->node.kind != WEIR__TASK_HOST) weir__task_set(task, WEIR__TASK_TRACED);
    if (!scope->traced) note_scope(scope);
    uint64_t *at = weir__record_claim(size), *next = at + 3;
    if (!at) return;
    at[1] = task->node.id;
    at[2] = weir__record_now();
    if (name) {
        what |= WEIR__RECORD_TASK_NAME;
        *next++ = name << 32 | file;
        *next++ = options->line;
    } else {
        *next++ = task->node.function;
    }
    if (token) {
        what |= WEIR__RECORD_TASK_TOKEN;
        *next++ = token;
    }
    put_accesses(next, accesses, first);
    weir__record_head(at, WEIR__RECORD_TASK, size, what, scope->number);
    weir__record_commit(size);
    for (size_t i = first; i < n; i += AT_ONCE) {
        size_t m = n - i < AT_ONCE ? n - i : AT_ONCE;
        size = 1 + 2 * (unsigned)m;
        if (!(at = weir__record_claim(size))) return;
        weir__record_head(at, WEIR__RECORD_ACCESSES, size, 0, scope->number);
        put_accesses(at + 1, accesses + i, m);
        weir__record_commit(size);
    }
}

static inline void put_run(const struct weir_task *task, uint64_t began)
{
    uint64_t took = weir__record_now() - began;
    if (took <= UINT32_MAX)
        PUT(WEIR__RECORD_RUN, 0, (uint32_t)took, task->node.id, began);
    else
        PUT(WEIR__RECORD_RUN, 0, 0, task->node.id, began, began + took);
}

int weir__trace_run(struct weir_task *task)
{
    uint64_t outer = weir__record_running(task->node.id), began = weir__record_now();
    int status = ((weir_host_function)task->node.function)((void *)task->arg);
    put_run(task, began);
    weir__record_running(outer);
    return status;
}

void weir__trace_end(const struct weir_task *task, int status)
{
    /* The end of a host task's run says the same. */
    if (!weir__record_is_on() || (task->node.kind == WEIR__TASK_HOST && status == WEIR_OK)) return;
    PUT(WEIR__RECORD_DONE, 0, (uint32_t)status, task->node.id, weir__record_now(),
        status == WEIR_E_PREDECESSOR ? weir__task_root(task) : task->node.id);
}

void weir__trace_forget(const struct weir_scope *scope)
{
    PUT(WEIR__RECORD_FORGET, 0, scope->number, weir__record_now());
}

/* ---- device tasks ---- */

static void note_stream(struct weir__stream *stream)
{
    const struct weir_device *device = stream->device;
    stream->traced = weir__record_round();
    PUT(WEIR__RECORD_STREAM, device->context->number, stream->id, device->number | (uint64_t)device->domain << 32,
        weir__record_text(device->info.name), stream->recorded);
}

/* The k-th point of the node's slots and extras; 0 behind the last. Calls go up. */
struct cursor {
    const struct weir__node *node;
    unsigned slot;
    uintptr_t extra;
};

static uint64_t point_next(struct cursor *cursor)
{
    while (cursor->slot < cursor->node->nslots) {
        uint64_t point = cursor->node->slot[cursor->slot++];
        if (point) return point;
    }
    while (cursor->extra) {
        const struct weir__extra *extra = weir__extra_of(cursor->extra);
        unsigned kind = cursor->extra & 7;
        cursor->extra = extra->next;
        if ((kind == WEIR__EXTRA_EDGE || kind == WEIR__EXTRA_ORDER) && extra->link) return extra->link;
    }
    return 0;
}

static struct cursor cursor_of(const struct weir_task *task)
{
    return (struct cursor){&task->node, 0, (uintptr_t)task->node.extra};
}

/* How many of the task's points on one stream are not older than @position. */
static uint64_t newer_points(const struct weir_task *task, uint32_t stream, uint64_t position)
{
    struct cursor cursor = cursor_of(task);
    uint64_t n = 0;
    for (uint64_t point; (point = point_next(&cursor));)
        n += weir__point_stream(point) == stream && weir__point_position(point) >= position;
    return n;
}

/* Of the points on its stream the candidate stands for the newest, as many as it has edges; the others had been
 * reached. Position of the oldest that it stands for. Most often it stands for all; else a search finds it that needs
 * no memory. */
static uint64_t oldest_of(const struct weir_task *task, const struct weir__clock_candidate *candidate)
{
    uint64_t low = 0, high = candidate->position;
    if (newer_points(task, candidate->stream, 0) <= candidate->edges) return 0;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (newer_points(task, candidate->stream, middle) <= candidate->edges)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static uint64_t how_of(const struct weir__clock_candidate *candidates, const struct weir__clock_candidate *by)
{
    switch (by->verdict) {
    case WEIR__CLOCK_NEEDED:
        return (uint64_t)WEIR__HOW_EVENT << 60 | weir__point_pack(by->stream, by->position);
    case WEIR__CLOCK_KNOWN:
        return (uint64_t)WEIR__HOW_KNOWN << 60;
    case WEIR__CLOCK_IMPLIED:
        by = &candidates[by->by];
        return (uint64_t)WEIR__HOW_IMPLIED << 60 | weir__point_pack(by->stream, by->position);
    default:
        return (uint64_t)WEIR__HOW_STREAM << 60;
    }
}

void weir__trace_opening(void)
{
    if (weir__record_writer) weir__record_writer->began = weir__record_now();
}

/* An OPEN record that grows until it is full: then another one follows. */
struct opening {
    const struct weir_task *task;
    const struct weir__stream *stream;
    uint64_t began;
    bool early;
    unsigned n; /* words in .pairs */
    uint64_t pairs[2 * AT_ONCE];
};

static void put_opening(struct opening *opening)
{
    unsigned n = opening->n;
    uint64_t *at = weir__record_claim(3 + n);
    opening->n = 0;
    if (!at) return;
    weir__record_head(at, WEIR__RECORD_OPEN, 3 + n, opening->stream->device->context->number,
                      opening->stream->id | (opening->early ? WEIR__RECORD_EARLY : 0));
    at[1] = opening->task->node.id;
    at[2] = opening->began;
    words(at + 3, opening->pairs, n);
    weir__record_commit(3 + n);
}

/* The points that the candidate stands for. */
static void add_points(struct opening *opening, const struct weir__clock_candidate *candidate, uint64_t how)
{
    struct cursor cursor = cursor_of(opening->task);
    uint64_t oldest = oldest_of(opening->task, candidate);
    for (uint64_t point; (point = point_next(&cursor));) {
        if (weir__point_stream(point) != candidate->stream || weir__point_position(point) < oldest) continue;
        if (opening->n == 2 * AT_ONCE) put_opening(opening);
        opening->pairs[opening->n++] = point;
        opening->pairs[opening->n++] = how;
    }
}

void weir__trace_open(const struct weir_task *task, const struct weir__stream *stream,
                      const struct weir__clock_candidate *candidates, uint64_t edges, bool early)
{
    struct opening opening; /* .pairs are written as far as they are needed */
    opening.task = task;
    opening.stream = stream;
    opening.early = early;
    opening.n = 0;
    opening.began = weir__record_writer ? weir__record_writer->began : 0;
    if (!opening.began) opening.began = weir__record_now();
    if (weir__record_writer) weir__record_writer->began = 0;
    if (stream->traced != weir__record_round()) note_stream((struct weir__stream *)stream); /* the lessee's own */
    for (const struct weir__clock_candidate *candidate = candidates; edges != 0; edges -= candidate++->edges)
        add_points(&opening, candidate, how_of(candidates, candidate));
    put_opening(&opening);
}

void weir__trace_issued(const struct weir_task *task, const struct weir__stream *stream, uint64_t position)
{
    PUT(WEIR__RECORD_ISSUED, stream->device->context->number, 0, task->node.id, weir__record_now(),
        weir__point_pack(stream->id, position));
}

void weir__trace_here(const struct weir__stream *stream, uint64_t position)
{
    PUT(WEIR__RECORD_HERE, stream->device->context->number, 0, weir__point_pack(stream->id, position));
}

void weir__trace_stretch(void *owner, uint64_t position, uint64_t begin, uint64_t end)
{
    const struct weir__stream *stream = owner;
    PUT(WEIR__RECORD_STRETCH, stream->device->context->number, stream->id, position, begin, end);
}

uint64_t weir__trace_clock(void)
{
    return weir__record_now();
}

void weir__trace_copy(const struct weir_task *task, unsigned kind, unsigned way, size_t bytes)
{
    PUT(WEIR__RECORD_COPY, kind, way, task->node.id, weir__record_now(), bytes);
}

/* ---- the rest ---- */

void weir__trace_waited(uint64_t began, enum weir__record_wait why, const struct weir_scope *scope, uint64_t task,
                        const char *place, const void *caller)
{
    PUT(WEIR__RECORD_WAIT, why, scope ? scope->number : 0, task, began, weir__record_now(), weir__record_text(place),
        (uint64_t)(uintptr_t)caller);
}

void weir__trace_fallback(enum weir__record_fallback why, const struct weir_task *task, const char *place)
{
    PUT(WEIR__RECORD_FALLBACK, why, 0, task ? task->node.id : 0, weir__record_now(), weir__record_text(place));
}

void weir__trace_ran(const struct weir_task *task, uint64_t began)
{
    put_run(task, began);
}

void weir__trace_interop(const struct weir_task *task, const char *place)
{
    PUT(WEIR__RECORD_LABEL, 1, 0, task->node.id, (uint64_t)weir__record_text("interop") << 32 | weir__record_text(place));
}

void weir__trace_label(const struct weir_task *task, const char *name, const char *place)
{
    PUT(WEIR__RECORD_LABEL, 0, 0, task->node.id, (uint64_t)weir__record_text(name) << 32 | weir__record_text(place));
}

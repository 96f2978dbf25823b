/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/*
 * Two vectors per change of what a stream is behind. .all holds everything that is true and decides whether edges are
 * covered. .told leaves out what blind waits imply: nobody could know that when deciding, so it does not make a later
 * wait needless.
 */

#include <graph/check.h>

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* From @position on the stream is behind these: vectors of @width entries each. */
struct past {
    struct past *before;
    uint64_t position;
    uint64_t *told;
    uint64_t all[]; /* and told behind it */
};

struct stream {
    struct past *newest;
    uint64_t position; /* of the newest record */
};

struct check {
    struct stream *streams;
    uint32_t width;
    const uint64_t *nothing; /* width zeros */
    size_t index;            /* record that is looked at */
    struct weir__check_fault *fault;
};

/* One record, with what was known before it. */
struct view {
    struct weir__certificate_record record;
    const uint64_t *all, *told;
};

static int bad(struct check *check, const struct view *view, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static int bad(struct check *check, const struct view *view, const char *format, ...)
{
    struct weir__check_fault *fault = check->fault;
    if (fault) {
        va_list list;
        fault->record = check->index;
        fault->task = view->record.task;
        int n =
            snprintf(fault->text, sizeof fault->text, "task %llu on %u:%llu: ", (unsigned long long)view->record.task,
                     view->record.stream, (unsigned long long)view->record.position);
        va_start(list, format);
        vsnprintf(fault->text + n, sizeof fault->text - (size_t)n, format, list);
        va_end(list);
    }
    return WEIR_E_INVALID;
}

/* What the point is behind, its own entry left out; NULL: nothing. */
static const struct past *past_of(const struct check *check, uint32_t stream, uint64_t position)
{
    const struct past *past = check->streams[stream].newest;
    while (past && past->position > position) past = past->before;
    return past;
}

/* Is the awaited point at or behind (stream, position)? */
static bool wait_covers(const struct check *check, const struct weir__certificate_wait *wait, uint32_t stream,
                        uint64_t position, bool as_told)
{
    if (wait->stream == stream) return wait->position >= position;
    const struct past *past = as_told && wait->blind ? NULL : past_of(check, wait->stream, wait->position);
    return past && (as_told ? past->told : past->all)[stream] >= position;
}

static int check_position(struct check *check, const struct view *view)
{
    const struct weir__certificate_record *record = &view->record;
    struct stream *stream = &check->streams[record->stream];
    if (record->position < stream->position || (record->position == stream->position && !record->again))
        return bad(check, view, "the stream was at %llu already", (unsigned long long)stream->position);
    stream->position = record->position;
    return WEIR_OK;
}

static bool realises_an_edge(const struct weir__certificate_record *record, size_t wait)
{
    for (size_t i = 0; i < record->nedges; i++)
        if (record->edges[i].how == WEIR__CERTIFICATE_EVENT && record->edges[i].wait == wait) return true;
    return false;
}

static int check_wait(struct check *check, const struct view *view, size_t index)
{
    const struct weir__certificate_record *record = &view->record;
    const struct weir__certificate_wait *wait = &record->waits[index];
    unsigned long long position = wait->position;
    if (wait->stream == record->stream)
        return bad(check, view, "wait %zu for %u:%llu is for the own stream", index, wait->stream, position);
    if (view->told[wait->stream] >= wait->position)
        return bad(check, view, "wait %zu for %u:%llu is needless: the stream is behind %u:%llu", index, wait->stream,
                   position, wait->stream, (unsigned long long)view->told[wait->stream]);
    for (size_t j = 0; j < record->nwaits; j++)
        if (j != index && wait_covers(check, &record->waits[j], wait->stream, wait->position, true))
            return bad(check, view, "wait %zu for %u:%llu is needless: wait %zu implies it", index, wait->stream,
                       position, j);
    if (!realises_an_edge(record, index))
        return bad(check, view, "wait %zu for %u:%llu is needless: no edge is realised by it", index, wait->stream,
                   position);
    return WEIR_OK;
}

/* NULL if the edge is realised as it says, else what is wrong. */
static const char *edge_fault(const struct check *check, const struct view *view,
                              const struct weir__certificate_edge *edge)
{
    const struct weir__certificate_record *record = &view->record;
    switch (edge->how) {
    case WEIR__CERTIFICATE_DONE:
    case WEIR__CERTIFICATE_HOST:
        return NULL;
    case WEIR__CERTIFICATE_STREAM:
        if (edge->stream != record->stream) return "it is another stream";
        return edge->position < record->position ? NULL : "the position is not before the task's";
    case WEIR__CERTIFICATE_KNOWN:
        if (edge->stream == record->stream) return "it is the same stream";
        return view->all[edge->stream] >= edge->position ? NULL : "the stream was not behind it";
    case WEIR__CERTIFICATE_IMPLIED:
        if (edge->wait >= record->nwaits) return "there is no such wait";
        return wait_covers(check, &record->waits[edge->wait], edge->stream, edge->position, false)
                   ? NULL
                   : "the wait does not imply it";
    case WEIR__CERTIFICATE_EVENT:
        if (edge->wait >= record->nwaits) return "there is no such wait";
        if (record->waits[edge->wait].stream != edge->stream) return "the wait is for another stream";
        return record->waits[edge->wait].position >= edge->position ? NULL : "the wait is for an older position";
    default:
        return "no way to realise an edge";
    }
}

static void raise_to(uint64_t *vector, const uint64_t *other, uint32_t width)
{
    for (uint32_t s = 0; s < width; s++)
        if (vector[s] < other[s]) vector[s] = other[s];
}

/* The stream's next work is behind the record's waits. */
static int add_waits(struct check *check, const struct view *view)
{
    const struct weir__certificate_record *record = &view->record;
    uint32_t width = check->width;
    if (!record->nwaits) return WEIR_OK;
    struct past *past = malloc(sizeof *past + 2 * (size_t)width * sizeof past->all[0]);
    if (!past) return WEIR_E_NO_MEMORY;
    past->told = past->all + width;
    memcpy(past->all, view->all, width * sizeof past->all[0]);
    memcpy(past->told, view->told, width * sizeof past->told[0]);
    for (size_t i = 0; i < record->nwaits; i++) {
        const struct weir__certificate_wait *wait = &record->waits[i];
        const struct past *other = past_of(check, wait->stream, wait->position);
        if (other) raise_to(past->all, other->all, width);
        if (other && !wait->blind) raise_to(past->told, other->told, width);
        if (past->all[wait->stream] < wait->position) past->all[wait->stream] = wait->position;
        if (past->told[wait->stream] < wait->position) past->told[wait->stream] = wait->position;
    }
    past->position = record->position;
    past->before = check->streams[record->stream].newest;
    check->streams[record->stream].newest = past;
    return WEIR_OK;
}

static int check_record(struct check *check, const struct weir__certificate_record *record)
{
    const struct past *past = check->streams[record->stream].newest;
    struct view view = {*record, past ? past->all : check->nothing, past ? past->told : check->nothing};
    int r = check_position(check, &view);
    for (size_t i = 0; !r && i < record->nwaits; i++) r = check_wait(check, &view, i);
    for (size_t i = 0; !r && i < record->nedges; i++) {
        const struct weir__certificate_edge *edge = &record->edges[i];
        const char *fault = edge_fault(check, &view, edge);
        if (fault)
            r = bad(check, &view, "edge %zu (from %u:%llu, %s): %s", i, edge->stream,
                    (unsigned long long)edge->position, weir__certificate_how_name(edge->how), fault);
    }
    return r ? r : add_waits(check, &view);
}

static uint32_t width_of(const struct weir__certificate *certificate)
{
    uint32_t newest = 0;
    for (size_t n = 0; n < weir__certificate_count(certificate); n++) {
        struct weir__certificate_record record = weir__certificate_get(certificate, n);
        if (record.stream > newest) newest = record.stream;
        for (size_t i = 0; i < record.nedges; i++)
            if (record.edges[i].stream > newest) newest = record.edges[i].stream;
        for (size_t i = 0; i < record.nwaits; i++)
            if (record.waits[i].stream > newest) newest = record.waits[i].stream;
    }
    return newest + 1;
}

int weir__certificate_check(const struct weir__certificate *certificate, struct weir__check_fault *fault_out)
{
    struct check check = {.width = width_of(certificate), .fault = fault_out};
    uint64_t *nothing = calloc(check.width, sizeof *nothing);
    int r = WEIR_OK;
    check.nothing = nothing;
    check.streams = calloc(check.width, sizeof *check.streams);
    if (!nothing || !check.streams) r = WEIR_E_NO_MEMORY;
    for (; !r && check.index < weir__certificate_count(certificate); check.index++) {
        struct weir__certificate_record record = weir__certificate_get(certificate, check.index);
        r = check_record(&check, &record);
    }
    for (uint32_t s = 0; check.streams && s < check.width; s++)
        while (check.streams[s].newest) {
            struct past *past = check.streams[s].newest;
            check.streams[s].newest = past->before;
            free(past);
        }
    free(check.streams);
    free(nothing);
    return r;
}

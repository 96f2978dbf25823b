/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <exec/issue.h>

#include <stdlib.h>
#include <string.h>

#include <exec/certify.h>
#include <exec/submit.h>
#include <exec/trace.h>
#include <exec/work.h>

#define FEW 16 /* predecessors on other streams that need no heap */
#define LOOKED_AT 4 /* streams whose queues are compared */
#define CLOCK_CHANGES 128 /* that a stream remembers, so many vectors of 8 bytes a stream */
#define BURST 64 /* device tasks that a thread issues without a wait before it runs short ones itself */

/* A task's predecessor points that are not reached, at most one a stream. */
struct points {
    struct weir__clock_candidate *candidate;
    size_t                        n, edges, capacity;
    uint64_t                      done; /* edges that turned out to be reached */
    struct weir__clock_candidate  few[FEW];
};

/* What became of the edges. */
struct decision {
    uint64_t edges, done, stream, implied, event, waits;
};

static __attribute__((noinline)) int points_grow(struct points *points)
{
    struct weir__clock_candidate *more = malloc(2 * points->capacity * sizeof *more);

    if (more == NULL) return weir__fail(WEIR_E_NO_MEMORY, "no memory for %zu predecessors", points->n);
    memcpy(more, points->candidate, points->n * sizeof *more);
    if (points->candidate != points->few) free(points->candidate);
    points->candidate = more;
    points->capacity *= 2;
    return WEIR_OK;
}

static inline int points_add(struct weir_context *context, struct points *points, uint64_t point)
{
    uint32_t stream = weir__point_stream(point);
    uint64_t position = weir__point_position(point);

    if (point == 0) return WEIR_OK;
    points->edges++;
    if (weir__stream_reached(context->streams[stream], position)) {
        points->done++;
        return WEIR_OK;
    }
    for (size_t i = 0; i < points->n; i++) {
        struct weir__clock_candidate *candidate = &points->candidate[i];

        if (candidate->stream != stream) continue;
        if (candidate->position < position) candidate->position = position;
        candidate->edges++;
        return WEIR_OK;
    }
    if (__builtin_expect(points->n == points->capacity, 0) && points_grow(points) != WEIR_OK) return WEIR_E_NO_MEMORY;
    points->candidate[points->n++] = (struct weir__clock_candidate){.stream = stream, .position = position, .edges = 1};
    return WEIR_OK;
}

static int points_collect(struct weir_context *context, const struct weir__node *node, struct points *points)
{
    int rc = WEIR_OK;

    points->candidate = points->few;
    points->capacity = FEW;
    points->n = points->edges = 0;
    points->done = 0;
    for (unsigned i = 0; i < node->nslots && rc == WEIR_OK; i++) rc = points_add(context, points, node->slot[i]);
    for (uintptr_t e = (uintptr_t)node->extra; e != 0 && rc == WEIR_OK; e = weir__extra_of(e)->next) {
        if ((e & 7) == WEIR__EXTRA_EDGE || (e & 7) == WEIR__EXTRA_ORDER) rc = points_add(context, points, weir__extra_of(e)->link);
    }
    return rc;
}

static void points_fini(struct points *points)
{
    if (points->candidate != points->few) free(points->candidate);
}

size_t weir__task_pending(const struct weir_task *task, struct weir__point *out, size_t most)
{
    struct points points;
    size_t        n;

    if (task == NULL || points_collect(task->pool->context, &task->node, &points) != WEIR_OK) return 0;
    for (n = 0; n < points.n && n < most; n++) {
        out[n].value = weir__point_pack(points.candidate[n].stream, points.candidate[n].position);
    }
    n = points.n;
    points_fini(&points);
    return n;
}

/* How much is queued; a hint, for a stream that somebody else may be queuing on. */
static inline uint64_t length_of(struct weir__stream *stream)
{
    uint64_t issued = atomic_load_explicit(&stream->issued, memory_order_relaxed), reached;

    /* Acquire: as in weir__stream_reached(). */
    if (atomic_load_explicit(&stream->seen, memory_order_acquire) >= issued) return 0;
    reached = weir__stream_look(stream);
    return reached < issued ? issued - reached : 0;
}

/* Lease the stream of the newest predecessor that is its tail. NULL: none. */
static inline struct weir__stream *tail_stream(struct weir_device *device, const struct points *points)
{
    for (size_t i = points->n; i-- > 0;) {
        struct weir__stream *stream = device->context->streams[points->candidate[i].stream];

        if (stream->device != device || atomic_load_explicit(&stream->issued, memory_order_relaxed) != points->candidate[i].position ||
            !weir__stream_try_lease(stream)) {
            continue;
        }
        if (stream->recorded == points->candidate[i].position) return stream;
        weir__stream_unlease(stream);
    }
    return NULL;
}

/* A stream with a queue, when there is no other. */
struct shortest {
    uint32_t index; /* UINT32_MAX: none */
    uint64_t length;
};

/*
 * Lease an idle stream, looking at that of the last choice first. NULL: none; then the one with the shortest queue among the
 * next few that nobody had leased is in *best. When all had work the next few choices look at few: looking at a stream
 * fetches a line from the thread that runs it, and where tasks are short there is one to fetch each time.
 */
static inline struct weir__stream *idle_stream(struct weir_device *device, uint32_t n, struct shortest *best)
{
    /* Relaxed, all in here: hints. */
    uint32_t start = atomic_load_explicit(&device->last, memory_order_relaxed), index = start < n ? start : 0;
    uint32_t crowded = atomic_load_explicit(&device->crowded, memory_order_relaxed);
    uint32_t looks = crowded != 0 && n > LOOKED_AT ? LOOKED_AT + 1 : n;

    for (uint32_t i = 0; i < looks; i++, index = index + 1 < n ? index + 1 : 0) {
        struct weir__stream *stream = device->streams[index];
        uint64_t             length = length_of(stream);

        if (length == 0 && weir__stream_try_lease(stream)) {
            if (i != 0) atomic_store_explicit(&device->last, index, memory_order_relaxed);
            if (crowded != 0) atomic_store_explicit(&device->crowded, 0, memory_order_relaxed);
            return stream;
        }
        /* The last choice comes last. */
        if (i == 0 ? n > 1 : i > LOOKED_AT || length >= best->length) continue;
        if (atomic_load_explicit(&stream->leased, memory_order_relaxed)) continue;
        *best = (struct shortest){index, length};
    }
    atomic_store_explicit(&device->crowded, crowded != 0 ? crowded - 1 : n / 4, memory_order_relaxed);
    return NULL;
}

/* Behind a queue in any case: lease a predecessor's stream if that has no longer one, it saves a wait. NULL: none. */
static struct weir__stream *predecessor_stream(struct weir_device *device, const struct points *points, uint64_t most)
{
    for (size_t i = points->n; i-- > 0;) {
        struct weir__stream *stream = device->context->streams[points->candidate[i].stream];

        if (stream->device == device && length_of(stream) <= most && weir__stream_try_lease(stream)) return stream;
    }
    return NULL;
}

/* Any stream that can be had, those beyond the limit last. NULL: all are leased. */
static struct weir__stream *any_stream(struct weir_device *device, uint32_t n, uint32_t limit, uint32_t best)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t index = i < limit ? (best % limit + i) % limit : i;

        if (!weir__stream_try_lease(device->streams[index])) continue;
        atomic_store_explicit(&device->last, index, memory_order_relaxed); /* a hint */
        return device->streams[index];
    }
    return NULL;
}

/*
 * The stream of the predecessor that is its tail, else an idle one, else a new one up to the limit, else one with a short
 * queue. Only when all are leased is the limit exceeded: the caller never waits. A stream beyond it may share a hardware
 * queue with another one, whose work then holds up what it does not precede: it is taken only when all others are leased.
 * Streams that are lent for long are nobody's, and do not count.
 */
static int choose_stream(struct weir_device *device, const struct points *points, struct weir__stream **stream_out)
{
    /* Acquire: pairs with weir__stream_create(). */
    uint32_t n = atomic_load_explicit(&device->nstreams, memory_order_acquire);
    uint32_t limit = device->max_streams + atomic_load_explicit(&device->lent, memory_order_relaxed); /* a hint */
    uint32_t few = n < limit ? n : limit;
    struct shortest best = {UINT32_MAX, UINT64_MAX};

    if (points->n != 0 && (*stream_out = tail_stream(device, points)) != NULL) return WEIR_OK;
    if ((*stream_out = idle_stream(device, few, &best)) != NULL) return WEIR_OK;
    if (n >= limit) {
        if (points->n != 0 && (*stream_out = predecessor_stream(device, points, best.length)) != NULL) return WEIR_OK;
        if ((*stream_out = any_stream(device, n, limit, best.index)) != NULL) return WEIR_OK;
    }
    return weir__stream_create(device, stream_out);
}

static int queue_waits(struct weir__stream *stream, const struct points *points)
{
    struct weir_context *context = stream->device->context;
    void                *streams[FEW];
    uint64_t             positions[FEW];
    int                  rc = WEIR_OK;

    for (size_t i = 0; i < points->n && rc == WEIR_OK;) {
        size_t n = 0;

        for (; n < FEW && i < points->n; i++) {
            if (points->candidate[i].verdict != WEIR__CLOCK_NEEDED) continue;
            streams[n] = context->streams[points->candidate[i].stream]->handle;
            positions[n++] = points->candidate[i].position;
        }
        if (n != 0) rc = stream->ops->position_wait(stream->handle, streams, positions, n);
    }
    if (rc == WEIR_OK) return rc;
    return weir__fail(rc, "%s: no wait: %s", stream->device->info.name, stream->ops->last_error(stream->device->handle));
}

/* Put the candidates that need no thought behind the others: same stream, or known to it. */
static void drop_covered(struct weir__stream *stream, struct points *points, struct decision *decision)
{
    size_t n = points->n;

    for (size_t i = 0; i < n;) {
        struct weir__clock_candidate candidate = points->candidate[i];

        if (candidate.stream == stream->id) {
            candidate.verdict = WEIR__VERDICT_STREAM;
            decision->stream += candidate.edges;
        } else if (weir__clock_covers(&stream->clock, candidate.stream, candidate.position)) {
            candidate.verdict = WEIR__CLOCK_KNOWN;
            decision->implied += candidate.edges;
        } else {
            i++;
            continue;
        }
        points->candidate[i] = points->candidate[--n];
        points->candidate[n] = candidate;
    }
    points->n = n;
}

/* The lessee alone changes the clock, so that it reads it without the lock. What is complete is forgotten before the log
 * grows, and what is long ago where nothing completes: who still waits for that seldom waits for what was before it. */
static int make_clock_room(struct weir__stream *stream, uint32_t width, size_t changes)
{
    int rc;

    if (weir__clock_has_room(&stream->clock, width, changes)) return WEIR_OK;
    weir__spin_lock(&stream->clock_lock);
    weir__clock_forget(&stream->clock, atomic_load_explicit(&stream->retired, memory_order_relaxed)); /* a hint */
    weir__clock_shorten(&stream->clock, changes < CLOCK_CHANGES ? CLOCK_CHANGES - (uint32_t)changes : 1);
    rc = weir__clock_reserve(&stream->clock, width, changes);
    weir__spin_unlock(&stream->clock_lock);
    return rc == WEIR_OK ? rc : weir__fail(rc, "no memory for a clock");
}

/* Choose the maximal ones, queue the waits, and only then let the stream's clock know. vectors[n * width] is scratch. */
static int decide_waits(struct weir__stream *stream, struct points *points, struct decision *decision, uint64_t *vectors,
                        uint32_t width)
{
    struct weir_context *context = stream->device->context;
    uint64_t            *all = NULL; /* what all of the waits are for */
    int                  rc;

    if (make_clock_room(stream, width, points->n) != WEIR_OK) return WEIR_E_NO_MEMORY;
    for (size_t i = 0; i < points->n; i++) {
        struct weir__stream *other = context->streams[points->candidate[i].stream];

        weir__spin_lock(&other->clock_lock);
        weir__clock_snapshot(&other->clock, points->candidate[i].position, vectors + i * width, width);
        weir__spin_unlock(&other->clock_lock);
    }
    decision->waits = weir__clock_select(&stream->clock, points->candidate, points->n, vectors, width);
    if ((rc = queue_waits(stream, points)) != WEIR_OK) return rc;
    for (size_t i = 0; i < points->n; i++) {
        if (points->candidate[i].verdict != WEIR__CLOCK_NEEDED) {
            decision->implied += points->candidate[i].edges;
            continue;
        }
        decision->event += points->candidate[i].edges;
        if (all != NULL) weir__clock_merge(all, vectors + i * width, width);
        else all = vectors + i * width;
    }
    if (all == NULL) return WEIR_OK;
    weir__spin_lock(&stream->clock_lock);
    (void)weir__clock_wait(&stream->clock, stream->recorded + 1, all, width); /* reserved */
    weir__spin_unlock(&stream->clock_lock);
    return WEIR_OK;
}

/*
 * How each edge is realised: reached already (not among the candidates), same stream, known to the stream, implied by
 * another wait, or a wait.
 */
static int edges_decide(struct weir__stream *stream, const struct weir_task *task, struct points *points,
                        struct decision *decision)
{
    uint32_t width = atomic_load_explicit(&stream->device->context->nstreams, memory_order_acquire); /* as above */
    uint64_t few[4 * 64], *vectors = few;
    size_t   all = points->n;
    int      rc;

    drop_covered(stream, points, decision);
    if (points->n == 0) {
        if (stream->device->context->certificate != NULL) weir__certify(stream, task, points->candidate, 0, all);
        return WEIR_OK;
    }
    if (points->n * width > sizeof few / sizeof few[0]) {
        vectors = malloc(points->n * width * sizeof vectors[0]);
        if (vectors == NULL) return weir__fail(WEIR_E_NO_MEMORY, "no memory for %zu clocks", points->n);
    }
    rc = decide_waits(stream, points, decision, vectors, width);
    if (rc == WEIR_OK && stream->device->context->certificate != NULL) weir__certify(stream, task, points->candidate, points->n, all);
    if (vectors != few) free(vectors);
    return rc;
}

int weir__issue_wait_point(struct weir__stream *stream, uint64_t point)
{
    struct weir__stream *other = stream->device->context->streams[weir__point_stream(point)];
    struct decision      decision = {0};
    struct points        points = {.candidate = points.few, .capacity = FEW};
    int                  rc = points_add(stream->device->context, &points, point);

    if (rc != WEIR_OK || points.n == 0) return rc;
    if (stream->device->domain != 0 && stream->device->domain == other->device->domain) {
        return edges_decide(stream, NULL, &points, &decision);
    }
    /* No events between the two: through the host. */
    return other->ops->sync(other->handle, weir__point_position(point));
}

static void count(struct weir_scope *scope, const struct decision *decision, bool own)
{
    if (own) {
        if (decision->edges == 0) return;
        scope->counters.edges += decision->edges;
        scope->counters.edges_done += decision->done;
        scope->counters.edges_stream += decision->stream;
        scope->counters.edges_implied += decision->implied;
        scope->counters.edges_event += decision->event;
        scope->counters.event_waits += decision->waits;
        return;
    }
    /* Relaxed: counters. */
    if (decision->done != 0) atomic_fetch_add_explicit(&scope->late_done, decision->done, memory_order_relaxed);
    if (decision->stream != 0) atomic_fetch_add_explicit(&scope->late_stream, decision->stream, memory_order_relaxed);
    if (decision->implied != 0) atomic_fetch_add_explicit(&scope->late_implied, decision->implied, memory_order_relaxed);
    if (decision->event != 0) atomic_fetch_add_explicit(&scope->late_event, decision->event, memory_order_relaxed);
    if (decision->waits != 0) atomic_fetch_add_explicit(&scope->late_waits, decision->waits, memory_order_relaxed);
}

static __attribute__((noinline)) void log_open(const struct weir_task *task, const struct weir__stream *stream)
{
    char name[96];

    weir__task_describe(task, name, sizeof name);
    weir__log(4, "%s: stream %u: %s", stream->device->info.name, stream->id, name);
}

int weir__issue_open(struct weir_task *task, bool own, bool early)
{
    struct weir_context *context = task->pool->context;
    struct weir_device  *device = context->devices[task->device];
    struct weir__stream *stream;
    struct decision      decision = {0};
    struct points        points;
    int                  rc;

    if (weir__record_is_on()) weir__trace_opening();
    rc = points_collect(context, &task->node, &points);
    if (rc == WEIR_OK) rc = choose_stream(device, &points, &stream);
    if (rc != WEIR_OK) {
        points_fini(&points);
        return rc;
    }
    decision.edges = points.edges;
    decision.done = points.done;
    rc = weir__stream_reserve(stream, 1);
    if (rc == WEIR_OK && stream->ops->reserve != NULL) rc = stream->ops->reserve(stream->handle);
    if (rc == WEIR_OK && (points.n != 0 || context->certificate != NULL)) rc = edges_decide(stream, task, &points, &decision);
    if (weir__record_is_on() && rc == WEIR_OK) weir__trace_open(task, stream, points.candidate, points.edges - points.done, early);
    points_fini(&points);
    if (rc != WEIR_OK) {
        weir__stream_unlease(stream);
        return rc;
    }
    count(task->pool->scope, &decision, own);
    if (!early) atomic_fetch_add_explicit(&task->pool->scope->late, 1, memory_order_relaxed); /* a counter */
    task->arg = (uintptr_t)stream;
    if (weir__log_is(4)) log_open(task, stream);
    atomic_store_explicit(&task->state, WEIR__TASK_OPEN, memory_order_relaxed); /* published with the handle */
    return WEIR_OK;
}

/*
 * The work could not be queued, or not all of it. What was queued may still use the task's memory, and a task with locks
 * must keep its place until its neighbour is done. So its point is recorded, and it is complete, failed, when that is
 * reached.
 */
static bool fail_in_place(struct weir_task *task, int status)
{
    struct weir__stream *stream = weir__task_stream_of(task);
    uint64_t             position;

    if (stream->ops->record(stream->handle, &position) != WEIR_OK) return false;
    stream->recorded = position;
    task->arg = (uintptr_t)(intptr_t)status;
    weir__task_set(task, WEIR__TASK_FAILED);
    if (weir__record_is_on()) weir__trace_issued(task, stream, position);
    weir__stream_enter(stream, position, task);
    if (stream->ops->flush != NULL) stream->ops->flush(stream->handle);
    weir__point_want(stream->device->context, weir__point_pack(stream->id, position));
    weir__stream_unlease(stream);
    return true;
}

/* It has not even a stream: wait for the neighbours here. Only without memory. */
static void wait_for_neighbours(struct weir_task *task)
{
    for (uintptr_t e = (uintptr_t)task->node.extra; e != 0; e = weir__extra_of(e)->next) {
        struct weir__point point = {weir__extra_of(e)->link};

        if ((e & 7) == WEIR__EXTRA_ORDER && weir__point_wait(task->pool->context, point) != WEIR_OK) {
            weir__log(2, "a neighbour's device failed");
        }
    }
}

void weir__issue_abandon(struct weir__runner *runner, struct weir_task *task, int status)
{
    struct weir__stream *stream = weir__task_stream_of(task);

    if (fail_in_place(task, status)) return;
    if (weir__task_flags(task) & WEIR__TASK_HAS_LOCKS) wait_for_neighbours(task);
    if (stream->ops->flush != NULL) stream->ops->flush(stream->handle); /* what was queued is harmless, but must run */
    weir__stream_unlease(stream);
    weir__runner_finish(runner, task, status);
}

static int record(struct weir__stream *stream, uint64_t *position_out)
{
    int rc = stream->ops->record(stream->handle, position_out);

    if (rc == WEIR_OK) {
        stream->recorded = *position_out;
        return rc;
    }
    return weir__fail(rc, "%s: no record: %s", stream->device->info.name, stream->ops->last_error(stream->device->handle));
}

/*
 * A kernel that waits for what its submitter does next has always been short if that is fast enough. To run one on the
 * submitter would be the end, so only a thread does it that has not waited for a long while.
 */
static _Thread_local unsigned issued_in_a_row __attribute__((tls_model("initial-exec")));

void weir__submitter_waits(void)
{
    issued_in_a_row = 0;
}

/* The task's point is recorded. @keep: the lease goes on. */
static void close_at(struct weir__runner *runner, struct weir_task *task, uint64_t position, bool flush, bool keep)
{
    struct weir__stream *stream = weir__task_stream_of(task);
    struct weir__pool   *pool = task->pool;
    struct weir_scope   *scope = pool->scope;
    bool                 late = runner != &scope->runner;
    uint64_t             point = weir__point_pack(stream->id, position);
    uintptr_t            successors;
    bool                 here = false, wanted, quiet = (weir__task_flags(task) & WEIR__TASK_QUIET) != 0;

    if (weir__record_is_on()) weir__trace_issued(task, stream, position);
    task->node.point = point;
    atomic_store_explicit(&task->state, WEIR__TASK_ENDED, memory_order_relaxed);
    /* From here on the task is issued. Its list is taken before the ring knows it: afterwards its memory may be gone. */
    successors = weir__node_take(&task->node.issued);
    /* Sequentially consistent against the push on .completed in weir__node_link(): whoever comes later than this asks for
     * the notice itself (weir__task_want()), and if it comes before the stream knows the task, the stream is behind. */
    wanted = atomic_load_explicit(&task->node.completed, memory_order_seq_cst) != 0 ||
             (!quiet && ((weir__task_flags(task) & WEIR__TASK_HAS_CALLBACK) != 0 || late));
    weir__stream_enter(stream, position, task);
    wanted |= weir__stream_is_behind(stream, position);
    if (!late) scope->recent[stream->id % 4] = point;
    if (quiet && !late && stream->ops->flush_here != NULL && ++issued_in_a_row > BURST) here = stream->ops->flush_here(stream->handle);
    else if (flush && stream->ops->flush != NULL) stream->ops->flush(stream->handle);
    if (!keep) weir__stream_unlease(stream);
    if (here) scope->counters.run_here++;
    if (here && weir__record_is_on()) weir__trace_here(stream, position);
    if (wanted) weir__stream_want(stream, position);
    else if (quiet && !(here && weir__stream_retire(stream, runner))) weir__stream_want_soon(stream, position);
    if (successors != 0) weir__runner_release(runner, successors, point, NULL);
    /* A submitter may wait for this in weir_task_begin(). Sequentially consistent: see wait.c. */
    if (late && atomic_load_explicit(&pool->waiters, memory_order_seq_cst) != 0) weir__pool_tell(pool);
}

int weir__issue_close(struct weir__runner *runner, struct weir_task *task, bool flush)
{
    uint64_t position;
    int      rc = record(weir__task_stream_of(task), &position);

    if (rc != WEIR_OK) {
        weir__issue_abandon(runner, task, rc);
        return rc;
    }
    close_at(runner, task, position, flush, false);
    return WEIR_OK;
}

int weir__issue_close_and_keep(struct weir__runner *runner, struct weir_task *task)
{
    struct weir__stream *stream = weir__task_stream_of(task);
    uint64_t             position;
    int                  rc = record(stream, &position);

    if (rc != WEIR_OK) return rc;
    /* If there is no memory for the next record now, there may be at its time; if not, it tells. */
    if (stream->ops->reserve != NULL && stream->ops->reserve(stream->handle) != WEIR_OK) {
        weir__log(2, "%s: no memory for the end of a task yet", stream->device->info.name);
    }
    close_at(runner, task, position, true, true);
    return WEIR_OK;
}

static int import_event(struct weir_task *task, void *event)
{
    struct weir__stream *stream = weir__task_stream_of(task);
    int                  rc = stream->ops->foreign_wait(stream->handle, event);

    if (rc == WEIR_OK) return rc;
    return weir__fail(rc, "%s: no wait for a foreign event: %s", stream->device->info.name,
                      stream->ops->last_error(stream->device->handle));
}

/* The library's own issue functions do without: a backend cannot know what is queued behind its back. */
static void *native_stream(const struct weir_task *task)
{
    struct weir__stream *stream = weir__task_stream_of(task);

    return weir__task_flags(task) & WEIR__TASK_QUIET ? NULL : stream->ops->stream_native(stream->handle);
}

void weir__issue(struct weir__runner *runner, struct weir_task *task, bool early)
{
    weir_issue_function function = (weir_issue_function)task->node.function;
    uintptr_t           arg = task->arg;
    int                 rc = weir__issue_open(task, runner == &task->pool->scope->runner, early);

    if (rc != WEIR_OK) {
        if (weir__task_flags(task) & WEIR__TASK_HAS_LOCKS) wait_for_neighbours(task);
        weir__runner_finish(runner, task, rc);
        return;
    }
    if (task->node.kind == WEIR__TASK_ISSUE) {
        rc = function(task, native_stream(task), (void *)arg);
        if (rc > 0 || rc == WEIR_E_PREDECESSOR) rc = WEIR_E_TASK; /* as in runner.c */
    } else if (task->node.kind == WEIR__TASK_IMPORT) {
        rc = import_event(task, (void *)arg);
    }
    if (rc != WEIR_OK) weir__issue_abandon(runner, task, rc);
    else (void)weir__issue_close(runner, task, true); /* a failure is the task's status */
}

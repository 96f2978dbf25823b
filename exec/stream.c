/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <exec/stream.h>

#include <stdlib.h>
#include <string.h>

#include <exec/scope.h>
#include <exec/submit.h>
#include <exec/trace.h>

#define SOON 64 /* at most as many positions between two notices, where none in particular is wanted */

#define FIRST_RING 64
#define MAX_FAILED 4096

int weir__stream_create(struct weir_device *device, struct weir__stream **stream_out)
{
    struct weir_context *context = device->context;
    struct weir__stream *stream = calloc(1, sizeof *stream);
    uint32_t             id, index;
    int                  rc = WEIR_E_NO_MEMORY;

    if (stream == NULL) return weir__fail(rc, "no memory for a stream of %s", device->info.name);
    stream->capacity = FIRST_RING;
    stream->ring = calloc(FIRST_RING, sizeof stream->ring[0]);
    if (stream->ring == NULL) {
        free(stream);
        return weir__fail(rc, "no memory for a stream of %s", device->info.name);
    }
    stream->device = device;
    stream->ops = device->ops;
    pthread_mutex_init(&stream->retiring, NULL);
    atomic_store_explicit(&stream->leased, true, memory_order_relaxed); /* the creator's */
    pthread_mutex_lock(&context->create_lock);
    /* Relaxed: both are written under create_lock only. */
    id = atomic_load_explicit(&context->nstreams, memory_order_relaxed);
    index = atomic_load_explicit(&device->nstreams, memory_order_relaxed);
    if (id + 1 < WEIR__MAX_STREAMS && index < sizeof device->streams / sizeof device->streams[0]) {
        rc = device->ops->stream_create(device->handle, stream, 0, &stream->handle);
        if (rc != WEIR_OK) weir__fail(rc, "%s: no stream: %s", device->info.name, device->ops->last_error(device->handle));
    } else {
        rc = weir__fail(WEIR_E_BUSY, "%s: %u streams are open", device->info.name, index);
    }
    if (rc == WEIR_OK) {
        stream->id = id;
        if (stream->ops->counter != NULL) stream->counter = stream->ops->counter(stream->handle, &stream->base);
        weir__clock_init(&stream->clock, id);
        context->streams[id] = stream;
        device->streams[index] = stream;
        /* Release: whoever sees the count sees the entry; pairs with the acquires of readers. */
        atomic_store_explicit(&context->nstreams, id + 1, memory_order_release);
        atomic_store_explicit(&device->nstreams, index + 1, memory_order_release);
        weir__log(3, "%s: stream %u", device->info.name, id);
    }
    pthread_mutex_unlock(&context->create_lock);
    if (rc != WEIR_OK) {
        pthread_mutex_destroy(&stream->retiring);
        free(stream->ring);
        free(stream);
        return rc;
    }
    *stream_out = stream;
    return WEIR_OK;
}

void weir__stream_destroy(struct weir__stream *stream)
{
    stream->ops->stream_destroy(stream->handle);
    weir__clock_fini(&stream->clock);
    pthread_mutex_destroy(&stream->retiring);
    free(stream->ring);
    free(stream->failed);
    free(stream);
}

int weir__stream_make_room(struct weir__stream *stream, unsigned n)
{
    /* Relaxed: the lessee's own. */
    uint64_t             entered = atomic_load_explicit(&stream->entered, memory_order_relaxed), capacity;
    struct weir__issued *ring;

    pthread_mutex_lock(&stream->retiring);
    stream->room_seen = stream->taken;
    if (entered - stream->taken + n <= stream->capacity) {
        pthread_mutex_unlock(&stream->retiring);
        return WEIR_OK;
    }
    capacity = 2 * stream->capacity;
    ring = malloc(capacity * sizeof ring[0]);
    if (ring != NULL) {
        for (uint64_t i = stream->taken; i != entered; i++) ring[i & (capacity - 1)] = stream->ring[i & (stream->capacity - 1)];
        free(stream->ring);
        stream->ring = ring;
        stream->capacity = capacity;
    }
    pthread_mutex_unlock(&stream->retiring);
    return ring != NULL ? WEIR_OK : weir__fail(WEIR_E_NO_MEMORY, "no memory for %llu tasks on a stream", (unsigned long long)capacity);
}

/* ---- retiring ---- */

static const struct weir__failed *failed_at(const struct weir__stream *stream, uint64_t position)
{
    for (uint32_t i = stream->nfailed; i-- > 0 && stream->failed[i].position >= position;) {
        if (stream->failed[i].position == position) return &stream->failed[i];
    }
    return NULL;
}

static void note_failed(struct weir__stream *stream, uint64_t position, uint64_t root)
{
    if (stream->nfailed == stream->cfailed) {
        uint32_t             capacity = stream->cfailed != 0 ? 2 * stream->cfailed : 16;
        struct weir__failed *failed = capacity <= MAX_FAILED ? realloc(stream->failed, capacity * sizeof failed[0]) : NULL;

        if (failed != NULL) {
            stream->failed = failed;
            stream->cfailed = capacity;
        } else if (stream->nfailed != 0) {
            /* Only tasks that were issued before this one failed can still ask: the oldest half is long past. */
            memmove(stream->failed, stream->failed + stream->nfailed / 2, stream->nfailed / 2 * sizeof failed[0]);
            stream->nfailed /= 2;
        } else {
            return;
        }
    }
    stream->failed[stream->nfailed++] = (struct weir__failed){position, root};
}

/* Tasks taken out of rings, to be finished after the locks are given back; node.status is set. */
struct retired {
    struct weir_task *head, *tail;
};

static void retired_add(struct retired *retired, struct weir_task *task, int status)
{
    task->node.status = status;
    task->node.next = 0;
    if (retired->head == NULL) retired->head = task;
    else retired->tail->node.next = (uintptr_t)task;
    retired->tail = task;
}

static void retired_finish(struct retired *retired, struct weir__runner *runner)
{
    while (retired->head != NULL) {
        struct weir_task *task = retired->head;

        retired->head = weir__task_next(task);
        if (task->node.status == WEIR_OK && weir__task_flags(task) & WEIR__TASK_FAILED) task->node.status = (int32_t)(intptr_t)task->arg;
        /* Relaxed: set before the task was issued. */
        if (task->node.status == WEIR_OK && atomic_load_explicit(&task->node.poison, memory_order_relaxed) != 0) {
            task->node.status = WEIR_E_PREDECESSOR;
            task->arg = 0; /* the stream was there: who failed is not known any more */
        }
        weir__runner_finish(runner, task, task->node.status);
    }
}

static void retire_in_order(struct weir__stream *stream, uint64_t until, struct retired *retired);

/* A predecessor's point: has it failed? Its stream is retired up to there first. @root_out: see weir__task_root(). */
static bool predecessor_failed(struct weir_context *context, uint64_t point, struct retired *retired, uint64_t *root_out)
{
    const struct weir__failed *failed;
    struct weir__stream       *stream;

    if (point == 0) return false;
    stream = context->streams[weir__point_stream(point)];
    /* It is reached, since its successor is. completed() may not know yet, sync() does, and does not block. */
    if (weir__stream_completed(stream) < weir__point_position(point)) {
        (void)stream->ops->sync(stream->handle, weir__point_position(point)); /* a lost device is found in the statuses */
    }
    retire_in_order(stream, weir__point_position(point), retired);
    failed = failed_at(stream, weir__point_position(point));
    if (failed != NULL && *root_out == 0) *root_out = failed->root;
    return failed != NULL;
}

static bool a_predecessor_failed(struct weir_context *context, struct weir_task *task, struct retired *retired, uint64_t *root_out)
{
    const struct weir__node *node = &task->node;
    bool                     failed = atomic_load_explicit(&node->poison, memory_order_relaxed) != 0; /* complete anyway */

    for (unsigned i = 0; i < node->nslots; i++) failed |= predecessor_failed(context, node->slot[i], retired, root_out);
    for (uintptr_t e = (uintptr_t)node->extra; e != 0; e = weir__extra_of(e)->next) {
        if ((e & 7) == WEIR__EXTRA_EDGE) failed |= predecessor_failed(context, weir__extra_of(e)->link, retired, root_out);
    }
    return failed;
}

/* Take the stream's oldest task if its position is reached and not beyond @until; keeps .retired up to date. */
static bool next_reached(struct weir__stream *stream, uint64_t until, struct weir__issued *issued_out)
{
    uint64_t completed = weir__stream_completed(stream), issued;
    bool     found = false;

    pthread_mutex_lock(&stream->retiring);
    /* Acquire: pairs with weir__stream_enter(). */
    issued = atomic_load_explicit(&stream->issued, memory_order_acquire);
    if (completed > issued) completed = issued;
    if (completed > until) completed = until;
    if (stream->taken != atomic_load_explicit(&stream->entered, memory_order_acquire)) {
        *issued_out = stream->ring[stream->taken & (stream->capacity - 1)];
        found = issued_out->position <= completed;
    }
    if (found) stream->taken++;
    weir__stream_position_up(&stream->retired, found ? issued_out->position : completed);
    pthread_mutex_unlock(&stream->retiring);
    return found;
}

/* The first failure since the task before: marks within the task count as the task's. */
static int stretch_status(struct weir__stream *stream, uint64_t position)
{
    int status = WEIR_OK;

    for (uint64_t p = stream->asked + 1; p <= position && status == WEIR_OK; p++) status = stream->ops->status(stream->handle, p);
    stream->asked = position;
    return status;
}

/*
 * The slow way, after a device failure: every task asks for its own status and its predecessors'. Under failure_lock. A
 * stream that is being retired up to q further up the call chain only has older tasks asked for, which are done: so the
 * recursion is no deeper than the number of streams.
 */
static void retire_in_order(struct weir__stream *stream, uint64_t until, struct retired *retired)
{
    struct weir_context *context = stream->device->context;
    struct weir__issued  issued;
    uint64_t             position;

    position = atomic_load_explicit(&stream->retired, memory_order_relaxed); /* what the fast way retired had not failed */
    if (stream->asked < position) stream->asked = position;
    while (next_reached(stream, until, &issued)) {
        int      status = stretch_status(stream, issued.position);
        uint64_t root = status != WEIR_OK ? issued.task->node.id : 0;

        if (status == WEIR_OK && a_predecessor_failed(context, issued.task, retired, &root)) {
            status = WEIR_E_PREDECESSOR;
            issued.task->arg = (uintptr_t)root; /* the stream was there */
        }
        if (status != WEIR_OK) note_failed(stream, issued.position, root);
        retired_add(retired, issued.task, status);
    }
    position = atomic_load_explicit(&stream->retired, memory_order_relaxed); /* we are the only one who retires */
    stream->ops->forget(stream->handle, position);
}

/* Any device's failure matters: a consumer here may follow a task there. */
static bool may_have_failed(struct weir_context *context)
{
    /* Relaxed: once true, always true; until then the devices are asked. */
    if (atomic_load_explicit(&context->failures, memory_order_relaxed)) return true;
    for (uint32_t i = 0; i < context->ndevices; i++) {
        const _Atomic uint64_t *failures = context->devices[i]->info.failures;

        /* Acquire: a backend counts a failure before it publishes the position of the failed stretch, and no stretch that
         * depends on it is complete earlier; pairs with the backend's release of its completed position. */
        if (failures != NULL && atomic_load_explicit(failures, memory_order_acquire) == 0) continue;
        atomic_store_explicit(&context->failures, true, memory_order_relaxed);
        return true;
    }
    return false;
}

bool weir__stream_retire(struct weir__stream *stream, struct weir__runner *runner)
{
    struct weir_context *context = stream->device->context;
    struct retired       retired = {NULL, NULL};
    uint64_t             completed, issued, entered;

    /* Relaxed: hints are enough. Whoever must not miss a task has seen it issued, or note_behind(). */
    if (atomic_load_explicit(&stream->issued, memory_order_relaxed) == atomic_load_explicit(&stream->retired, memory_order_relaxed)) return true;
    completed = weir__stream_completed(stream);
    if (completed == atomic_load_explicit(&stream->retired, memory_order_relaxed)) return true;
    if (may_have_failed(context)) {
        pthread_mutex_lock(&context->failure_lock);
        retire_in_order(stream, UINT64_MAX, &retired);
        pthread_mutex_unlock(&context->failure_lock);
        retired_finish(&retired, runner);
        return true;
    }
    if (pthread_mutex_trylock(&stream->retiring) != 0) return false;
    /* Acquire: pairs with weir__stream_enter(). */
    issued = atomic_load_explicit(&stream->issued, memory_order_acquire);
    entered = atomic_load_explicit(&stream->entered, memory_order_acquire);
    if (completed > issued) completed = issued;
    for (; stream->taken != entered; stream->taken++) {
        const struct weir__issued *oldest = &stream->ring[stream->taken & (stream->capacity - 1)];

        if (oldest->position > completed) break;
        retired_add(&retired, oldest->task, WEIR_OK);
    }
    weir__stream_position_up(&stream->retired, completed);
    pthread_mutex_unlock(&stream->retiring);
    retired_finish(&retired, runner);
    return true;
}

bool weir__context_retire(struct weir_context *context, struct weir__runner *runner)
{
    /* Acquire: pairs with weir__stream_create(). */
    uint32_t n = atomic_load_explicit(&context->nstreams, memory_order_acquire);
    uint32_t before = runner->count;

    for (uint32_t i = 0; i < n; i++) weir__stream_retire(context->streams[i], runner);
    return runner->count != before;
}

/* False: nobody will tell, and those who wait look by themselves. */
static bool want(struct weir__stream *stream, uint64_t position)
{
    struct weir_context *context = stream->device->context;

    if (stream->ops->notify(stream->handle, position) == WEIR_OK) return true;
    /* No memory for a notice. We must not block here, so a worker (and every waiter) looks again and again for a while. */
    if (weir__record_is_on()) weir__trace_fallback(WEIR__FALLBACK_NO_NOTICE, NULL, NULL);
    weir__log(2, "%s: no notice (%s): looking instead", stream->device->info.name, stream->ops->last_error(stream->device->handle));
    atomic_store_explicit(&context->poll, true, memory_order_seq_cst);
    weir__context_wake(context);
    return false;
}

void weir__stream_want(struct weir__stream *stream, uint64_t position)
{
    (void)want(stream, position);
}

void weir__stream_want_soon(struct weir__stream *stream, uint64_t position)
{
    uint64_t none = 0;

    /* Sequentially consistent against reached(): either it has taken .soon away and we ask, or it sees the position issued. */
    if (atomic_load_explicit(&stream->soon, memory_order_seq_cst) != 0) return;
    if (!atomic_compare_exchange_strong_explicit(&stream->soon, &none, position, memory_order_seq_cst, memory_order_relaxed)) return;
    weir__stream_want(stream, position);
}

/* What was to be noticed soon is reached up to @position: ask for the next stretch. True: more is reached already. */
static bool want_more(struct weir__stream *stream, uint64_t position)
{
    uint64_t soon = atomic_load_explicit(&stream->soon, memory_order_relaxed), issued, completed; /* the exchange decides */

    if (soon == 0 || soon > position) return false;
    if (!atomic_compare_exchange_strong_explicit(&stream->soon, &soon, 0, memory_order_seq_cst, memory_order_relaxed)) return false;
    issued = atomic_load_explicit(&stream->issued, memory_order_seq_cst); /* see weir__stream_want_soon() */
    completed = weir__stream_look(stream);
    if (issued > completed) weir__stream_want_soon(stream, issued - completed > SOON ? completed + SOON : issued);
    return completed > position;
}

/* Where neither memory nor threads are left, work that was queued is run by the thread that looks for it. */
static void run_inline(struct weir_context *context)
{
    uint32_t n = atomic_load_explicit(&context->nstreams, memory_order_acquire); /* as in weir__context_retire() */

    for (uint32_t i = 0; i < n; i++) {
        struct weir__stream *stream = context->streams[i];
        uint64_t             issued = atomic_load_explicit(&stream->issued, memory_order_acquire);

        if (!(stream->device->info.features & WEIR__DEVICE_INLINE_SYNC) ||
            atomic_load_explicit(&stream->retired, memory_order_relaxed) >= issued) {
            continue;
        }
        if (stream->ops->sync(stream->handle, issued) != WEIR_OK) weir__log(1, "%s failed", stream->device->info.name);
    }
}

bool weir__context_poll(struct weir_context *context, struct weir__runner *runner)
{
    bool found;

    /* Sequentially consistent: whoever sets it again after this has its work seen below or keeps the flag. */
    if (!atomic_exchange_explicit(&context->poll, false, memory_order_seq_cst)) return false;
    run_inline(context);
    found = weir__context_retire(context, runner);
    if (weir__context_device_busy(context)) atomic_store_explicit(&context->poll, true, memory_order_seq_cst);
    return found;
}

void weir__point_want(struct weir_context *context, uint64_t point)
{
    weir__stream_want(context->streams[weir__point_stream(point)], weir__point_position(point));
}

bool weir__context_notify(struct weir_context *context)
{
    uint32_t n = atomic_load_explicit(&context->nstreams, memory_order_acquire); /* as above */
    bool     busy = false;

    for (uint32_t i = 0; i < n; i++) {
        struct weir__stream *stream = context->streams[i];
        uint64_t             issued = atomic_load_explicit(&stream->issued, memory_order_acquire);

        if (atomic_load_explicit(&stream->retired, memory_order_relaxed) >= issued) continue;
        busy = true;
        /* Once: who waits for long comes here again and again. Acquire and release: who finds it asked for finds it asked. */
        if (atomic_load_explicit(&stream->wanted, memory_order_acquire) == issued || !want(stream, issued)) continue;
        atomic_store_explicit(&stream->wanted, issued, memory_order_release);
    }
    return busy;
}

bool weir__context_device_busy(struct weir_context *context)
{
    uint32_t n = atomic_load_explicit(&context->nstreams, memory_order_acquire); /* as above */

    for (uint32_t i = 0; i < n; i++) {
        if (atomic_load_explicit(&context->streams[i]->issued, memory_order_acquire) >
            atomic_load_explicit(&context->streams[i]->retired, memory_order_relaxed)) {
            return true;
        }
    }
    return false;
}

static void retire_surely(struct weir__stream *stream, struct weir__runner *runner)
{
    /* A busy .retiring means that another thread is at it; it may have read the completed position before this one was
     * reached, so it must be looked at again after that thread is gone. */
    while (!weir__stream_retire(stream, runner)) {
        pthread_mutex_lock(&stream->retiring);
        pthread_mutex_unlock(&stream->retiring);
    }
}

/*
 * A task's successors see it issued, and may ask for its notice, before its stream knows it. So a notice may find nothing to
 * retire: then the lessee asks for it again. Sequentially consistent, both: pair with the store and the load of the lessee in
 * weir__stream_enter() and weir__stream_is_behind(). Either it sees .behind, or what follows here sees its .issued.
 */
static void note_behind(struct weir__stream *stream, uint64_t position)
{
    uint64_t behind = atomic_load_explicit(&stream->behind, memory_order_relaxed); /* the exchange decides */

    while (behind < position && !atomic_compare_exchange_weak_explicit(&stream->behind, &behind, position, memory_order_seq_cst,
                                                                       memory_order_relaxed)) {
        continue;
    }
    (void)atomic_load_explicit(&stream->issued, memory_order_seq_cst);
}

/* A stream reached a position that somebody asked for. */
static void reached(void *owner, uint64_t position)
{
    struct weir__stream *stream = owner;
    struct weir_context *context = stream->device->context;
    struct weir__runner  runner = {.context = context};

    /* Sequentially consistent: counted before .retired says that nothing is on the device, until all is given back. */
    atomic_fetch_add_explicit(&context->noticing, 1, memory_order_seq_cst);
    if (atomic_load_explicit(&stream->issued, memory_order_acquire) < position) note_behind(stream, position);
    do {
        retire_surely(stream, &runner);
    } while (want_more(stream, position) && (position = weir__stream_look(stream)) != 0);
    weir__runner_drain(&runner);
    weir__runner_flush(&runner);
    atomic_fetch_sub_explicit(&context->noticing, 1, memory_order_seq_cst);
}

const struct weir__device_notice weir__stream_notice = {reached, &weir__record_on, weir__trace_clock, weir__trace_stretch};

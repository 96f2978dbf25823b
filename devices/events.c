/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/*
 * Positions of a stream made of events.
 *
 * Each record takes a spare event and puts it into the stream's ring, which holds the positions that nobody has seen
 * done. Whoever asks moves .reached over the oldest of them as far as event_query() says, with the stream's lock;
 * events that fall out become spare. A call that hands an event to the backend without the lock pins it first, so it is
 * never recorded again under that call: the last pin frees it instead.
 *
 * Both counters may be read without the lock. They only grow; .reached is stored after the event was seen done
 * (release) and loaded by those who rely on it (acquire), so what the work wrote is visible to them. A stale value
 * costs a lock.
 *
 * When the device is lost every record counts as reached. .sound keeps how far the stream had come before that was
 * noticed: the positions beyond have the status WEIR_E_DEVICE.
 *
 * Without events a record only counts; positions are reached when a stream_sync() that began after it has returned.
 */

#include <devices/events.h>

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 16, MOST_SPARES = 32, FIRST_CAPACITY = 32, PINS_ON_STACK = 16 };

/* Relaxed: stream calls only, which wrote it, or with the lock. */
static uint64_t recorded_of(const struct weir__event_stream *stream)
{
    return atomic_load_explicit(&stream->recorded, memory_order_relaxed);
}

/* Acquire: pairs with the release in reached_set(). */
static uint64_t reached_of(const struct weir__event_stream *stream)
{
    return atomic_load_explicit(&stream->reached, memory_order_acquire);
}

static void reached_set(struct weir__event_stream *stream, uint64_t position)
{
    /* Release: the work up to @position was seen done; pairs with the acquire in reached_of(). */
    atomic_store_explicit(&stream->reached, position, memory_order_release);
}

/* Acquire and release of .lost pair with each other; nothing else hangs on it. */
static bool is_lost(const struct weir__event_stream *stream)
{
    return atomic_load_explicit(&stream->device->lost, memory_order_acquire);
}

static void push(struct weir__event_node **list, struct weir__event_node *node)
{
    node->next = *list;
    *list = node;
}

static struct weir__event_node *pop(struct weir__event_node **list)
{
    struct weir__event_node *node = *list;
    if (node) *list = node->next;
    return node;
}

/* ---- nodes ---- */

/* The event is not used any more: keep it at hand, or give it to the other streams of the device. */
static void point_free_locked(struct weir__event_stream *stream, struct weir__event_node *point)
{
    struct weir__event_device *device = stream->device;
    point->status = 0;
    point->retired = false;
    if (stream->spares < MOST_SPARES) {
        push(&stream->spare, point);
        stream->spares++;
        return;
    }
    pthread_mutex_lock(&device->pool_lock);
    push(&device->pool, point);
    pthread_mutex_unlock(&device->pool_lock);
}

static void point_retire_locked(struct weir__event_stream *stream, struct weir__event_node *point)
{
    if (point->pins)
        point->retired = true;
    else
        point_free_locked(stream, point);
}

static void unpin_locked(struct weir__event_stream *stream, struct weir__event_node *point)
{
    if (--point->pins == 0 && point->retired) point_free_locked(stream, point);
}

static void unpin(struct weir__event_stream *stream, struct weir__event_node *point)
{
    pthread_mutex_lock(&stream->lock);
    unpin_locked(stream, point);
    pthread_mutex_unlock(&stream->lock);
}

/* Collect the functions that have run. They run in order. */
static void harvest_locked(struct weir__event_stream *stream)
{
    /* Acquire: its status; pairs with the release in function_run(). */
    while (stream->functions && atomic_load_explicit(&stream->functions->ran, memory_order_acquire)) {
        struct weir__event_node *node = pop(&stream->functions);
        if (!stream->functions) stream->functions_tail = &stream->functions;
        push(node->status ? &stream->failures : &stream->plain, node);
    }
}

static struct weir__event_node *plain_get_locked(struct weir__event_stream *stream)
{
    harvest_locked(stream);
    struct weir__event_node *node = pop(&stream->plain);
    if (!node) {
        node = malloc(sizeof *node);
        if (!node) return NULL;
        node->made = stream->made;
        stream->made = node;
    }
    *node = (struct weir__event_node){.stream = stream, .made = node->made};
    return node;
}

/* Before the position of the failed stretch is reached. */
static void failure_count(struct weir__event_stream *stream)
{
    /* Release: pairs with the acquire of whoever reads weir__device_info.failures. */
    atomic_fetch_add_explicit(&stream->device->failures, 1, memory_order_release);
}

/* ---- reaching ---- */

/* Everything that is recorded counts as reached from now on. */
static void absorb_loss_locked(struct weir__event_stream *stream)
{
    uint64_t recorded = recorded_of(stream), reached = reached_of(stream);
    if (reached == recorded) return;
    if (reached < stream->sound) stream->sound = reached;
    failure_count(stream);
    if (stream->device->has_events)
        for (uint64_t position = reached + 1; position <= recorded; position++)
            point_retire_locked(stream, stream->ring[position & (stream->capacity - 1)]);
    reached_set(stream, recorded);
}

static void lose_locked(struct weir__event_stream *stream)
{
    /* Release: pairs with the acquire in is_lost(). */
    atomic_store_explicit(&stream->device->lost, true, memory_order_release);
    absorb_loss_locked(stream);
}

/* Move .reached over what is done. Up to @sure somebody has seen it, so that only the status is asked for. */
static void advance_locked(struct weir__event_stream *stream, uint64_t sure)
{
    uint64_t recorded = recorded_of(stream);
    if (is_lost(stream)) absorb_loss_locked(stream);
    while (stream->device->has_events && reached_of(stream) < recorded) {
        uint64_t position = reached_of(stream) + 1;
        struct weir__event_node *point = stream->ring[position & (stream->capacity - 1)];
        int status = stream->device->base->event_query(point->event);
        if (status == WEIR_E_PENDING && position > sure) break;
        if (status == WEIR_E_DEVICE) {
            lose_locked(stream);
            break;
        }
        if (status && status != WEIR_E_PENDING) {
            point->first = point->last = position;
            point->status = status;
            push(&stream->failures, point);
            failure_count(stream);
        } else {
            point_retire_locked(stream, point);
        }
        reached_set(stream, position);
    }
}

/* stream_sync() has returned @status: all records that it covers are reached. */
static void synced_locked(struct weir__event_stream *stream, uint64_t position, int status)
{
    uint64_t reached = reached_of(stream);
    if (status == WEIR_E_DEVICE) {
        lose_locked(stream);
        return;
    }
    if (status) {
        struct weir__event_node *failure = plain_get_locked(stream);
        if (failure) {
            failure->first = (reached < position ? reached : position - 1) + 1;
            failure->last = position;
            failure->status = status;
            push(&stream->failures, failure);
            failure_count(stream);
        } else {
            lose_locked(stream); /* a failure that cannot be told to anybody is worse than a lost device */
            return;
        }
    }
    if (position > reached) reached_set(stream, position);
}

/* The record at @position if it is not reached, pinned. */
static struct weir__event_node *pin(struct weir__event_stream *stream, uint64_t position)
{
    struct weir__event_node *point = NULL;
    if (position <= reached_of(stream)) return NULL;
    pthread_mutex_lock(&stream->lock);
    assert(position <= recorded_of(stream));
    if (is_lost(stream)) absorb_loss_locked(stream);
    if (position > reached_of(stream)) {
        point = stream->ring[position & (stream->capacity - 1)];
        point->pins++;
    }
    pthread_mutex_unlock(&stream->lock);
    return point;
}

int weir__event_stream_sync(void *handle, uint64_t position)
{
    struct weir__event_stream *stream = handle;
    struct weir__event_device *device = stream->device;
    if (device->has_events) {
        struct weir__event_node *point = pin(stream, position);
        if (point) {
            int status = device->base->event_sync(point->event);
            pthread_mutex_lock(&stream->lock);
            if (status == WEIR_E_DEVICE) lose_locked(stream);
            advance_locked(stream, status ? 0 : position);
            /* A backend that cannot wait for its work any more is as good as lost. */
            if (position > reached_of(stream)) lose_locked(stream);
            unpin_locked(stream, point);
            pthread_mutex_unlock(&stream->lock);
        }
    } else if (position > reached_of(stream) && !is_lost(stream)) {
        /* Acquire: the records counted here, and so the work before them, came before stream_sync(); pairs with the
         * release in record. */
        uint64_t seen = atomic_load_explicit(&stream->recorded, memory_order_acquire);
        int status = device->base->stream_sync(stream->handle);
        pthread_mutex_lock(&stream->lock);
        synced_locked(stream, seen, status);
        pthread_mutex_unlock(&stream->lock);
    }
    return is_lost(stream) ? weir__event_error(WEIR_E_DEVICE, "the device is lost") : WEIR_OK;
}

uint64_t weir__event_stream_completed(void *handle, int *status_out)
{
    struct weir__event_stream *stream = handle;
    /* Relaxed: records that come later are nobody's question yet. */
    if (reached_of(stream) < atomic_load_explicit(&stream->recorded, memory_order_relaxed)) {
        pthread_mutex_lock(&stream->lock);
        advance_locked(stream, 0);
        pthread_mutex_unlock(&stream->lock);
    }
    uint64_t reached = reached_of(stream);
    if (status_out) *status_out = is_lost(stream) ? WEIR_E_DEVICE : WEIR_OK;
    return reached;
}

int weir__event_stream_status(void *handle, uint64_t position)
{
    struct weir__event_stream *stream = handle;
    int status = WEIR_OK;
    pthread_mutex_lock(&stream->lock);
    harvest_locked(stream);
    if (position > stream->sound) status = WEIR_E_DEVICE;
    for (const struct weir__event_node *failure = stream->failures; failure; failure = failure->next)
        if (failure->first <= position && position <= failure->last) status = failure->status;
    pthread_mutex_unlock(&stream->lock);
    return status;
}

void weir__event_stream_forget(void *handle, uint64_t position)
{
    struct weir__event_stream *stream = handle;
    pthread_mutex_lock(&stream->lock);
    harvest_locked(stream);
    for (struct weir__event_node **link = &stream->failures; *link;) {
        struct weir__event_node *failure = *link;
        if (failure->last > position) {
            link = &failure->next;
            continue;
        }
        *link = failure->next;
        if (failure->event)
            point_retire_locked(stream, failure);
        else
            push(&stream->plain, failure);
    }
    pthread_mutex_unlock(&stream->lock);
}

/* ---- records ---- */

/* Part of a batch is enough. */
static int create_batch(struct weir__event_device *device, struct weir__event_node **list)
{
    int r = WEIR_OK;
    for (uint32_t n = 0; n < BATCH; n++) {
        struct weir__event_node *node = calloc(1, sizeof *node);
        r = node ? device->base->event_create(device->handle, &node->event) : WEIR_E_NO_MEMORY;
        weir__event_error(r, node ? NULL : "no memory for an event");
        if (r) {
            free(node);
            break;
        }
        push(list, node);
    }
    return *list ? WEIR_OK : r;
}

/* Give the stream spare events: of the device's pool, else new ones. */
static int refill(struct weir__event_stream *stream)
{
    struct weir__event_device *device = stream->device;
    struct weir__event_node *got = NULL, *node;
    uint32_t n = 0;
    pthread_mutex_lock(&device->pool_lock);
    for (; n < BATCH && (node = pop(&device->pool)); n++) push(&got, node);
    pthread_mutex_unlock(&device->pool_lock);
    if (!got) {
        int r = create_batch(device, &got);
        if (r) return r;
    }
    pthread_mutex_lock(&stream->lock);
    while ((node = pop(&got))) {
        push(&stream->spare, node);
        stream->spares++;
    }
    pthread_mutex_unlock(&stream->lock);
    return WEIR_OK;
}

static int grow_locked(struct weir__event_stream *stream)
{
    uint64_t capacity = stream->capacity ? stream->capacity * 2 : FIRST_CAPACITY;
    struct weir__event_node **ring = calloc(capacity, sizeof *ring);
    if (!ring) return weir__event_error(WEIR_E_NO_MEMORY, "no memory for the positions of a stream");
    for (uint64_t position = reached_of(stream) + 1; position <= recorded_of(stream); position++)
        ring[position & (capacity - 1)] = stream->ring[position & (stream->capacity - 1)];
    free(stream->ring);
    stream->ring = ring;
    stream->capacity = capacity;
    return WEIR_OK;
}

int weir__event_stream_reserve(void *handle)
{
    struct weir__event_stream *stream = handle;
    int r = WEIR_OK;
    if (!stream->device->has_events) return WEIR_OK;
    pthread_mutex_lock(&stream->lock);
    bool full = recorded_of(stream) - reached_of(stream) == stream->capacity;
    if (full || !stream->spare) advance_locked(stream, 0); /* what is done makes room, even if nobody asks */
    if (recorded_of(stream) - reached_of(stream) == stream->capacity) r = grow_locked(stream);
    bool empty = !stream->spare;
    pthread_mutex_unlock(&stream->lock);
    return !r && empty ? refill(stream) : r;
}

int weir__event_stream_record(void *handle, uint64_t *position_out)
{
    struct weir__event_stream *stream = handle;
    struct weir__event_device *device = stream->device;
    struct weir__event_node *point = NULL;
    if (is_lost(stream)) return weir__event_error(WEIR_E_DEVICE, "the device is lost");
    int r = weir__event_stream_reserve(stream);
    if (r) return r;
    if (device->has_events) {
        pthread_mutex_lock(&stream->lock);
        point = pop(&stream->spare);
        stream->spares--;
        pthread_mutex_unlock(&stream->lock);
        r = device->base->event_record(stream->handle, point->event);
    }
    pthread_mutex_lock(&stream->lock);
    uint64_t position = recorded_of(stream) + 1;
    if (r) {
        point_free_locked(stream, point);
    } else {
        if (point) stream->ring[position & (stream->capacity - 1)] = point;
        /* Release: pairs with the acquire in sync without events. */
        atomic_store_explicit(&stream->recorded, position, memory_order_release);
        *position_out = position;
    }
    pthread_mutex_unlock(&stream->lock);
    return weir__event_error(r, NULL);
}

int weir__event_stream_wait(void *handle, void *const *streams, const uint64_t *positions, size_t n)
{
    struct weir__event_stream *stream = handle;
    struct weir__event_node *points_few[PINS_ON_STACK], **points = points_few;
    void *events_few[PINS_ON_STACK], **events = events_few;
    size_t found = 0;
    int r = WEIR_OK;
    if (n > PINS_ON_STACK) {
        points = malloc(n * (sizeof *points + sizeof *events));
        if (!points) return weir__event_error(WEIR_E_NO_MEMORY, "no memory for a wait");
        events = (void **)(points + n);
    }
    for (size_t i = 0; i < n; i++) {
        points[i] = streams[i] != handle ? pin(streams[i], positions[i]) : NULL;
        if (points[i]) events[found++] = points[i]->event;
    }
    if (found) r = stream->device->base->event_wait(stream->handle, events, found);
    for (size_t i = 0; i < n; i++)
        if (points[i]) unpin(streams[i], points[i]);
    if (points != points_few) free(points);
    return weir__event_error(r, NULL);
}

int weir__event_stream_signal(void *handle, uint64_t position, void *native_stream)
{
    struct weir__event_stream *stream = handle;
    struct weir__event_node *point = pin(stream, position);
    if (!point) return WEIR_OK;
    int r = stream->device->base->event_signal(point->event, native_stream);
    unpin(stream, point);
    return weir__event_error(r, NULL);
}

/* ---- host functions ---- */

/* On the backend's thread, without a lock. The status is kept here, by position, so the backend is told of none. */
static int function_run(void *arg)
{
    struct weir__event_node *node = arg;
    int status = node->function(node->arg);
    node->status = status > 0 ? WEIR_E_TASK : status;
    if (status) failure_count(node->stream);
    /* Release: the status; pairs with the acquire in harvest_locked(), after which the node is not ours. */
    atomic_store_explicit(&node->ran, true, memory_order_release);
    return 0;
}

/* Only stream calls put functions on the list, so that it is still the last one. */
static void function_undo_locked(struct weir__event_stream *stream, struct weir__event_node *node)
{
    struct weir__event_node **link = &stream->functions;
    while (*link != node) link = &(*link)->next;
    *link = NULL;
    stream->functions_tail = link;
    push(&stream->plain, node);
}

int weir__event_stream_function(void *handle, int (*function)(void *arg), void *arg)
{
    struct weir__event_stream *stream = handle;
    pthread_mutex_lock(&stream->lock);
    struct weir__event_node *node = plain_get_locked(stream);
    if (node) {
        node->first = node->last = recorded_of(stream) + 1;
        node->function = function;
        node->arg = arg;
        *stream->functions_tail = node;
        stream->functions_tail = &node->next;
    }
    pthread_mutex_unlock(&stream->lock);
    if (!node) return weir__event_error(WEIR_E_NO_MEMORY, "no memory for a host function");
    int r = stream->device->base->host_function(stream->handle, function_run, node);
    if (r) {
        pthread_mutex_lock(&stream->lock);
        function_undo_locked(stream, node);
        pthread_mutex_unlock(&stream->lock);
    }
    return weir__event_error(r, NULL);
}

/* ---- notices ---- */

void weir__event_deliver(struct weir__event_node *notice)
{
    struct weir__event_stream *stream = notice->stream;
    stream->device->notice.reached(stream->owner, reached_of(stream));
    pthread_mutex_lock(&stream->lock);
    push(&stream->plain, notice);
    if (--stream->notices == 0) pthread_cond_broadcast(&stream->settled);
    pthread_mutex_unlock(&stream->lock);
}

/* The backend's event_notify() says that the event is done. */
static void notice_done(void *arg, int status)
{
    struct weir__event_node *notice = arg;
    struct weir__event_stream *stream = notice->stream;
    pthread_mutex_lock(&stream->lock);
    if (status == WEIR_E_DEVICE) lose_locked(stream);
    advance_locked(stream, notice->first);
    unpin_locked(stream, notice->point);
    pthread_mutex_unlock(&stream->lock);
    weir__event_deliver(notice);
}

static struct weir__event_node *notice_new(struct weir__event_stream *stream, uint64_t position)
{
    pthread_mutex_lock(&stream->lock);
    struct weir__event_node *notice = plain_get_locked(stream);
    if (notice) {
        notice->first = notice->last = position;
        stream->notices++;
    }
    pthread_mutex_unlock(&stream->lock);
    return notice;
}

static void notice_undo(struct weir__event_node *notice)
{
    struct weir__event_stream *stream = notice->stream;
    pthread_mutex_lock(&stream->lock);
    if (notice->point) unpin_locked(stream, notice->point);
    push(&stream->plain, notice);
    if (--stream->notices == 0) pthread_cond_broadcast(&stream->settled);
    pthread_mutex_unlock(&stream->lock);
}

int weir__event_stream_notify(void *handle, uint64_t position)
{
    struct weir__event_stream *stream = handle;
    struct weir__event_device *device = stream->device;
    struct weir__event_node *notice = notice_new(stream, position);
    int r;
    if (!notice) return weir__event_error(WEIR_E_NO_MEMORY, "no memory for a notice");
    if (device->base->event_notify && device->has_events) {
        notice->point = pin(stream, position);
        if (!notice->point) {
            weir__event_deliver(notice);
            return WEIR_OK;
        }
        r = device->base->event_notify(notice->point->event, notice_done, notice);
        weir__event_error(r, NULL);
        /* A device that is lost sends no notices: what it did counts as reached. */
        if (r == WEIR_E_DEVICE) {
            notice_done(notice, r);
            return WEIR_OK;
        }
    } else {
        if (weir__event_stream_completed(stream, NULL) >= position) {
            weir__event_deliver(notice);
            return WEIR_OK;
        }
        r = weir__event_request(device, notice);
    }
    if (r) notice_undo(notice);
    return r;
}

/* ---- streams ---- */

int weir__event_stream_create(struct weir__event_device *device, void *owner, int32_t priority,
                              struct weir__event_stream **stream_out)
{
    struct weir__event_stream *stream = calloc(1, sizeof *stream);
    if (!stream) return weir__event_error(WEIR_E_NO_MEMORY, "no memory for a stream");
    int r = device->base->stream_create(device->handle, stream, priority, &stream->handle);
    if (r) {
        free(stream);
        return weir__event_error(r, NULL);
    }
    stream->device = device;
    stream->owner = owner;
    stream->sound = UINT64_MAX;
    stream->functions_tail = &stream->functions;
    pthread_mutex_init(&stream->lock, NULL);
    pthread_cond_init(&stream->settled, NULL);
    *stream_out = stream;
    return WEIR_OK;
}

static void points_give_back(struct weir__event_device *device, struct weir__event_node *list)
{
    struct weir__event_node *point;
    pthread_mutex_lock(&device->pool_lock);
    while ((point = pop(&list)))
        if (point->event) push(&device->pool, point);
    pthread_mutex_unlock(&device->pool_lock);
}

void weir__event_stream_destroy(struct weir__event_stream *stream)
{
    struct weir__event_device *device = stream->device;
    /* Work may be queued behind the last record: somebody gave up before it. A failure was told already, or is nobody's. */
    int lost = device->base->stream_sync(stream->handle);
    pthread_mutex_lock(&stream->lock);
    while (stream->notices) pthread_cond_wait(&stream->settled, &stream->lock);
    (void)lost;
    advance_locked(stream, recorded_of(stream)); /* the stream is drained: all events are done, or the device is lost */
    pthread_mutex_unlock(&stream->lock);
    device->base->stream_destroy(stream->handle); /* host functions do not run after it */
    points_give_back(device, stream->spare);
    points_give_back(device, stream->failures);
    while (stream->made) {
        struct weir__event_node *node = stream->made;
        stream->made = node->made;
        free(node);
    }
    free(stream->ring);
    pthread_cond_destroy(&stream->settled);
    pthread_mutex_destroy(&stream->lock);
    free(stream);
}

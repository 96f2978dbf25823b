/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Queues of operations. The head of a queue is, in this order: dropped if its context has failed, kept while its device
 * is stopped, blocked on the first point that it comes after and that is not complete, finished on the spot if it takes
 * no time, handed to a worker. A blocked or running head holds back all that is behind it in its queue, whatever stream
 * that belongs to, as with real hardware. Nothing polls: who completes a position touches the queues that wait for it.
 */
#include "internal.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static struct queue *dirty;

uint64_t emulator__now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

void *emulator__allocate(size_t bytes)
{
    void *memory = calloc(1, bytes);
    if (memory) return memory;
    fprintf(stderr, "emulator: no memory for itself\n");
    abort();
}

/* ---- points ---- */

struct timeline *emulator__timeline_create(void)
{
    struct timeline *timeline = emulator__allocate(sizeof *timeline);
    timeline->references = 1;
    timeline->id = ++emulator__state.next_id;
    return timeline;
}

void emulator__timeline_release(struct timeline *timeline)
{
    if (!timeline || --timeline->references) return;
    free(timeline->known.entries);
    free(timeline);
}

struct point emulator__point_retain(struct point point)
{
    if (point.timeline) point.timeline->references++;
    return point;
}

bool emulator__point_is_complete(struct point point)
{
    return !point.timeline || point.timeline->completed >= point.position;
}

void emulator__wake(void)
{
    if (emulator__state.sleepers) pthread_cond_broadcast(&emulator__state.changed);
}

void emulator__host_wait(void)
{
    uint64_t start = emulator__now_ns();
    emulator__state.sleepers++;
    pthread_cond_wait(&emulator__state.changed, &emulator__state.lock);
    emulator__state.sleepers--;
    emulator__count_blocked(emulator__now_ns() - start);
}

void emulator__let_others_in(void)
{
    if (!emulator__state.settings.seed) return;
    pthread_mutex_unlock(&emulator__state.lock);
    sched_yield();
    pthread_mutex_lock(&emulator__state.lock);
}

int emulator__point_wait(struct point point, struct context *context)
{
    emulator__point_retain(point);
    while (!emulator__point_is_complete(point) && !context->error) emulator__host_wait();
    emulator__timeline_release(point.timeline);
    return context->error;
}

/* ---- operations ---- */

void emulator__operation_after(struct operation *operation, struct point point)
{
    if (emulator__point_is_complete(point)) return;
    struct point *after = realloc(operation->after, (operation->after_count + 1) * sizeof *after);
    if (!after) abort();
    after[operation->after_count++] = emulator__point_retain(point);
    operation->after = after;
}

void emulator__operation_hold(struct operation *operation, struct range *range)
{
    struct range **held = realloc(operation->held, (operation->held_count + 1) * sizeof(*held));
    if (!held) abort();
    held[operation->held_count++] = range;
    operation->held = held;
    range->references++;
    range->pending++;
}

void emulator__operation_free(struct operation *operation)
{
    for (unsigned i = 0; i < operation->held_count; i++) {
        operation->held[i]->pending--;
        emulator__range_release(operation->held[i]);
    }
    free(operation->held);
    for (unsigned i = 0; i < operation->after_count; i++) emulator__timeline_release(operation->after[i].timeline);
    emulator__timeline_release(operation->at.timeline);
    free(operation->after);
    free(operation);
}

static void just_free(struct operation *operation, int status)
{
    (void)status;
    emulator__operation_free(operation);
}

/* ---- queues ---- */

struct queue *emulator__queue_assign(struct device *device)
{
    if (!device->hardware_count) {
        const char *text = getenv("CUDA_DEVICE_MAX_CONNECTIONS");
        int64_t count = emulator__state.settings.queues;
        if (count < 0) count = text ? atoi(text) : 8;
        device->hardware_count = count > 0 && count <= 1024 ? (unsigned)count : 1024;
        device->hardware = emulator__allocate(device->hardware_count * sizeof *device->hardware);
    }
    struct queue **place = &device->hardware[device->streams_created++ % device->hardware_count];
    if (*place) return *place;
    struct queue *queue = emulator__allocate(sizeof *queue);
    queue->device = device;
    queue->tail = &queue->head;
    queue->device_next = device->queues;
    device->queues = queue;
    return *place = queue;
}

static void touch(struct queue *queue)
{
    if (queue->is_dirty) return;
    queue->is_dirty = true;
    queue->dirty_next = dirty;
    dirty = queue;
}

static void wake_blocked(struct timeline *timeline)
{
    struct operation *blocked = timeline->blocked;
    timeline->blocked = NULL;
    for (; blocked; blocked = blocked->blocked_next) {
        blocked->blocked_on = NULL;
        touch(blocked->queue);
    }
}

static void finish_head(struct queue *queue, int status)
{
    struct operation *operation = queue->head;
    queue->head = operation->next;
    if (!queue->head) queue->tail = &queue->head;
    queue->length--;
    operation->at.timeline->completed = operation->at.position;
    wake_blocked(operation->at.timeline);
    operation->over(operation, status);
    emulator__wake();
}

static const struct point *first_incomplete(const struct operation *operation)
{
    for (unsigned i = 0; i < operation->after_count; i++)
        if (!emulator__point_is_complete(operation->after[i])) return &operation->after[i];
    return NULL;
}

static void block(struct operation *operation, struct timeline *timeline)
{
    operation->blocked_on = timeline;
    operation->blocked_next = timeline->blocked;
    timeline->blocked = operation;
}

static void unblock(struct operation *operation)
{
    if (!operation->blocked_on) return;
    struct operation **link = &operation->blocked_on->blocked;
    while (*link != operation) link = &(*link)->blocked_next;
    *link = operation->blocked_next;
    operation->blocked_on = NULL;
}

static void advance(struct queue *queue)
{
    struct device *device = queue->device;
    for (struct operation *head; (head = queue->head) && !queue->is_running && !queue->is_listed;) {
        if (head->context->error && !head->runs_in_error) {
            unblock(head);
            finish_head(queue, head->context->error);
            continue;
        }
        if (head->blocked_on || (device->is_stopped && !device->steps && !head->context->error)) return;
        const struct point *point = head->context->error ? NULL : first_incomplete(head);
        if (point) {
            block(head, point->timeline);
            return;
        }
        if (device->steps) device->steps--;
        if (head->run) {
            emulator__worker_wake(queue);
            return;
        }
        finish_head(queue, 0);
    }
}

static void settle(void)
{
    while (dirty) {
        struct queue *queue = dirty;
        dirty = queue->dirty_next;
        queue->is_dirty = false;
        advance(queue);
    }
}

void emulator__queue_ran(struct queue *queue, int status)
{
    struct context *context = queue->head->context;
    if (status && !context->error) emulator__context_fail_locked(context, status);
    finish_head(queue, context->error);
    touch(queue);
    settle();
}

void emulator__context_fail_locked(struct context *context, int code)
{
    context->error = code;
    for (struct queue *queue = context->device->queues; queue; queue = queue->device_next) {
        if (queue->head && queue->head->context == context) unblock(queue->head);
        touch(queue);
    }
    emulator__wake();
}

void emulator__clock_changed(struct device *device)
{
    for (struct queue *queue = device->queues; queue; queue = queue->device_next) touch(queue);
    settle();
    emulator__wake();
}

bool emulator__device_is_busy(const struct device *device)
{
    for (const struct queue *queue = device->queues; queue; queue = queue->device_next)
        if (queue->is_running || queue->is_listed) return true;
    return false;
}

/* ---- submission ---- */

static void follow(struct stream *stream, const struct stream *other, struct operation *operation)
{
    emulator__operation_after(operation, emulator__stream_tail(other));
    emulator__clock_follow(stream->timeline, other->timeline);
}

/* The legacy stream comes after all blocking streams of its context, and they come after it. */
static void order_with_legacy(struct stream *stream, struct operation *operation)
{
    struct context *context = stream->object.context;
    if (stream != context->legacy) {
        if (stream->is_blocking) follow(stream, context->legacy, operation);
        return;
    }
    for (struct stream *other = context->streams; other; other = other->context_next)
        if (other->is_blocking && other != stream) follow(stream, other, operation);
}

struct point emulator__submit(struct stream *stream, struct operation *operation)
{
    if (!operation->over) operation->over = just_free;
    if (stream->capture) return emulator__capture_add(stream, operation);
    struct queue *queue = stream->queue;
    while (queue->length >= (uint64_t)emulator__state.settings.launch_queue && !stream->object.context->error)
        emulator__host_wait();
    order_with_legacy(stream, operation);
    operation->queue = queue;
    operation->context = stream->object.context;
    operation->at = (struct point){stream->timeline, ++stream->timeline->submitted};
    emulator__point_retain(operation->at);
    struct point at = operation->at;
    for (unsigned i = 0; i < operation->held_count; i++) emulator__order_use(operation->held[i], at);
    *queue->tail = operation;
    queue->tail = &operation->next;
    queue->length++;
    touch(queue);
    settle();
    return at;
}

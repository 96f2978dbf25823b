/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "interop/plugin/object.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "interop/plugin/report.h"

static struct {
    pthread_mutex_t lock;
    struct plugin_object **objects; /* objects[n], each for ever */
    uint32_t n, capacity;
    struct plugin_object *free;
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

int32_t weir__plugin_fail(const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    weir__plugin_count(WEIR__PLUGIN_FAILURES);
    fprintf(stderr, "weir: plugin: %s\n", text);
    return -1;
}

int32_t weir__plugin_fail_backend(const char *call, int code)
{
    return weir__plugin_fail("%s: %s (%s)", call, weir__host_ops.last_error(NULL), weir_error_name(code));
}

/* ---- handles: generation above, index + 1 below ---- */

void *weir__plugin_object_handle(const struct plugin_object *object)
{
    return (void *)(((uintptr_t)object->generation << 32) | (object->index + 1u));
}

static struct plugin_object *find_locked(enum plugin_kind kind, const void *handle)
{
    uint32_t index = (uint32_t)(uintptr_t)handle - 1;
    if (index >= table.n) return NULL;
    struct plugin_object *object = table.objects[index];
    return object->live && object->kind == kind && object->generation == (uintptr_t)handle >> 32 ? object : NULL;
}

struct plugin_object *weir__plugin_object_find_and_lock(enum plugin_kind kind, const void *handle)
{
    pthread_mutex_lock(&table.lock);
    return find_locked(kind, handle);
}

void weir__plugin_object_unlock(void)
{
    pthread_mutex_unlock(&table.lock);
}

struct plugin_object *weir__plugin_object_find(enum plugin_kind kind, const void *handle)
{
    struct plugin_object *object = weir__plugin_object_find_and_lock(kind, handle);
    weir__plugin_object_unlock();
    return object;
}

/* ---- objects ---- */

static struct plugin_object *make_locked(enum plugin_kind kind, int32_t device)
{
    if (table.n == table.capacity) {
        uint32_t capacity = table.capacity ? 2 * table.capacity : 64;
        struct plugin_object **objects = realloc(table.objects, capacity * sizeof(struct plugin_object *));
        if (!objects) return NULL;
        table.objects = objects;
        table.capacity = capacity;
    }
    struct plugin_object *object = calloc(1, sizeof *object);
    if (!object) return NULL;
    pthread_mutex_init(&object->lock, NULL);
    object->kind = kind;
    object->device = device;
    object->index = table.n;
    table.objects[table.n++] = object;
    return object;
}

/* A queue that still works is left alone: its next user would wait for strangers. */
static bool is_idle(const struct plugin_object *object)
{
    return object->kind != PLUGIN_QUEUE || !object->stream ||
           weir__host_ops.completed(object->stream, NULL) >= object->last;
}

struct plugin_object *weir__plugin_object_get(enum plugin_kind kind, int32_t device)
{
    pthread_mutex_lock(&table.lock);
    struct plugin_object **at = &table.free, *object;
    while (*at && !((*at)->kind == kind && (*at)->device == device && is_idle(*at))) at = &(*at)->next_free;
    object = *at;
    if (object)
        *at = object->next_free;
    else
        object = make_locked(kind, device);
    if (object) {
        object->generation++;
        object->live = true;
        object->recorded = false;
        object->source = NULL;
        object->async.queue = NULL;
    }
    pthread_mutex_unlock(&table.lock);
    return object;
}

struct plugin_object *weir__plugin_async_find(int32_t device, const struct weir__plugin_async *async)
{
    struct plugin_object *found = NULL;
    pthread_mutex_lock(&table.lock);
    for (uint32_t i = 0; async && !found && i < table.n; i++) {
        struct plugin_object *object = table.objects[i];
        if (&object->async == async && object->kind == PLUGIN_ASYNC && object->live && object->device == device)
            found = object;
    }
    pthread_mutex_unlock(&table.lock);
    return found;
}

static void put_locked(struct plugin_object *object)
{
    object->live = false;
    object->next_free = table.free;
    table.free = object;
}

void weir__plugin_object_put(struct plugin_object *object)
{
    pthread_mutex_lock(&table.lock);
    if (object->live) put_locked(object);
    pthread_mutex_unlock(&table.lock);
}

bool weir__plugin_object_drop(enum plugin_kind kind, int32_t device, const void *handle)
{
    struct plugin_object *object = weir__plugin_object_find_and_lock(kind, handle);
    bool known = object && object->device == device;
    if (known) put_locked(object);
    weir__plugin_object_unlock();
    return known;
}

static void close_stream(struct plugin_object *queue)
{
    if (!queue->stream) return;
    pthread_mutex_lock(&queue->lock);
    int code = weir__plugin_queue_record(queue);
    if (!code) code = weir__host_ops.sync(queue->stream, queue->last);
    if (code) (void)weir__plugin_fail_backend("deinit_device", code);
    weir__host_ops.stream_destroy(queue->stream);
    queue->stream = NULL;
    queue->last = 0;
    pthread_mutex_unlock(&queue->lock);
}

void weir__plugin_objects_close(int32_t device)
{
    pthread_mutex_lock(&table.lock);
    uint32_t n = table.n;
    for (uint32_t i = 0; i < n; i++)
        if (table.objects[i]->device == device && table.objects[i]->live) put_locked(table.objects[i]);
    pthread_mutex_unlock(&table.lock);
    for (uint32_t i = 0; i < n; i++) {
        pthread_mutex_lock(&table.lock);
        struct plugin_object *object = table.objects[i];
        pthread_mutex_unlock(&table.lock);
        if (object->device == device && object->kind == PLUGIN_QUEUE) close_stream(object);
    }
}

/* ---- queues ---- */

/* A queue just taken, for @async; its stream is made the first time. */
static struct plugin_object *queue_take(const char *call, int32_t id, struct plugin_device *device)
{
    struct plugin_object *queue = weir__plugin_object_get(PLUGIN_QUEUE, id);
    if (!queue) {
        weir__plugin_fail("%s: no memory for a queue of device %d", call, id);
        return NULL;
    }
    int code = queue->stream ? 0 : weir__host_ops.stream_create(device->handle, NULL, 0, &queue->stream);
    if (!code) return queue;
    weir__plugin_object_put(queue);
    (void)weir__plugin_fail_backend(call, code);
    return NULL;
}

struct plugin_object *weir__plugin_queue_enter(const char *call, int32_t id, struct plugin_device *device,
                                               struct weir__plugin_async *async)
{
    struct plugin_object *queue = NULL;
    if (!async) {
        weir__plugin_fail("%s: no async object", call);
        return NULL;
    }
    if (!async->queue) {
        queue = queue_take(call, id, device);
        if (!queue) return NULL;
        async->queue = weir__plugin_object_handle(queue);
    } else {
        queue = weir__plugin_object_find(PLUGIN_QUEUE, async->queue);
        if (!queue || queue->device != id) {
            weir__plugin_fail("%s: %p is no queue of device %d, or none any more", call, async->queue, id);
            return NULL;
        }
    }
    pthread_mutex_lock(&queue->lock);
    return queue;
}

void weir__plugin_queue_leave(struct plugin_object *queue)
{
    pthread_mutex_unlock(&queue->lock);
}

int weir__plugin_queue_record(struct plugin_object *queue)
{
    if (!queue->dirty) return WEIR_OK;
    int code = weir__host_ops.record(queue->stream, &queue->last);
    if (code) return code;
    queue->dirty = false;
    weir__host_ops.flush(queue->stream);
    return WEIR_OK;
}

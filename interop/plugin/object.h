/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_INTEROP_PLUGIN_OBJECT_H
#define WEIR_INTEROP_PLUGIN_OBJECT_H

/*
 * Devices, queues and events of the plugin, and the handles that name the latter two.
 *
 * Locks, outermost first: a device's guard (read: every call; write: it is opened or closed), a queue's lock (its
 * stream calls), the lock of the handles. Queues and events are kept and used again, so a pointer to one stays good;
 * whether it is still the one that was meant is told by its handle. The stream of a queue lives until its device is
 * closed, which is why an event may outlive the lease of its queue.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <devices/device.h>

#include "interop/plugin/plugin.h"

enum plugin_kind { PLUGIN_QUEUE = 1, PLUGIN_EVENT, PLUGIN_ASYNC };

/* Under the lock of the handles, unless said. */
struct plugin_object {
    struct plugin_object *next_free;
    uint32_t index, generation;
    enum plugin_kind kind;
    bool live;
    int32_t device;
    /* event: the newest record. @source NULL: nothing was queued. */
    bool recorded;
    struct plugin_object *source;
    uint64_t position;
    /* queue: constant until the device is closed … */
    void *stream;
    /* … and under @lock: positions used, and whether there is work behind the newest. */
    pthread_mutex_t lock;
    uint64_t last;
    bool dirty;
    struct weir__plugin_async async; /* async: what init_async_info() gave */
};

struct plugin_device {
    pthread_rwlock_t guard;
    void *handle; /* NULL: not open */
    struct weir__device_info info;
    struct plugin_image *images;
    pthread_mutex_t images_lock;
};

/* Print "weir: plugin: …". Returns -1. */
int32_t weir__plugin_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same for a failed call into the backend. */
int32_t weir__plugin_fail_backend(const char *call, int code);

/* The open device @id with its guard held for reading; NULL after a text. */
struct plugin_device *weir__plugin_device_enter(const char *call, int32_t id);
void weir__plugin_device_leave(struct plugin_device *device);

/* A free object that was one of @kind on @device before, or else a new one, live; NULL: no memory. */
struct plugin_object *weir__plugin_object_get(enum plugin_kind kind, int32_t device);
void weir__plugin_object_put(struct plugin_object *object);
/* In one step: false if @handle names no live object of @kind on @device. */
bool weir__plugin_object_drop(enum plugin_kind kind, int32_t device, const void *handle);
void *weir__plugin_object_handle(const struct plugin_object *object);
/* NULL if @handle names no live object of @kind. The caller looks at the device. */
struct plugin_object *weir__plugin_object_find(enum plugin_kind kind, const void *handle);
/* The same under the lock of the handles, which is held in either case and is given back by unlock. */
struct plugin_object *weir__plugin_object_find_and_lock(enum plugin_kind kind, const void *handle);
void weir__plugin_object_unlock(void);
/* The live object whose async part is at @async, on @device; NULL if there is none. */
struct plugin_object *weir__plugin_async_find(int32_t device, const struct weir__plugin_async *async);
/* For a device that is closed: no object of it is live, and each stream is destroyed. BLOCKS. */
void weir__plugin_objects_close(int32_t device);

/* The queue of @async, which gets one if it has none, locked; NULL after a text. */
struct plugin_object *weir__plugin_queue_enter(const char *call, int32_t id, struct plugin_device *device,
                                               struct weir__plugin_async *async);
void weir__plugin_queue_leave(struct plugin_object *queue);
/* End what is queued, and start it. The queue is locked. */
WEIR_MUST_CHECK int weir__plugin_queue_record(struct plugin_object *queue);

#endif

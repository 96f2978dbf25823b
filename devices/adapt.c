/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/*
 * A table with positions around one that has events: devices, the waiter thread, and the slots that are only passed on.
 * Streams are in events.c.
 *
 * The waiter thread exists where the backend cannot call back: it blocks in event_sync() (or stream_sync()) for the
 * oldest notice asked for, then delivers all that have been reached meanwhile. Work that is recorded goes on without
 * the host, so the oldest one does not wait for what a younger notice would set going.
 */

#include <devices/events.h>

#include <stdlib.h>

#include <devices/thread.h>

struct adapter {
    struct weir__device_ops ops;
    const struct weir__device_ops *base;
    void *backend;
};

/* What is not reached by way of a device or a stream, with the table that it came from: a module, a gate. */
struct part {
    const struct weir__device_ops *base;
    void *handle;
};

static _Thread_local const char *own_text;

int weir__event_error(int code, const char *text)
{
    if (code) own_text = text;
    return code;
}

const char *weir__event_text(void)
{
    return own_text;
}

/* ---- the waiter thread ---- */

static void deliver_reached(struct weir__event_node **list)
{
    while (*list) {
        struct weir__event_node *notice = *list;
        if (weir__event_stream_completed(notice->stream, NULL) >= notice->first) {
            *list = notice->next;
            weir__event_deliver(notice);
        } else {
            list = &notice->next;
        }
    }
}

static void *wait_for_notices(void *arg)
{
    struct weir__event_device *device = arg;
    struct weir__event_node *mine = NULL;
    pthread_mutex_lock(&device->requests_lock);
    for (;;) {
        struct weir__event_node **tail = &mine;
        while (*tail) tail = &(*tail)->next;
        *tail = device->requests;
        device->requests = NULL;
        device->requests_tail = &device->requests;
        if (!mine) {
            if (device->closing) break;
            pthread_cond_wait(&device->requested, &device->requests_lock);
            continue;
        }
        pthread_mutex_unlock(&device->requests_lock);
        /* Its status is the stream's business: reached it is in any case. */
        (void)!weir__event_stream_sync(mine->stream, mine->first);
        deliver_reached(&mine);
        pthread_mutex_lock(&device->requests_lock);
    }
    pthread_mutex_unlock(&device->requests_lock);
    return NULL;
}

int weir__event_request(struct weir__event_device *device, struct weir__event_node *notice)
{
    int r = WEIR_OK;
    pthread_mutex_lock(&device->requests_lock);
    if (!device->waiter_runs) {
        if (weir__thread_start(&device->waiter, wait_for_notices, device))
            r = weir__event_error(WEIR_E_SYSTEM, "no thread to wait for events");
        else
            device->waiter_runs = true;
    }
    if (!r) {
        notice->next = NULL;
        *device->requests_tail = notice;
        device->requests_tail = &notice->next;
        pthread_cond_signal(&device->requested);
    }
    pthread_mutex_unlock(&device->requests_lock);
    return r;
}

/* ---- devices ---- */

static int device_count(void *backend, uint32_t *count_out)
{
    struct adapter *adapter = backend;
    return weir__event_error(adapter->base->device_count(adapter->backend, count_out), NULL);
}

static uint32_t features_of(const struct weir__device_ops *base, uint32_t features)
{
    if (!base->event_record) features &= ~(uint32_t)(WEIR__DEVICE_WAIT | WEIR__DEVICE_CROSS_WAIT);
    if (!base->foreign_wait || !base->event_record) features &= ~(uint32_t)WEIR__DEVICE_FOREIGN;
    return features;
}

static int device_open(void *backend, uint32_t number, const struct weir__device_notice *notice,
                       struct weir__device_info *info_out, void **device_out)
{
    struct adapter *adapter = backend;
    struct weir__device_info info;
    struct weir__event_device *device = calloc(1, sizeof *device);
    if (!device) return weir__event_error(WEIR_E_NO_MEMORY, "no memory for a device");
    int r = adapter->base->device_open(adapter->backend, number, notice, &info, &device->handle);
    if (r) {
        free(device);
        return weir__event_error(r, NULL);
    }
    info.features = features_of(adapter->base, info.features);
    info.failures = &device->failures;
    device->base = adapter->base;
    device->notice = *notice;
    device->has_events = adapter->base->event_record != NULL;
    device->requests_tail = &device->requests;
    pthread_mutex_init(&device->pool_lock, NULL);
    pthread_mutex_init(&device->requests_lock, NULL);
    pthread_cond_init(&device->requested, NULL);
    *info_out = info;
    *device_out = device;
    return WEIR_OK;
}

static void device_close(void *handle)
{
    struct weir__event_device *device = handle;
    if (device->waiter_runs) {
        pthread_mutex_lock(&device->requests_lock);
        device->closing = true;
        pthread_cond_signal(&device->requested);
        pthread_mutex_unlock(&device->requests_lock);
        pthread_join(device->waiter, NULL);
    }
    while (device->pool) {
        struct weir__event_node *point = device->pool;
        device->pool = point->next;
        device->base->event_destroy(point->event);
        free(point);
    }
    device->base->device_close(device->handle);
    pthread_cond_destroy(&device->requested);
    pthread_mutex_destroy(&device->requests_lock);
    pthread_mutex_destroy(&device->pool_lock);
    free(device);
}

static const char *last_error(void *handle)
{
    struct weir__event_device *device = handle;
    const char *text = weir__event_text();
    return text ? text : device->base->last_error(device->handle);
}

static int memory_alloc(void *handle, size_t bytes, void **address_out)
{
    struct weir__event_device *device = handle;
    return weir__event_error(device->base->alloc(device->handle, bytes, address_out), NULL);
}

static int memory_free(void *handle, void *address)
{
    struct weir__event_device *device = handle;
    return weir__event_error(device->base->free(device->handle, address), NULL);
}

/* ---- streams ---- */

static int stream_create(void *device, void *owner, int32_t priority, void **stream_out)
{
    struct weir__event_stream *stream;
    int r = weir__event_stream_create(device, owner, priority, &stream);
    if (!r) *stream_out = stream;
    return r;
}

static void stream_destroy(void *stream)
{
    weir__event_stream_destroy(stream);
}

static void *stream_native(void *handle)
{
    struct weir__event_stream *stream = handle;
    return stream->device->base->stream_native(stream->handle);
}

static void stream_flush(void *handle)
{
    struct weir__event_stream *stream = handle;
    stream->device->base->flush(stream->handle);
}

static int free_on_stream(void *handle, void *address)
{
    struct weir__event_stream *stream = handle;
    return weir__event_error(stream->device->base->free_on_stream(stream->handle, address), NULL);
}

static int foreign_wait(void *handle, void *native_event)
{
    struct weir__event_stream *stream = handle;
    return weir__event_error(stream->device->base->foreign_wait(stream->handle, native_event), NULL);
}

static void lend(void *handle, bool on)
{
    struct weir__event_stream *stream = handle;
    stream->device->base->lend(stream->handle, on);
}

static int gate_create(void *handle, void **gate_out)
{
    struct weir__event_device *device = handle;
    struct part *gate = malloc(sizeof *gate);
    if (!gate) return weir__event_error(WEIR_E_NO_MEMORY, "no memory for a gate");
    gate->base = device->base;
    int r = device->base->gate_create(device->handle, &gate->handle);
    if (r)
        free(gate);
    else
        *gate_out = gate;
    return weir__event_error(r, NULL);
}

static int gate_wait(void *handle, void *gate)
{
    struct weir__event_stream *stream = handle;
    return weir__event_error(stream->device->base->gate_wait(stream->handle, ((struct part *)gate)->handle), NULL);
}

static void gate_open(void *handle)
{
    struct part *gate = handle;
    gate->base->gate_open(gate->handle);
    free(gate);
}

/* ---- work ---- */

static int work_copy(void *handle, const struct weir__copy *copy)
{
    struct weir__event_stream *stream = handle;
    struct weir__copy inner = *copy;
    if (copy->kind == WEIR__COPY_PEER) inner.peer = ((struct weir__event_device *)copy->peer)->handle;
    return weir__event_error(stream->device->base->copy(stream->handle, &inner), NULL);
}

static int work_fill(void *handle, void *to, uint8_t value, size_t bytes)
{
    struct weir__event_stream *stream = handle;
    return weir__event_error(stream->device->base->fill(stream->handle, to, value, bytes), NULL);
}

static int work_launch(void *handle, const struct weir__launch *launch)
{
    struct weir__event_stream *stream = handle;
    return weir__event_error(stream->device->base->launch(stream->handle, launch), NULL);
}

/* ---- modules ---- */

static int module_load(void *handle, const void *image, size_t bytes, void **module_out)
{
    struct weir__event_device *device = handle;
    struct part *module = malloc(sizeof *module);
    if (!module) return weir__event_error(WEIR_E_NO_MEMORY, "no memory for a module");
    module->base = device->base;
    int r = device->base->module_load(device->handle, image, bytes, &module->handle);
    if (r)
        free(module);
    else
        *module_out = module;
    return weir__event_error(r, NULL);
}

static void module_unload(void *handle)
{
    struct part *module = handle;
    module->base->module_unload(module->handle);
    free(module);
}

static int module_symbol(void *handle, const char *name, void **address_out, size_t *bytes_out)
{
    struct part *module = handle;
    return weir__event_error(module->base->module_symbol(module->handle, name, address_out, bytes_out), NULL);
}

static const struct weir__device_ops adapted_ops = {
    .size = sizeof(struct weir__device_ops),
    .version = WEIR__DEVICE_OPS_VERSION,
    .device_count = device_count,
    .device_open = device_open,
    .device_close = device_close,
    .last_error = last_error,
    .alloc = memory_alloc,
    .free = memory_free,
    .free_on_stream = free_on_stream,
    .stream_create = stream_create,
    .stream_destroy = stream_destroy,
    .stream_native = stream_native,
    .flush = stream_flush,
    .record = weir__event_stream_record,
    .reserve = weir__event_stream_reserve,
    .position_wait = weir__event_stream_wait,
    .completed = weir__event_stream_completed,
    .status = weir__event_stream_status,
    .forget = weir__event_stream_forget,
    .notify = weir__event_stream_notify,
    .sync = weir__event_stream_sync,
    .foreign_wait = foreign_wait,
    .foreign_signal = weir__event_stream_signal,
    .lend = lend,
    .gate_create = gate_create,
    .gate_wait = gate_wait,
    .gate_open = gate_open,
    .copy = work_copy,
    .fill = work_fill,
    .launch = work_launch,
    .host_function = weir__event_stream_function,
    .module_load = module_load,
    .module_unload = module_unload,
    .module_symbol = module_symbol,
};

int weir__device_adapt(const struct weir__device_ops *ops, void *backend, const struct weir__device_ops **adapted_out,
                       void **adapted_backend_out)
{
    if (ops->record) {
        *adapted_out = ops;
        *adapted_backend_out = backend;
        return WEIR_OK;
    }
    struct adapter *adapter = malloc(sizeof *adapter);
    if (!adapter) return WEIR_E_NO_MEMORY;
    *adapter = (struct adapter){.ops = adapted_ops, .base = ops, .backend = backend};
    adapter->ops.name = ops->name;
    if (!ops->free_on_stream) adapter->ops.free_on_stream = NULL;
    if (!ops->flush) adapter->ops.flush = NULL;
    if (!ops->host_function) adapter->ops.host_function = NULL;
    if (!ops->event_record) adapter->ops.position_wait = NULL;
    if (!ops->lend) adapter->ops.lend = NULL;
    if (!ops->gate_create) {
        adapter->ops.gate_create = NULL;
        adapter->ops.gate_wait = NULL;
        adapter->ops.gate_open = NULL;
    }
    if (!ops->event_record || !ops->foreign_wait) {
        adapter->ops.foreign_wait = NULL;
        adapter->ops.foreign_signal = NULL;
    }
    *adapted_out = &adapter->ops;
    *adapted_backend_out = adapter;
    return WEIR_OK;
}

void weir__device_unadapt(const struct weir__device_ops *adapted, void *adapted_backend)
{
    if (adapted->record == weir__event_stream_record) free(adapted_backend);
}

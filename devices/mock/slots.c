/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* The mock's table of the events kind, and its native API for foreign work. */

#include <devices/mock/private.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- device ---- */

static int device_count(void *backend, uint32_t *count_out)
{
    struct weir__mock *mock = backend;
    int r = weir__mock_enter(mock, NULL, WEIR__MOCK_SLOT_device_count);
    if (r) return r;
    *count_out = mock->options.devices;
    pthread_mutex_unlock(&mock->lock);
    return WEIR_OK;
}

static int device_open(void *backend, uint32_t number, const struct weir__device_notice *notice,
                       struct weir__device_info *info_out, void **device_out)
{
    (void)notice; /* the table has no positions */
    struct weir__mock *mock = backend;
    int r = weir__mock_enter(mock, NULL, WEIR__MOCK_SLOT_device_open);
    if (r) return r;
    const struct weir__mock_options *options = &mock->options;
    if (number >= options->devices || mock->devices[number].open) {
        pthread_mutex_unlock(&mock->lock);
        return weir__mock_error(number >= options->devices ? WEIR_E_NO_DEVICE : WEIR_E_BUSY, "mock: device %u", number);
    }
    mock->devices[number].open = true;
    *info_out = (struct weir__device_info){.advised_streams = options->advised_streams};
    if (!options->no_events) {
        info_out->features = WEIR__DEVICE_WAIT | WEIR__DEVICE_FOREIGN;
        if (!options->no_cross_wait) info_out->features |= WEIR__DEVICE_CROSS_WAIT;
    }
    snprintf(info_out->name, sizeof info_out->name, "mock:%u", number);
    snprintf(info_out->text, sizeof info_out->text, "a device that a test moves");
    *device_out = &mock->devices[number];
    pthread_mutex_unlock(&mock->lock);
    return WEIR_OK;
}

/* Count a call that cannot fail, and lock. */
static void enter_silent(struct weir__mock *mock, enum weir__mock_slot slot)
{
    pthread_mutex_lock(&mock->lock);
    mock->calls[slot]++;
}

static void device_close(void *handle)
{
    struct weir__mock_device *device = handle;
    enter_silent(device->mock, WEIR__MOCK_SLOT_device_close);
    if (!device->open) weir__mock_violation_locked(device->mock, "close: device %u is not open", device->number);
    device->open = false;
    weir__mock_leaks_locked(device);
    pthread_mutex_unlock(&device->mock->lock);
}

static const char *last_error(void *device)
{
    (void)device;
    return weir__mock_error_text();
}

/* ---- memory ---- */

static int memory_alloc(void *handle, size_t bytes, void **address_out)
{
    struct weir__mock_device *device = handle;
    int r = weir__mock_enter(device->mock, device, WEIR__MOCK_SLOT_alloc);
    if (r) return r;
    void *address = malloc(bytes ? bytes : 1);
    if (address && !weir__mock_memory_add_locked(device, address)) {
        free(address);
        address = NULL;
    }
    pthread_mutex_unlock(&device->mock->lock);
    if (!address) return weir__mock_error(WEIR_E_NO_MEMORY, "mock: no memory for %zu bytes", bytes);
    memset(address, 0xA5, bytes < 65536 ? bytes : 65536);
    *address_out = address;
    return WEIR_OK;
}

/* Memory can be given back when the device is lost as well. */
static int memory_free(void *handle, void *address)
{
    struct weir__mock_device *device = handle;
    int r = weir__mock_enter(device->mock, NULL, WEIR__MOCK_SLOT_free);
    if (r) return r;
    bool known = weir__mock_memory_remove_locked(device, address);
    pthread_mutex_unlock(&device->mock->lock);
    if (!known) return weir__mock_error(WEIR_E_INVALID, "mock: %p is not memory of device %u", address, device->number);
    free(address);
    return WEIR_OK;
}

/* ---- streams ---- */

static int stream_new(struct weir__mock_device *device, bool foreign, void **stream_out)
{
    int r = weir__mock_enter(device->mock, device, WEIR__MOCK_SLOT_stream_create);
    if (r) return r;
    struct weir__mock_stream *stream = calloc(1, sizeof *stream);
    if (stream) {
        weir__mock_object_add_locked(&stream->object, device, WEIR__MOCK_STREAM);
        stream->object.foreign = foreign;
        stream->tail = &stream->head;
        stream->next = device->mock->streams;
        device->mock->streams = stream;
        *stream_out = stream;
    }
    pthread_mutex_unlock(&device->mock->lock);
    return stream ? WEIR_OK : weir__mock_error(WEIR_E_NO_MEMORY, "mock: no memory for a stream");
}

static int stream_create(void *device, void *owner, int32_t priority, void **stream_out)
{
    (void)owner;
    (void)priority;
    return stream_new(device, false, stream_out);
}

static void stream_destroy(void *handle)
{
    struct weir__mock_stream *stream = handle;
    struct weir__mock *mock = stream->object.mock;
    enter_silent(mock, WEIR__MOCK_SLOT_stream_destroy);
    if (weir__mock_object_check_locked(&stream->object, WEIR__MOCK_STREAM, "stream_destroy")) {
        if (stream->queued != stream->ended && !stream->object.device->lost)
            weir__mock_violation_locked(mock, "stream_destroy: work is queued on the stream");
        stream->object.alive = false;
    }
    pthread_mutex_unlock(&mock->lock);
}

static void *stream_native(void *handle)
{
    struct weir__mock_stream *stream = handle;
    enter_silent(stream->object.mock, WEIR__MOCK_SLOT_stream_native);
    weir__mock_object_check_locked(&stream->object, WEIR__MOCK_STREAM, "stream_native");
    pthread_mutex_unlock(&stream->object.mock->lock);
    return stream;
}

/* Relaxed: a hint for finding overlaps; ordering the calls is what the caller has to do. */
static void leave(struct weir__mock_stream *stream)
{
    pthread_mutex_unlock(&stream->object.mock->lock);
    stream->touched++;
    atomic_store_explicit(&stream->in_call, false, memory_order_relaxed);
}

/* Begin a stream call: 0 and locked, or the code that the call has to return. */
static int enter(struct weir__mock_stream *stream, enum weir__mock_slot slot, const char *name)
{
    bool overlaps = atomic_exchange_explicit(&stream->in_call, true, memory_order_relaxed);
    if (!overlaps) stream->touched++;
    int r = weir__mock_enter(stream->object.mock, stream->object.device, slot);
    if (r) {
        atomic_store_explicit(&stream->in_call, false, memory_order_relaxed);
        return r;
    }
    if (overlaps)
        weir__mock_violation_locked(stream->object.mock, "%s: overlaps with another call on the stream", name);
    if (weir__mock_object_check_locked(&stream->object, WEIR__MOCK_STREAM, name)) return WEIR_OK;
    leave(stream);
    return weir__mock_error(WEIR_E_INVALID, "mock: %s on a bad stream", name);
}

/* An item behind the stream call's other checks; @count: how many arguments or waits follow it. */
static struct weir__mock_work *work_new(struct weir__mock_stream *stream, uint32_t kind, size_t count)
{
    struct weir__mock_work *work = calloc(1, sizeof *work + count * sizeof work->more[0]);
    if (!work) {
        leave(stream);
        weir__mock_error(WEIR_E_NO_MEMORY, "mock: no memory for an item");
        return NULL;
    }
    work->kind = kind;
    work->count = count;
    return work;
}

static int queue_and_leave(struct weir__mock_stream *stream, struct weir__mock_work *work)
{
    weir__mock_queue_locked(stream, work);
    leave(stream);
    return WEIR_OK;
}

static int free_on_stream(void *handle, void *address)
{
    struct weir__mock_stream *stream = handle;
    int r = enter(stream, WEIR__MOCK_SLOT_free_on_stream, "free_on_stream");
    if (r) return r;
    struct weir__mock_work *work = work_new(stream, WEIR__MOCK_FREE, 0);
    if (!work) return WEIR_E_NO_MEMORY;
    work->address = address;
    return queue_and_leave(stream, work);
}

static int stream_sync(void *handle)
{
    struct weir__mock_stream *stream = handle;
    struct weir__mock *mock = stream->object.mock;
    int r = weir__mock_enter(mock, stream->object.device, WEIR__MOCK_SLOT_stream_sync);
    if (r) return r;
    weir__mock_object_check_locked(&stream->object, WEIR__MOCK_STREAM, "stream_sync");
    for (uint64_t end = stream->queued; stream->ended < end;) weir__mock_block_locked(mock);
    int status = stream->object.device->lost ? WEIR_E_DEVICE : stream->unreported;
    stream->unreported = 0;
    pthread_mutex_unlock(&mock->lock);
    return status ? weir__mock_error(status, "mock: work on the stream failed") : WEIR_OK;
}

/* ---- events ---- */

static int event_new(struct weir__mock_device *device, bool foreign, void **event_out)
{
    int r = weir__mock_enter(device->mock, device, WEIR__MOCK_SLOT_event_create);
    if (r) return r;
    struct weir__mock_event *event = calloc(1, sizeof *event);
    if (event && !(event->record = calloc(1, sizeof *event->record))) {
        free(event);
        event = NULL;
    }
    if (event) {
        weir__mock_object_add_locked(&event->object, device, WEIR__MOCK_EVENT);
        event->object.foreign = foreign;
        *event_out = event;
    }
    pthread_mutex_unlock(&device->mock->lock);
    return event ? WEIR_OK : weir__mock_error(WEIR_E_NO_MEMORY, "mock: no memory for an event");
}

static int event_create(void *device, void **event_out)
{
    return event_new(device, false, event_out);
}

static int event_record(void *handle, void *event_handle)
{
    struct weir__mock_stream *stream = handle;
    struct weir__mock_event *event = event_handle;
    int r = enter(stream, WEIR__MOCK_SLOT_event_record, "event_record");
    if (r) return r;
    if (!weir__mock_object_check_locked(&event->object, WEIR__MOCK_EVENT, "event_record")) {
        leave(stream);
        return weir__mock_error(WEIR_E_INVALID, "mock: record of a bad event");
    }
    if (event->done < event->recorded)
        weir__mock_violation_locked(stream->object.mock, "event_record: the former record is pending");
    if (event->object.device != stream->object.device)
        weir__mock_violation_locked(stream->object.mock, "event_record: the event is of another device");
    struct weir__mock_work *work = event->record;
    if (event->done < event->recorded) { /* a breach: the item is in a queue */
        work = work_new(stream, WEIR__MOCK_RECORD, 0);
        if (!work) return WEIR_E_NO_MEMORY;
    } else {
        memset(work, 0, sizeof *work);
        work->kind = WEIR__MOCK_RECORD;
        work->kept = true;
    }
    work->point = (struct weir__mock_wait){.event = event, .generation = ++event->recorded};
    return queue_and_leave(stream, work);
}

/* May @stream wait for @event? Notes breaches; those that cannot be waited for are reported by false. */
static bool wait_is_legal_locked(struct weir__mock_stream *stream, struct weir__mock_event *event, const char *name)
{
    struct weir__mock *mock = stream->object.mock;
    if (!weir__mock_object_check_locked(&event->object, WEIR__MOCK_EVENT, name)) return false;
    if (!event->recorded) weir__mock_violation_locked(mock, "%s: the event was never recorded", name);
    if (event->object.mock != mock || (mock->options.no_cross_wait && event->object.device != stream->object.device))
        weir__mock_violation_locked(mock, "%s: the event is of a device that cannot be waited for", name);
    return event->object.mock == mock;
}

static int wait_locked(struct weir__mock_stream *stream, void *const *events, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (!wait_is_legal_locked(stream, events[i], name)) {
            leave(stream);
            return weir__mock_error(WEIR_E_INVALID, "mock: wait for a bad event");
        }
    struct weir__mock_work *work = work_new(stream, WEIR__MOCK_WAIT, n);
    if (!work) return WEIR_E_NO_MEMORY;
    for (size_t i = 0; i < n; i++) {
        struct weir__mock_event *event = events[i];
        work->more[i].wait = (struct weir__mock_wait){.event = event, .generation = event->recorded};
    }
    return queue_and_leave(stream, work);
}

static int event_wait(void *handle, void *const *events, size_t n)
{
    struct weir__mock_stream *stream = handle;
    int r = enter(stream, WEIR__MOCK_SLOT_event_wait, "event_wait");
    return r ? r : wait_locked(stream, events, n, "event_wait");
}

static int foreign_wait(void *handle, void *native_event)
{
    struct weir__mock_stream *stream = handle;
    int r = enter(stream, WEIR__MOCK_SLOT_foreign_wait, "foreign_wait");
    return r ? r : wait_locked(stream, &native_event, 1, "foreign_wait");
}

static int event_signal(void *event, void *native_stream)
{
    struct weir__mock_stream *stream = native_stream;
    int r = enter(stream, WEIR__MOCK_SLOT_event_signal, "event_signal");
    return r ? r : wait_locked(stream, &event, 1, "event_signal");
}

/* Of an event's newest record. Never recorded: done. */
static int event_state_locked(const struct weir__mock_event *event)
{
    if (event->object.device->lost) return WEIR_E_DEVICE;
    return event->done < event->recorded ? WEIR_E_PENDING : event->status;
}

static bool answers_late_locked(struct weir__mock_event *event)
{
    if (!event->object.mock->options.late_answers || event->denied == event->done) return false;
    event->denied = event->done;
    return true;
}

static int event_query(void *handle)
{
    struct weir__mock_event *event = handle;
    int r = weir__mock_enter(event->object.mock, NULL, WEIR__MOCK_SLOT_event_query);
    if (r) return r;
    r = weir__mock_object_check_locked(&event->object, WEIR__MOCK_EVENT, "event_query") ? event_state_locked(event)
                                                                                        : WEIR_E_INVALID;
    if (!r && answers_late_locked(event)) r = WEIR_E_PENDING;
    pthread_mutex_unlock(&event->object.mock->lock);
    return r && r != WEIR_E_PENDING ? weir__mock_error(r, "mock: work before the event failed") : r;
}

static int event_sync(void *handle)
{
    struct weir__mock_event *event = handle;
    struct weir__mock *mock = event->object.mock;
    int r = weir__mock_enter(mock, NULL, WEIR__MOCK_SLOT_event_sync);
    if (r) return r;
    weir__mock_object_check_locked(&event->object, WEIR__MOCK_EVENT, "event_sync");
    uint64_t generation = event->recorded;
    while (event_state_locked(event) == WEIR_E_PENDING && event->done < generation) weir__mock_block_locked(mock);
    if (event->recorded != generation)
        weir__mock_violation_locked(mock, "event_record: the event was recorded again during event_sync");
    r = event_state_locked(event);
    pthread_mutex_unlock(&mock->lock);
    return r ? weir__mock_error(r, "mock: work before the event failed") : WEIR_OK;
}

static int event_notify(void *handle, void (*done)(void *arg, int status), void *arg)
{
    struct weir__mock_event *event = handle;
    struct weir__mock *mock = event->object.mock;
    int r = weir__mock_enter(mock, event->object.device, WEIR__MOCK_SLOT_event_notify);
    if (r) return r;
    bool alive = weir__mock_object_check_locked(&event->object, WEIR__MOCK_EVENT, "event_notify");
    if (alive && event->done == event->recorded) {
        int status = event->status;
        pthread_mutex_unlock(&mock->lock);
        done(arg, status);
        return WEIR_OK;
    }
    struct weir__mock_notify *notify = alive ? calloc(1, sizeof *notify) : NULL;
    if (notify) {
        *notify = (struct weir__mock_notify){
            .next = event->notifies, .generation = event->recorded, .done = done, .arg = arg};
        event->notifies = notify;
    }
    pthread_mutex_unlock(&mock->lock);
    return notify ? WEIR_OK : weir__mock_error(alive ? WEIR_E_NO_MEMORY : WEIR_E_INVALID, "mock: event_notify");
}

static void event_destroy(void *handle)
{
    struct weir__mock_event *event = handle;
    enter_silent(event->object.mock, WEIR__MOCK_SLOT_event_destroy);
    if (weir__mock_object_check_locked(&event->object, WEIR__MOCK_EVENT, "event_destroy")) event->object.alive = false;
    pthread_mutex_unlock(&event->object.mock->lock);
}

/* ---- work ---- */

static int work_copy(void *handle, const struct weir__copy *copy)
{
    struct weir__mock_stream *stream = handle;
    int r = enter(stream, WEIR__MOCK_SLOT_copy, "copy");
    if (r) return r;
    if (!copy->bytes || !copy->to || !copy->from || copy->kind < WEIR__COPY_TO_DEVICE || copy->kind > WEIR__COPY_PEER)
        weir__mock_violation_locked(stream->object.mock, "copy: a bad description");
    if (copy->kind == WEIR__COPY_PEER &&
        (!copy->peer || ((struct weir__mock_device *)copy->peer)->mock != stream->object.mock))
        weir__mock_violation_locked(stream->object.mock, "copy: the peer is of another backend");
    struct weir__mock_work *work = work_new(stream, WEIR__MOCK_COPY, 0);
    if (!work) return WEIR_E_NO_MEMORY;
    work->copy = *copy;
    return queue_and_leave(stream, work);
}

static int work_fill(void *handle, void *to, uint8_t value, size_t bytes)
{
    struct weir__mock_stream *stream = handle;
    int r = enter(stream, WEIR__MOCK_SLOT_fill, "fill");
    if (r) return r;
    struct weir__mock_work *work = work_new(stream, WEIR__MOCK_FILL, 0);
    if (!work) return WEIR_E_NO_MEMORY;
    work->fill.to = to;
    work->fill.value = value;
    work->fill.bytes = bytes;
    return queue_and_leave(stream, work);
}

static int work_launch(void *handle, const struct weir__launch *launch)
{
    struct weir__mock_stream *stream = handle;
    int r = enter(stream, WEIR__MOCK_SLOT_launch, "launch");
    if (r) return r;
    struct weir__mock_work *work = work_new(stream, WEIR__MOCK_LAUNCH, launch->nargs ? launch->nargs : 1);
    if (!work) return WEIR_E_NO_MEMORY;
    memcpy(&work->launch.function, &launch->kernel, sizeof work->launch.function);
    for (uint32_t i = 0; i < launch->nargs; i++)
        memcpy((uint64_t *)&work->more[0] + i, &launch->args[i], sizeof(uint64_t));
    return queue_and_leave(stream, work);
}

static int work_host_function(void *handle, int (*function)(void *arg), void *arg)
{
    struct weir__mock_stream *stream = handle;
    int r = enter(stream, WEIR__MOCK_SLOT_host_function, "host_function");
    if (r) return r;
    struct weir__mock_work *work = work_new(stream, WEIR__MOCK_HOST_FUNCTION, 0);
    if (!work) return WEIR_E_NO_MEMORY;
    work->host.function = function;
    work->host.arg = arg;
    return queue_and_leave(stream, work);
}

/* ---- modules ---- */

static int module_load(void *handle, const void *image, size_t bytes, void **module_out)
{
    (void)image;
    (void)bytes;
    struct weir__mock_device *device = handle;
    int r = weir__mock_enter(device->mock, device, WEIR__MOCK_SLOT_module_load);
    if (r) return r;
    struct weir__mock_module *module = calloc(1, sizeof *module);
    if (module) {
        weir__mock_object_add_locked(&module->object, device, WEIR__MOCK_MODULE);
        *module_out = module;
    }
    pthread_mutex_unlock(&device->mock->lock);
    return module ? WEIR_OK : weir__mock_error(WEIR_E_NO_MEMORY, "mock: no memory for a module");
}

static void module_unload(void *handle)
{
    struct weir__mock_module *module = handle;
    enter_silent(module->object.mock, WEIR__MOCK_SLOT_module_unload);
    if (weir__mock_object_check_locked(&module->object, WEIR__MOCK_MODULE, "module_unload"))
        module->object.alive = false;
    pthread_mutex_unlock(&module->object.mock->lock);
}

static int module_symbol(void *handle, const char *name, void **address_out, size_t *bytes_out)
{
    struct weir__mock_module *module = handle;
    struct weir__mock *mock = module->object.mock;
    int r = weir__mock_enter(mock, module->object.device, WEIR__MOCK_SLOT_module_symbol);
    if (r) return r;
    weir__mock_object_check_locked(&module->object, WEIR__MOCK_MODULE, "module_symbol");
    pthread_mutex_unlock(&mock->lock);
    return weir__mock_find_kernel(mock, name, address_out, bytes_out);
}

const struct weir__device_ops weir__mock_events_ops = {
    .size = sizeof(struct weir__device_ops),
    .version = WEIR__DEVICE_OPS_VERSION,
    .name = "mock",
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
    .event_create = event_create,
    .event_record = event_record,
    .event_wait = event_wait,
    .event_query = event_query,
    .event_sync = event_sync,
    .event_destroy = event_destroy,
    .event_notify = event_notify,
    .event_signal = event_signal,
    .stream_sync = stream_sync,
    .foreign_wait = foreign_wait,
    .copy = work_copy,
    .fill = work_fill,
    .launch = work_launch,
    .host_function = work_host_function,
    .module_load = module_load,
    .module_unload = module_unload,
    .module_symbol = module_symbol,
};

/* ---- foreign work ---- */

int weir__mock_stream_create(struct weir__mock *mock, uint32_t device, void **native_stream_out)
{
    if (device >= mock->options.devices) return WEIR_E_NO_DEVICE;
    return stream_new(&mock->devices[device], true, native_stream_out);
}

void weir__mock_stream_destroy(void *native_stream)
{
    stream_destroy(native_stream);
}

int weir__mock_stream_function(void *native_stream, int (*function)(void *arg), void *arg)
{
    return work_host_function(native_stream, function, arg);
}

int weir__mock_event_create(struct weir__mock *mock, uint32_t device, void **native_event_out)
{
    if (device >= mock->options.devices) return WEIR_E_NO_DEVICE;
    return event_new(&mock->devices[device], true, native_event_out);
}

int weir__mock_event_record(void *native_stream, void *native_event)
{
    return event_record(native_stream, native_event);
}

void weir__mock_event_destroy(void *native_event)
{
    event_destroy(native_event);
}

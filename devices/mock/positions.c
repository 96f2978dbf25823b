/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/*
 * The mock's table of the positions kind: work is over when it is queued, a record is reached when it is made. For
 * measuring what lies above the backend, so no lock, no check, and counters with one writer each.
 *
 * A stream's fields are written by stream calls, which the caller orders, and read from any thread. Only the position
 * publishes something: what the work of the stretch wrote.
 */

#include <devices/mock/private.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum counter { RECORDS, POSITION_WAITS, LAUNCHES, HOST_FUNCTIONS, COPIES, FILLS, COUNTERS };

static const char *const counter_names[COUNTERS] = {"record",        "position_wait", "launch",
                                                    "host_function", "copy",          "fill"};

struct quick_stream {
    struct weir__mock_object object;
    void *owner;
    void (*reached)(void *owner, uint64_t reached);
    _Atomic uint64_t *failures; /* of the device */
    bool count_only;
    int stretch; /* stream calls only: first failure since the newest record */
    _Atomic uint64_t position;
    _Atomic uint64_t failed; /* newest position whose stretch failed, and how: older ones are not kept */
    atomic_int failed_status;
    _Atomic uint64_t counters[COUNTERS];
};

struct quick_device {
    struct weir__mock *mock;
    struct weir__device_notice notice;
    uint32_t number;
    _Atomic uint64_t failures;
};

static int device_count(void *backend, uint32_t *count_out)
{
    *count_out = ((struct weir__mock *)backend)->options.devices;
    return WEIR_OK;
}

static int device_open(void *backend, uint32_t number, const struct weir__device_notice *notice,
                       struct weir__device_info *info_out, void **device_out)
{
    struct weir__mock *mock = backend;
    if (number >= mock->options.devices) return weir__mock_error(WEIR_E_NO_DEVICE, "mock: no device %u", number);
    struct quick_device *device = malloc(sizeof *device);
    if (!device) return weir__mock_error(WEIR_E_NO_MEMORY, "mock: no memory for a device");
    *device = (struct quick_device){.mock = mock, .notice = *notice, .number = number};
    *info_out = (struct weir__device_info){.advised_streams = mock->options.advised_streams,
                                           .features = WEIR__DEVICE_WAIT | WEIR__DEVICE_INLINE_SYNC};
    if (!mock->options.no_cross_wait) info_out->features |= WEIR__DEVICE_CROSS_WAIT;
    info_out->failures = &device->failures;
    snprintf(info_out->name, sizeof info_out->name, "mock:%u", number);
    snprintf(info_out->text, sizeof info_out->text, "a device whose work costs nothing");
    *device_out = device;
    return WEIR_OK;
}

static void device_close(void *device)
{
    free(device);
}

static const char *last_error(void *device)
{
    (void)device;
    return weir__mock_error_text();
}

static int memory_alloc(void *device, size_t bytes, void **address_out)
{
    (void)device;
    void *address = malloc(bytes ? bytes : 1);
    if (!address) return weir__mock_error(WEIR_E_NO_MEMORY, "mock: no memory for %zu bytes", bytes);
    *address_out = address;
    return WEIR_OK;
}

static int memory_free(void *device, void *address)
{
    (void)device;
    free(address);
    return WEIR_OK;
}

/* The mock keeps the stream until it is destroyed itself: its counters are asked for later. */
static int stream_create(void *handle, void *owner, int32_t priority, void **stream_out)
{
    (void)priority;
    struct quick_device *device = handle;
    struct weir__mock *mock = device->mock;
    struct quick_stream *stream = calloc(1, sizeof *stream);
    if (!stream) return weir__mock_error(WEIR_E_NO_MEMORY, "mock: no memory for a stream");
    stream->owner = owner;
    stream->reached = device->notice.reached;
    stream->failures = &device->failures;
    stream->count_only = mock->options.count_only;
    pthread_mutex_lock(&mock->lock);
    /* Of the kinds that own nothing else. */
    weir__mock_object_add_locked(&stream->object, &mock->devices[device->number], WEIR__MOCK_MODULE);
    pthread_mutex_unlock(&mock->lock);
    *stream_out = stream;
    return WEIR_OK;
}

static void stream_destroy(void *handle)
{
    struct quick_stream *stream = handle;
    pthread_mutex_lock(&stream->object.mock->lock);
    stream->object.alive = false;
    pthread_mutex_unlock(&stream->object.mock->lock);
}

static void *stream_native(void *stream)
{
    return stream;
}

/* Relaxed: one writer, and readers want a number, not an order. */
static inline void count(struct quick_stream *stream, enum counter which)
{
    uint64_t n = atomic_load_explicit(&stream->counters[which], memory_order_relaxed);
    atomic_store_explicit(&stream->counters[which], n + 1, memory_order_relaxed);
}

static int record(void *handle, uint64_t *position_out)
{
    struct quick_stream *stream = handle;
    /* Relaxed: only stream calls write it. */
    uint64_t position = atomic_load_explicit(&stream->position, memory_order_relaxed) + 1;
    count(stream, RECORDS);
    if (stream->stretch) {
        /* Relaxed: published by the position. */
        atomic_store_explicit(&stream->failed_status, stream->stretch, memory_order_relaxed);
        atomic_store_explicit(&stream->failed, position, memory_order_relaxed);
        stream->stretch = 0;
        /* Release: pairs with the acquire of whoever reads weir__device_info.failures. */
        atomic_fetch_add_explicit(stream->failures, 1, memory_order_release);
    }
    /* Release: what the work wrote and how it ended; pairs with the acquire in completed(). */
    atomic_store_explicit(&stream->position, position, memory_order_release);
    *position_out = position;
    return WEIR_OK;
}

static int position_wait(void *handle, void *const *streams, const uint64_t *positions, size_t n)
{
    struct quick_stream *stream = handle;
    /* Acquire: pairs with the release in record() of those that are waited for. */
    for (size_t i = 0; i < n; i++)
        if (atomic_load_explicit(&((struct quick_stream *)streams[i])->position, memory_order_acquire) < positions[i])
            return weir__mock_error(WEIR_E_INVALID, "mock: wait for a position that was not recorded");
    count(stream, POSITION_WAITS);
    return WEIR_OK;
}

static uint64_t completed(void *handle, int *status_out)
{
    struct quick_stream *stream = handle;
    if (status_out) *status_out = 0;
    /* Acquire: pairs with the release in record(). */
    return atomic_load_explicit(&stream->position, memory_order_acquire);
}

static int status(void *handle, uint64_t position)
{
    struct quick_stream *stream = handle;
    /* Relaxed: the caller knows that the position is reached, that is by an acquire of it. */
    if (atomic_load_explicit(&stream->failed, memory_order_relaxed) != position) return WEIR_OK;
    return atomic_load_explicit(&stream->failed_status, memory_order_relaxed);
}

static void forget(void *stream, uint64_t position)
{
    (void)stream;
    (void)position;
}

static int notify(void *handle, uint64_t position)
{
    struct quick_stream *stream = handle;
    (void)position;
    stream->reached(stream->owner, completed(stream, NULL));
    return WEIR_OK;
}

static int position_sync(void *stream, uint64_t position)
{
    (void)position;
    (void)completed(stream, NULL); /* its acquire orders the caller behind the work */
    return WEIR_OK;
}

static int work_copy(void *stream, const struct weir__copy *copy)
{
    count(stream, COPIES);
    weir__mock_copy_now(copy);
    return WEIR_OK;
}

static int work_fill(void *stream, void *to, uint8_t value, size_t bytes)
{
    count(stream, FILLS);
    memset(to, value, bytes);
    return WEIR_OK;
}

static int work_launch(void *handle, const struct weir__launch *launch)
{
    struct quick_stream *stream = handle;
    count(stream, LAUNCHES);
    if (stream->count_only) return WEIR_OK;
    void (*function)(const uint64_t *args);
    memcpy(&function, &launch->kernel, sizeof function);
    function(launch->args);
    return WEIR_OK;
}

static int work_host_function(void *handle, int (*function)(void *arg), void *arg)
{
    struct quick_stream *stream = handle;
    count(stream, HOST_FUNCTIONS);
    if (stream->count_only) return WEIR_OK;
    int r = function(arg);
    if (r && !stream->stretch) stream->stretch = r > 0 ? WEIR_E_TASK : r;
    return WEIR_OK;
}

/* A module is the mock: there is nothing to load. */
static int module_load(void *device, const void *image, size_t bytes, void **module_out)
{
    (void)image;
    (void)bytes;
    *module_out = ((struct quick_device *)device)->mock;
    return WEIR_OK;
}

static void module_unload(void *module)
{
    (void)module;
}

static int module_symbol(void *module, const char *name, void **address_out, size_t *bytes_out)
{
    return weir__mock_find_kernel(module, name, address_out, bytes_out);
}

uint64_t weir__mock_positions_calls(struct weir__mock *mock, const char *slot)
{
    uint64_t sum = 0;
    uint32_t which = 0;
    while (which < COUNTERS && strcmp(counter_names[which], slot)) which++;
    if (which == COUNTERS) return 0;
    pthread_mutex_lock(&mock->lock);
    for (struct weir__mock_object *object = mock->objects; object; object = object->next)
        sum += atomic_load_explicit(&((struct quick_stream *)object)->counters[which], memory_order_relaxed);
    pthread_mutex_unlock(&mock->lock);
    return sum;
}

const struct weir__device_ops weir__mock_positions_ops = {
    .size = sizeof(struct weir__device_ops),
    .version = WEIR__DEVICE_OPS_VERSION,
    .name = "mock",
    .device_count = device_count,
    .device_open = device_open,
    .device_close = device_close,
    .last_error = last_error,
    .alloc = memory_alloc,
    .free = memory_free,
    .stream_create = stream_create,
    .stream_destroy = stream_destroy,
    .stream_native = stream_native,
    .record = record,
    .position_wait = position_wait,
    .completed = completed,
    .status = status,
    .forget = forget,
    .notify = notify,
    .sync = position_sync,
    .copy = work_copy,
    .fill = work_fill,
    .launch = work_launch,
    .host_function = work_host_function,
    .module_load = module_load,
    .module_unload = module_unload,
    .module_symbol = module_symbol,
};

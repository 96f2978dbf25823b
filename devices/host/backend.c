/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The ops table of the CPU backend: translates positions (outside = inside - base), refuses work after a fork. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <graph/error.h>
#include <devices/thread.h>
#include <weir/host.h>

#include "internal.h"

_Atomic uint32_t weir__host_generation;

enum { TEXT = 256 };
static _Thread_local void *error_text;

int weir__host_fail(int code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = weir__thread_memory(&error_text, TEXT);
    if (text) vsnprintf(text, TEXT, format, args);
    va_end(args);
    /* The functions of weir/host.h are called without exec/ around them. */
    return weir__fail(code, "%s", text ? text : "no memory");
}

int weir__host_fail_forked(void)
{
    return weir__host_fail(WEIR_E_FORKED, "the process was forked: this CPU device belongs to the parent");
}

void *weir__host_allocate(size_t bytes)
{
    void *memory;
    if (posix_memalign(&memory, 64, bytes)) {
        weir__host_fail(WEIR_E_NO_MEMORY, "no memory for %zu bytes", bytes);
        return NULL;
    }
    return memory;
}

/* ---- backend ---- */

static void forked(void)
{
    /* Relaxed: the child has one thread. */
    atomic_fetch_add_explicit(&weir__host_generation, 1, memory_order_relaxed);
    weir__host_pool_forked();
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, forked);
}

int weir__host_backend_create(uint32_t devices, const struct weir__host_options *options, void **backend_out)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (!devices) return weir__host_fail(WEIR_E_INVALID, "a CPU backend without devices");
    pthread_once(&once, watch_forks);
    int code = weir__host_work_init();
    if (code) return code;
    struct host_backend *backend = weir__host_allocate(sizeof *backend);
    if (!backend) return WEIR_E_NO_MEMORY;
    *backend = (struct host_backend){
        .devices = devices,
        .options = *options,
        .generation = atomic_load_explicit(&weir__host_generation, memory_order_relaxed),
    };
    *backend_out = backend;
    return WEIR_OK;
}

void weir__host_backend_destroy(void *backend)
{
    free(backend);
}

/* ---- device ---- */

static int device_count(void *backend, uint32_t *count_out)
{
    *count_out = ((struct host_backend *)backend)->devices;
    return WEIR_OK;
}

/* What speaks of CPU devices is weir itself (include/weir/host.h). */
static const struct weir__native native = {
    .runtime = WEIR_INTEROP_RUNTIME,
    .name = "weir",
    .device = {WEIR__NATIVE_DEVICE, "struct weir_device *", 0},
    .context = {WEIR__NATIVE_CONTEXT, "struct weir_context *", 0},
    .stream_type = "void *, for weir_host_enqueue()",
};

static void describe(uint32_t number, struct weir__device_info *info)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN), pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    memset(info, 0, sizeof *info);
    snprintf(info->name, sizeof info->name, "host:%u", number);
    snprintf(info->text, sizeof info->text, "CPU, %ld core%s, up to %u threads", cores, cores == 1 ? "" : "s",
             HOST_WORKERS_MAX);
    info->features = WEIR__DEVICE_WAIT | WEIR__DEVICE_CROSS_WAIT | WEIR__DEVICE_INLINE_SYNC | WEIR__DEVICE_FOREIGN;
    /* A kernel may wait for another one; whatever shares its stream then waits, too. Streams that are not needed cost nothing. */
    info->advised_streams = 32;
    info->natives = &native;
    info->nnatives = 1;
    info->memory_bytes = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
}

static int device_open(void *backend, uint32_t number, const struct weir__device_notice *notice,
                       struct weir__device_info *info_out, void **device_out)
{
    const struct host_backend *host = backend;
    if (weir__host_is_foreign_process(host->generation)) return weir__host_fail_forked();
    if (number >= host->devices)
        return weir__host_fail(WEIR_E_NO_DEVICE, "no CPU device %u, there are %u", number, host->devices);
    struct host_device *device = weir__host_device_get(host, number, notice);
    if (!device) return WEIR_E_NO_MEMORY;
    describe(number, info_out);
    info_out->failures = &device->failures;
    *device_out = device;
    return WEIR_OK;
}

static void device_close(void *device)
{
    struct host_device *host = device;
    if (!weir__host_is_foreign_process(host->generation)) weir__host_device_put(host);
}

static const char *last_error(void *device)
{
    (void)device;
    return error_text ? error_text : "";
}

void weir__host_device_threads(void *device, struct weir__host_threads *threads_out)
{
    struct host_device *host = device;
    pthread_mutex_lock(&host->lock);
    threads_out->started = atomic_load_explicit(&host->nworkers, memory_order_relaxed);
    threads_out->parked = host->nparked;
    threads_out->wakes = host->wakes;
    pthread_mutex_unlock(&host->lock);
}

/* ---- memory ---- */

static int device_alloc(void *device, size_t bytes, void **address_out)
{
    (void)device;
    if (!bytes) return weir__host_fail(WEIR_E_INVALID, "no bytes to allocate");
    void *address = weir__host_allocate(bytes);
    if (!address) return WEIR_E_NO_MEMORY;
    *address_out = address;
    return WEIR_OK;
}

static int device_free(void *device, void *address)
{
    (void)device;
    free(address);
    return WEIR_OK;
}

/* ---- streams ---- */

static inline bool is_forked(const struct host_stream *stream)
{
    return __builtin_expect(weir__host_is_foreign_process(stream->generation), 0);
}

static int stream_create(void *device, void *owner, int32_t priority, void **stream_out)
{
    struct host_device *host = device;
    if (weir__host_is_foreign_process(host->generation)) return weir__host_fail_forked();
    struct host_stream *stream;
    int code = weir__host_stream_make(host, owner, priority, false, &stream);
    if (!code) *stream_out = stream;
    return code;
}

static void stream_destroy(void *stream)
{
    if (!is_forked(stream)) weir__host_stream_end(stream);
}

static void *stream_native(void *stream)
{
    return stream;
}

static void stream_flush(void *stream)
{
    if (!is_forked(stream)) weir__host_stream_flush(stream);
}

static bool stream_flush_here(void *stream)
{
    return !is_forked(stream) && weir__host_stream_flush_here(stream);
}

/* ---- positions ---- */

static int stream_record(void *stream, uint64_t *position_out)
{
    struct host_stream *host = stream;
    uint64_t position;
    if (is_forked(host)) return weir__host_fail_forked();
    int code = weir__host_stream_record(host, HOST_RECORD, &position);
    if (!code) *position_out = position - host->base;
    return code;
}

static int stream_reserve(void *stream)
{
    if (is_forked(stream)) return weir__host_fail_forked();
    return weir__host_queue_reserve(stream);
}

static int stream_position_wait(void *stream, void *const *streams, const uint64_t *positions, size_t n)
{
    struct host_point few[16], *points = few;
    if (is_forked(stream)) return weir__host_fail_forked();
    if (!n) return WEIR_OK;
    if (n > sizeof few / sizeof few[0]) points = n <= SIZE_MAX / sizeof *points ? malloc(n * sizeof *points) : NULL;
    if (!points) return weir__host_fail(WEIR_E_NO_MEMORY, "no memory for a wait for %zu streams", n);
    for (size_t i = 0; i < n; i++) {
        struct host_stream *producer = streams[i];
        points[i] = (struct host_point){.stream = producer, .position = producer->base + positions[i]};
    }
    int code = weir__host_queue_wait(stream, points, n);
    if (points != few) free(points);
    return code;
}

static uint64_t stream_completed(void *stream, int *status_out)
{
    struct host_stream *host = stream;
    if (status_out) *status_out = is_forked(host) ? WEIR_E_FORKED : 0;
    /* Acquire: sees what the commands did; pairs with C1 in stream.c. */
    return atomic_load_explicit(&host->completed, memory_order_acquire) - host->base;
}

static const _Atomic uint64_t *stream_counter(void *stream, uint64_t *base_out)
{
    struct host_stream *host = stream;
    *base_out = host->base;
    return &host->completed;
}

static int stream_status(void *stream, uint64_t position)
{
    struct host_stream *host = stream;
    if (is_forked(host)) return weir__host_fail_forked();
    return weir__host_stream_status(host, host->base + position);
}

static void stream_forget(void *stream, uint64_t position)
{
    struct host_stream *host = stream;
    if (!is_forked(host)) weir__host_stream_forget(host, host->base + position);
}

static int stream_notify(void *stream, uint64_t position)
{
    struct host_stream *host = stream;
    if (is_forked(host)) return weir__host_fail_forked();
    return weir__host_stream_notify(host, host->base + position);
}

static int stream_sync(void *stream, uint64_t position)
{
    struct host_stream *host = stream;
    if (is_forked(host)) return weir__host_fail_forked();
    weir__host_sync(host, host->base + position);
    return WEIR_OK;
}

/* ---- work ---- */

static int stream_copy(void *stream, const struct weir__copy *copy)
{
    return is_forked(stream) ? weir__host_fail_forked() : weir__host_queue_copy(stream, copy);
}

static int stream_fill(void *stream, void *to, uint8_t value, size_t bytes)
{
    return is_forked(stream) ? weir__host_fail_forked() : weir__host_queue_fill(stream, to, value, bytes);
}

static int stream_launch(void *stream, const struct weir__launch *launch)
{
    return is_forked(stream) ? weir__host_fail_forked() : weir__host_queue_launch(stream, launch);
}

static int stream_host_function(void *stream, int (*function)(void *arg), void *arg)
{
    return is_forked(stream) ? weir__host_fail_forked() : weir__host_queue_function(stream, function, arg);
}

static int stream_free(void *stream, void *address)
{
    return is_forked(stream) ? weir__host_fail_forked() : weir__host_queue_free(stream, address);
}

const struct weir__device_ops weir__host_ops = {
    .size = sizeof(struct weir__device_ops),
    .version = WEIR__DEVICE_OPS_VERSION,
    .name = "host",
    .device_count = device_count,
    .device_open = device_open,
    .device_close = device_close,
    .last_error = last_error,
    .alloc = device_alloc,
    .free = device_free,
    .free_on_stream = stream_free,
    .stream_create = stream_create,
    .stream_destroy = stream_destroy,
    .stream_native = stream_native,
    .flush = stream_flush,
    .flush_here = stream_flush_here,
    .record = stream_record,
    .reserve = stream_reserve,
    .position_wait = stream_position_wait,
    .completed = stream_completed,
    .counter = stream_counter,
    .status = stream_status,
    .forget = stream_forget,
    .notify = stream_notify,
    .sync = stream_sync,
    .foreign_wait = weir__host_foreign_wait,
    .foreign_signal = weir__host_foreign_signal,
    .lend = weir__host_lend,
    .gate_create = weir__host_gate_create,
    .gate_wait = weir__host_gate_wait,
    .gate_open = weir__host_gate_open,
    .copy = stream_copy,
    .fill = stream_fill,
    .launch = stream_launch,
    .host_function = stream_host_function,
    .module_load = weir__host_module_load,
    .module_unload = weir__host_module_unload,
    .module_symbol = weir__host_module_symbol,
};

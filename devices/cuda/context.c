/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/*
 * Devices and their primary contexts, which the CUDA runtime of the program uses as well. A context is retained when
 * the first call needs it: a device that is only listed costs nothing. Its flags are the program's business.
 *
 * Every call that needs a current context asks first which one is: a thread that has ours is not switched.
 */
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- fork: the driver is of no use in the child ---- */

static atomic_bool forked;

static void in_child(void)
{
    atomic_store_explicit(&forked, true, memory_order_relaxed); /* the child has one thread */
}

static void watch(void)
{
    pthread_atfork(NULL, NULL, in_child);
}

void weir__cuda_watch_forks(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch);
}

bool weir__cuda_is_forked(void)
{
    return atomic_load_explicit(&forked, memory_order_relaxed); /* see in_child() */
}

int weir__cuda_check_fork(void)
{
    if (!weir__cuda_is_forked()) return WEIR_OK;
    return weir__cuda_fail(WEIR_E_FORKED, "the process was forked: this CUDA device belongs to the parent");
}

int weir__cuda_check(struct cuda_device *device)
{
    int rc = weir__cuda_check_fork();
    return !rc && weir__cuda_is_lost(device) ? weir__cuda_lost(device) : rc;
}

/* ---- current context ---- */

/* One direction, where both contexts exist. Without it copies between the two go through the host's memory, by the
 * driver's own doing. Under the backend's lock. */
static void peer_enable(struct cuda_device *device, struct cuda_device *peer)
{
    struct driver_context *own = atomic_load_explicit(&device->context, memory_order_relaxed); /* under the lock */
    struct driver_context *other = atomic_load_explicit(&peer->context, memory_order_relaxed), *popped;
    int can = 0;
    if (!own || !other || own == other) return;
    if (weir__cuda_driver->peer_can_access(&can, device->ordinal, peer->ordinal) || !can) return;
    if (weir__cuda_driver->context_push(own)) return;
    (void)weir__cuda_driver->peer_enable(other, 0); /* it may be enabled already */
    (void)weir__cuda_driver->context_pop(&popped);
}

static int context_make(struct cuda_device *device, struct driver_context **context_out)
{
    struct driver_context *context = NULL, *popped;
    int rc = DRIVER(device, context_retain, &context, device->ordinal);
    if (rc) return rc;
    rc = DRIVER(device, context_push, context);
    if (!rc) {
        if (weir__cuda_driver->priority_range(&device->priority_least, &device->priority_greatest))
            device->priority_least = device->priority_greatest = 0;
        rc = DRIVER(device, context_pop, &popped);
    }
    if (rc) {
        (void)weir__cuda_driver->context_release(device->ordinal);
        return rc;
    }
    device->natives[1].context.value = (intptr_t)context;
    /* Release: its fields; pairs with the acquire in weir__cuda_context(). */
    atomic_store_explicit(&device->context, context, memory_order_release);
    for (struct cuda_device *peer = device->backend->open; peer; peer = peer->next_open) {
        peer_enable(device, peer);
        peer_enable(peer, device);
    }
    *context_out = context;
    return WEIR_OK;
}

static int context_get(struct cuda_device *device, struct driver_context **context_out)
{
    *context_out = weir__cuda_context(device);
    if (__builtin_expect(*context_out != NULL, 1)) return WEIR_OK;
    int rc = WEIR_OK;
    pthread_mutex_lock(&device->backend->lock);
    *context_out = atomic_load_explicit(&device->context, memory_order_relaxed); /* under the lock */
    if (!*context_out) rc = context_make(device, context_out);
    pthread_mutex_unlock(&device->backend->lock);
    return rc;
}

int weir__cuda_enter(struct cuda_device *device, struct cuda_guard *guard)
{
    struct driver_context *context, *current = NULL;
    guard->pushed = false;
    int rc = weir__cuda_check(device);
    if (!rc) rc = context_get(device, &context);
    if (!rc) rc = DRIVER(device, context_get, &current);
    if (rc || current == context) return rc;
    rc = DRIVER(device, context_push, context);
    if (rc) return rc;
    guard->pushed = true;
    COUNT(device, context_switches);
    return WEIR_OK;
}

void weir__cuda_enter_anyway(struct cuda_device *device, struct cuda_guard *guard)
{
    struct driver_context *context = weir__cuda_context(device);
    guard->pushed = context && !weir__cuda_driver->context_push(context);
}

void weir__cuda_leave(const struct cuda_guard *guard)
{
    struct driver_context *popped;
    if (guard->pushed) (void)weir__cuda_driver->context_pop(&popped);
}

void weir__cuda_settle_thread(struct cuda_device *device)
{
    enum driver_capture_mode mode = (enum driver_capture_mode)DRIVER_CAPTURE_MODE_RELAXED;
    (void)weir__cuda_driver->context_set(weir__cuda_context(device));
    /* Its questions and waits would end a capture that another thread has begun. */
    (void)weir__cuda_driver->capture_mode(&mode);
}

/* ---- devices ---- */

int weir__cuda_device_count(void *backend, uint32_t *count_out)
{
    *count_out = ((struct cuda_backend *)backend)->count;
    return WEIR_OK;
}

static int attribute(const struct cuda_device *device, enum driver_device_attribute which)
{
    int value = 0;
    return weir__cuda_driver->device_attribute(&value, which, device->ordinal) ? 0 : value;
}

/* More streams than the driver has hardware queues wait for each other without need: a stream whose head waits holds up
 * those that share its queue. The driver reads the same variable. */
static uint32_t hardware_queues(void)
{
    const char *text = getenv("CUDA_DEVICE_MAX_CONNECTIONS");
    int n = text ? atoi(text) : 0;
    return n >= 1 && n <= 32 ? (uint32_t)n : 8;
}

static void describe(struct cuda_device *device, uint32_t number, struct weir__device_info *info)
{
    char name[64] = "GPU";
    (void)weir__cuda_driver->device_name(name, sizeof name, device->ordinal);
    name[sizeof name - 1] = '\0';
    int version = weir__cuda_driver->number;
    memset(info, 0, sizeof *info);
    snprintf(info->name, sizeof info->name, "cuda:%u", number);
    snprintf(info->text, sizeof info->text, "%s, %.1f GiB, %d multiprocessors, compute %d.%d, CUDA %d.%d", name,
             (double)device->memory_bytes / 0x1p30, attribute(device, DRIVER_MULTIPROCESSOR_COUNT),
             attribute(device, DRIVER_COMPUTE_CAPABILITY_MAJOR), attribute(device, DRIVER_COMPUTE_CAPABILITY_MINOR),
             version / 1000, version % 1000 / 10);
    info->features = WEIR__DEVICE_WAIT | WEIR__DEVICE_CROSS_WAIT | WEIR__DEVICE_FOREIGN;
    info->advised_streams = hardware_queues();
    info->memory_bytes = device->memory_bytes;
    info->team_threads = (uint32_t)attribute(device, DRIVER_MAX_THREADS_PER_BLOCK);
    info->team_step = (uint32_t)attribute(device, DRIVER_WARP_SIZE);
    info->processors = (uint32_t)attribute(device, DRIVER_MULTIPROCESSOR_COUNT);
    info->teams = (uint32_t)attribute(device, DRIVER_MAX_GRID_DIM_X);
}

/* OpenMP API Additional Definitions, foreign runtime contexts; ids as in omp.h. The context is there with the first
 * stream. */
static void natives_set(struct cuda_device *device)
{
    struct weir__native_value number = {.kind = WEIR__NATIVE_INT, .type = "int", .value = device->ordinal};
    device->natives[0] =
        (struct weir__native){.runtime = 1, .name = "cuda", .device = number, .stream_type = "cudaStream_t"};
    number.type = "CUdevice";
    device->natives[1] = (struct weir__native){.runtime = 2,
                                               .name = "cuda_driver",
                                               .device = number,
                                               .context = {.kind = WEIR__NATIVE_POINTER, .type = "CUcontext"},
                                               .stream_type = "CUstream"};
}

static struct cuda_device *device_new(struct cuda_backend *backend)
{
    struct cuda_device *device = calloc(1, sizeof *device);
    if (!device) return NULL;
    device->backend = backend;
    device->notified_tail = &device->notified;
    pthread_mutex_init(&device->lost_lock, NULL);
    pthread_mutex_init(&device->memory_lock, NULL);
    pthread_mutex_init(&device->pinned_lock, NULL);
    pthread_mutex_init(&device->stream_lock, NULL);
    pthread_mutex_init(&device->waiter_lock, NULL);
    pthread_cond_init(&device->waiter_wake, NULL);
    return device;
}

static void device_free(struct cuda_device *device)
{
    pthread_cond_destroy(&device->waiter_wake);
    pthread_mutex_destroy(&device->waiter_lock);
    pthread_mutex_destroy(&device->stream_lock);
    pthread_mutex_destroy(&device->pinned_lock);
    pthread_mutex_destroy(&device->memory_lock);
    pthread_mutex_destroy(&device->lost_lock);
    free(device);
}

int weir__cuda_device_open(void *handle, uint32_t number, const struct weir__device_notice *notice,
                           struct weir__device_info *info_out, void **device_out)
{
    struct cuda_backend *backend = handle;
    (void)notice; /* the adapter's business */
    int rc = weir__cuda_check_fork();
    if (rc) return rc;
    if (number >= backend->count)
        return weir__cuda_fail(WEIR_E_NO_DEVICE, "no CUDA device %u, there are %u", number, backend->count);
    struct cuda_device *device = device_new(backend);
    if (!device) return weir__cuda_fail(WEIR_E_NO_MEMORY, "no memory for a device");
    rc = DRIVER(device, device_get, &device->ordinal, (int)number);
    if (!rc) rc = DRIVER(device, device_memory, &device->memory_bytes, device->ordinal);
    if (rc) {
        device_free(device);
        return rc;
    }
    device->max_pitch = attribute(device, DRIVER_MAX_PITCH);
    device->shared_most = attribute(device, DRIVER_MAX_SHARED_OPTIN);
    device->reads_host = attribute(device, DRIVER_PAGEABLE_MEMORY_ACCESS) != 0;
    describe(device, number, info_out);
    natives_set(device);
    info_out->natives = device->natives;
    info_out->nnatives = 2;
    pthread_mutex_lock(&backend->lock);
    device->next_open = backend->open;
    backend->open = device;
    pthread_mutex_unlock(&backend->lock);
    *device_out = device;
    return WEIR_OK;
}

void weir__cuda_device_close(void *handle)
{
    struct cuda_device *device = handle;
    struct cuda_backend *backend = device->backend;
    struct cuda_guard guard;
    if (weir__cuda_is_forked()) return; /* its threads and their locks are the parent's */
    weir__cuda_waiters_close(device);
    pthread_mutex_lock(&backend->lock);
    struct cuda_device **link = &backend->open;
    while (*link != device) link = &(*link)->next_open;
    *link = device->next_open;
    pthread_mutex_unlock(&backend->lock);
    if (weir__cuda_context(device)) {
        weir__cuda_enter_anyway(device, &guard);
        if (weir__cuda_is_lost(device)) weir__cuda_streams_drain(device);
        weir__cuda_streams_close(device);
        weir__cuda_staging_close(device);
        weir__cuda_memory_close(device);
        weir__cuda_leave(&guard);
        (void)weir__cuda_driver->context_release(device->ordinal);
    }
    device_free(device);
}

void weir__cuda_device_counters(void *handle, struct weir__cuda_counters *counters_out)
{
    struct cuda_device *device = handle;
#define WEIR_X(field, text) counters_out->field = atomic_load_explicit(&device->counts.field, memory_order_relaxed);
    WEIR__CUDA_COUNTERS(WEIR_X)
#undef WEIR_X
}

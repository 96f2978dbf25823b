/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The n-th allocation fails. The linker turns the backend's calls of the allocator into those of __wrap_…. */
#include <errno.h>
#include <stdlib.h>

#include <weir/host.h>

#include "devices_host_rig.h"

TestSuite(host_memory, .timeout = 60);

/* Of the calling thread: the allocation that fails, counted from 1; 0: none. -1: all. */
static _Thread_local int fail_at;
static _Thread_local int failed;
static _Atomic int refuse_threads;

static int fails(void)
{
    if (!fail_at || (fail_at > 0 && --fail_at)) return 0;
    failed++;
    return 1;
}

void *__real_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes)
{
    return fails() ? NULL : __real_malloc(bytes);
}

void *__real_realloc(void *memory, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes)
{
    return fails() ? NULL : __real_realloc(memory, bytes);
}

int __real_posix_memalign(void **memory, size_t alignment, size_t bytes);
int __wrap_posix_memalign(void **memory, size_t alignment, size_t bytes);
int __wrap_posix_memalign(void **memory, size_t alignment, size_t bytes)
{
    return fails() ? ENOMEM : __real_posix_memalign(memory, alignment, bytes);
}

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg)
{
    return atomic_load(&refuse_threads) ? EAGAIN : __real_pthread_create(thread, attr, start, arg);
}

/* Let the first, second, … allocation of @call fail until it succeeds. */
#define FAIL_EACH(call)                                                                                                \
    for (int at_ = 1;; at_++) {                                                                                        \
        failed = 0;                                                                                                    \
        fail_at = at_;                                                                                                 \
        int code_ = (call);                                                                                            \
        fail_at = 0;                                                                                                   \
        if (!failed) {                                                                                                 \
            cr_assert_eq(code_, WEIR_OK, "%s", #call);                                                                 \
            break;                                                                                                     \
        }                                                                                                              \
        total_failed += failed;                                                                                        \
        cr_assert_eq(code_, WEIR_E_NO_MEMORY, "%s: %d", #call, code_);                                                 \
        cr_assert_neq(*OPS->last_error(NULL), 0);                                                                      \
    }

static void add_to(uint64_t *sum, uint64_t value)
{
    *sum += value;
}

static int add_one(void *arg)
{
    ++*(uint64_t *)arg;
    return 0;
}

Test(host_memory, failing_to_queue_changes_nothing)
{
    enum { N = 100, PRODUCERS = 70 };
    int total_failed = 0;
    struct rig rig;
    rig_open(&rig, 1);
    uint64_t sum = 0, expected = 0, copied[2] = {0}, positions[PRODUCERS], position = 0, last = 0;
    uint64_t args[70] = {(uintptr_t)&sum, 3};
    void *stream = rig_stream(&rig, 0), *producers[PRODUCERS];
    for (int i = 0; i < PRODUCERS; i++) {
        producers[i] = rig_stream(&rig, 0);
        must(OPS->record(producers[i], &positions[i])); /* unflushed: not reached while we queue */
    }
    const struct weir__launch few = {.kernel = (void *)(uintptr_t)add_to, .nargs = 2, .args = args};
    const struct weir__launch many = {.kernel = (void *)(uintptr_t)add_to, .nargs = 70, .args = args};
    const struct weir__copy flat = {.kind = WEIR__COPY_TO_DEVICE, .to = copied, .from = &sum, .bytes = 8};
    const struct weir__copy block = {.kind = WEIR__COPY_TO_DEVICE,
                                     .to = copied,
                                     .from = &sum,
                                     .bytes = 4,
                                     .count = {2, 1},
                                     .to_pitch = {4, 0},
                                     .from_pitch = {4, 0}};
    for (int i = 0; i < N; i++) {
        void *memory = NULL;
        FAIL_EACH(OPS->alloc(rig.devices[0], 64, &memory));
        FAIL_EACH(OPS->position_wait(stream, producers, positions, 3));
        FAIL_EACH(OPS->position_wait(stream, producers, positions, PRODUCERS));
        FAIL_EACH(OPS->host_function(stream, add_one, &sum));
        FAIL_EACH(OPS->launch(stream, &few));
        FAIL_EACH(OPS->launch(stream, &many));
        FAIL_EACH(OPS->copy(stream, &flat));
        FAIL_EACH(OPS->copy(stream, &block));
        FAIL_EACH(OPS->fill(stream, memory, 1, 64));
        FAIL_EACH(OPS->free_on_stream(stream, memory));
        FAIL_EACH(OPS->reserve(stream));
        FAIL_EACH(OPS->record(stream, &position));
        cr_assert_eq(position, last + 1);
        last = position;
        expected += 7;
    }
    cr_assert(total_failed > 4 * N);
    must(OPS->sync(stream, position));
    cr_assert_eq(sum, expected);
    cr_assert_eq(copied[0], expected);
    for (int i = 0; i < PRODUCERS; i++) rig_sync_and_destroy(producers[i]);
    OPS->stream_destroy(stream);
    rig_close(&rig);
}

Test(host_memory, reserved_record_cannot_fail)
{
    struct rig rig;
    rig_open(&rig, 1);
    void *stream = rig_stream(&rig, 0);
    uint64_t sum = 0, position = 0;
    for (int i = 0; i < 5000; i++) {
        must(OPS->reserve(stream));
        for (int k = 0; k < i % 5; k++) must(OPS->host_function(stream, add_one, &sum));
        fail_at = -1;
        must(OPS->record(stream, &position));
        fail_at = 0;
        if (i % 50 == 0) must(OPS->sync(stream, position));
    }
    must(OPS->sync(stream, position));
    cr_assert_eq(sum, 10000);
    OPS->stream_destroy(stream);
    rig_close(&rig);
}

Test(host_memory, nothing_is_made_by_halves)
{
    int total_failed = 0;
    void *backend = NULL, *device = NULL, *stream = NULL, *own = NULL, *event = NULL;
    struct weir__device_info info;
    uint64_t position = 0;
    struct owner owner = {0};
    FAIL_EACH(weir__host_backend_create(1, &rig_options, &backend));
    FAIL_EACH(OPS->device_open(backend, 0, &rig_notice, &info, &device));
    FAIL_EACH(OPS->stream_create(device, &owner, 0, &stream));
    FAIL_EACH(weir__host_stream_open(device, &own));
    FAIL_EACH(weir_host_event_record(own, &event));
    must(OPS->record(stream, &position));
    FAIL_EACH(OPS->notify(stream, position));
    while (!atomic_load(&owner.reached)) usleep(200);
    cr_assert_eq(atomic_load(&owner.calls), 1, "a refused notify stays silent");
    cr_assert(total_failed >= 8);
    weir_host_event_destroy(event);
    weir_host_stream_destroy(own);
    OPS->stream_destroy(stream);
    OPS->device_close(device);
    weir__host_backend_destroy(backend);
}

static int fail_always(void *arg)
{
    (void)arg;
    return -5;
}

Test(host_memory, failures_are_not_lost_without_memory)
{
    struct rig rig;
    rig_open(&rig, 1);
    void *stream = rig_stream(&rig, 0);
    uint64_t position = 0;
    for (int i = 0; i < 20; i++) {
        must(OPS->host_function(stream, fail_always, NULL));
        must(OPS->record(stream, &position));
    }
    fail_at = -1; /* the functions run on this thread */
    must(OPS->sync(stream, position));
    fail_at = 0;
    for (uint64_t i = 1; i <= position; i++) cr_assert_eq(OPS->status(stream, i), -5);
    OPS->forget(stream, position);
    for (uint64_t i = 1; i <= position; i++) cr_assert_eq(OPS->status(stream, i), 0);
    OPS->stream_destroy(stream);
    rig_close(&rig);
}

Test(host_memory, work_waits_for_a_caller_while_no_thread_can_be_started)
{
    struct rig rig;
    struct owner owner = {0};
    _Atomic int count = 0;
    void *stream = NULL;
    rig_open(&rig, 1);
    must(OPS->stream_create(rig.devices[0], &owner, 0, &stream));
    atomic_store(&refuse_threads, 1);
    must(OPS->host_function(stream, count_up, &count));
    uint64_t position = rig_record(stream);
    /* Nobody would keep the promise: the caller must know. */
    cr_assert_eq(OPS->notify(stream, position), WEIR_E_SYSTEM);
    cr_assert_eq(atomic_load(&count), 0);
    must(OPS->sync(stream, position));
    cr_assert_eq(atomic_load(&count), 1);
    cr_assert_eq(atomic_load(&owner.calls), 1);
    must(OPS->host_function(stream, count_up, &count));
    rig_record(stream);
    atomic_store(&refuse_threads, 0);
    OPS->flush(stream); /* tries again */
    until(&count, 2);
    rig_sync_and_destroy(stream);
    rig_close(&rig);
}

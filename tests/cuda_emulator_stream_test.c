/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The emulated driver: streams and events, mostly with the device's clock stopped, so that nothing is luck. */
#include <cuda/rig.h>

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

static int64_t *pinned(void)
{
    return rig_pinned(64 * sizeof(int64_t));
}

/* *@to += @value, which is pinned memory. */
static void add(struct rig rig, void *stream, int64_t *to, int64_t value)
{
    rig_launch(rig_function(rig, "add"), stream, (uintptr_t)to, (uint64_t)value, 0);
}

/* A stream keeps its order; nothing of it runs while the clock stands. */
Test(emulator_stream, in_order)
{
    struct rig rig = rig_start(STOPPED);
    int64_t *memory = pinned();
    void *stream = rig_stream();
    for (int i = 0; i < 10; i++) {
        OK(cuMemsetD32Async((uintptr_t)memory, (unsigned)i, 1, stream));
        add(rig, stream, memory, 100);
    }
    cr_assert_eq(cuStreamQuery(stream), CUDA_NOT_READY);
    emulator_step(0, 3);
    cr_assert_eq(*memory, 1);
    emulator_start(0);
    OK(cuStreamSynchronize(stream));
    OK(cuStreamQuery(stream));
    cr_assert_eq(*memory, 109);
    OK(cuStreamDestroy_v2(stream));
    OK(cuMemFreeHost(memory));
    rig_stop(rig);
}

/* A record captures what the stream holds at the call, and no more. */
Test(emulator_stream, record_captures_at_the_call)
{
    struct rig rig = rig_start(STOPPED);
    int64_t *memory = pinned();
    void *stream = rig_stream(), *event = rig_event();
    OK(cuEventQuery(event)); /* never recorded */
    OK(cuEventSynchronize(event));
    add(rig, stream, memory, 1);
    OK(cuEventRecord(event, stream));
    add(rig, stream, memory, 2);
    cr_assert_eq(cuEventQuery(event), CUDA_NOT_READY);
    emulator_step(0, 1);
    cr_assert_eq(cuEventQuery(event), CUDA_NOT_READY);
    emulator_step(0, 1);
    OK(cuEventQuery(event));
    cr_assert_eq(*memory, 1);
    emulator_start(0);
    OK(cuStreamSynchronize(stream));
    OK(cuEventDestroy_v2(event));
    OK(cuStreamDestroy_v2(stream));
    OK(cuMemFreeHost(memory));
    rig_stop(rig);
}

/* A wait that is queued before a record keeps the older state; one behind it is not released by older work. */
Test(emulator_stream, wait_keeps_the_state_at_its_call)
{
    struct rig rig = rig_start((struct setting[]){{NULL, 0}});
    int64_t *memory = pinned();
    void *a = rig_stream(), *b = rig_stream(), *c = rig_stream(), *event = rig_event(), *wait_for;
    atomic_int *flags = (atomic_int *)(memory + 8);
    wait_for = rig_function(rig, "wait_for");
    rig_launch(wait_for, a, (uintptr_t)&flags[0], (uintptr_t)&memory[0], 1);
    OK(cuEventRecord(event, a));
    OK(cuStreamWaitEvent(b, event, 0));
    rig_launch(wait_for, a, (uintptr_t)&flags[1], (uintptr_t)&memory[0], 2);
    OK(cuEventRecord(event, a));
    OK(cuStreamWaitEvent(c, event, 0));
    cr_assert_eq(cuStreamQuery(b), CUDA_NOT_READY);
    atomic_store(&flags[0], 1);
    OK(cuStreamSynchronize(b));
    cr_assert_eq(memory[0], 1);
    cr_assert_eq(cuStreamQuery(c), CUDA_NOT_READY);
    cr_assert_eq(cuEventQuery(event), CUDA_NOT_READY);
    atomic_store(&flags[1], 1);
    OK(cuStreamSynchronize(c));
    cr_assert_eq(memory[0], 2);
    void *streams[] = {a, b, c};
    for (int i = 0; i < 3; i++) OK(cuStreamDestroy_v2(streams[i]));
    OK(cuEventDestroy_v2(event));
    OK(cuMemFreeHost(memory));
    rig_stop(rig);
}

/* A wait for an event without a record orders nothing: an edge is lost, and that is reported. */
Test(emulator_stream, wait_before_any_record)
{
    struct rig rig = rig_start(STOPPED);
    void *a = rig_stream(), *b = rig_stream(), *event = rig_event();
    OK(cuStreamWaitEvent(b, event, 0));
    rig_expect_report("never recorded");
    OK(cuEventRecord(event, a));
    emulator_step(0, 1); /* the wait or the record, whatever queue comes first */
    emulator_step(0, 1);
    OK(cuStreamQuery(b));
    OK(cuStreamDestroy_v2(a));
    OK(cuStreamDestroy_v2(b));
    OK(cuEventDestroy_v2(event));
    emulator_start(0);
    rig_stop(rig);
}

/* Destruction of what is pending returns at once; the work and the waits for it stay. */
Test(emulator_stream, destroyed_while_pending)
{
    struct rig rig = rig_start(STOPPED);
    int64_t *memory = pinned();
    void *a = rig_stream(), *b = rig_stream(), *event = rig_event();
    add(rig, a, memory, 5);
    OK(cuEventRecord(event, a));
    OK(cuStreamWaitEvent(b, event, 0));
    OK(cuMemcpyDtoDAsync_v2((uintptr_t)(memory + 1), (uintptr_t)memory, 8, b));
    OK(cuEventDestroy_v2(event));
    OK(cuStreamDestroy_v2(a));
    cr_assert_eq(cuStreamQuery(b), CUDA_NOT_READY);
    emulator_start(0);
    OK(cuStreamSynchronize(b));
    cr_assert_eq(memory[1], 5);
    OK(cuStreamDestroy_v2(b));
    OK(cuMemFreeHost(memory));
    rig_stop(rig);
}

/* An event belongs to a context: it is recorded there and waited for everywhere. */
Test(emulator_stream, events_of_two_devices)
{
    void *other, *stream;
    struct rig rig = rig_start((struct setting[]){{"devices", 2}, {"stopped", 1}, {NULL, 0}});
    void *event = rig_event(), *own = rig_stream();
    OK(cuDevicePrimaryCtxRetain(&other, 1));
    OK(cuCtxPushCurrent_v2(other));
    stream = rig_stream();
    cr_assert_eq(cuEventRecord(event, stream), CUDA_INVALID_HANDLE);
    rig_expect_report("different contexts");
    OK(cuEventRecord(event, own));
    OK(cuStreamWaitEvent(stream, event, 0));
    emulator_start(1);
    cr_assert_eq(cuStreamQuery(stream), CUDA_NOT_READY);
    emulator_start(0);
    OK(cuStreamSynchronize(stream));
    OK(cuStreamDestroy_v2(stream));
    OK(cuCtxPopCurrent_v2(NULL));
    OK(cuStreamDestroy_v2(own));
    OK(cuEventDestroy_v2(event));
    OK(cuDevicePrimaryCtxRelease_v2(1));
    rig_stop(rig);
}

Test(emulator_stream, elapsed_time)
{
    float ms;
    void *events[2];
    struct rig rig = rig_start(STOPPED);
    void *stream = rig_stream(), *untimed = rig_event();
    for (int i = 0; i < 2; i++) OK(cuEventCreate(&events[i], 0));
    cr_assert_eq(cuEventElapsedTime(&ms, events[0], events[1]), CUDA_INVALID_HANDLE);
    OK(cuEventRecord(events[0], stream));
    OK(cuEventRecord(events[1], stream));
    OK(cuEventRecord(untimed, stream));
    cr_assert_eq(cuEventElapsedTime(&ms, events[0], events[1]), CUDA_NOT_READY);
    cr_assert_eq(cuEventElapsedTime(&ms, events[0], untimed), CUDA_INVALID_HANDLE);
    emulator_start(0);
    OK(cuStreamSynchronize(stream));
    OK(cuEventElapsedTime(&ms, events[0], events[1]));
    cr_assert(ms >= 0);
    for (int i = 0; i < 2; i++) OK(cuEventDestroy_v2(events[i]));
    OK(cuEventDestroy_v2(untimed));
    OK(cuStreamDestroy_v2(stream));
    rig_stop(rig);
}

Test(emulator_stream, flags_of_events)
{
    void *event, *stream;
    struct rig rig = rig_start(NULL);
    cr_assert_eq(cuEventCreate(&event, CUDA_EVENT_INTERPROCESS), CUDA_INVALID_VALUE);
    cr_assert_eq(cuEventCreate(&event, 8), CUDA_INVALID_VALUE);
    stream = rig_stream();
    OK(cuEventCreate(&event, CUDA_EVENT_INTERPROCESS | CUDA_EVENT_NO_TIMING));
    cr_assert_eq(cuEventRecordWithFlags(event, stream, CUDA_EVENT_EXTERNAL), CUDA_INVALID_VALUE);
    cr_assert_eq(cuStreamWaitEvent(stream, event, CUDA_EVENT_EXTERNAL), CUDA_INVALID_VALUE);
    OK(cuEventDestroy_v2(event));
    OK(cuStreamDestroy_v2(stream));
    rig_stop(rig);
}

/* The legacy stream stands before and behind all blocking streams, and has nothing to do with others. */
Test(emulator_stream, legacy_and_blocking_streams)
{
    void *blocking;
    struct rig rig = rig_start((struct setting[]){{"queues", 0}, {NULL, 0}});
    int64_t *memory = pinned();
    atomic_int *flag = (atomic_int *)(memory + 8);
    void *free_stream = rig_stream(), *wait_for = rig_function(rig, "wait_for");
    OK(cuStreamCreateWithPriority(&blocking, 0, 0));
    rig_launch(wait_for, free_stream, (uintptr_t)flag, 0, 0);
    add(rig, blocking, memory, 1);
    add(rig, NULL, memory, 2);
    OK(cuStreamSynchronize(NULL)); /* does not wait for the other one */
    cr_assert_eq(*memory, 3);
    atomic_store(flag, 1);
    OK(cuStreamSynchronize(free_stream));
    atomic_store(flag, 0);
    rig_launch(wait_for, blocking, (uintptr_t)flag, (uintptr_t)memory, 7);
    add(rig, (void *)CUDA_STREAM_LEGACY, memory, 1);
    add(rig, (void *)CUDA_STREAM_PER_THREAD, memory, 1); /* is a blocking one */
    cr_assert_eq(cuStreamQuery((void *)CUDA_STREAM_PER_THREAD), CUDA_NOT_READY);
    cr_assert_eq(*memory, 3);
    atomic_store(flag, 1);
    OK(cuStreamSynchronize((void *)CUDA_STREAM_PER_THREAD));
    cr_assert_eq(*memory, 9);
    OK(cuStreamDestroy_v2(blocking));
    OK(cuStreamDestroy_v2(free_stream));
    OK(cuMemFreeHost(memory));
    rig_stop(rig);
}

Test(emulator_stream, use_of_stream_0_is_reported)
{
    struct rig rig = rig_start((struct setting[]){{"report_legacy", 1}, {NULL, 0}});
    OK(cuStreamSynchronize(NULL));
    rig_expect_report("stream 0");
    rig_stop(rig);
}

/* With one hardware queue a stream is held up by the blocked head of another; with more it is not. */
static void false_dependence(int64_t queues, int expected)
{
    struct rig rig = rig_start((struct setting[]){{"queues", queues}, {NULL, 0}});
    int64_t *memory = pinned();
    atomic_int *flag = (atomic_int *)(memory + 8);
    void *a = rig_stream(), *b = rig_stream(), *event = rig_event();
    rig_launch(rig_function(rig, "wait_for"), a, (uintptr_t)flag, 0, 0);
    OK(cuEventRecord(event, b));
    if (!expected) OK(cuEventSynchronize(event));
    cr_assert_eq(cuEventQuery(event), expected);
    atomic_store(flag, 1);
    OK(cuEventSynchronize(event));
    OK(cuStreamSynchronize(a));
    OK(cuStreamDestroy_v2(a));
    OK(cuStreamDestroy_v2(b));
    OK(cuEventDestroy_v2(event));
    OK(cuMemFreeHost(memory));
    rig_stop(rig);
}

Test(emulator_stream, one_hardware_queue)
{
    false_dependence(1, CUDA_NOT_READY);
}

Test(emulator_stream, many_hardware_queues)
{
    false_dependence(8, 0);
}

static void *start_later(void *arg)
{
    atomic_int *returned = arg;
    while (emulator_calls("cuMemsetD32Async") < 5) continue;
    for (int i = 0; i < 1000; i++) cr_assert_eq(atomic_load(returned), 4);
    emulator_start(0);
    return NULL;
}

/* A full launch queue blocks the call until there is room. */
Test(emulator_stream, full_launch_queue)
{
    struct rig rig = rig_start((struct setting[]){{"stopped", 1}, {"launch_queue", 4}, {NULL, 0}});
    int64_t *memory = pinned();
    void *stream = rig_stream();
    atomic_int returned = 0;
    pthread_t thread;
    emulator_counters_reset();
    pthread_create(&thread, NULL, start_later, &returned);
    for (int i = 0; i < 20; i++) {
        OK(cuMemsetD32Async((uintptr_t)memory, 1, 1, stream));
        atomic_fetch_add(&returned, 1);
    }
    pthread_join(thread, NULL);
    cr_assert_gt(emulator_blocked_ns("cuMemsetD32Async"), 0);
    OK(cuStreamSynchronize(stream));
    OK(cuStreamDestroy_v2(stream));
    OK(cuMemFreeHost(memory));
    rig_stop(rig);
}

Test(emulator_stream, priorities)
{
    int least, greatest, priority;
    void *stream;
    uint64_t a, b;
    struct rig rig = rig_start((struct setting[]){{"priorities", 3}, {NULL, 0}});
    OK(cuCtxGetStreamPriorityRange(&least, &greatest));
    cr_assert(least == 0 && greatest == -2);
    OK(cuStreamCreateWithPriority(&stream, 1, -100));
    OK(cuStreamGetPriority(stream, &priority));
    cr_assert_eq(priority, -2);
    OK(cuStreamGetId(stream, &a));
    OK(cuStreamDestroy_v2(stream));
    stream = rig_stream();
    OK(cuStreamGetId(stream, &b));
    cr_assert_neq(a, b);
    OK(cuStreamDestroy_v2(stream));
    emulator_set("priorities", 1);
    OK(cuCtxGetStreamPriorityRange(&least, &greatest));
    cr_assert(least == 0 && greatest == 0);
    rig_stop(rig);
}

static void use_driver(void *arg)
{
    int count;
    *(int *)arg = cuDeviceGetCount(&count);
}

/* Host functions keep their place, and must not call the driver. */
Test(emulator_stream, host_function)
{
    int code = 0;
    struct rig rig = rig_start(NULL);
    void *stream = rig_stream();
    OK(cuLaunchHostFunc(stream, use_driver, &code));
    OK(cuStreamSynchronize(stream));
    cr_assert_eq(code, CUDA_NOT_PERMITTED);
    rig_expect_report("called in a host function");
    OK(cuStreamDestroy_v2(stream));
    rig_stop(rig);
}

static void set_status(void *stream, int status, void *arg)
{
    (void)stream;
    atomic_store((atomic_int *)arg, status + 1);
}

static void set_flag(void *arg)
{
    atomic_store((atomic_int *)arg, 1);
}

/* After a sticky error host functions are dropped, callbacks get the code, all calls return it, other devices go on. */
Test(emulator_stream, sticky_error)
{
    static atomic_int callback, function;
    void *other;
    struct rig rig = rig_start((struct setting[]){{"devices", 2}, {"stopped", 1}, {NULL, 0}});
    void *stream = rig_stream(), *event = rig_event();
    OK(cuDevicePrimaryCtxRetain(&other, 1));
    rig_launch(rig_function(rig, "fault"), stream, 0, 0, 0);
    OK(cuLaunchHostFunc(stream, set_flag, &function));
    OK(cuStreamAddCallback(stream, set_status, &callback, 0));
    OK(cuEventRecord(event, stream));
    cr_assert_eq(cuEventQuery(event), CUDA_NOT_READY);
    emulator_start(-1);
    cr_assert_eq(cuEventSynchronize(event), CUDA_LAUNCH_FAILED);
    cr_assert_eq(cuEventQuery(event), CUDA_LAUNCH_FAILED);
    cr_assert_eq(cuStreamQuery(stream), CUDA_LAUNCH_FAILED);
    cr_assert_eq(cuStreamDestroy_v2(stream), CUDA_LAUNCH_FAILED);
    while (!atomic_load(&callback)) continue;
    cr_assert_eq(atomic_load(&callback), CUDA_LAUNCH_FAILED + 1);
    cr_assert_eq(atomic_load(&function), 0);
    OK(cuCtxSetCurrent(other));
    stream = rig_stream();
    OK(cuLaunchHostFunc(stream, set_flag, &function));
    OK(cuStreamSynchronize(stream));
    cr_assert_eq(atomic_load(&function), 1);
    OK(cuStreamDestroy_v2(stream));
    OK(cuDevicePrimaryCtxRelease_v2(0));
    OK(cuDevicePrimaryCtxRelease_v2(1));
    cr_assert_eq(emulator_report_count(), 0);
}

/* The n-th operation ends with a sticky error, and what waits for it elsewhere is let go. */
Test(emulator_stream, injected_fault)
{
    struct rig rig = rig_start(NULL);
    int64_t *memory = pinned();
    void *stream = rig_stream();
    emulator_fault(0, 3, CUDA_ECC_UNCORRECTABLE);
    int code = 0;
    for (int i = 0; i < 5 && !code; i++) code = cuMemsetD32Async((uintptr_t)memory, 1 + (unsigned)i, 1, stream);
    cr_assert_eq(cuStreamSynchronize(stream), CUDA_ECC_UNCORRECTABLE);
    cr_assert_eq(*memory, 2);
    cr_assert_eq(cuMemFreeHost(memory), CUDA_ECC_UNCORRECTABLE);
    OK(cuDevicePrimaryCtxRelease_v2(0));
    cr_assert_eq(emulator_report_count(), 0);
    (void)rig;
}

/* Synchronous copies go through the default stream, which non-blocking streams do not hold up. */
Test(emulator_stream, synchronous_copy_beside_a_non_blocking_stream)
{
    struct rig rig = rig_start((struct setting[]){{"queues", 0}, {NULL, 0}});
    int64_t *memory = pinned();
    atomic_int *flag = (atomic_int *)(memory + 8);
    void *stream = rig_stream();
    uint64_t address = rig_alloc(8);
    rig_launch(rig_function(rig, "wait_for"), stream, (uintptr_t)flag, address, 1);
    memory[0] = 5;
    OK(cuMemcpyHtoD_v2(address, memory, 8));
    cr_assert_eq(rig_read(address), 5);
    atomic_store(flag, 1);
    OK(cuStreamSynchronize(stream));
    cr_assert_eq(rig_read(address), 1);
    OK(cuStreamDestroy_v2(stream));
    OK(cuMemFree_v2(address));
    OK(cuMemFreeHost(memory));
    rig_stop(rig);
}

static void *synchronize(void *arg)
{
    void **all = arg;
    cuCtxSetCurrent(all[0]);
    all[2] = (void *)(uintptr_t)cuEventSynchronize(all[1]);
    cuCtxSetCurrent(NULL);
    return NULL;
}

/* Who synchronises on an event waits for its state at the call, though it is recorded anew meanwhile. */
Test(emulator_stream, recorded_anew_while_a_thread_waits)
{
    struct rig rig = rig_start(NULL);
    int64_t *memory = pinned();
    atomic_int *flags = (atomic_int *)(memory + 8);
    void *stream = rig_stream(), *event = rig_event(), *wait_for = rig_function(rig, "wait_for");
    void *all[3] = {rig.context, event, (void *)1};
    pthread_t thread;
    rig_launch(wait_for, stream, (uintptr_t)&flags[0], 0, 0);
    OK(cuEventRecord(event, stream));
    pthread_create(&thread, NULL, synchronize, all);
    while (!emulator_calls("cuEventSynchronize")) continue;
    rig_launch(wait_for, stream, (uintptr_t)&flags[1], 0, 0);
    OK(cuEventRecord(event, stream));
    atomic_store(&flags[0], 1);
    pthread_join(thread, NULL); /* the second kernel is still running */
    cr_assert_null(all[2]);
    cr_assert_eq(cuEventQuery(event), CUDA_NOT_READY);
    atomic_store(&flags[1], 1);
    OK(cuEventSynchronize(event));
    OK(cuEventDestroy_v2(event));
    OK(cuStreamDestroy_v2(stream));
    OK(cuMemFreeHost(memory));
    rig_stop(rig);
}

static void sleep_a_while(void *arg)
{
    (void)arg;
    usleep(20000);
}

Test(emulator_stream, long_host_function_is_reported)
{
    struct rig rig = rig_start((struct setting[]){{"host_limit_ms", 10}, {NULL, 0}});
    void *stream = rig_stream();
    OK(cuLaunchHostFunc(stream, sleep_a_while, NULL));
    OK(cuStreamSynchronize(stream));
    rig_expect_report("a host function took");
    OK(cuStreamDestroy_v2(stream));
    rig_stop(rig);
}

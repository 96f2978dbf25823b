/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <errno.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "devices_host_rig.h"

TestSuite(host_stream, .timeout = 60);

struct step {
    int *log, *length, number;
};

static int log_step(void *arg)
{
    struct step *step = arg;
    step->log[(*step->length)++] = step->number;
    return 0;
}

Test(host_stream, table_is_complete)
{
    struct rig rig;
    uint32_t count = 0;
    rig_open(&rig, 2);
    const char *missing = NULL;
    must(weir__device_ops_check(OPS, &missing));
    must(OPS->device_count(rig.backend, &count));
    cr_assert_eq(count, 2);
    cr_assert_str_eq(rig.info[1].name, "host:1");
    cr_assert(rig.info[0].advised_streams > 0);
    void *device = NULL;
    struct weir__device_info info;
    cr_assert_eq(OPS->device_open(rig.backend, 2, &rig_notice, &info, &device), WEIR_E_NO_DEVICE);
    cr_assert_null(device);
    rig_close(&rig);
}

/* More commands than one chunk holds, so the jump between chunks and their return are passed too. */
Test(host_stream, commands_run_in_order)
{
    enum { N = 5000 };
    static struct step steps[N];
    static int log[N];
    int length = 0;
    struct rig rig;
    rig_open(&rig, 1);
    void *stream = rig_stream(&rig, 0);
    for (int round = 0; round < 3; round++) {
        length = 0;
        for (int i = 0; i < N; i++) {
            steps[i] = (struct step){log, &length, i};
            must(OPS->host_function(stream, log_step, &steps[i]));
            if (i % 7 == 0) rig_record(stream);
        }
        uint64_t position = rig_record(stream);
        must(OPS->sync(stream, position));
        cr_assert_eq(length, N);
        for (int i = 0; i < N; i++) cr_assert_eq(log[i], i);
    }
    OPS->stream_destroy(stream);
    rig_close(&rig);
}

static int note_thread(void *arg)
{
    *(pthread_t *)arg = pthread_self();
    return 0;
}

Test(host_stream, unflushed_work_runs_on_the_thread_that_waits)
{
    struct rig rig;
    rig_open(&rig, 2);
    void *first = rig_stream(&rig, 0), *second = rig_stream(&rig, 1);
    pthread_t threads[2] = {0};
    uint64_t one = 0, two = 0;
    must(OPS->host_function(first, note_thread, &threads[0]));
    must(OPS->record(first, &one));
    must(OPS->position_wait(second, &first, &one, 1));
    must(OPS->host_function(second, note_thread, &threads[1]));
    must(OPS->record(second, &two));
    must(OPS->sync(second, two));
    cr_assert(pthread_equal(threads[0], pthread_self()));
    cr_assert(pthread_equal(threads[1], pthread_self()));
    struct weir__host_threads counts;
    for (int i = 0; i < 2; i++) {
        weir__host_device_threads(rig.devices[i], &counts);
        cr_assert_eq(counts.started, 0, "a thread was started for work that the caller could do");
    }
    OPS->stream_destroy(first);
    OPS->stream_destroy(second);
    rig_close(&rig);
}

Test(host_stream, sync_runs_only_up_to_its_position)
{
    struct rig rig;
    rig_open(&rig, 1);
    void *stream = rig_stream(&rig, 0);
    _Atomic int count = 0;
    uint64_t one = 0, two = 0;
    must(OPS->host_function(stream, count_up, &count));
    must(OPS->record(stream, &one));
    must(OPS->host_function(stream, count_up, &count));
    must(OPS->record(stream, &two));
    must(OPS->sync(stream, one));
    cr_assert_eq(atomic_load(&count), 1);
    cr_assert_eq(OPS->completed(stream, NULL), one);
    must(OPS->sync(stream, two));
    cr_assert_eq(atomic_load(&count), 2);
    OPS->stream_destroy(stream);
    rig_close(&rig);
}

/* A sync that stops early leaves flushed work behind, which must go on without another call. */
Test(host_stream, flushed_rest_goes_on_after_inline_sync)
{
    struct rig rig;
    rig_open(&rig, 1);
    void *stream = rig_stream(&rig, 0);
    for (int i = 0; i < 300; i++) {
        _Atomic int count = 0;
        uint64_t one = 0;
        must(OPS->host_function(stream, count_up, &count));
        must(OPS->record(stream, &one));
        must(OPS->host_function(stream, count_up, &count));
        rig_record(stream);
        must(OPS->sync(stream, one));
        until(&count, 2);
    }
    rig_sync_and_destroy(stream);
    rig_close(&rig);
}

static int meet(void *arg)
{
    _Atomic int *places = arg;
    atomic_fetch_add(places, 1);
    while (atomic_load(places) < 2) usleep(200);
    return 0;
}

Test(host_stream, kernels_of_two_streams_overlap)
{
    struct rig rig;
    rig_open(&rig, 1);
    void *a = rig_stream(&rig, 0), *b = rig_stream(&rig, 0);
    for (int i = 0; i < 20; i++) {
        _Atomic int places = 0;
        must(OPS->host_function(a, meet, &places));
        must(OPS->host_function(b, meet, &places));
        uint64_t at_a = rig_record(a), at_b = rig_record(b);
        must(OPS->sync(a, at_a));
        must(OPS->sync(b, at_b));
    }
    OPS->stream_destroy(a);
    OPS->stream_destroy(b);
    rig_close(&rig);
}

Test(host_stream, blocked_kernels_do_not_stop_other_devices_or_streams)
{
    enum { N = 20 };
    struct rig rig;
    rig_open(&rig, 2);
    struct gate gate = {0};
    void *blocked[N];
    for (int i = 0; i < N; i++) {
        blocked[i] = rig_stream(&rig, 0);
        must(OPS->host_function(blocked[i], gate_pass, &gate));
        rig_record(blocked[i]);
    }
    _Atomic int count = 0;
    void *other = rig_stream(&rig, 1), *same = rig_stream(&rig, 0);
    must(OPS->host_function(other, count_up, &count));
    rig_record(other);
    must(OPS->host_function(same, count_up, &count));
    rig_record(same);
    until(&count, 2);
    until(&gate.arrived, N);
    atomic_store(&gate.open, 1);
    for (int i = 0; i < N; i++) rig_sync_and_destroy(blocked[i]);
    rig_sync_and_destroy(other);
    rig_sync_and_destroy(same);
    rig_close(&rig);
}

Test(host_stream, streams_that_wait_hold_no_thread)
{
    enum { N = 200 };
    struct rig rig;
    rig_open(&rig, 1);
    struct gate gate = {0};
    _Atomic int count = 0;
    void *producer = rig_stream(&rig, 0), *waiting[N];
    must(OPS->host_function(producer, gate_pass, &gate));
    uint64_t position = rig_record(producer);
    for (int i = 0; i < N; i++) {
        waiting[i] = rig_stream(&rig, 0);
        must(OPS->position_wait(waiting[i], &producer, &position, 1));
        must(OPS->host_function(waiting[i], count_up, &count));
        rig_record(waiting[i]);
    }
    until(&gate.arrived, 1);
    /* Work that is queued last is done although 200 streams wait. */
    _Atomic int last = 0;
    void *runnable = rig_stream(&rig, 0);
    must(OPS->host_function(runnable, count_up, &last));
    rig_record(runnable);
    until(&last, 1);
    struct weir__host_threads threads;
    do {
        usleep(1000);
        weir__host_device_threads(rig.devices[0], &threads);
    } while (threads.started - threads.parked != 1); /* the one in the gate */
    cr_assert(threads.started <= 32, "%u threads", threads.started); /* a few by chance, not one for each */
    cr_assert_eq(atomic_load(&count), 0);
    atomic_store(&gate.open, 1);
    for (int i = 0; i < N; i++) rig_sync_and_destroy(waiting[i]);
    cr_assert_eq(atomic_load(&count), N);
    rig_sync_and_destroy(producer);
    rig_sync_and_destroy(runnable);
    rig_close(&rig);
}

/* Only the last stream of the chain is flushed; the others must start because it waits for them. */
Test(host_stream, flushing_a_waiter_starts_its_producers)
{
    enum { N = 100 };
    struct rig rig;
    rig_open(&rig, 2);
    void *streams[N];
    _Atomic int count = 0;
    uint64_t position = 0;
    for (int i = 0; i < N; i++) {
        streams[i] = rig_stream(&rig, (uint32_t)i % 2);
        if (i) must(OPS->position_wait(streams[i], &streams[i - 1], &position, 1));
        must(OPS->host_function(streams[i], count_up, &count));
        must(OPS->record(streams[i], &position));
    }
    OPS->flush(streams[N - 1]);
    until(&count, N);
    for (int i = 0; i < N; i++) rig_sync_and_destroy(streams[i]);
    rig_close(&rig);
}

Test(host_stream, long_chain_is_run_inline_without_recursion)
{
    enum { N = 20000 };
    struct rig rig;
    rig_open(&rig, 1);
    static void *streams[N];
    _Atomic int count = 0;
    uint64_t position = 0;
    for (int i = 0; i < N; i++) {
        streams[i] = rig_stream(&rig, 0);
        if (i) must(OPS->position_wait(streams[i], &streams[i - 1], &position, 1));
        must(OPS->host_function(streams[i], count_up, &count));
        must(OPS->record(streams[i], &position));
    }
    must(OPS->sync(streams[N - 1], position));
    cr_assert_eq(atomic_load(&count), N);
    struct weir__host_threads threads;
    weir__host_device_threads(rig.devices[0], &threads);
    cr_assert_eq(threads.started, 0);
    for (int i = 0; i < N; i++) OPS->stream_destroy(streams[i]);
    rig_close(&rig);
}

Test(host_stream, wait_for_many_streams_at_once)
{
    enum { N = 150 };
    struct rig rig;
    rig_open(&rig, 1);
    void *streams[N], *last = rig_stream(&rig, 0);
    uint64_t positions[N], position;
    _Atomic int count = 0;
    for (int i = 0; i < N; i++) {
        streams[i] = rig_stream(&rig, 0);
        must(OPS->host_function(streams[i], count_up, &count));
        must(OPS->record(streams[i], &positions[i]));
    }
    must(OPS->position_wait(last, streams, positions, N));
    must(OPS->position_wait(last, NULL, NULL, 0));
    must(OPS->record(last, &position));
    must(OPS->position_wait(last, &last, &position, 1)); /* itself: nothing to wait for */
    position = rig_record(last);
    must(OPS->sync(last, position));
    cr_assert_eq(atomic_load(&count), N);
    for (int i = 0; i < N; i++) OPS->stream_destroy(streams[i]);
    OPS->stream_destroy(last);
    rig_close(&rig);
}

static int note_device(void *arg)
{
    *(int *)arg = weir__host_current_device();
    return 0;
}

Test(host_stream, kernels_know_their_device)
{
    struct rig rig;
    rig_open(&rig, 2);
    void *stream = rig_stream(&rig, 1);
    int inline_device = -2, worker_device = -2;
    uint64_t position = 0;
    must(OPS->host_function(stream, note_device, &inline_device));
    must(OPS->record(stream, &position));
    must(OPS->sync(stream, position));
    cr_assert_eq(inline_device, 1);
    cr_assert_eq(weir__host_current_device(), -1);
    _Atomic int done = 0;
    must(OPS->host_function(stream, note_device, &worker_device));
    must(OPS->host_function(stream, count_up, &done));
    rig_record(stream);
    until(&done, 1);
    cr_assert_eq(worker_device, 1);
    rig_sync_and_destroy(stream);
    rig_close(&rig);
}

static int fail_with(void *arg)
{
    return (int)(intptr_t)arg;
}

Test(host_stream, failures_stay_with_their_stretch_until_forgotten)
{
    struct rig rig;
    rig_open(&rig, 1);
    void *stream = rig_stream(&rig, 0);
    uint64_t at[20];
    for (int i = 0; i < 20; i++) {
        if (i % 2) must(OPS->host_function(stream, fail_with, (void *)(intptr_t)(-100 - i)));
        if (i % 2) must(OPS->host_function(stream, fail_with, (void *)(intptr_t)-1));
        if (i == 2) must(OPS->host_function(stream, fail_with, (void *)(intptr_t)7));
        must(OPS->record(stream, &at[i]));
    }
    must(OPS->sync(stream, at[19]));
    for (int i = 0; i < 20; i++) cr_assert_eq(OPS->status(stream, at[i]), i % 2 ? -100 - i : i == 2 ? WEIR_E_TASK : 0);
    OPS->forget(stream, at[9]);
    for (int i = 0; i < 20; i++) cr_assert_eq(OPS->status(stream, at[i]), i > 9 && i % 2 ? -100 - i : 0);
    OPS->stream_destroy(stream);
    stream = rig_stream(&rig, 0);
    must(OPS->record(stream, &at[0]));
    cr_assert_eq(at[0], 1, "a new stream counts from 1");
    must(OPS->sync(stream, at[0]));
    cr_assert_eq(OPS->status(stream, at[0]), 0);
    OPS->stream_destroy(stream);
    rig_close(&rig);
}

Test(host_stream, notice_comes_once_reached)
{
    struct rig rig;
    rig_open(&rig, 1);
    struct owner owner = {0};
    struct gate gate = {0};
    void *stream = NULL;
    must(OPS->stream_create(rig.devices[0], &owner, 0, &stream));
    uint64_t one = 0, two = 0;
    must(OPS->host_function(stream, gate_pass, &gate));
    must(OPS->record(stream, &one));
    must(OPS->record(stream, &two));
    /* notify starts the stream although nobody flushed it */
    for (int i = 0; i < 20; i++) must(OPS->notify(stream, one));
    must(OPS->notify(stream, two));
    until(&gate.arrived, 1);
    cr_assert_eq(atomic_load(&owner.calls), 0);
    atomic_store(&gate.open, 1);
    while (atomic_load(&owner.reached) < two) usleep(200);
    cr_assert_eq(atomic_load(&owner.calls), 2);
    cr_assert(!pthread_equal(owner.thread, pthread_self()));
    cr_assert_eq(owner.device, -1);
    must(OPS->notify(stream, one));
    cr_assert_eq(atomic_load(&owner.calls), 3, "a reached position is told at once");
    cr_assert_eq(atomic_load(&owner.reached), two);
    OPS->stream_destroy(stream);
    rig_close(&rig);
}

static void *sync_position(void *arg)
{
    void **pair = arg;
    return (void *)(intptr_t)OPS->sync(pair[0], (uint64_t)(uintptr_t)pair[1]);
}

Test(host_stream, several_threads_wait_for_one_stream)
{
    struct rig rig;
    rig_open(&rig, 1);
    struct gate gate = {0};
    void *stream = rig_stream(&rig, 0);
    must(OPS->host_function(stream, gate_pass, &gate));
    uint64_t position = rig_record(stream);
    void *pair[2] = {stream, (void *)(uintptr_t)position};
    pthread_t threads[6];
    for (int i = 0; i < 6; i++) pthread_create(&threads[i], NULL, sync_position, pair);
    until(&gate.arrived, 1);
    usleep(20000);
    atomic_store(&gate.open, 1);
    for (int i = 0; i < 6; i++) {
        void *result;
        pthread_join(threads[i], &result);
        cr_assert_null(result);
    }
    OPS->stream_destroy(stream);
    rig_close(&rig);
}

static uint64_t process_cpu_us(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000u +
           (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

Test(host_stream, idle_and_blocked_devices_use_no_cpu)
{
    struct rig rig;
    rig_open(&rig, 1);
    struct gate gates[8] = {0};
    void *streams[8];
    for (int i = 0; i < 8; i++) {
        streams[i] = rig_stream(&rig, 0);
        must(OPS->host_function(streams[i], gate_pass, &gates[i]));
        rig_record(streams[i]);
        until(&gates[i].arrived, 1);
    }
    for (int i = 0; i < 8; i++) atomic_store(&gates[i].open, 1);
    struct weir__host_threads threads;
    do {
        usleep(1000);
        weir__host_device_threads(rig.devices[0], &threads);
    } while (threads.parked != threads.started);
    cr_assert(threads.started >= 8);
    uint64_t before = process_cpu_us();
    sleep(1);
    uint64_t used = process_cpu_us() - before;
    fprintf(stderr, "idle for a second: %llu us of CPU time\n", (unsigned long long)used);
    cr_assert(used < 50000, "%llu us", (unsigned long long)used);
    for (int i = 0; i < 8; i++) rig_sync_and_destroy(streams[i]);
    rig_close(&rig);
}

static void add_all(uint64_t *sum, uint64_t a, uint64_t b, uint64_t c)
{
    *sum += a + 10 * b + 100 * c;
}

#define TEN(x) x##0, x##1, x##2, x##3, x##4, x##5, x##6, x##7, x##8, x##9
#define TEN_ARGS(x)                                                                                                    \
    uint64_t x##0, uint64_t x##1, uint64_t x##2, uint64_t x##3, uint64_t x##4, uint64_t x##5, uint64_t x##6,           \
        uint64_t x##7, uint64_t x##8, uint64_t x##9
static void many_arguments(uint64_t *out, TEN_ARGS(a), TEN_ARGS(b), TEN_ARGS(c), TEN_ARGS(d), TEN_ARGS(e), TEN_ARGS(f),
                           TEN_ARGS(g), TEN_ARGS(h))
{
    const uint64_t all[] = {TEN(a), TEN(b), TEN(c), TEN(d), TEN(e), TEN(f), TEN(g), TEN(h)};
    for (int i = 0; i < 80; i++) out[i] = all[i];
}

Test(host_stream, kernels_get_their_arguments)
{
    struct rig rig;
    rig_open(&rig, 1);
    void *stream = rig_stream(&rig, 0);
    uint64_t sum = 0, out[80] = {0}, position = 0;
    uint64_t args[81] = {(uintptr_t)&sum, 1, 2, 3};
    struct weir__launch launch = {.kernel = (void *)(uintptr_t)add_all, .nargs = 4, .args = args};
    must(OPS->launch(stream, &launch));
    args[1] = 1000; /* read before return */
    args[0] = (uintptr_t)out;
    for (unsigned i = 1; i < 81; i++) args[i] = i * i;
    launch = (struct weir__launch){.kernel = (void *)(uintptr_t)many_arguments, .nargs = 81, .args = args};
    must(OPS->launch(stream, &launch));
    must(OPS->record(stream, &position));
    must(OPS->sync(stream, position));
    cr_assert_eq(sum, 321);
    for (unsigned i = 0; i < 80; i++) cr_assert_eq(out[i], (i + 1) * (i + 1));
    OPS->stream_destroy(stream);
    rig_close(&rig);
}

static uint64_t seen[16];
#define ARGS_1  uint64_t a0
#define ARGS_2  ARGS_1, uint64_t a1
#define ARGS_3  ARGS_2, uint64_t a2
#define ARGS_4  ARGS_3, uint64_t a3
#define ARGS_5  ARGS_4, uint64_t a4
#define ARGS_6  ARGS_5, uint64_t a5
#define ARGS_7  ARGS_6, uint64_t a6
#define ARGS_8  ARGS_7, uint64_t a7
#define ARGS_9  ARGS_8, uint64_t a8
#define NAMES_1 a0
#define NAMES_2 NAMES_1, a1
#define NAMES_3 NAMES_2, a2
#define NAMES_4 NAMES_3, a3
#define NAMES_5 NAMES_4, a4
#define NAMES_6 NAMES_5, a5
#define NAMES_7 NAMES_6, a6
#define NAMES_8 NAMES_7, a7
#define NAMES_9 NAMES_8, a8
#define KERNEL(n)                                                                                                      \
    static void kernel_##n(ARGS_##n)                                                                                   \
    {                                                                                                                  \
        const uint64_t all[] = {NAMES_##n};                                                                            \
        for (int i = 0; i < n; i++) seen[i] = all[i];                                                                  \
        seen[15] = n;                                                                                                  \
    }
KERNEL(1)
KERNEL(2)
KERNEL(3)
KERNEL(4) KERNEL(5) KERNEL(6) KERNEL(7) KERNEL(8) KERNEL(9)

    static void kernel_0(void)
{
    seen[15] = 0;
}

Test(host_stream, kernels_of_every_small_number_of_arguments)
{
    struct rig rig;
    rig_open(&rig, 1);
    void *stream = rig_stream(&rig, 0);
    void *const kernels[] = {(void *)(uintptr_t)kernel_0, (void *)(uintptr_t)kernel_1, (void *)(uintptr_t)kernel_2,
                             (void *)(uintptr_t)kernel_3, (void *)(uintptr_t)kernel_4, (void *)(uintptr_t)kernel_5,
                             (void *)(uintptr_t)kernel_6, (void *)(uintptr_t)kernel_7, (void *)(uintptr_t)kernel_8,
                             (void *)(uintptr_t)kernel_9};
    for (uint32_t n = 0; n < 10; n++) {
        uint64_t args[10], position = 0;
        for (uint32_t i = 0; i < 10; i++) args[i] = 0x1234567800000000u + 100 * n + i;
        seen[15] = 99;
        struct weir__launch launch = {.kernel = kernels[n], .nargs = n, .args = args};
        must(OPS->launch(stream, &launch));
        must(OPS->record(stream, &position));
        must(OPS->sync(stream, position));
        cr_assert_eq(seen[15], n);
        for (uint32_t i = 0; i < n; i++) cr_assert_eq(seen[i], args[i]);
    }
    OPS->stream_destroy(stream);
    rig_close(&rig);
}

Test(host_stream, memory_is_filled_copied_and_freed_in_order)
{
    struct rig rig;
    rig_open(&rig, 2);
    void *stream = rig_stream(&rig, 0), *memory = NULL, *peer = NULL;
    char from[4][5][8], to[3][4][6];
    uint64_t position = 0;
    for (int p = 0; p < 4; p++)
        for (int r = 0; r < 5; r++)
            for (int b = 0; b < 8; b++) from[p][r][b] = (char)(p * 40 + r * 8 + b);
    cr_assert_eq(OPS->alloc(rig.devices[0], 0, &memory), WEIR_E_INVALID);
    must(OPS->alloc(rig.devices[0], sizeof from, &memory));
    must(OPS->alloc(rig.devices[1], sizeof from, &peer));
    cr_assert_eq((uintptr_t)memory % 64, 0);
    struct weir__copy copy = {.kind = WEIR__COPY_TO_DEVICE, .to = peer, .from = from, .bytes = sizeof from};
    must(OPS->copy(stream, &copy));
    copy = (struct weir__copy){
        .kind = WEIR__COPY_PEER, .to = memory, .from = peer, .bytes = sizeof from, .peer = rig.devices[1]};
    must(OPS->copy(stream, &copy));
    must(OPS->fill(stream, to, 0x7f, sizeof to));
    copy = (struct weir__copy){.kind = WEIR__COPY_TO_HOST,
                               .to = to,
                               .from = memory,
                               .bytes = 5,
                               .count = {4, 3},
                               .to_pitch = {6, 24},
                               .from_pitch = {8, 40}};
    must(OPS->copy(stream, &copy));
    must(OPS->free_on_stream(stream, memory));
    must(OPS->record(stream, &position));
    must(OPS->sync(stream, position));
    for (int p = 0; p < 3; p++)
        for (int r = 0; r < 4; r++) {
            for (int b = 0; b < 5; b++) cr_assert_eq(to[p][r][b], from[p][r][b]);
            cr_assert_eq(to[p][r][5], 0x7f);
        }
    must(OPS->free(rig.devices[1], peer));
    OPS->stream_destroy(stream);
    rig_close(&rig);
}

Test(host_stream, child_of_a_fork_is_refused)
{
    struct rig rig;
    rig_open(&rig, 1);
    struct gate gate = {0};
    void *stream = rig_stream(&rig, 0);
    must(OPS->host_function(stream, gate_pass, &gate));
    uint64_t position = rig_record(stream);
    until(&gate.arrived, 1);
    pid_t child = fork();
    if (!child) {
        int status = 0, wrong = 0;
        void *other = NULL;
        alarm(20);
        wrong |= OPS->host_function(stream, gate_pass, &gate) != WEIR_E_FORKED;
        wrong |= (OPS->record(stream, &position) != WEIR_E_FORKED) << 1;
        wrong |= (OPS->sync(stream, position) != WEIR_E_FORKED) << 2;
        wrong |= (OPS->notify(stream, position) != WEIR_E_FORKED) << 3;
        wrong |= (OPS->stream_create(rig.devices[0], NULL, 0, &other) != WEIR_E_FORKED) << 4;
        OPS->completed(stream, &status);
        wrong |= (status != WEIR_E_FORKED) << 5;
        OPS->flush(stream);
        OPS->stream_destroy(stream);
        OPS->device_close(rig.devices[0]);
        /* A backend of the child's own works. */
        void *backend = NULL, *device = NULL, *own = NULL;
        struct weir__device_info info;
        _Atomic int count = 0;
        int code = weir__host_backend_create(1, &rig_options, &backend);
        if (!code) code = OPS->device_open(backend, 0, &rig_notice, &info, &device);
        if (!code) code = OPS->stream_create(device, NULL, 0, &own);
        if (!code) code = OPS->host_function(own, count_up, &count);
        if (!code) code = OPS->record(own, &position);
        if (!code) code = OPS->sync(own, position);
        wrong |= (code || count != 1) << 6;
        _exit(wrong);
    }
    int status = -1;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    cr_assert(WIFEXITED(status) && !WEXITSTATUS(status), "status %x", (unsigned)status);
    atomic_store(&gate.open, 1);
    must(OPS->sync(stream, position));
    OPS->stream_destroy(stream);
    rig_close(&rig);
}

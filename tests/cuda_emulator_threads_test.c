/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The emulated driver and several threads: who is held up by whom, and what two of them must not do at once. */
#include <cuda/rig.h>

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

/* A call made by a thread of its own, with the rig's context current. */
struct other {
    pthread_t thread;
    void *context;
    int (*call)(struct other *other);
    void *handle, *stream;
    uint64_t address;
    int code;
    atomic_bool returned;
};

static void *other_main(void *arg)
{
    struct other *other = arg;
    if (other->context) cuCtxSetCurrent(other->context);
    other->code = other->call(other);
    atomic_store(&other->returned, true);
    if (other->context) cuCtxSetCurrent(NULL);
    return NULL;
}

static void begin(struct other *other, struct rig rig, int (*call)(struct other *other))
{
    other->context = rig.context;
    other->call = call;
    cr_assert_eq(pthread_create(&other->thread, NULL, other_main, other), 0);
}

static void end(struct other *other)
{
    pthread_join(other->thread, NULL);
    cr_assert(atomic_load(&other->returned));
}

/* So many calls of @entry have begun; none of @others has returned, and does not as long as nobody does anything. */
static void expect_held_up(const char *entry, uint64_t calls, struct other *others, int n)
{
    while (emulator_calls(entry) < calls) continue;
    for (int round = 0; round < 200; round++)
        for (int i = 0; i < n; i++) cr_assert(!atomic_load(&others[i].returned));
}

static int push_twice_and_pop_once(struct other *other)
{
    int code = cuCtxPushCurrent_v2(other->handle);
    if (!code) code = cuCtxPushCurrent_v2(other->handle);
    return code ? code : cuCtxPopCurrent_v2(NULL);
}

static int set(struct other *other)
{
    return cuCtxSetCurrent(other->handle);
}

/* What a thread has set may stay current until it ends, what it has pushed must be popped. */
Test(emulator_threads, context_left_pushed)
{
    struct rig rig = rig_start(NULL), none = {NULL, NULL};
    struct other other = {.handle = rig.context};
    begin(&other, none, set);
    end(&other);
    cr_assert_eq(emulator_report_count(), 0);
    begin(&other, none, push_twice_and_pop_once);
    end(&other);
    OK(other.code);
    rig_expect_report("ends with 1 contexts that it pushed");
    rig_stop(rig);
}

static int get_function(struct other *other)
{
    return cuModuleGetFunction(&(void *){NULL}, other->handle, "count");
}

static atomic_bool told;

static int query_until_told(struct other *other)
{
    int code;
    do code = cuStreamQuery(other->stream);
    while (!atomic_load(&told));
    return code;
}

/* The first use of a kernel waits for all that is queued, and whoever calls the driver meanwhile waits for that. */
Test(emulator_threads, lazy_loading_holds_up_the_context)
{
    struct rig rig = rig_start((struct setting[]){{"lazy", 1}, {"stopped", 1}, {"free_blocks", 0}, {NULL, 0}});
    uint64_t address = rig_alloc(8);
    struct other others[2] = {{.handle = rig.module}, {.stream = rig_stream()}};
    OK(cuMemsetD8Async(address, 0, 8, others[1].stream));
    emulator_counters_reset();
    begin(&others[0], rig, get_function);
    while (!emulator_calls("cuModuleGetFunction")) continue;
    begin(&others[1], rig, query_until_told);
    /* The first one has begun, but may not hold anything up yet: until queries return no more. */
    uint64_t calls = 0;
    for (int same = 0; same < 10 || !calls; usleep(10000)) {
        uint64_t now = emulator_calls("cuStreamQuery");
        same = now == calls ? same + 1 : 0;
        calls = now;
    }
    expect_held_up("cuStreamQuery", 1, others, 2);
    atomic_store(&told, true);
    emulator_start(0);
    for (int i = 0; i < 2; i++) {
        end(&others[i]);
        OK(others[i].code);
    }
    OK(cuStreamDestroy_v2(others[1].stream));
    OK(cuMemFree_v2(address));
    rig_stop(rig);
}

static int free_memory(struct other *other)
{
    return cuMemFree_v2(other->address);
}

/* Freeing memory may wait for all that is queued in its context, whether that uses it or not. */
Test(emulator_threads, free_waits_for_the_context)
{
    struct rig rig = rig_start((struct setting[]){{"stopped", 1}, {NULL, 0}});
    void *stream = rig_stream();
    uint64_t used = rig_alloc(8);
    struct other other = {.address = rig_alloc(8)};
    OK(cuMemsetD8Async(used, 0, 8, stream));
    begin(&other, rig, free_memory);
    expect_held_up("cuMemFree_v2", 1, &other, 1);
    emulator_start(0);
    end(&other);
    OK(other.code);
    OK(cuStreamSynchronize(stream));
    OK(cuStreamDestroy_v2(stream));
    OK(cuMemFree_v2(used));
    rig_stop(rig);
}

static atomic_bool entered, leave;

static void wait_in_function(void *arg)
{
    (void)arg;
    atomic_store(&entered, true);
    while (!atomic_load(&leave)) continue;
}

static void do_nothing(void *arg)
{
    (void)arg;
}

/* Host functions of all streams run one after another, unless it is said that they need not. */
static void host_functions(int64_t workers, int expected)
{
    struct rig rig = rig_start((struct setting[]){{"host_workers", workers}, {NULL, 0}});
    void *a = rig_stream(), *b = rig_stream();
    OK(cuLaunchHostFunc(a, wait_in_function, NULL));
    while (!atomic_load(&entered)) continue;
    OK(cuLaunchHostFunc(b, do_nothing, NULL));
    if (!expected) OK(cuStreamSynchronize(b));
    for (int i = 0; i < 200; i++) cr_assert_eq(cuStreamQuery(b), expected);
    atomic_store(&leave, true);
    OK(cuStreamSynchronize(b));
    OK(cuStreamSynchronize(a));
    OK(cuStreamDestroy_v2(a));
    OK(cuStreamDestroy_v2(b));
    rig_stop(rig);
}

Test(emulator_threads, host_functions_run_one_at_a_time)
{
    host_functions(1, CUDA_NOT_READY);
}

Test(emulator_threads, host_functions_run_side_by_side)
{
    host_functions(2, 0);
}

/* ---- what only one thread may use at a time ---- */

static int record(struct other *other)
{
    return cuEventRecord(other->handle, other->stream);
}

static int launch(struct other *other)
{
    return cuGraphLaunch(other->handle, other->stream);
}

/* Two threads are in @call at once, since the launch queue is full; the second one is reported. */
static void share(struct rig rig, const char *entry, int (*call)(struct other *other), void *handle, void *stream)
{
    struct other others[2] = {{.handle = handle, .stream = stream}, {.handle = handle, .stream = stream}};
    uint64_t address = rig_alloc(8);
    emulator_stop(0);
    for (int i = 0; i < 2; i++) OK(cuMemsetD8Async(address, 0, 8, stream));
    emulator_counters_reset();
    begin(&others[0], rig, call);
    expect_held_up(entry, 1, &others[0], 1);
    cr_assert_eq(emulator_report_count(), 0);
    begin(&others[1], rig, call);
    expect_held_up(entry, 2, others, 2);
    emulator_start(0);
    for (int i = 0; i < 2; i++) {
        end(&others[i]);
        OK(others[i].code);
    }
    OK(cuStreamSynchronize(stream));
    OK(cuMemFree_v2(address));
}

Test(emulator_threads, event_recorded_by_two)
{
    struct rig rig = rig_start((struct setting[]){{"launch_queue", 2}, {NULL, 0}});
    void *event = rig_event(), *stream = rig_stream();
    share(rig, "cuEventRecord", record, event, stream);
    rig_expect_report("is recorded while another thread records it");
    OK(cuEventDestroy_v2(event));
    OK(cuStreamDestroy_v2(stream));
    rig_stop(rig);
}

Test(emulator_threads, graph_launched_by_two)
{
    struct rig rig = rig_start((struct setting[]){{"launch_queue", 2}, {NULL, 0}});
    void *stream = rig_stream(), *graph, *exec;
    OK(cuStreamBeginCapture_v2(stream, 0));
    OK(cuLaunchHostFunc(stream, do_nothing, NULL));
    OK(cuStreamEndCapture(stream, &graph));
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuGraphDestroy(graph));
    share(rig, "cuGraphLaunch", launch, exec, stream);
    rig_expect_report("is launched while another thread launches it");
    OK(cuGraphExecDestroy(exec));
    OK(cuStreamDestroy_v2(stream));
    rig_stop(rig);
}

/* Recording a pending event anew is legal and counted; whoever keeps events apart can have it reported. */
Test(emulator_threads, pending_event_recorded_anew)
{
    struct rig rig = rig_start(STOPPED);
    void *event = rig_event(), *stream = rig_stream();
    OK(cuEventRecord(event, stream));
    cr_assert_eq(emulator_rerecords(), 0);
    OK(cuEventRecord(event, stream));
    cr_assert_eq(emulator_rerecords(), 1);
    cr_assert_eq(emulator_report_count(), 0);
    emulator_set("report_rerecord", 1);
    OK(cuEventRecord(event, stream));
    rig_expect_report("its former record is pending");
    emulator_start(0);
    OK(cuEventSynchronize(event));
    OK(cuEventRecord(event, stream));
    cr_assert_eq(emulator_rerecords(), 2);
    OK(cuStreamSynchronize(stream));
    OK(cuEventDestroy_v2(event));
    OK(cuStreamDestroy_v2(stream));
    rig_stop(rig);
}

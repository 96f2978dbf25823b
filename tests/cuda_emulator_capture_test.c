/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The emulated driver: captures, what breaks them, and launches of what was captured. */
#include <cuda/rig.h>

#include <pthread.h>

enum { GLOBAL, THREAD_LOCAL, RELAXED };

static int status_of(void *stream)
{
    int status;
    OK(cuStreamIsCapturing(stream, &status));
    return status;
}

/* Two streams, joined: nothing runs until the launch, and every launch runs all of it with the arguments of then. */
Test(emulator_capture, fork_and_join)
{
    struct rig rig = rig_start(NULL);
    void *a = rig_stream(), *b = rig_stream(), *events[2] = {rig_event(), rig_event()}, *graph, *exec;
    void *add = rig_function(rig, "add");
    uint64_t x = rig_alloc(8), y = rig_alloc(8);
    OK(cuMemsetD8_v2(x, 0, 8));
    OK(cuCtxSynchronize());
    OK(cuStreamBeginCapture_v2(a, GLOBAL));
    rig_launch(add, a, x, 5, 0);
    OK(cuEventRecord(events[0], a));
    OK(cuStreamWaitEvent(b, events[0], 0));
    cr_assert_eq(status_of(b), 1);
    OK(cuMemcpyDtoDAsync_v2(y, x, 8, b));
    OK(cuEventRecord(events[1], b));
    OK(cuStreamWaitEvent(a, events[1], 0));
    rig_launch(add, a, y, 100, 0);
    OK(cuStreamEndCapture(a, &graph));
    cr_assert(status_of(a) == 0 && status_of(b) == 0);
    cr_assert_eq(rig_read(x), 0);
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuGraphDestroy(graph));
    OK(cuGraphUpload(exec, a));
    OK(cuGraphLaunch(exec, a));
    OK(cuGraphLaunch(exec, b)); /* behind the first one, though in another stream */
    OK(cuGraphExecDestroy(exec));
    OK(cuCtxSynchronize());
    cr_assert_eq(rig_read(x), 10);
    cr_assert_eq(rig_read(y), 110);
    cr_assert_eq(cuGraphLaunch(exec, a), CUDA_INVALID_HANDLE);
    rig_expect_report("executable graph");
    cr_assert_eq(cuGraphDestroy(graph), CUDA_INVALID_HANDLE);
    rig_expect_report("was destroyed");
    OK(cuStreamDestroy_v2(a));
    OK(cuStreamDestroy_v2(b));
    for (int i = 0; i < 2; i++) OK(cuEventDestroy_v2(events[i]));
    OK(cuMemFree_v2(x));
    OK(cuMemFree_v2(y));
    rig_stop(rig);
}

/* The capture that began in @stream was invalidated; it is ended. */
static void expect_invalidated(void *stream)
{
    void *graph = &graph;
    cr_assert_eq(status_of(stream), 2);
    cr_assert_eq(cuMemsetD8Async(0, 0, 1, stream), CUDA_CAPTURE_INVALIDATED);
    cr_assert_eq(cuStreamEndCapture(stream, &graph), CUDA_CAPTURE_INVALIDATED);
    cr_assert_null(graph);
    cr_assert_eq(status_of(stream), 0);
}

static void callback(void *stream, int status, void *arg)
{
    (void)stream, (void)status, (void)arg;
}

Test(emulator_capture, what_invalidates)
{
    struct rig rig = rig_start(NULL);
    void *blocking, *graph, *stream = rig_stream(), *event = rig_event(), *captured = rig_event();
    uint64_t address = rig_alloc(8);
    OK(cuStreamCreateWithPriority(&blocking, 0, 0));
    OK(cuEventRecord(event, stream));
    for (int what = 0; what < 8; what++) {
        OK(cuStreamBeginCapture_v2(blocking, RELAXED));
        OK(cuEventRecord(captured, blocking));
        switch (what) {
        case 0:
            cr_assert_eq(cuStreamSynchronize(blocking), CUDA_CAPTURE_UNSUPPORTED);
            break;
        case 1:
            cr_assert_eq(cuStreamQuery(blocking), CUDA_CAPTURE_UNSUPPORTED);
            break;
        case 2:
            cr_assert_eq(cuCtxSynchronize(), CUDA_CAPTURE_UNSUPPORTED);
            break;
        case 3:
            cr_assert_eq(cuEventQuery(captured), CUDA_CAPTURED_EVENT);
            break;
        case 4:
            cr_assert_eq(cuEventSynchronize(captured), CUDA_CAPTURED_EVENT);
            break;
        case 5:
            cr_assert_eq(cuMemsetD8_v2(address, 0, 8), CUDA_CAPTURE_IMPLICIT);
            break;
        case 6:
            cr_assert_eq(cuStreamWaitEvent(blocking, event, 0), CUDA_CAPTURE_ISOLATION);
            break;
        default:
            cr_assert_eq(cuStreamAddCallback(blocking, callback, NULL, 0), CUDA_CAPTURE_UNSUPPORTED);
            break;
        }
        expect_invalidated(blocking);
    }
    OK(cuStreamBeginCapture_v2(stream, RELAXED));
    OK(cuMemsetD8_v2(address, 0, 8)); /* the legacy stream has nothing to do with it */
    OK(cuStreamEndCapture(stream, &graph));
    OK(cuGraphDestroy(graph));
    OK(cuCtxSynchronize());
    OK(cuStreamDestroy_v2(stream));
    OK(cuStreamDestroy_v2(blocking));
    OK(cuEventDestroy_v2(event));
    OK(cuEventDestroy_v2(captured));
    OK(cuMemFree_v2(address));
    rig_stop(rig);
}

Test(emulator_capture, two_captures_do_not_merge)
{
    struct rig rig = rig_start(NULL);
    void *a = rig_stream(), *b = rig_stream(), *event = rig_event();
    OK(cuStreamBeginCapture_v2(a, RELAXED));
    OK(cuStreamBeginCapture_v2(b, RELAXED));
    OK(cuEventRecord(event, a));
    cr_assert_eq(cuStreamWaitEvent(b, event, 0), CUDA_CAPTURE_MERGE);
    expect_invalidated(a);
    expect_invalidated(b);
    cr_assert_eq(cuStreamBeginCapture_v2(NULL, RELAXED), CUDA_CAPTURE_UNSUPPORTED);
    OK(cuStreamDestroy_v2(a));
    OK(cuStreamDestroy_v2(b));
    OK(cuEventDestroy_v2(event));
    rig_stop(rig);
}

struct other_thread {
    struct rig rig;
    void *stream, *event;
    int mode; /* of the thread; -1: end the capture instead of a query */
    int code;
};

static void *in_other_thread(void *arg)
{
    struct other_thread *other = arg;
    void *graph;
    cuCtxSetCurrent(other->rig.context);
    if (other->mode >= 0) cuThreadExchangeStreamCaptureMode(&(int){other->mode});
    other->code = other->mode < 0 ? cuStreamEndCapture(other->stream, &graph) : cuEventQuery(other->event);
    cuCtxSetCurrent(NULL);
    return NULL;
}

static int from_other_thread(struct other_thread *other)
{
    pthread_t thread;
    pthread_create(&thread, NULL, in_other_thread, other);
    pthread_join(thread, NULL);
    return other->code;
}

/* A query by another thread breaks a capture in global mode, unless one of the two has another mode. */
Test(emulator_capture, other_threads)
{
    static const struct {
        int capture, thread, expected;
    } rows[] = {
        {GLOBAL, GLOBAL, CUDA_CAPTURE_UNSUPPORTED},
        {GLOBAL, THREAD_LOCAL, 0},
        {GLOBAL, RELAXED, 0},
        {THREAD_LOCAL, GLOBAL, 0},
        {RELAXED, GLOBAL, 0},
        {GLOBAL, -1, CUDA_CAPTURE_WRONG_THREAD},
        {THREAD_LOCAL, -1, CUDA_CAPTURE_WRONG_THREAD},
    };
    struct rig rig = rig_start(NULL);
    void *stream = rig_stream(), *graph;
    struct other_thread other = {.rig = rig, .stream = stream, .event = rig_event()};
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        OK(cuStreamBeginCapture_v2(stream, rows[i].capture));
        other.mode = rows[i].thread;
        cr_expect_eq(from_other_thread(&other), rows[i].expected, "row %u", i);
        cr_expect_eq(cuStreamEndCapture(stream, &graph), rows[i].expected ? CUDA_CAPTURE_INVALIDATED : 0, "row %u", i);
        if (!rows[i].expected) OK(cuGraphDestroy(graph));
    }
    OK(cuStreamDestroy_v2(stream));
    OK(cuEventDestroy_v2(other.event));
    rig_stop(rig);
}

/* All must be joined, and the end is called on the stream where it began. */
Test(emulator_capture, ends)
{
    struct rig rig = rig_start(NULL);
    void *a = rig_stream(), *b = rig_stream(), *event = rig_event(), *graph;
    uint64_t address = rig_alloc(8);
    OK(cuStreamBeginCapture_v2(a, GLOBAL));
    OK(cuEventRecord(event, a));
    OK(cuStreamWaitEvent(b, event, 0));
    OK(cuMemsetD8Async(address, 0, 8, b));
    cr_assert_eq(cuStreamEndCapture(a, &graph), CUDA_CAPTURE_UNJOINED);
    OK(cuStreamBeginCapture_v2(a, GLOBAL));
    OK(cuEventRecord(event, a));
    OK(cuStreamWaitEvent(b, event, 0));
    cr_assert_eq(cuStreamEndCapture(b, &graph), CUDA_CAPTURE_UNMATCHED);
    cr_assert_eq(cuStreamEndCapture(a, &graph), CUDA_CAPTURE_INVALIDATED);
    OK(cuMemsetD8Async(address, 0, 8, b)); /* it is an ordinary stream again */
    OK(cuCtxSynchronize());
    OK(cuStreamDestroy_v2(a));
    OK(cuStreamDestroy_v2(b));
    OK(cuEventDestroy_v2(event));
    OK(cuMemFree_v2(address));
    rig_stop(rig);
}

/* ---- graphs by hand ---- */

static struct cuda_kernel_node adds(struct rig rig, void **arguments)
{
    return (struct cuda_kernel_node){
        .function = rig_function(rig, "add"), .grid = {1, 1, 1}, .block = {1, 1, 1}, .arguments = arguments};
}

/* A graph of two kernels that add to *@to, and an empty node behind or, @turned, before them. */
static void *graph_of(struct rig rig, uint64_t to, uint64_t first, uint64_t second, bool turned, void *nodes[3])
{
    void *graph, *arguments[] = {&to, &first, NULL};
    struct cuda_kernel_node kernel = adds(rig, arguments);
    OK(cuGraphCreate(&graph, 0));
    if (turned) OK(cuGraphAddEmptyNode(&nodes[2], graph, NULL, 0));
    OK(cuGraphAddKernelNode_v2(&nodes[0], graph, nodes + 2, turned, &kernel));
    first = second; /* the value of the call counts */
    OK(cuGraphAddKernelNode_v2(&nodes[1], graph, nodes, 1, &kernel));
    if (!turned) OK(cuGraphAddEmptyNode(&nodes[2], graph, nodes, 2));
    return graph;
}

static int64_t launched(void *exec, uint64_t address)
{
    OK(cuMemsetD8_v2(address, 0, 8));
    OK(cuCtxSynchronize());
    OK(cuGraphLaunch(exec, NULL));
    return rig_read(address);
}

/* What is instantiated stays as it is, unless it is updated by a graph of the same form, or a node of it is changed. */
Test(emulator_capture, graphs_node_by_node)
{
    struct rig rig = rig_start(NULL);
    uint64_t address = rig_alloc(8), value = 1000;
    void *nodes[3], *others[3], *exec, *more, *arguments[] = {&address, &value, NULL};
    struct cuda_kernel_node kernel = adds(rig, arguments);
    struct cuda_update_info info;
    void *graph = graph_of(rig, address, 1, 20, false, nodes), *same = graph_of(rig, address, 3, 40, false, others);
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    cr_assert_eq(launched(exec, address), 21);
    OK(cuGraphAddKernelNode_v2(&more, graph, nodes, 1, &kernel));
    cr_assert_eq(launched(exec, address), 21);
    cr_assert_eq(cuGraphAddKernelNode_v2(&more, graph, others, 1, &kernel), CUDA_INVALID_VALUE);
    OK(cuGraphExecUpdate_v2(exec, same, &info));
    cr_assert_eq(launched(exec, address), 43);
    cr_assert_eq(cuGraphExecUpdate_v2(exec, graph, &info), CUDA_GRAPH_EXEC_UPDATE_FAILURE);
    cr_assert_eq(info.result, CUDA_UPDATE_TOPOLOGY_CHANGED);
    cr_assert_eq(launched(exec, address), 43);
    OK(cuGraphExecKernelNodeSetParams_v2(exec, nodes[0], &kernel));
    cr_assert_eq(launched(exec, address), 1040);
    cr_assert_eq(cuGraphExecKernelNodeSetParams_v2(exec, nodes[2], &kernel), CUDA_INVALID_VALUE);
    cr_assert_eq(cuGraphExecKernelNodeSetParams_v2(exec, others[0], &kernel), CUDA_INVALID_VALUE);
    OK(cuGraphDestroy(same));
    OK(cuGraphDestroy(graph));
    cr_assert_eq(launched(exec, address), 1040);
    cr_assert_eq(cuGraphAddEmptyNode(&more, graph, NULL, 0), CUDA_INVALID_HANDLE);
    rig_expect_report("was destroyed");
    void *turned = graph_of(rig, address, 1, 20, true, others);
    cr_assert_eq(cuGraphExecUpdate_v2(exec, turned, &info), CUDA_GRAPH_EXEC_UPDATE_FAILURE);
    OK(cuGraphDestroy(turned));
    OK(cuGraphExecDestroy(exec));
    OK(cuMemFree_v2(address));
    rig_stop(rig);
}

static void count_call(void *arg)
{
    ++*(int *)arg;
}

/* Functions of the host are nodes, too. */
Test(emulator_capture, host_nodes)
{
    struct rig rig = rig_start(NULL);
    int count = 0;
    void *graph, *exec, *node;
    struct cuda_host_node host = {count_call, &count};
    OK(cuGraphCreate(&graph, 0));
    for (int i = 0; i < 3; i++) OK(cuGraphAddHostNode(&node, graph, &node, i > 0, &host));
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    for (int i = 0; i < 2; i++) OK(cuGraphLaunch(exec, NULL));
    OK(cuCtxSynchronize());
    cr_assert_eq(count, 6);
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
    rig_stop(rig);
}

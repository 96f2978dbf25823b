/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "graph.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <devices/cuda/driver.h>
#include <exec/futex.h>

enum { ROUNDS = 2000, CHAINS = 16, REPEAT = 10000 };

static const struct weir__driver *driver;
static struct driver_context *context;
static struct driver_module *module;
static struct driver_function *function;
static struct driver_stream *streams[CHAINS];

static void need(enum driver_result result, const char *what)
{
    if (result == DRIVER_OK) return;
    printf("%s: error %d of the driver\nFAIL\n", what, (int)result);
    exit(1);
}

static double now_us(void)
{
    return (double)weir__now_ns() / 1e3;
}

static void begin(const char *ptx)
{
    const char *reason;
    driver = weir__driver_open(&reason);
    need(driver->context_retain(&context, 0), "context");
    need(driver->context_push(context), "context");
    need(driver->module_load(&module, ptx, 0, NULL, NULL), "module");
    need(driver->module_function(&function, module, "step"), "kernel");
    for (int i = 0; i < CHAINS; i++) need(driver->stream_create(&streams[i], DRIVER_STREAM_NON_BLOCKING, 0), "stream");
}

static void end(void)
{
    struct driver_context *popped;
    for (int i = 0; i < CHAINS; i++) need(driver->stream_destroy(streams[i]), "stream");
    need(driver->module_unload(module), "module");
    need(driver->context_pop(&popped), "context");
    need(driver->context_release(0), "context");
}

static void cost(const char *kind, unsigned flags)
{
    struct driver_event *event;
    double record, wait, query;
    need(driver->event_create(&event, DRIVER_EVENT_DISABLE_TIMING | flags), "event");
    double from = now_us();
    for (int i = 0; i < REPEAT; i++) need(driver->event_record(event, streams[0]), "record");
    record = now_us() - from;
    need(driver->stream_sync(streams[0]), "wait");
    from = now_us();
    for (int i = 0; i < REPEAT; i++) need(driver->event_query(event), "query");
    query = now_us() - from;
    from = now_us();
    for (int i = 0; i < REPEAT; i++) need(driver->stream_wait(streams[1], event, 0), "wait");
    wait = now_us() - from;
    printf("events whose wait %s: record %.2f us, query %.2f us, wait %.2f us\n", kind, record / REPEAT, query / REPEAT,
           wait / REPEAT);
    need(driver->event_destroy(event), "event");
}

void gpu_costs(const char *ptx)
{
    begin(ptx);
    cost("spins", 0);
    cost("sleeps", DRIVER_EVENT_BLOCKING_SYNC);
    end();
}

static void launch(struct driver_stream *stream, uint64_t *cell, uint64_t *stamps)
{
    uint64_t value = 1, ns = 0;
    void *params[] = {&stamps, &cell, &value, &ns, NULL};
    need(driver->launch(function, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL), "launch");
}

/* One record a launch, as a runtime does that does not know what comes. */
static double by_hand(unsigned n, uint64_t *cells, uint64_t *stamps)
{
    static struct driver_event *events[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) need(driver->event_create(&events[i], DRIVER_EVENT_DISABLE_TIMING), "event");
    double from = now_us();
    for (unsigned i = 0; i < ROUNDS; i++) {
        launch(streams[i % n], &cells[i % n], stamps);
        need(driver->event_record(events[i], streams[i % n]), "record");
    }
    for (unsigned i = 0; i < n; i++) need(driver->stream_sync(streams[i]), "wait");
    double rate = ROUNDS / (now_us() - from) * 1e6;
    for (int i = 0; i < ROUNDS; i++) need(driver->event_destroy(events[i]), "event");
    return rate;
}

struct graph_calls {
    enum driver_result (*begin)(struct driver_stream *, int mode);
    enum driver_result (*end)(struct driver_stream *, void **graph);
    enum driver_result (*instantiate)(void **exec, void *graph, unsigned long long flags);
    enum driver_result (*launch)(void *exec, struct driver_stream *);
    enum driver_result (*exec_destroy)(void *exec);
    enum driver_result (*destroy)(void *graph);
};

static void look_up(void *library, const char *name, void *field)
{
    void *found = dlsym(library, name);
    memcpy(field, &found, sizeof found);
}

static double by_graph(uint64_t *cells, uint64_t *stamps)
{
    struct graph_calls calls = {NULL, NULL, NULL, NULL, NULL, NULL};
    void *library = dlopen("libcuda.so.1", RTLD_NOW), *graph, *exec;
    look_up(library, "cuStreamBeginCapture_v2", &calls.begin);
    look_up(library, "cuStreamEndCapture", &calls.end);
    look_up(library, "cuGraphInstantiateWithFlags", &calls.instantiate);
    look_up(library, "cuGraphLaunch", &calls.launch);
    look_up(library, "cuGraphExecDestroy", &calls.exec_destroy);
    look_up(library, "cuGraphDestroy", &calls.destroy);
    if (!calls.begin || !calls.end || !calls.instantiate || !calls.launch || !calls.exec_destroy || !calls.destroy)
        return 0;
    need(calls.begin(streams[0], 1), "capture");
    for (unsigned i = 0; i < ROUNDS; i++) launch(streams[0], &cells[0], stamps);
    need(calls.end(streams[0], &graph), "capture");
    need(calls.instantiate(&exec, graph, 0), "graph");
    need(calls.launch(exec, streams[0]), "graph");
    need(driver->stream_sync(streams[0]), "wait");
    double from = now_us();
    need(calls.launch(exec, streams[0]), "graph");
    need(driver->stream_sync(streams[0]), "wait");
    double rate = ROUNDS / (now_us() - from) * 1e6;
    need(calls.exec_destroy(exec), "graph");
    need(calls.destroy(graph), "graph");
    return rate;
}

void gpu_rates(const char *ptx, uint64_t *cells, uint64_t *stamps)
{
    begin(ptx);
    (void)by_hand(1, cells, stamps);
    printf("tasks a second, chain:     streams and events %.0f, CUDA graph %.0f\n", by_hand(1, cells, stamps),
           by_graph(cells, stamps));
    printf("tasks a second, 16 chains: streams and events %.0f\n", by_hand(CHAINS, cells, stamps));
    end();
}

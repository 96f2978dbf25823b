/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/*
 * How many calls of the driver a task costs, counted by the emulated driver for several patterns in steady state: each
 * pattern runs once before it is counted. The thread that submits has the device's context current, as one that uses
 * the CUDA runtime has. The lines that are printed are the table of docs/cuda.md.
 */
#include "exec_cuda_rig.h"

enum { TASKS = 960, CELLS = 64, TILES = 8, WIDTH = 32, IN_FLIGHT = 32 };

static struct cuda_rig rig;
static void *memory; /* int64_t[CELLS] on the device */

struct pattern {
    const char *name;
    void (*submit)(struct weir_scope *scope);
    bool copies;
};

static void *cell(unsigned i)
{
    return (int64_t *)memory + i;
}

static void submit(struct weir_scope *scope, const struct weir_access *accesses, size_t n, void *to)
{
    struct weir_task *task;
    cr_assert_eq(weir_task_begin(scope, rig.device, accesses, n, NULL, &task), 0, "%s", weir_error_text());
    cr_assert_eq(rig_launch(&rig, task, to, 1), 0, "%s", weir_error_text());
    cr_assert_eq(weir_task_end(task), 0, "%s", weir_error_text());
}

static void chains(struct weir_scope *scope, unsigned n)
{
    for (unsigned i = 0; i < TASKS; i++) {
        struct weir_access accesses[] = {WEIR_RANGE(cell(i % n), 8, WEIR_ACCESS_INOUT)};
        submit(scope, accesses, 1, cell(i % n));
    }
}

static void chain(struct weir_scope *scope)
{
    chains(scope, 1);
}

static void sixteen_chains(struct weir_scope *scope)
{
    chains(scope, 16);
}

/* Two rows of cells that are read and written in turn. */
static void stencil(struct weir_scope *scope)
{
    for (unsigned i = 0; i < TASKS; i++) {
        unsigned step = i / WIDTH, x = i % WIDTH, from = step % 2 * WIDTH, to = WIDTH - from;
        struct weir_access accesses[] = {
            WEIR_RANGE(cell(from + (x + WIDTH - 1) % WIDTH), 8, WEIR_ACCESS_IN),
            WEIR_RANGE(cell(from + x), 8, WEIR_ACCESS_IN),
            WEIR_RANGE(cell(from + (x + 1) % WIDTH), 8, WEIR_ACCESS_IN),
            WEIR_RANGE(cell(to + x), 8, WEIR_ACCESS_INOUT),
        };
        submit(scope, accesses, 4, cell(to + x));
    }
}

static void random_graph(struct weir_scope *scope)
{
    unsigned seed = 7;
    for (unsigned i = 0; i < TASKS; i++) {
        unsigned to = (unsigned)rand_r(&seed) % CELLS;
        struct weir_access accesses[] = {
            WEIR_RANGE(cell((unsigned)rand_r(&seed) % CELLS), 8, WEIR_ACCESS_IN),
            WEIR_RANGE(cell((unsigned)rand_r(&seed) % CELLS), 8, WEIR_ACCESS_IN),
            WEIR_RANGE(cell(to), 8, WEIR_ACCESS_INOUT),
        };
        submit(scope, accesses, 3, cell(to));
    }
}

static void tile_task(struct weir_scope *scope, unsigned to, int a, int b)
{
    struct weir_access accesses[3] = {WEIR_RANGE(cell(to), 8, WEIR_ACCESS_INOUT)};
    size_t n = 1;
    if (a >= 0) accesses[n++] = (struct weir_access)WEIR_RANGE(cell((unsigned)a), 8, WEIR_ACCESS_IN);
    if (b >= 0) accesses[n++] = (struct weir_access)WEIR_RANGE(cell((unsigned)b), 8, WEIR_ACCESS_IN);
    submit(scope, accesses, n, cell(to));
}

static void cholesky(struct weir_scope *scope)
{
    for (unsigned round = 0; round < TASKS / 120; round++)
        for (unsigned k = 0; k < TILES; k++) {
            tile_task(scope, k * TILES + k, -1, -1);
            for (unsigned i = k + 1; i < TILES; i++) tile_task(scope, i * TILES + k, (int)(k * TILES + k), -1);
            for (unsigned i = k + 1; i < TILES; i++)
                for (unsigned j = k + 1; j <= i; j++)
                    tile_task(scope, i * TILES + j, (int)(i * TILES + k), i == j ? -1 : (int)(j * TILES + k));
        }
}

/* As many blocks as can be in use at once are there. */
static void prepare_memory(void)
{
    void *block[IN_FLIGHT];
    for (int i = 0; i < IN_FLIGHT; i++) cr_assert_eq(weir_device_alloc(rig.device, 8, &block[i]), 0);
    for (int i = 0; i < IN_FLIGHT; i++) cr_assert_eq(weir_device_free(rig.device, block[i]), 0);
}

/* What a target region with map(tofrom:) does: memory, copy, kernel, copy back, free. */
static void mapped(struct weir_scope *scope)
{
    static int64_t host[TASKS];
    for (unsigned i = 0; i < TASKS; i++) {
        struct weir_access accesses[] = {WEIR_RANGE(&host[i], 8, WEIR_ACCESS_INOUT)};
        struct weir__copy to = {.kind = WEIR__COPY_TO_DEVICE, .from = &host[i], .bytes = 8};
        struct weir__copy from = {.kind = WEIR__COPY_TO_HOST, .to = &host[i], .bytes = 8};
        struct weir_task *task;
        host[i] = i;
        cr_assert_eq(weir_task_begin(scope, rig.device, accesses, 1, NULL, &task), 0);
        cr_assert_eq(weir_device_alloc(rig.device, 8, &to.to), 0);
        from.from = to.to;
        int rc = weir__task_copy(task, &to);
        if (!rc) rc = rig_launch(&rig, task, to.to, 1);
        if (!rc) rc = weir__task_copy(task, &from);
        if (!rc) rc = weir__task_free(task, to.to);
        cr_assert_eq(rc, 0, "%s", weir_error_text());
        cr_assert_eq(weir_task_end(task), 0);
        if (i % IN_FLIGHT == IN_FLIGHT - 1) {
            cr_assert_eq(weir_scope_wait(scope), 0);
            for (unsigned j = i + 1 - IN_FLIGHT; j <= i; j++) cr_assert_eq(host[j], j + 1);
        }
    }
}

/* Twice as many tasks in flight as in any other: streams keep some events each, and which stream has how many differs. */
static void largest(struct weir_scope *scope)
{
    random_graph(scope);
    random_graph(scope);
}

static const struct pattern patterns[] = {
    {"chain", chain, false},         {"16 chains", sixteen_chains, false}, {"stencil", stencil, false},
    {"random", random_graph, false}, {"Cholesky", cholesky, false},        {"enter and exit data", mapped, true},
};

static double per_task(const char *entry, uint64_t tasks)
{
    return (double)emulator_calls(entry) / (double)tasks;
}

/* What may block was not called while tasks were submitted. (One that waited for an event would never have come back, since
 * the device stands meanwhile.) */
static void check_submission(const struct pattern *pattern)
{
    static const char *const blocking[] = {"cuStreamSynchronize", "cuCtxSynchronize", "cuMemFree_v2", "cuMemAlloc_v2",
                                           "cuMemHostAlloc",      "cuModuleUnload",   "cuFuncLoad",   "cuMemFreeHost"};
    for (size_t i = 0; i < sizeof blocking / sizeof blocking[0]; i++)
        cr_expect_eq(emulator_calls(blocking[i]), 0, "%s: %s", pattern->name, blocking[i]);
}

/* @counters_out: NULL: not counted. */
static void run(const struct pattern *pattern, struct weir_counters *counters_out)
{
    struct weir_scope *scope;
    cr_assert_eq(weir_scope_create(rig.context, NULL, &scope), 0);
    if (!pattern->copies) emulator_stop(-1); /* nothing completes meanwhile: no edge is gone by chance */
    emulator_counters_reset();
    pattern->submit(scope);
    if (counters_out) check_submission(pattern);
    emulator_start(-1);
    cr_assert_eq(weir_scope_wait(scope), 0);
    if (counters_out) weir_scope_counters(scope, counters_out);
    cr_assert_eq(weir_scope_destroy(scope), 0);
}

static void count(const struct pattern *pattern)
{
    struct weir_counters counters;
    struct weir__cuda_counters before, after;
    run(pattern, NULL);
    if (pattern->copies) prepare_memory();
    before = rig_counters(&rig);
    run(pattern, &counters);
    after = rig_counters(&rig);
    uint64_t tasks = counters.tasks_device;
    printf("| %s | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f | %llu |\n", pattern->name,
           per_task("cuLaunchKernel", tasks), per_task("cuEventRecord", tasks), per_task("cuStreamWaitEvent", tasks),
           per_task("cuEventQuery", tasks),
           per_task("cuMemcpyHtoDAsync_v2", tasks) + per_task("cuMemcpyDtoHAsync_v2", tasks),
           per_task("cuPointerGetAttributes", tasks), (unsigned long long)emulator_calls("cuEventSynchronize"));
    cr_expect_leq(emulator_calls("cuEventRecord"), tasks, "%s: more than one record a task", pattern->name);
    cr_expect_eq(emulator_calls("cuStreamWaitEvent"), counters.event_waits, "%s: waits", pattern->name);
    cr_expect_eq(counters.edges, counters.edges_done + counters.edges_stream + counters.edges_implied +
                                     counters.edges_event + counters.edges_host + counters.edges_host_only);
    cr_expect_eq(emulator_calls("cuEventCreate"), 0, "%s: events were created", pattern->name);
    cr_expect_eq(emulator_calls("cuStreamCreateWithPriority"), 0, "%s: streams were created", pattern->name);
    cr_expect_eq(after.context_switches, before.context_switches, "%s: the context was switched", pattern->name);
    /* A thread of the backend makes it current once, at its start. */
    cr_expect_leq(emulator_context_switches(), after.waiters_started, "%s", pattern->name);
    cr_expect_eq(emulator_calls("cuLaunchHostFunc"), 0, "%s: a step of the host in stream order", pattern->name);
}

Test(exec_cuda_counts, each_task_costs_what_the_documentation_says)
{
    const char *reason;
    const struct weir__driver *driver = weir__driver_open(&reason);
    struct driver_context *context;
    cr_assert_not_null(driver);
    emulator_set("launch_queue", 1 << 20); /* calls do not block while the device is stopped */
    cr_assert_eq(rig_open(&rig), 0, "%s", weir_error_text());
    cr_assert_eq(weir_device_alloc(rig.device, CELLS * sizeof(int64_t), &memory), 0);
    cr_assert_eq(driver->context_retain(&context, 0), DRIVER_OK);
    cr_assert_eq(driver->context_set(context), DRIVER_OK);
    puts("| | launches | records | waits | queries | copies | questions about memory | sleeps in all |");
    run(&(struct pattern){"", largest, false}, NULL);
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) count(&patterns[i]);
    fflush(stdout);
    cr_assert_eq(driver->context_set(NULL), DRIVER_OK);
    cr_assert_eq(driver->context_release(0), DRIVER_OK);
    cr_assert_eq(weir_device_free(rig.device, memory), 0);
    rig_close(&rig);
    cr_assert_eq(emulator_report_count(), 0, "%s", emulator_report_text(0));
}

/* A thread without a context, or with another one, is switched and switched back by each call. */
Test(exec_cuda_counts, a_thread_keeps_its_context)
{
    const char *reason;
    const struct weir__driver *driver = weir__driver_open(&reason);
    struct driver_context *now = NULL;
    struct weir_scope *scope;
    cr_assert_eq(rig_open(&rig), 0, "%s", weir_error_text());
    cr_assert_eq(weir_device_alloc(rig.device, CELLS * sizeof(int64_t), &memory), 0);
    cr_assert_eq(weir_scope_create(rig.context, NULL, &scope), 0);
    chain(scope);
    mapped(scope);
    cr_assert_eq(weir_scope_destroy(scope), 0);
    cr_assert_eq(driver->context_get(&now), DRIVER_OK);
    cr_assert_null(now);
    cr_assert_gt(emulator_context_switches(), 0);
    rig_close(&rig);
    cr_assert_eq(driver->context_get(&now), DRIVER_OK);
    cr_assert_null(now);
    cr_assert_eq(emulator_live_objects(), 0);
}

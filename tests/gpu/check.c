/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/*
 * For a machine with a GPU: edges checked by content, overlap of independent tasks by the device's clock, and what
 * events, waits and tasks cost beside hand-written streams and events and a CUDA graph. The kernel is PTX below,
 * compiled by the driver. Prints what it finds and ends with PASS or FAIL; without a GPU it is skipped.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <devices/cuda/driver.h>
#include <exec/futex.h>
#include <exec/work.h>
#include <weir/weir.h>

#include "graph.h"

/* step(stamps, cell, value, ns): takes @ns, then *cell = *cell * 3 + value; stamps[0] and [1] are its begin and end, in
 * ns. */
static const char ptx[] =
    ".version 6.0\n.target sm_50\n.address_size 64\n"
    ".visible .entry step(.param .u64 p0, .param .u64 p1, .param .u64 p2, .param .u64 p3)\n{\n"
    ".reg .u64 %r<12>;\n.reg .pred %p<2>;\n"
    "ld.param.u64 %r1, [p0];\nld.param.u64 %r2, [p1];\nld.param.u64 %r3, [p2];\nld.param.u64 %r4, [p3];\n"
    "cvta.to.global.u64 %r1, %r1;\ncvta.to.global.u64 %r2, %r2;\n"
    "mov.u64 %r5, %globaltimer;\nst.global.u64 [%r1], %r5;\n"
    "more:\nmov.u64 %r6, %globaltimer;\nsub.u64 %r7, %r6, %r5;\nsetp.lt.u64 %p1, %r7, %r4;\n@%p1 bra more;\n"
    "ld.global.u64 %r8, [%r2];\nmad.lo.u64 %r8, %r8, 3, %r3;\nst.global.u64 [%r2], %r8;\n"
    "mov.u64 %r9, %globaltimer;\nst.global.u64 [%r1+8], %r9;\nret;\n}\n";

enum { CELLS = 16, TASKS = 4000, SPINNERS = 8, SPIN_NS = 2000000, ROUNDS = 2000 };

static struct weir_context *context;
static struct weir_device *device;
static void *step;
static uint64_t *cells, *stamps; /* on the device: cells[CELLS], stamps[2 * SPINNERS] */
static int failed;

static void check(bool good, const char *what)
{
    printf("%-60s %s\n", what, good ? "yes" : "NO");
    failed |= !good;
}

static void need(int rc, const char *what)
{
    if (!rc) return;
    printf("%s: %s\nFAIL\n", what, weir_error_text());
    exit(1);
}

static double now_us(void)
{
    return (double)weir__now_ns() / 1e3;
}

static void launch(struct weir_task *task, uint64_t *stamp, uint64_t *cell, uint64_t value, uint64_t ns)
{
    uint64_t args[] = {(uintptr_t)stamp, (uintptr_t)cell, value, ns};
    struct weir__launch launch = {.kernel = step, .nargs = 4, .args = args};
    need(weir__task_launch(task, &launch), "launch");
}

static void submit(struct weir_scope *scope, unsigned cell, unsigned reads, uint64_t *stamp, uint64_t value,
                   uint64_t ns)
{
    struct weir_access accesses[] = {WEIR_RANGE(&cells[cell], 8, WEIR_ACCESS_INOUT),
                                     WEIR_RANGE(&cells[reads], 8, WEIR_ACCESS_IN)};
    struct weir_task *task;
    need(weir_task_begin(scope, device, accesses, reads == cell ? 1 : 2, NULL, &task), "begin");
    launch(task, stamp, &cells[cell], value, ns);
    need(weir_task_end(task), "end");
}

static void transfer(struct weir_scope *scope, void *host, void *on_device, size_t bytes, bool to_host)
{
    struct weir_access all[] = {WEIR_ALL_MEMORY};
    struct weir_task *task;
    need(weir_task_begin(scope, device, all, 1, NULL, &task), "begin");
    if (to_host)
        need(weir_task_copy(task, host, NULL, on_device, device, bytes), "copy");
    else
        need(weir_task_copy(task, on_device, device, host, NULL, bytes), "copy");
    need(weir_task_end(task), "end");
    need(weir_scope_wait(scope), "wait");
}

static struct weir_scope *scope_new(void)
{
    struct weir_scope *scope;
    need(weir_scope_create(context, NULL, &scope), "scope");
    return scope;
}

/* The value of a cell depends on the order of all that was done to it. */
static void edges_by_content(void)
{
    struct weir_scope *scope = scope_new();
    uint64_t want[CELLS] = {0}, got[CELLS];
    unsigned seed = 1;
    transfer(scope, want, cells, sizeof want, false);
    for (unsigned i = 0; i < TASKS; i++) {
        unsigned cell = (unsigned)rand_r(&seed) % CELLS, reads = (unsigned)rand_r(&seed) % CELLS;
        submit(scope, cell, reads, stamps, i, i % 7 == 0 ? 3000 : 0);
        want[cell] = want[cell] * 3 + i;
    }
    transfer(scope, got, cells, sizeof got, true);
    check(!memcmp(want, got, sizeof got), "4000 tasks at random on 16 cells: content as in order");
    need(weir_scope_destroy(scope), "scope");
}

static void overlap(void)
{
    struct weir_scope *scope = scope_new();
    uint64_t stamp[2 * SPINNERS];
    unsigned most = 0;
    for (unsigned i = 0; i < SPINNERS; i++) submit(scope, i, i, &stamps[2 * i], 1, SPIN_NS);
    transfer(scope, stamp, stamps, sizeof stamp, true);
    for (unsigned i = 0; i < SPINNERS; i++) {
        unsigned together = 0;
        for (unsigned j = 0; j < SPINNERS; j++)
            together += stamp[2 * j] <= stamp[2 * i] && stamp[2 * i] < stamp[2 * j + 1];
        if (together > most) most = together;
    }
    printf("%u independent tasks of 2 ms: at most %u at once\n", SPINNERS, most);
    check(most > 1, "independent tasks overlap");
    need(weir_scope_destroy(scope), "scope");
}

/* Large copies from pageable memory do not hold the submitter, nor a task that has nothing to do with them. */
static void copies_overlap(void)
{
    enum { BYTES = 256 << 20 };
    struct weir_scope *scope = scope_new();
    struct weir_access accesses[] = {WEIR_RANGE(context, 1, WEIR_ACCESS_INOUT)};
    char *host = malloc(BYTES);
    struct weir_task *task;
    void *memory;
    need(!host, "memory");
    memset(host, 5, BYTES);
    need(weir_device_alloc(device, BYTES, &memory), "alloc");
    double before = now_us();
    need(weir_task_begin(scope, device, accesses, 1, NULL, &task), "begin");
    need(weir_task_copy(task, memory, device, host, NULL, BYTES), "copy");
    need(weir_task_copy(task, host, NULL, memory, device, BYTES), "copy");
    need(weir_task_end(task), "end");
    double submitted = now_us();
    need(weir_scope_wait(scope), "wait");
    double done = now_us();
    printf("256 MiB there and back, pageable: submitted in %.0f us, done in %.0f us, %.1f GB/s\n", submitted - before,
           done - before, 2.0 * BYTES / (done - before) / 1e3);
    check(submitted - before < (done - before) / 2, "the submitter is not held by pageable copies");
    need(weir_device_free(device, memory), "free");
    free(host);
    need(weir_scope_destroy(scope), "scope");
}

/* Tasks a second, by weir: @n chains. */
static double weir_rate(unsigned n)
{
    struct weir_scope *scope = scope_new();
    double begin = 0;
    for (unsigned i = 0; i < 2 * ROUNDS; i++) {
        if (i == ROUNDS) {
            need(weir_scope_wait(scope), "wait");
            begin = now_us();
        }
        submit(scope, i % n, i % n, stamps, 1, 0);
    }
    need(weir_scope_wait(scope), "wait");
    double rate = ROUNDS / (now_us() - begin) * 1e6;
    need(weir_scope_destroy(scope), "scope");
    return rate;
}

int main(void)
{
    const char *reason = NULL;
    if (!weir__driver_open(&reason)) {
        printf("skipped: no GPU (%s)\n", reason);
        return 77;
    }
    need(weir_context_create(NULL, &context), "context");
    for (int i = 0; i < weir_device_count(context); i++)
        if (!strncmp(weir_device_name(weir_device_get(context, i)), "cuda", 4) && !device)
            device = weir_device_get(context, i);
    if (!device || strstr(weir__device_info_of(device)->text, "Emulated")) {
        puts("skipped: no GPU");
        return 77;
    }
    printf("%s: %s\n", weir_device_name(device), weir__device_info_of(device)->text);
    const struct weir__device_ops *ops = weir__device_ops_of(device);
    void *module, *memory;
    int rc = ops->module_load(weir__device_handle_of(device), ptx, sizeof ptx, &module);
    if (!rc) rc = ops->module_symbol(module, "step", &step, NULL);
    if (rc) printf("the kernel: %s\n", ops->last_error(weir__device_handle_of(device)));
    if (rc) return 1;
    need(weir_device_alloc(device, (CELLS + 2 * SPINNERS) * sizeof(uint64_t), &memory), "alloc");
    cells = memory;
    stamps = cells + CELLS;
    edges_by_content();
    overlap();
    copies_overlap();
    gpu_costs(ptx);
    printf("tasks a second, chain:     weir %.0f\n", weir_rate(1));
    printf("tasks a second, 16 chains: weir %.0f\n", weir_rate(CELLS));
    gpu_rates(ptx, cells, stamps);
    need(weir_device_free(device, memory), "free");
    ops->module_unload(module);
    need(weir_context_destroy(context), "context");
    puts(failed ? "FAIL" : "PASS");
    return failed;
}

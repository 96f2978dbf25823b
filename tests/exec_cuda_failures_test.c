/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/*
 * A program with all kinds of work on the emulated driver, where one call of the driver fails, each of every kind in
 * turn, and where the device fails at each of its operations. Something must tell: a call or the wait. Where all say
 * that they succeeded the content must be right. Nothing is left behind, and nothing hangs.
 */
#include "exec_cuda_rig.h"

enum { SMALL = 16, LARGE = 40000, ROUNDS = 3 };

static int64_t small[SMALL], large[LARGE], back[LARGE];
static _Atomic int functions;

static int function(void *arg)
{
    (void)arg;
    functions++;
    return 0;
}

static int queue_all(const struct cuda_rig *rig, struct weir_task *task, char *device)
{
    struct weir__copy to_small = {.kind = WEIR__COPY_TO_DEVICE, .to = device, .from = small, .bytes = sizeof small};
    struct weir__copy to_large = {
        .kind = WEIR__COPY_TO_DEVICE, .to = device + 4096, .from = large, .bytes = sizeof large};
    struct weir__copy from_large = {
        .kind = WEIR__COPY_TO_HOST, .to = back, .from = device + 4096, .bytes = sizeof back};
    struct weir__copy from_small = {.kind = WEIR__COPY_TO_HOST,
                                    .to = small,
                                    .from = device,
                                    .bytes = 8,
                                    .count = {SMALL, 1},
                                    .to_pitch = {8, 0},
                                    .from_pitch = {8, 0}};
    int rc = weir__task_copy(task, &to_small);
    if (!rc) rc = weir__task_copy(task, &to_large);
    if (!rc) rc = rig_launch(rig, task, device, 1);
    if (!rc) rc = weir__task_fill(task, device + 8, 0, 8);
    if (!rc) rc = weir__task_copy(task, &from_large);
    if (!rc) rc = weir__task_copy(task, &from_small);
    if (!rc) rc = weir__task_host_function(task, function, NULL);
    return rc;
}

/* Tasks on two streams, the second behind the first. Returns the first failure that anybody told. */
static int run_graph(const struct cuda_rig *rig, struct weir_scope *scope)
{
    int first = 0;
    for (int i = 0; i < ROUNDS && !first; i++) {
        void *device = NULL;
        struct weir_access accesses[] = {WEIR_RANGE(small, sizeof small, WEIR_ACCESS_INOUT)};
        struct weir_access other[] = {WEIR_RANGE(&large[i], 8, WEIR_ACCESS_INOUT)};
        struct weir_task *task, *beside;
        first = weir_device_alloc(rig->device, 4096 + sizeof large, &device);
        if (first) break;
        first = weir_task_begin(scope, rig->device, other, 1, NULL, &beside);
        int rc = first ? first : weir_task_begin(scope, rig->device, accesses, 1, NULL, &task);
        if (!first) {
            int ended = weir_task_end(beside);
            if (!rc) first = queue_all(rig, task, device);
            if (!first && !rc) first = weir__task_free(task, device);
            if (!rc && first) (void)!weir_task_fail(task, first);
            if (!rc && !first) first = weir_task_end(task);
            if (!first) first = rc ? rc : ended;
        }
    }
    int waited = weir_scope_wait(scope);
    return first ? first : waited;
}

/* Returns what was told; the content is checked where nothing was. */
static int run_program(void)
{
    struct cuda_rig rig;
    struct weir_scope *scope;
    for (int i = 0; i < SMALL; i++) small[i] = 100 + i;
    for (int i = 0; i < LARGE; i++) large[i] = i, back[i] = -1;
    functions = 0;
    int rc = rig_open(&rig);
    if (!rc) {
        rc = weir_scope_create(rig.context, NULL, &scope);
        cr_assert_eq(rc, 0);
        rc = run_graph(&rig, scope);
        int destroyed = weir_scope_destroy(scope);
        if (!rc) rc = destroyed;
    }
    rig_close(&rig);
    if (!rc) {
        cr_expect_eq(small[0], 100 + ROUNDS);
        cr_expect_eq(small[1], 0);
        cr_expect_eq(small[2], 102);
        cr_expect_eq(back[LARGE - 1], LARGE - 1);
        cr_expect_eq(functions, ROUNDS);
    }
    return rc;
}

/* Calls that end something, or without which nothing can be ended: if they fail, something is left in the driver. */
static bool is_end(const char *entry)
{
    return strstr(entry, "Destroy") || strstr(entry, "Free") || strstr(entry, "Unload") || strstr(entry, "Release") ||
           strstr(entry, "Pop") || strstr(entry, "Push");
}

static void fail_each(const char *entry, int code, bool must_tell)
{
    emulator_counters_reset();
    cr_assert_eq(run_program(), 0, "%s", weir_error_text());
    uint64_t calls = emulator_calls(entry);
    for (uint64_t n = 1; n <= calls; n++) {
        emulator_fail(entry, n, code);
        int rc = run_program();
        emulator_fail(entry, 0, 0);
        if (must_tell) cr_expect_neq(rc, 0, "%s number %d failed with %d and nobody told", entry, (int)n, code);
        cr_expect_eq(emulator_live_objects(), 0, "%s number %d failed with %d: objects are left", entry, (int)n, code);
        size_t reports = emulator_report_count();
        cr_expect_eq(reports, 0, "%s number %d failed with %d: %s", entry, (int)n, code,
                     reports ? emulator_report_text(0) : "");
        emulator_reports_take();
    }
}

/* Their failure is no failure of the program. */
static bool may_be_silent(const char *entry)
{
    static const char *const silent[] = {"cuPointerGetAttributes", "cuCtxGetStreamPriorityRange",
                                         "cuDeviceCanAccessPeer",  "cuCtxEnablePeerAccess",
                                         "cuDeviceGetAttribute",   "cuDeviceGetName",
                                         "cuMemHostAlloc",         "cuEventQuery",
                                         "cuStreamSynchronize",    "cuEventCreate",
                                         "cuEventSynchronize",     "cuCtxGetCurrent",
                                         "cuCtxPushCurrent_v2",    "cuCtxSetCurrent",
                                         "cuMemAlloc_v2",          "cuStreamCreateWithPriority",
                                         "cuThreadExchangeStreamCaptureMode"};
    for (size_t i = 0; i < sizeof silent / sizeof silent[0]; i++)
        if (!strcmp(entry, silent[i])) return true;
    return false;
}

/* Called when the driver is opened, by the first program of the process. */
static bool is_once(const char *entry)
{
    return !strcmp(entry, "cuInit") || !strcmp(entry, "cuDriverGetVersion");
}

static const size_t nentries =
#define WEIR_X(field, symbol, older, parameters) +1
    0 WEIR__DRIVER_CALLS(WEIR_X) WEIR__DRIVER_NEWER_CALLS(WEIR_X);
#undef WEIR_X

static void fail_all(int code)
{
    for (size_t i = 0; i < nentries; i++) {
        const char *entry = weir__driver_symbols[i];
        if (is_end(entry) || is_once(entry) || !strncmp(entry, "cuGetError", 10)) continue;
        fail_each(entry, code, !may_be_silent(entry));
    }
}

Test(exec_cuda_failures, each_call_has_no_memory)
{
    fail_all(DRIVER_OUT_OF_MEMORY);
}

Test(exec_cuda_failures, each_call_finds_a_failed_device)
{
    fail_all(DRIVER_LAUNCH_FAILED);
}

Test(exec_cuda_failures, each_end_of_an_object_fails)
{
    for (size_t i = 0; i < nentries; i++) {
        const char *entry = weir__driver_symbols[i];
        if (!is_end(entry)) continue;
        emulator_counters_reset();
        cr_assert_eq(run_program(), 0, "%s", weir_error_text());
        uint64_t calls = emulator_calls(entry);
        for (uint64_t n = 1; n <= calls; n++) {
            emulator_fail(entry, n, DRIVER_LAUNCH_FAILED);
            (void)run_program();
            emulator_fail(entry, 0, 0);
        }
        emulator_reports_take();
    }
}

Test(exec_cuda_failures, the_device_fails_at_each_operation)
{
    int told = 1;
    for (uint64_t n = 1; told; n++) {
        emulator_fault(0, n, DRIVER_ILLEGAL_ADDRESS);
        told = run_program();
        emulator_fault(0, 0, 0);
        cr_expect_eq(emulator_live_objects(), 0, "operation %d: objects are left", (int)n);
        cr_assert_lt(n, 500);
    }
    cr_assert_eq(emulator_report_count(), 0, "%s", emulator_report_text(0));
}

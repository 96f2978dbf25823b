/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/*
 * CUDA devices beside a program that uses the driver itself: captures of its own go on, and devices that cannot use
 * each other's memory are no obstacle.
 */
#include "exec_cuda_rig.h"

#include <stdatomic.h>

#include "cuda/driver.h"

enum { CAPTURE_GLOBAL = 0 };

static struct cuda_rig rig;
static struct weir_scope *scope;
static void *context, *stream; /* of the program */
static atomic_int completed;

static void set_up(void)
{
    emulator_set("devices", 2);
    cr_assert_eq(rig_open(&rig), 0, "%s", weir_error_text());
    cr_assert_eq(weir_scope_create(rig.context, NULL, &scope), 0);
    cr_assert_eq(cuDevicePrimaryCtxRetain(&context, 1), 0);
    cr_assert_eq(cuCtxSetCurrent(context), 0);
    cr_assert_eq(cuStreamCreate(&stream, CUDA_STREAM_NON_BLOCKING), 0);
    emulator_stop(-1);
}

static void tear_down(void)
{
    emulator_start(-1);
    cr_assert_eq(weir_scope_destroy(scope), 0);
    cr_assert_eq(cuStreamDestroy_v2(stream), 0);
    cr_assert_eq(cuCtxSetCurrent(NULL), 0);
    rig_close(&rig);
    cr_assert_eq(cuDevicePrimaryCtxRelease_v2(1), 0);
    cr_assert_eq(emulator_report_count(), 0, "%s", emulator_report_text(0));
}

TestSuite(exec_cuda_foreign, .init = set_up, .fini = tear_down, .timeout = 60);

static void count_completion(struct weir_task *task, int status, void *arg)
{
    (void)task, (void)arg;
    cr_assert_eq(status, 0);
    atomic_fetch_add(&completed, 1);
}

static int nothing(void *arg)
{
    (void)arg;
    return 0;
}

static struct weir_task *submit(struct weir_device *device)
{
    static int x;
    struct weir_access accesses[] = {WEIR_INOUT(x)};
    struct weir_task_options options = {.size = sizeof options, .complete = count_completion};
    struct weir_task *task, *kept;
    cr_assert_eq(weir_task_begin(scope, device, accesses, 1, &options, &task), 0, "%s", weir_error_text());
    cr_assert_eq(weir__task_host_function(task, nothing, NULL), 0);
    kept = weir_task_retain(task);
    cr_assert_eq(weir_task_end(task), 0, "%s", weir_error_text());
    return kept;
}

static void end_capture(void)
{
    void *graph;
    cr_assert_eq(cuStreamEndCapture(stream, &graph), 0);
    cr_assert_eq(cuGraphDestroy(graph), 0);
}

/* To make a stream wait that captures is refused, and the capture is as good as before. */
Test(exec_cuda_foreign, a_stream_that_captures_is_not_made_to_wait)
{
    struct weir_task *task = submit(rig.device);
    cr_assert_eq(cuStreamBeginCapture_v2(stream, CAPTURE_GLOBAL), 0);
    cr_assert_eq(weir_task_export(task, stream), WEIR_E_STATE);
    cr_assert(strstr(weir_error_text(), "captures a graph"), "%s", weir_error_text());
    end_capture();
    cr_assert_eq(weir_task_export(task, stream), 0, "%s", weir_error_text());
    cr_assert_eq(cuStreamQuery(stream), CUDA_NOT_READY);
    emulator_start(-1);
    cr_assert_eq(cuStreamSynchronize(stream), 0);
    cr_assert_eq(weir_task_wait(task), 0);
    weir_task_release(task);
}

/* Completions are noticed while a thread captures; it does not notice that. */
Test(exec_cuda_foreign, a_capture_goes_on_while_completions_are_noticed)
{
    enum { TASKS = 5 };
    for (int i = 0; i < TASKS; i++) weir_task_release(submit(rig.device));
    cr_assert_eq(cuStreamBeginCapture_v2(stream, CAPTURE_GLOBAL), 0);
    emulator_start(-1);
    while (atomic_load(&completed) < TASKS) continue;
    end_capture();
}

/* Devices that cannot use each other's memory wait for each other and copy all the same. */
Test(exec_cuda_foreign, a_copy_needs_no_peer_access)
{
    struct weir_device *devices[2] = {NULL, rig.device};
    void *memory[2];
    int64_t value = 7;
    emulator_peer(0, 1, 0);
    emulator_peer(1, 0, 0);
    for (int i = 0; i < weir_device_count(rig.context); i++)
        if (!strcmp(weir_device_name(weir_device_get(rig.context, i)), "cuda:0"))
            devices[0] = weir_device_get(rig.context, i);
    for (int i = 0; i < 2; i++) cr_assert_eq(weir_device_alloc(devices[i], 8, &memory[i]), 0);
    for (int i = 0; i < 3; i++) { /* to the first one, to the second one, back */
        struct weir_access accesses[] = {WEIR_INOUT(value)};
        struct weir_device *to = i < 2 ? devices[i] : NULL, *from = i > 0 ? devices[i - 1] : NULL;
        struct weir_task *task;
        cr_assert_eq(weir_task_begin(scope, to ? to : from, accesses, 1, NULL, &task), 0, "%s", weir_error_text());
        cr_assert_eq(weir_task_copy(task, to ? memory[i] : &value, to, from ? memory[i - 1] : &value, from, 8), 0, "%s",
                     weir_error_text());
        cr_assert_eq(weir_task_end(task), 0);
        if (!i) value = 8; /* it was read at the call */
    }
    emulator_start(-1);
    cr_assert_eq(weir_scope_wait(scope), 0, "%s", weir_error_text());
    cr_assert_eq(value, 7);
    for (int i = 0; i < 2; i++) cr_assert_eq(weir_device_free(devices[i], memory[i]), 0);
}

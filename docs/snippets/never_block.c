/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* docs/graph-api.md 2: a task runtime that must never block. */
#include "check.h"

struct work {
    int *value;
    int  add;
};

static int my_kernel(void *arg)
{
    const struct work *work = arg;
    *work->value += work->add;
    return 0;
}

static int my_kernel_enqueue(void *arg, void *native_stream) { return weir_host_enqueue(native_stream, my_kernel, arg); }

/* [snippet] */
static int issue(struct weir_task *t, void *native_stream, void *arg)
{
    (void)t;
    return my_kernel_enqueue(arg, native_stream);
}

static void submit(struct weir_scope *scope, struct weir_device *device, struct work *work)
{
    struct weir_access a[] = { WEIR_INOUT(*work->value) };
    check(weir_task_submit(scope, device, a, 1, issue, work, NULL, NULL)); /* runs now, or when it becomes launchable */
}
/* [end] */

static int host_start(void *arg)
{
    *(int *)arg = 1;
    return 0;
}

int main(void)
{
    struct weir_context *context;
    struct weir_scope *scope;
    check(weir_context_create(NULL, &context));
    check(weir_scope_create(context, NULL, &scope));

    int value = 0;
    struct weir_access all[] = { WEIR_OUT(value) };
    check(weir_task_host(scope, host_start, &value, all, 1, NULL, NULL));
    struct work work[3] = { { &value, 10 }, { &value, 100 }, { &value, 1000 } };
    for (int i = 0; i < 3; i++) submit(scope, weir_device_get(context, 0), &work[i]);
    check(weir_scope_wait(scope));
    expect(value == 1111, "kernels ran behind the host task");
    check(weir_scope_destroy(scope));
    check(weir_context_destroy(context));
    return 0;
}

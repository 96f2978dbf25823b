/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* docs/graph-api.md 4: code that brings a stream and events of its own. */
#include "check.h"

static int x;

static int produce(void *arg)
{
    (void)arg;
    x = 20;
    return 0;
}

static int add_one(void *arg)
{
    (void)arg;
    x++;
    return 0;
}

static int twice(void *arg)
{
    (void)arg;
    x *= 2;
    return 0;
}

static int issue(struct weir_task *t, void *native_stream, void *arg)
{
    (void)t;
    return weir_host_enqueue(native_stream, add_one, arg);
}

int main(void)
{
    struct weir_context *context;
    struct weir_scope *scope;
    struct weir_task *t;
    check(weir_context_create(NULL, &context));
    check(weir_scope_create(context, NULL, &scope));
    struct weir_device *device = weir_device_get(context, 0);
    struct weir_access a[] = { WEIR_INOUT(x) };

    /* Somebody else's stream, work and event. */
    void *native_stream, *native_event;
    check(weir_host_stream_create(device, &native_stream));
    check(weir_host_enqueue(native_stream, produce, NULL));
    check(weir_host_event_record(native_stream, &native_event));

    /* [snippet] */
    check(weir_task_import(scope, device, native_event, a, 1, NULL, NULL)); /* foreign work so far becomes a node */
    check(weir_task_submit(scope, device, a, 1, issue, NULL, NULL, &t));    /* runs behind it */
    check(weir_task_export(t, native_stream));                              /* foreign stream waits for t on the device */
    /* [end] */

    check(weir_host_enqueue(native_stream, twice, NULL));
    check(weir_host_stream_wait(native_stream));
    expect(x == 42, "foreign work, task and foreign work ran in this order");
    weir_task_release(t);
    weir_host_event_destroy(native_event);
    weir_host_stream_destroy(native_stream);
    check(weir_scope_destroy(scope));
    check(weir_context_destroy(context));
    return 0;
}

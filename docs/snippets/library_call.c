/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* docs/graph-api.md 1: a library that takes a stream, called once per task. */
#include "check.h"

/* The library: queues a scaled sum on a stream of the CPU device, as a BLAS would on a CUDA stream. */
struct axpy {
    const double *x;
    double       *y;
};

static int axpy_run(void *arg)
{
    const struct axpy *call = arg;
    *call->y += 2.0 * *call->x;
    return 0;
}

static int axpy_enqueue(void *native_stream, struct axpy *call) { return weir_host_enqueue(native_stream, axpy_run, call); }

int main(void)
{
    struct weir_context *context;
    struct weir_scope *scope;
    check(weir_context_create(NULL, &context));
    check(weir_scope_create(context, NULL, &scope));
    struct weir_device *device = weir_device_get(context, 0);

    double tile[4] = { 1.0, 0.0, 0.0, 0.0 };
    struct axpy call[4];
    for (int i = 1; i < 4; i++) {
        call[i] = (struct axpy){ &tile[i - 1], &tile[i] };
        /* [snippet] */
        struct weir_access a[] = { WEIR_IN(tile[i - 1]), WEIR_INOUT(tile[i]) };
        struct weir_task *t;
        check(weir_task_begin(scope, device, a, 2, NULL, &t)); /* stream is ordered behind both accesses */
        check(axpy_enqueue(weir_task_stream(t), &call[i]));
        check(weir_task_end(t));                               /* successors may be issued from here on */
        /* [end] */
    }
    check(weir_scope_wait(scope));
    expect(tile[3] == 8.0, "each call saw the one before");
    check(weir_scope_destroy(scope));
    check(weir_context_destroy(context));
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_TESTS_OPENMP_FOREIGN_H
#define WEIR_TESTS_OPENMP_FOREIGN_H

/*
 * A foreign runtime, as small as it can be: it queues functions on the native stream of an interop object. For CPU devices
 * include/weir/host.h has it, for CUDA devices the driver; the program is linked with neither, so both are looked up.
 */

#include <dlfcn.h>

#include "task_check.h"

static inline void foreign_fail(const char *what, int code)
{
    printf("no foreign work: %s: %d\n", what, code);
    abort();
}

/* ---- the driver: a function of its type calls ours; the device's primary context is current meanwhile ---- */

struct foreign_call {
    int (*function)(void *arg);
    void *arg;
};

static inline void foreign_run(void *arg)
{
    struct foreign_call call = *(struct foreign_call *)arg;
    free(arg);
    call.function(call.arg);
}

static inline void *foreign_driver(const char *name)
{
    static void *library;
    if (!library) library = dlopen("libcuda.so.1", RTLD_NOW);
    void *found = library ? dlsym(library, name) : NULL;
    if (!found) foreign_fail(name, 0);
    return found;
}

static inline int foreign_is_cuda(omp_interop_t object)
{
    int id = (int)omp_get_interop_int(object, omp_ipr_fr_id, NULL);
    return id == omp_ifr_cuda || id == omp_ifr_cuda_driver;
}

static inline int foreign_launch(void *stream, int device, int (*function)(void *arg), void *arg)
{
    int (*retain)(void **context, int device) = (int (*)(void **, int))foreign_driver("cuDevicePrimaryCtxRetain");
    int (*release)(int device) = (int (*)(int))foreign_driver("cuDevicePrimaryCtxRelease_v2");
    int (*push)(void *context) = (int (*)(void *))foreign_driver("cuCtxPushCurrent_v2");
    int (*pop)(void **context) = (int (*)(void **))foreign_driver("cuCtxPopCurrent_v2");
    int (*launch)(void *stream, void (*function)(void *arg), void *arg) =
        (int (*)(void *, void (*)(void *), void *))foreign_driver("cuLaunchHostFunc");
    struct foreign_call *call = malloc(sizeof *call);
    void *context, *popped;
    *call = (struct foreign_call){function, arg};
    int code = retain(&context, device);
    if (code) return code;
    code = push(context);
    if (!code) code = launch(stream, foreign_run, call);
    if (!code) code = pop(&popped);
    if (!code) code = release(device);
    return code;
}

/* ---- either ---- */

static inline void foreign_enqueue(omp_interop_t object, int (*function)(void *arg), void *arg)
{
    static int (*enqueue)(void *native_stream, int (*function)(void *arg), void *arg);
    int rc = -99, code = -99;
    void *stream = omp_get_interop_ptr(object, omp_ipr_targetsync, &rc);
    if (rc != omp_irc_success) foreign_fail("omp_get_interop_ptr", rc);
    if (foreign_is_cuda(object)) {
        code = foreign_launch(stream, (int)omp_get_interop_int(object, omp_ipr_device, NULL), function, arg);
    } else {
        if (!enqueue) *(void **)&enqueue = dlsym(RTLD_DEFAULT, "weir_host_enqueue");
        if (enqueue) code = enqueue(stream, function, arg);
    }
    if (code) foreign_fail("the call that queues it", code);
}

/* Work that waits for a flag of the host, and then notes what it saw. */
struct foreign_gate {
    int flag, passed, seen;
    int *value;
};

static inline int foreign_pass(void *arg)
{
    struct foreign_gate *gate = arg;
    wait_flag((uintptr_t)&gate->flag, 1);
    if (gate->value) gate->seen = *gate->value;
    __atomic_store_n(&gate->passed, 1, __ATOMIC_RELEASE);
    return 0;
}

static inline int has_passed(const struct foreign_gate *gate)
{
    return __atomic_load_n(&gate->passed, __ATOMIC_ACQUIRE);
}

/* Apply an operation of task_check.h to a cell. */
struct foreign {
    unsigned *cell, *seen, id, z;
    int kind;
};

static inline int foreign_touch(void *arg)
{
    struct foreign *work = arg;
    touch((uintptr_t)work->cell, work->kind, work->id, work->z, (uintptr_t)work->seen);
    return 0;
}

#endif

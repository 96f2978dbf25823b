/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_TESTS_OPENMP_FOREIGN_H
#define WEIR_TESTS_OPENMP_FOREIGN_H

/*
 * A foreign runtime for CPU devices, as small as it can be: it queues functions on the native stream of an interop
 * object. include/weir/host.h has it; the program is not linked with weir, so it is looked up.
 */

#include <dlfcn.h>

#include "task_check.h"

static inline void foreign_enqueue(omp_interop_t object, int (*function)(void *arg), void *arg)
{
    static int (*enqueue)(void *native_stream, int (*function)(void *arg), void *arg);
    int rc = -99;
    if (!enqueue) *(void **)&enqueue = dlsym(RTLD_DEFAULT, "weir_host_enqueue");
    void *stream = omp_get_interop_ptr(object, omp_ipr_targetsync, &rc);
    if (rc != omp_irc_success || !enqueue || enqueue(stream, function, arg)) {
        printf("no foreign work: code %d, stream %p\n", rc, stream);
        abort();
    }
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

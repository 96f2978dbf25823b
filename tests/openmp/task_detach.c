/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Detached tasks between target tasks; foreign threads fulfil the events, before or after their tasks' bodies have run.
 */
// flags: -pthread
// run: OMP_TARGET_OFFLOAD=MANDATORY => PASS
// run: OMP_TARGET_OFFLOAD=DISABLED => PASS
// run: OMP_WAIT_POLICY=passive => PASS
// preload only: OMP_THREAD_LIMIT=2 => PASS
#include <pthread.h>

#include "task_check.h"

enum { STEPS = 6 };

struct promise {
    omp_event_handle_t event;
    unsigned *cell, id, z;
    int body; /* set by the task's body */
};

/* Write the cell after the body has run, then fulfil. */
static void *after_body(void *arg)
{
    struct promise *p = arg;
    CHECK(wait_flag((uintptr_t)&p->body, 1));
    touch((uintptr_t)p->cell, INOUT, p->id, p->z, 0);
    omp_fulfill_event(p->event);
    return NULL;
}

static void *at_any_time(void *arg)
{
    struct promise *p = arg;
    nap(p->z);
    omp_fulfill_event(p->event);
    return NULL;
}

/* Target task, detached task, target task, and so on along one address. */
static void chain(int early)
{
    unsigned x = 1, want = 1;
    struct promise promises[STEPS];
    pthread_t threads[STEPS];
    uintptr_t at = (uintptr_t)&x;
    for (int i = 0; i < STEPS; i++) {
        struct promise *p = &promises[i];
        unsigned id = 10u * (unsigned)i, z = draw();
        *p = (struct promise){.cell = &x, .id = id + 1, .z = draw()};
        omp_event_handle_t event = (omp_event_handle_t)0;
#pragma omp target nowait depend(inout : x)
        touch(at, INOUT, id, z, 0);
#pragma omp task depend(inout : x) detach(event) firstprivate(p, early)
        {
            if (early) touch((uintptr_t)p->cell, INOUT, p->id, p->z, 0);
            add_flag((uintptr_t)&p->body);
        }
        p->event = event;
        pthread_create(&threads[i], NULL, early ? at_any_time : after_body, p);
#pragma omp target nowait depend(inout : x)
        touch(at, INOUT, id + 2, z >> 8, 0);
#pragma omp task depend(inout : x) firstprivate(at, id, z)
        touch(at, INOUT, id + 3, z >> 4, 0);
        for (unsigned k = 0; k < 4; k++) model(&want, INOUT, id + k, NULL);
    }
#pragma omp taskwait
    CHECK(__atomic_load_n(&x, __ATOMIC_RELAXED) == want);
    for (int i = 0; i < STEPS; i++) pthread_join(threads[i], NULL);
}

/* The event is fulfilled before the kernel that the detached task waits for may end. */
static void fulfilled_first(void)
{
    unsigned x = 1, saw = 0, z = draw();
    int gate = 0, passed = 0, devices = omp_get_num_devices();
    uintptr_t at = (uintptr_t)&x, flag = (uintptr_t)&gate, to = (uintptr_t)&saw, done = (uintptr_t)&passed;
    omp_event_handle_t event = (omp_event_handle_t)0;
    if (!devices) add_flag(flag);
#pragma omp target nowait depend(inout : x)
    {
        __atomic_store_n((int *)done, wait_flag(flag, 1), __ATOMIC_RELAXED);
        touch(at, INOUT, 5, z, 0);
    }
    struct promise p = {.z = draw()};
#pragma omp task depend(inout : x) detach(event) firstprivate(at, z)
    touch(at, INOUT, 6, z >> 4, 0);
    p.event = event;
#pragma omp target nowait depend(in : x)
    touch(at, IN, 7, z >> 8, to);
    pthread_t thread;
    pthread_create(&thread, NULL, at_any_time, &p);
    pthread_join(thread, NULL);
    if (devices) add_flag(flag);
#pragma omp taskwait
    CHECK(passed);
    CHECK(x == 30 && saw == 30);
}

/* A detached task without a dependence holds up the end of its group. */
static void in_a_group(void)
{
    unsigned x = 1;
    struct promise p = {.cell = &x, .id = 5, .z = draw()};
    pthread_t thread;
#pragma omp taskgroup
    {
        omp_event_handle_t event = (omp_event_handle_t)0;
#pragma omp task detach(event) shared(p)
        add_flag((uintptr_t)&p.body);
        p.event = event;
        pthread_create(&thread, NULL, after_body, &p);
        for (int i = 0; i < 4; i++) {
            unsigned z = draw();
#pragma omp target nowait
            nap(z);
        }
    }
    CHECK(__atomic_load_n(&x, __ATOMIC_RELAXED) == 8);
    pthread_join(thread, NULL);
}

static void all(void)
{
    chain(0);
    chain(1);
    fulfilled_first();
    in_a_group();
}

int main(void)
{
    return everywhere(all, 3, 3);
}

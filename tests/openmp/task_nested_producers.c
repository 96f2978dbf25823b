/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Explicit tasks that generate chains of target tasks each, at the same time. With STRICT some end without waiting for
 * their children, and only the barrier at the end of the region does: LLVM's hidden helper tasks escape that. libomp
 * asserts here now and then (docs/openmp.md), most where it runs the target tasks itself, so not as the drop-in. */
// preload only: OMP_TARGET_OFFLOAD=MANDATORY => PASS
// preload only: OMP_WAIT_POLICY=passive KMP_BLOCKTIME=0 => PASS
// preload only: OMP_THREAD_LIMIT=2 => PASS
// preload only: STRICT=1 => PASS
// preload only: STRICT=1 KMP_BLOCKTIME=0 => PASS
#include "task_check.h"

enum { PRODUCERS = 8, CELLS = 3, LENGTH = 20 };

struct producer {
    unsigned cell[CELLS], want[CELLS];
    unsigned seen[LENGTH], want_seen[LENGTH];
};

static struct producer producers[2 * PRODUCERS];

/* The children of one task: target tasks on a few cells, a host task now and then. */
static void produce(struct producer *me, int salt)
{
    int devices = omp_get_num_devices();
    for (int i = 0; i < LENGTH; i++) {
        unsigned id = (unsigned)(salt + i), z = draw();
        int c = (int)(draw() % CELLS), kind = draw() % 3 ? INOUT : IN,
            device = devices ? (int)(draw() % 4) % devices : 0;
        model(&me->want[c], kind, id, &me->want_seen[i]);
        touch_in_task(&me->cell[c], kind, id, z, &me->seen[i], i % 7 == 5 ? HOST : device);
    }
}

static void check(struct producer *me)
{
    CHECK(!memcmp(me->cell, me->want, sizeof me->cell));
    CHECK(!memcmp(me->seen, me->want_seen, sizeof me->seen));
}

/* One task of the team: produces, waits or not, and has a child that does the same. */
static void spawn(int i)
{
#pragma omp task firstprivate(i)
    {
        produce(&producers[i], 100 * i);
#pragma omp task firstprivate(i)
        {
            produce(&producers[PRODUCERS + i], 100 * i + 50);
            if (!strict() || i % 3) {
#pragma omp taskwait
                check(&producers[PRODUCERS + i]);
            }
        }
        if (!strict() || i % 2) {
#pragma omp taskwait
            check(&producers[i]);
        }
    }
}

static void region(int threads)
{
    memset(producers, 0, sizeof producers);
#pragma omp parallel num_threads(threads)
    {
#pragma omp single
        for (int i = 0; i < PRODUCERS; i++) spawn(i);
    }
    for (int i = 0; i < 2 * PRODUCERS; i++) check(&producers[i]);
}

/* Every thread is a producer itself. */
static void all_threads(int threads)
{
    memset(producers, 0, sizeof producers);
#pragma omp parallel num_threads(threads)
    {
        struct producer *me = &producers[omp_get_thread_num()];
        produce(me, omp_get_thread_num());
        if (omp_get_thread_num() % 2) {
#pragma omp taskwait
            check(me);
        }
    }
    for (int i = 0; i < 2 * PRODUCERS; i++) check(&producers[i]);
}

int main(void)
{
    for (int round = 0; round < rounds(5); round++) {
        region(4);
        region(16);
        all_threads(4);
        all_threads(16);
    }
    return finish();
}

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Tasks of every form that end without waiting for the target tasks, and the tasks of the host behind those, that they
 * have generated: a barrier, or the end of a taskgroup, waits for them all.
 */
// preload only: OMP_TARGET_OFFLOAD=MANDATORY => PASS
// preload only: KMP_BLOCKTIME=0 => PASS
// preload only: OMP_THREAD_LIMIT=1 => PASS
// preload only: OMP_THREAD_LIMIT=2 => PASS
#include "task_check.h"

enum { FORMS = 7, EACH = 6, CELLS = FORMS * EACH };

/* Target tasks only. */
static void leave_target_tasks(unsigned *cell, unsigned z)
{
    uintptr_t at = (uintptr_t)cell;
#pragma omp target nowait depend(inout : cell[0])
    touch(at, OUT, 1, z, 0);
#pragma omp target nowait depend(inout : cell[0])
    touch(at, INOUT, 2, z >> 4, 0);
#pragma omp target nowait depend(inout : cell[0])
    touch(at, INOUT, 3, z >> 8, 0);
}

/* A target task, a task of the host behind it, and one more target task. */
static void leave_behind(unsigned *cell, unsigned z)
{
    uintptr_t at = (uintptr_t)cell;
#pragma omp target nowait depend(inout : cell[0])
    touch(at, OUT, 1, z, 0);
#pragma omp task depend(inout : cell[0]) firstprivate(at, z)
    touch(at, INOUT, 2, z >> 4, 0);
#pragma omp target nowait depend(inout : cell[0])
    touch(at, INOUT, 3, z >> 8, 0);
}

static void form(int which, unsigned *cell, unsigned z)
{
    switch (which) {
    case 0:
#pragma omp task firstprivate(cell, z)
        leave_behind(cell, z);
        break;
    case 1:
#pragma omp task untied firstprivate(cell, z)
        leave_target_tasks(cell, z);
        break;
    case 2:
#pragma omp task if (0) firstprivate(cell, z)
        leave_behind(cell, z);
        break;
    case 3:
#pragma omp task final(1) firstprivate(cell, z)
        leave_behind(cell, z);
        break;
    case 4:
#pragma omp taskloop num_tasks(1) nogroup firstprivate(cell, z)
        for (int i = 0; i < 1; i++) leave_behind(cell, z);
        break;
    case 5:
#pragma omp task firstprivate(cell, z)
        {
#pragma omp task firstprivate(cell, z)
            {
#pragma omp task untied firstprivate(cell, z)
                leave_target_tasks(cell, z);
            }
        }
        break;
    default: {
        unsigned first = 0;
#pragma omp task depend(out : first) firstprivate(cell, z)
        leave_behind(cell, z);
#pragma omp task depend(in : first)
        (void)0;
    }
    }
}

static unsigned cell[CELLS];

static void check(void)
{
    unsigned want = 0;
    model(&want, OUT, 1, NULL);
    model(&want, INOUT, 2, NULL);
    model(&want, INOUT, 3, NULL);
    for (int i = 0; i < CELLS; i++) CHECK(cell[i] == want);
    memset(cell, 0, sizeof cell);
}

static void all(void)
{
    for (int i = 0; i < CELLS; i++) form(i % FORMS, &cell[i], draw());
}

static void region(int threads)
{
#pragma omp parallel num_threads(threads)
#pragma omp single
    all();
    check();
#pragma omp parallel num_threads(threads)
    {
#pragma omp masked
        all();
#pragma omp barrier
#pragma omp masked
        check();
    }
#pragma omp parallel num_threads(threads)
#pragma omp single
    {
#pragma omp taskgroup
        all();
        check();
    }
#pragma omp taskgroup
    all();
    check();
}

int main(void)
{
    for (int round = 0; round < rounds(2); round++) {
        region(1);
        region(4);
        region(16);
    }
    return finish();
}

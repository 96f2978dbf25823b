/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Several teams at once; barriers, single and sections are where target tasks must be complete. */
// run: OMP_TARGET_OFFLOAD=MANDATORY => PASS
// run: OMP_TARGET_OFFLOAD=DISABLED => PASS
// run: OMP_WAIT_POLICY=active KMP_BLOCKTIME=0 => PASS
// run: LIBOMP_USE_HIDDEN_HELPER_TASK=0 => PASS
// preload only: OMP_THREAD_LIMIT=4 => PASS
// preload only: STRICT=1 => PASS
#include "task_check.h"

enum { MOST = 4 };

static void append(unsigned *cell, unsigned *want, unsigned id, int host)
{
    unsigned z = draw();
    uintptr_t at = (uintptr_t)cell;
    model(want, INOUT, id, NULL);
    if (host) {
#pragma omp task depend(inout : cell[0]) firstprivate(at, id, z)
        touch(at, INOUT, id, z, 0);
    } else {
#pragma omp target nowait depend(inout : cell[0])
        touch(at, INOUT, id, z, 0);
    }
}

/* What each thread has generated is complete for all behind an explicit barrier. */
static void barriers(int threads)
{
    unsigned cell[MOST] = {0}, want[MOST] = {0};
#pragma omp parallel num_threads(threads)
    {
        int me = omp_get_thread_num(), n = omp_get_num_threads();
        for (unsigned phase = 0; phase < 3; phase++) {
            for (unsigned i = 0; i < 6; i++) append(&cell[me], &want[me], phase + i, draw() % 3 == 0);
#pragma omp barrier
            int next = (me + 1) % n;
            CHECK(__atomic_load_n(&cell[next], __ATOMIC_RELAXED) == want[next]);
#pragma omp barrier
            /* The neighbour's cell: another generating task, ordered by the barrier alone. */
            append(&cell[next], &want[next], 77, 0);
#pragma omp barrier
        }
    }
    for (int i = 0; i < MOST; i++) CHECK(cell[i] == want[i]);
}

/* Single constructs with and without nowait, and sections. */
static void work_sharing(int threads)
{
    unsigned cell[MOST] = {0}, want[MOST] = {0};
#pragma omp parallel num_threads(threads)
    {
#pragma omp single nowait
        for (unsigned i = 0; i < 5; i++) append(&cell[0], &want[0], i, i == 2);
#pragma omp single nowait
        for (unsigned i = 0; i < 5; i++) append(&cell[1], &want[1], i, i == 3);
#pragma omp sections
        {
#pragma omp section
            for (unsigned i = 0; i < 5; i++) append(&cell[2], &want[2], i, i == 1);
#pragma omp section
            for (unsigned i = 0; i < 5; i++) append(&cell[3], &want[3], i, i == 4);
        }
        for (int i = 0; i < MOST; i++) CHECK(__atomic_load_n(&cell[i], __ATOMIC_RELAXED) == want[i]);
#pragma omp barrier
#pragma omp single
        for (unsigned i = 0; i < 5; i++) append(&cell[0], &want[0], i, i == 2);
        CHECK(__atomic_load_n(&cell[0], __ATOMIC_RELAXED) == want[0]);
    }
}

/* Kernels that make teams of their own. */
static void inside(void)
{
    int a[256], sum = 0;
    for (int k = 0; k < 256; k++) a[k] = k;
    for (int i = 0; i < 4; i++) {
#pragma omp target teams distribute parallel for nowait map(tofrom : a) depend(inout : a) num_teams(2)
        for (int k = 0; k < 256; k++) a[k] = a[k] * 2 + 1;
#pragma omp task depend(inout : a) shared(a)
        for (int k = 0; k < 256; k++) a[k] -= 1;
    }
#pragma omp target parallel for nowait map(to : a) map(tofrom : sum) depend(in : a) reduction(+ : sum)
    for (int k = 0; k < 256; k++) sum += a[k];
#pragma omp taskwait
    CHECK(sum == 16 * 256 * 255 / 2);
}

static void nested(void)
{
#pragma omp parallel num_threads(3)
    {
        barriers(2);
        work_sharing(2);
        if (strict()) inside();
        barriers(1);
    }
}

int main(void)
{
    omp_set_max_active_levels(2);
    for (int round = 0; round < rounds(4); round++) {
        barriers(MOST);
        work_sharing(3);
        if (strict()) inside();
        nested();
        work_sharing(1);
    }
    return finish();
}

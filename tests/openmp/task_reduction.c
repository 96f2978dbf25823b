/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Task reductions: host tasks, target tasks and deferred target tasks take part in the same one. Outside parallel
 * regions libomp gives them all the original to add to at the same time: only STRICT tries that.
 */
// run: OMP_TARGET_OFFLOAD=MANDATORY => PASS
// run: OMP_TARGET_OFFLOAD=DISABLED => PASS
// run: KMP_BLOCKTIME=0 => PASS
// preload only: STRICT=1 => PASS
// preload only: STRICT=1 OMP_NUM_THREADS=1 => PASS
#include "task_check.h"

enum { N = 30 };

static void host(int *taker, int i, int from)
{
    int sum = 0;
#pragma omp taskgroup task_reduction(+ : sum)
    for (int k = from; k < i; k++) {
        unsigned z = draw();
#pragma omp task in_reduction(+ : sum) firstprivate(k, z)
        {
            nap(z);
            sum += k;
        }
    }
    *taker = sum;
}

/* All three kinds of task; the deferred ones are a chain. */
static void of_a_group(void)
{
    int sum = 3, want = 3, x = 0, want_x = 0, alone = omp_get_num_threads() == 1 && !strict();
#pragma omp taskgroup task_reduction(+ : sum)
    for (int i = 0; i < N; i++) {
        unsigned z = draw();
        want += i;
        if (i % 3 == 2) {
            want_x = want_x * 3 + i;
#pragma omp target nowait in_reduction(+ : sum) depend(inout : x) map(tofrom : x)
            {
                nap(z);
                sum += i;
                x = x * 3 + i;
            }
        } else if (i % 3 == 1 || alone) {
#pragma omp target in_reduction(+ : sum)
            {
                nap(z);
                sum += i;
            }
        } else {
#pragma omp task in_reduction(+ : sum) firstprivate(i, z)
            {
                nap(z);
                sum += i;
            }
        }
    }
    CHECK(sum == want);
    CHECK(x == want_x);
}

/* Of the whole team, and of a loop of tasks; target tasks run beside them. */
static void of_a_team(void)
{
    int total = 0, loop = 0, side[4] = {0, 0, 0, 0};
#pragma omp parallel num_threads(4) reduction(task, + : total)
    {
        int me = omp_get_thread_num();
        total += 1000;
        for (int i = 0; i < N; i++) {
            unsigned z = draw();
#pragma omp task in_reduction(+ : total) firstprivate(i, z) depend(in : side[me])
            {
                nap(z);
                total += i;
            }
#pragma omp target nowait depend(inout : side[me]) map(tofrom : side[me : 1])
            side[me] += i;
        }
#pragma omp taskwait
#pragma omp single
#pragma omp taskloop reduction(+ : loop) grainsize(3)
        for (int i = 0; i < N; i++) {
            int part = 0;
            host(&part, i, i ? i - 1 : 0);
            loop += part + i;
        }
    }
    CHECK(total == 4 * (1000 + N * (N - 1) / 2));
    CHECK(loop == (N - 1) * (N - 2) / 2 + N * (N - 1) / 2);
    for (int i = 0; i < 4; i++) CHECK(side[i] == N * (N - 1) / 2);
}

int main(void)
{
    for (int round = 0; round < rounds(5); round++) {
        of_a_group();
#pragma omp parallel num_threads(4)
#pragma omp single
        of_a_group();
#pragma omp parallel num_threads(4)
        of_a_group();
        of_a_team();
    }
    return finish();
}

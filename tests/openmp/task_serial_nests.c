/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * In a team of one thread: target tasks outlive the task that generates them and its parent, whose memory libomp gives to
 * others. What is left of the target tasks must not free it for a second time.
 */
// preload only: OMP_TARGET_OFFLOAD=MANDATORY => PASS
// preload only: KMP_BLOCKTIME=0 => PASS
#include "task_check.h"

enum { NESTS = 8 };

static void nests(void)
{
    unsigned orphan[NESTS] = {0}, cell[NESTS] = {0};
#pragma omp taskgroup
    {
        for (int i = 0; i < NESTS; i++) {
            unsigned z = draw();
            uintptr_t at = (uintptr_t)&orphan[i];
#pragma omp task firstprivate(at, z)
            {
#pragma omp task firstprivate(at, z)
                {
#pragma omp target nowait
                    touch(at, OUT, 1, z, 0);
                }
            }
        }
        for (int i = 0; i < NESTS; i++) {
            unsigned z = draw();
            uintptr_t at = (uintptr_t)&cell[i];
#pragma omp target nowait depend(inout : cell[i])
            touch(at, INOUT, 2, z, 0);
#pragma omp task depend(inout : cell[i]) firstprivate(at, z)
            touch(at, INOUT, 3, z >> 8, 0);
        }
    }
    for (int i = 0; i < NESTS; i++) CHECK(orphan[i] == 7 && cell[i] == 9);
}

int main(void)
{
    for (int round = 0; round < rounds(20); round++) {
        nests();
#pragma omp parallel num_threads(1)
        nests();
    }
    return finish();
}

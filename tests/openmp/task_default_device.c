/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * A target task without a device clause is for the default device of the task that generates it, whichever thread runs its
 * routine, and whatever the default is by then.
 */
// run: OMP_TARGET_OFFLOAD=MANDATORY => PASS
// run: OMP_DEFAULT_DEVICE=1 => PASS
#include "task_check.h"

enum { N = 8 };

/* The kernel counts where x is mapped: on the device that was the default. */
static void one(int device, int host_first)
{
    int x = 0, y = 0;
    unsigned z = draw();
#pragma omp target enter data map(to : x) device(device)
    int before = omp_get_default_device();
    omp_set_default_device(device);
    for (int i = 0; i < N; i++) {
        if (host_first) {
#pragma omp task depend(inout : y) shared(y) firstprivate(z)
            {
                nap(z);
                y++;
            }
        } else {
#pragma omp target nowait depend(inout : y) firstprivate(z)
            nap(z);
        }
#pragma omp target nowait depend(inout : y) map(tofrom : x)
        x++;
    }
    omp_set_default_device(before);
#pragma omp taskwait
#pragma omp target exit data map(from : x) device(device)
    CHECK(x == N);
    CHECK(y == (host_first ? N : 0));
}

int main(void)
{
    int devices = omp_get_num_devices();
    for (int round = 0; round < rounds(3); round++) {
        for (int device = devices - 1; device >= 0; device--) {
            one(device, 0);
            one(device, 1);
#pragma omp parallel num_threads(4)
#pragma omp single
            {
                one(device, 0);
                one(device, 1);
            }
        }
    }
    return finish();
}

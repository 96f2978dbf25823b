/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* What runs on the host, under each policy. */
// not on cuda: it counts the CPU devices
// run: OMP_TARGET_OFFLOAD=MANDATORY EXPECT=4 => PASS
// run: OMP_TARGET_OFFLOAD=DEFAULT EXPECT=4 => PASS
// run: OMP_TARGET_OFFLOAD=DISABLED OMP_DEFAULT_DEVICE=2 EXPECT=0 => PASS
// run: WEIR_HOST_DEVICES=2 EXPECT=2 => PASS
#include "check.h"

#pragma omp begin declare target
int copy = 1; /* the host's copy is another one than the device's */
#pragma omp end declare target

int main(void)
{
    int expect = atoi(getenv("EXPECT")), n = omp_get_num_devices(), initial = omp_get_initial_device(), on_host;
    CHECK(n == expect && initial == n && omp_get_device_num() == initial);
    copy = 2;
#pragma omp target map(from : on_host)
    on_host = copy == 2;
    CHECK(on_host == (n == 0));
#pragma omp target map(from : on_host) if (n < 0)
    on_host = copy == 2;
    CHECK(on_host == 1);
#pragma omp target map(from : on_host) device(initial)
    on_host = copy == 2;
    CHECK(on_host == 1);
#pragma omp target data map(tofrom : on_host) device(initial)
    on_host = 7;
    CHECK(on_host == 7);
#pragma omp target nowait map(from : on_host) device(initial)
    on_host = copy == 2;
#pragma omp taskwait
    CHECK(on_host == 1);
    int *p = omp_target_alloc(sizeof *p, initial), value = 9, back = 0;
    CHECK(p && !omp_target_memcpy(p, &value, sizeof value, 0, 0, initial, initial) && *p == 9);
    CHECK(!omp_target_memcpy(&back, p, sizeof back, 0, 0, initial, initial) && back == 9);
    CHECK(omp_target_is_present(p, initial) && omp_get_mapped_ptr(p, initial) == p);
    omp_target_free(p, initial);
    return finish();
}

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Numbers and names of devices; a number that is none ends the program. */
// run: OMP_TARGET_OFFLOAD=MANDATORY => PASS
// run: CASE=7 => ABORT device number 7 is out of range
// run: CASE=-5 => ABORT device number -5 is out of range
// run: OMP_DEFAULT_DEVICE=3 CASE=-1 => PASS
// run: WEIR_HOST_DEVICES=many => PASS
#include "check.h"

#pragma omp begin declare target
int mark = 0;
#pragma omp end declare target

int main(void)
{
    const char *number = getenv("CASE");
    int n = omp_get_num_devices(), d = number ? atoi(number) : 0;
    CHECK(n == 4);
    if (number && d != -1) {
#pragma omp target device(d)
        mark = 1;
        return finish();
    }
    if (d == -1) {
        CHECK(omp_get_default_device() == 3);
#pragma omp target
        mark = 5;
#pragma omp target update from(mark) device(3)
        CHECK(mark == 5);
    }
    CHECK(omp_target_alloc(16, n + 1) == NULL && omp_target_alloc(16, -2) == NULL && omp_target_alloc(0, 0) == NULL);
    CHECK(omp_target_memcpy(&d, &n, sizeof n, 0, 0, 99, n) != 0);
    CHECK(!omp_target_is_present(&n, 99) && !omp_get_mapped_ptr(&n, 99));
    for (int i = 0; i <= n; i++) CHECK(omp_get_device_from_uid(omp_get_uid_from_device(i)) == i);
    CHECK(omp_get_uid_from_device(n + 1) == NULL && omp_get_device_from_uid("nobody") == omp_invalid_device);
    return finish();
}

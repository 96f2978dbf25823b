/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Kernel arguments of a version that nobody knows: the program is told to use the host, or ends if it must not. */
// run: OMP_TARGET_OFFLOAD=DEFAULT => PASS
// run: OMP_TARGET_OFFLOAD=MANDATORY => ABORT kernel arguments of version 77
#include "check.h"

struct arguments {
    unsigned version, n;
    void *rest[16];
};
int __tgt_target_kernel(void *where, int64_t device, int teams, int threads, void *host, void *args);

int main(void)
{
    int x = 0;
    static char nobody;
    struct arguments args = {77, 0, {NULL}};
#pragma omp target map(tofrom : x)
    x++;
    CHECK(x == 1);
    args.version = 3;
    if (getenv("OMP_TARGET_OFFLOAD")[0] == 'D') CHECK(__tgt_target_kernel(NULL, 0, -1, 0, &nobody, &args) == -1);
    args.version = 77;
    CHECK(__tgt_target_kernel(NULL, 0, -1, 0, &nobody, &args) == -1);
#pragma omp target map(tofrom : x)
    x++;
    CHECK(x == 2);
    return finish();
}

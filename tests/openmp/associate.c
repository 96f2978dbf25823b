/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Own device memory behind a host address. */
#include "check.h"

int main(void)
{
    enum { N = 32 };
    int h[N], other[N], seen = 0, host = omp_get_initial_device();
    char *d = omp_target_alloc(sizeof h + 64, 0);
    CHECK(omp_target_associate_ptr(h, d, sizeof h, 0, host) != 0);
    CHECK(omp_target_associate_ptr(NULL, d, sizeof h, 0, 0) != 0 && omp_target_associate_ptr(h, NULL, 8, 0, 0) != 0);
    for (int round = 0; round < 10; round++) {
        size_t offset = (size_t)(round % 2) * 64;
        for (int i = 0; i < N; i++) h[i] = round + i;
        CHECK(!omp_target_is_present(h, 0));
        CHECK(!omp_target_associate_ptr(h, d, sizeof h, offset, 0));
        CHECK(!omp_target_associate_ptr(h, d, sizeof h, offset, 0)); /* the same again */
        CHECK(omp_target_associate_ptr(h, d + 8, sizeof h, offset, 0) != 0);
        CHECK(omp_target_is_present(&h[5], 0) && omp_get_mapped_ptr(&h[1], 0) == d + offset + 4);
#pragma omp target update to(h)
#pragma omp target map(tofrom : h) map(from : seen)
        {
            seen = h[3];
            h[3] = -1;
        }
        CHECK(seen == round + 3 && h[3] == round + 3);
#pragma omp target update from(h)
        CHECK(h[3] == -1);
#pragma omp target exit data map(delete : h)
        CHECK(omp_target_is_present(h, 0));
        CHECK(!omp_target_disassociate_ptr(h, 0));
        CHECK(!omp_target_is_present(h, 0) && !omp_get_mapped_ptr(h, 0));
        CHECK(omp_target_disassociate_ptr(h, 0) != 0 && omp_target_disassociate_ptr(other, 0) != 0);
    }
    omp_target_free(d, 0);
    CHECK(omp_target_is_accessible(h, sizeof h, host));
    return finish();
}

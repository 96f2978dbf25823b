/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Variables that live on the device, on each device separately; link variables; functions. */
#include "check.h"

#pragma omp begin declare target
int counter = 40;
int table[4] = {2, 3, 5, 7};
static int hidden = 1;
int twice(int x)
{
    return 2 * x + hidden;
}
#pragma omp end declare target

int linked[8] = {1, 1, 1, 1, 1, 1, 1, 1};
#pragma omp declare target link(linked)

int main(void)
{
    int seen = 0, n = omp_get_num_devices();
    CHECK(omp_target_is_present(&counter, 0) && omp_target_is_present(table, 0));
#pragma omp target map(from : seen)
    {
        counter++;
        seen = counter + table[3] + twice(10);
    }
    CHECK(seen == 41 + 7 + 21 && counter == 40);
#pragma omp target update from(counter)
    CHECK(counter == 41);
    counter = 100;
#pragma omp target update to(counter)
#pragma omp target map(from : seen)
    seen = counter;
    CHECK(seen == 100);
    for (int d = 1; d < n; d++) {
#pragma omp target map(from : seen) device(d)
        seen = counter;
        CHECK(seen == 40);
    }
    /* Unmapping does not end what lives for ever. */
#pragma omp target exit data map(delete : counter)
    CHECK(omp_target_is_present(&counter, 0));

#pragma omp target map(tofrom : linked)
    for (int i = 0; i < 8; i++) linked[i] += i;
    for (int i = 0; i < 8; i++) CHECK(linked[i] == 1 + i);
    CHECK(!omp_target_is_present(linked, 0));
    return finish();
}

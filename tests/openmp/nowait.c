/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Asynchronous regions: order, data and overlap. */
#include "check.h"

static void chain(void)
{
    int x = 0, a[64] = {0};
    for (int i = 0; i < 50; i++) {
#pragma omp target nowait depend(inout : x) map(tofrom : x)
        x = x * 3 % 1001 + i;
    }
#pragma omp taskwait
    int want = 0;
    for (int i = 0; i < 50; i++) want = want * 3 % 1001 + i;
    CHECK(x == want);

#pragma omp target enter data map(to : a) nowait depend(out : a)
#pragma omp target nowait depend(inout : a)
    for (int i = 0; i < 64; i++) a[i] += i;
#pragma omp target update from(a) nowait depend(inout : a)
#pragma omp task depend(inout : a) shared(a)
    for (int i = 0; i < 64; i++) a[i] *= 2;
#pragma omp target update to(a) nowait depend(inout : a)
#pragma omp target nowait depend(inout : a)
    a[1]++;
#pragma omp target exit data map(from : a) nowait depend(inout : a)
#pragma omp taskwait
    for (int i = 0; i < 64; i++) CHECK(a[i] == 2 * i + (i == 1));
}

/* Each region waits until the other one runs. */
static void overlap(void)
{
    int inside = 0, met[2] = {0, 0};
    uintptr_t flag = (uintptr_t)&inside;
    for (int i = 0; i < 2; i++) {
#pragma omp target nowait map(from : met[i : 1])
        {
            add_flag(flag);
            met[i] = wait_flag(flag, 2);
        }
    }
#pragma omp taskwait
    CHECK(met[0] && met[1]);
}

/* Submitting does not wait for the kernel, nor when it has been quick every time, because what it waits for came at
 * once. */
static void submission_goes_on(void)
{
    for (int i = 0; i < 100 && !failures; i++) {
        int gate = 0, passed = 0;
        uintptr_t flag = (uintptr_t)&gate;
#pragma omp target nowait map(from : passed)
        passed = wait_flag(flag, 1);
        add_flag(flag);
#pragma omp taskwait
        CHECK(passed);
    }
}

static void in_parallel(void)
{
    int sums[4] = {0};
#pragma omp parallel num_threads(4)
    {
        int me = omp_get_thread_num();
        for (int i = 0; i < 20; i++) {
#pragma omp target nowait depend(inout : sums[me]) map(tofrom : sums[me : 1])
            sums[me] += i;
        }
#pragma omp taskwait
    }
    for (int i = 0; i < 4; i++) CHECK(sums[i] == 190);
}

int main(void)
{
    chain();
    overlap();
    submission_goes_on();
    in_parallel();
    return finish();
}

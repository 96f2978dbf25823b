/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Data that comes and goes with deferred tasks: what a host successor or taskwait sees is home. */
// run: OMP_TARGET_OFFLOAD=MANDATORY => PASS
// run: LIBOMP_USE_HIDDEN_HELPER_TASK=1 KMP_BLOCKTIME=0 => PASS
// run: LIBOMP_USE_HIDDEN_HELPER_TASK=0 => PASS
// run: OMP_NUM_THREADS=1 => PASS
// preload only: OMP_THREAD_LIMIT=4 => PASS
#include "task_check.h"

enum { N = 500, STEPS = 24 };

/* A random walk over the directives; host[] and there[] say what the two copies hold. */
static void walk(int device)
{
    int a[N], host = 7, there = 0, present = 0;
    for (int k = 0; k < N; k++) a[k] = host + k;
    for (int i = 0; i < STEPS; i++) {
        unsigned z = draw();
        int want = host;
        switch (draw() % 7) {
        case 0:
            if (!present++) there = host;
#pragma omp target enter data map(to : a) nowait depend(inout : a) device(device)
            break;
        case 1:
            if (!present) break;
            if (!--present) host = there;
#pragma omp target exit data map(from : a) nowait depend(inout : a) device(device)
            break;
        case 2:
            if (present) host = there;
#pragma omp target update from(a) nowait depend(inout : a) device(device)
            break;
        case 3:
            if (present) there = host;
#pragma omp target update to(a) nowait depend(inout : a) device(device)
            break;
        case 4:
#pragma omp task shared(a) depend(inout : a) firstprivate(z, i, want)
        {
            nap(z);
            for (int k = 0; k < N; k++) CHECK(a[k] == want + k);
            for (int k = 0; k < N; k++) a[k] += i;
        }
            host += i;
            break;
        case 5:
            if (present)
                there = 100 * i;
            else
                host = 100 * i;
#pragma omp target nowait map(from : a) depend(out : a) device(device)
            {
                nap(z);
                for (int k = 0; k < N; k++) a[k] = 100 * i + k;
            }
            break;
        default:
            if (present)
                there += 2 * i;
            else
                host += 2 * i;
#pragma omp target nowait map(tofrom : a) depend(inout : a) device(device)
            for (int k = 0; k < N; k++) a[k] += 2 * i;
        }
        if (draw() % 8 == 0) {
#pragma omp taskwait
            for (int k = 0; k < N; k++) CHECK(a[k] == host + k);
        }
    }
    if (present) {
#pragma omp target exit data map(delete : a) nowait depend(inout : a) device(device)
    }
#pragma omp taskwait
    for (int k = 0; k < N; k++) CHECK(a[k] == host + k);
    CHECK(!omp_target_is_present(a, device));
}

/* map(from:) of many tasks, each read by a host successor and once more after taskwait. */
static void results(void)
{
    int out[12][64], sums[12];
    for (int i = 0; i < 12; i++) {
        int *mine = out[i];
        unsigned z = draw();
#pragma omp target nowait map(from : mine[0 : 64]) depend(out : mine[0]) device(i % 4)
        {
            nap(z);
            for (int k = 0; k < 64; k++) mine[k] = i + k;
        }
#pragma omp task depend(in : mine[0]) shared(sums) firstprivate(mine, i)
        {
            sums[i] = 0;
            for (int k = 0; k < 64; k++) sums[i] += mine[k];
        }
    }
#pragma omp taskwait
    for (int i = 0; i < 12; i++) {
        CHECK(sums[i] == 64 * i + 64 * 63 / 2);
        for (int k = 0; k < 64; k++) CHECK(out[i][k] == i + k);
    }
}

/* Readers share one copy that the first of them brings; the writer behind them takes it home. */
static void readers(void)
{
    int table[N], got[8], writes = 0;
    for (int k = 0; k < N; k++) table[k] = k;
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < 8; i++) {
            unsigned z = draw();
#pragma omp target nowait map(to : table) map(from : got[i : 1]) depend(in : table) depend(out : got[i])
            {
                nap(z);
                got[i] = table[i] + table[N - 1];
            }
            int *mine = &got[i];
#pragma omp task depend(inout : mine[0]) firstprivate(mine, i, writes)
            CHECK(*mine == i + N - 1 + 2 * writes);
        }
#pragma omp target nowait map(tofrom : table) depend(inout : table)
        for (int k = 0; k < N; k++) table[k]++;
        writes++;
#pragma omp task shared(table) depend(in : table) firstprivate(writes)
        for (int k = 0; k < N; k++) CHECK(table[k] == k + writes);
    }
#pragma omp taskwait
}

/* Tasks without order between them update their own parts of one mapped array. */
static void parts(void)
{
    int a[16] = {0};
    for (int i = 0; i < 64; i++) {
        int part = i % 16;
        unsigned z = draw();
#pragma omp target nowait map(tofrom : a) depend(inout : a[part])
        {
            nap(z);
            a[part] = a[part] * 2 + 1;
        }
        if (i % 16 == 7) {
#pragma omp target map(tofrom : a) depend(inout : a[part])
            a[part] *= 5;
        }
    }
#pragma omp taskwait
    int want = 0;
    for (int i = 0; i < 4; i++) want = (want * 2 + 1) * 5;
    for (int k = 0; k < 16; k++) CHECK(a[k] == (k == 7 ? want : 15));
}

static void all(void)
{
    walk(0);
    walk((int)(draw() % 4));
    results();
    readers();
    parts();
}

int main(void)
{
    return everywhere(all, 5, 4);
}

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * For LLVM's own libomptarget with a plugin of weir's, or weir with a plugin of LLVM's: prints how many kernels it
 * launched at least, and PASS if every result is right.
 */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 1000, STEPS = 60, THREADS = 4, ROUNDS = 25 };

static int failures;
static int kernels;

#define check(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            _Pragma("omp atomic") failures++;                                                                          \
            fprintf(stderr, "line %d: %s is wrong\n", __LINE__, #condition);                                           \
        }                                                                                                              \
    } while (0)

#pragma omp declare target
int table[N];
static int twice(int x)
{
    return 2 * x;
}
#pragma omp end declare target

static void maps(int device)
{
    int *a = malloc(N * sizeof *a), host = 1, sum = 0, scalar = 7;
    for (int i = 0; i < N; i++) a[i] = i;
#pragma omp target device(device) map(tofrom : a[0 : N]) map(from : host)
    {
        host = omp_is_initial_device();
        for (int i = 0; i < N; i++) a[i] = twice(a[i]) + scalar;
    }
    check(!host);
    for (int i = 0; i < N; i++) check(a[i] == 2 * i + 7);
#pragma omp target teams distribute parallel for device(device) map(to : a[0 : N]) map(tofrom : sum) reduction(+ : sum)
    for (int i = 0; i < N; i++) sum += a[i];
    check(sum == N * (N - 1) + 7 * N);
    kernels += 2;
    free(a);
}

static void regions_and_updates(int device)
{
    double x[N];
    for (int i = 0; i < N; i++) x[i] = i;
#pragma omp target data device(device) map(to : x[0 : N])
    {
#pragma omp target device(device)
        for (int i = 0; i < N; i++) x[i] += 1;
        check(x[5] == 5 || omp_target_is_present(x, omp_get_initial_device()));
#pragma omp target update device(device) from(x[0 : N / 2])
        for (int i = 0; i < N / 2; i++) check(x[i] == i + 1);
        x[N - 1] = 100;
#pragma omp target update device(device) to(x[N - 1 : 1])
#pragma omp target device(device)
        x[N - 1] += 1;
#pragma omp target update device(device) from(x[N - 1 : 1])
    }
    check(x[N - 1] == 101);
    kernels += 2;
}

static void globals(int device)
{
    for (int i = 0; i < N; i++) table[i] = i;
#pragma omp target update device(device) to(table)
#pragma omp target device(device)
    for (int i = 0; i < N; i++) table[i] = 3 * table[i];
#pragma omp target update device(device) from(table)
    for (int i = 0; i < N; i++) check(table[i] == 3 * i);
    kernels++;
}

/* One chain over all devices, which the order of the tasks alone makes right. */
static void chain(int ndevices)
{
    int x = 1, expected = 1;
    for (int k = 0; k < STEPS; k++) expected = expected * 3 % 1001 + k;
    for (int k = 0; k < STEPS; k++) {
#pragma omp target device(k % ndevices) nowait depend(inout : x) map(tofrom : x)
        x = x * 3 % 1001 + k;
    }
#pragma omp taskwait
    check(x == expected);
    kernels += STEPS;
}

/* Enter, kernels and exit as tasks of one device; two readers between writers. */
static void diamonds(int device)
{
    int a[64] = {0}, b[64] = {0}, c[64] = {0};
#pragma omp target enter data device(device) map(to : a, b, c) nowait depend(out : a, b, c)
    for (int k = 0; k < 10; k++) {
#pragma omp target device(device) nowait depend(inout : a) map(to : a)
        for (int i = 0; i < 64; i++) a[i] += 1;
#pragma omp target device(device) nowait depend(in : a) depend(inout : b) map(to : a, b)
        for (int i = 0; i < 64; i++) b[i] += a[i];
#pragma omp target device(device) nowait depend(in : a) depend(inout : c) map(to : a, c)
        for (int i = 0; i < 64; i++) c[i] += 2 * a[i];
    }
#pragma omp target exit data device(device) map(from : a, b, c) nowait depend(inout : a, b, c)
#pragma omp taskwait
    for (int i = 0; i < 64; i++) check(a[i] == 10 && b[i] == 55 && c[i] == 110);
    kernels += 30;
}

/*
 * Several threads map the same array: whoever comes second must not use it before it is there. LLVM 14 itself gives it
 * back when the work of the thread that came first is done, whether the others have finished or not.
 */
static void shared_maps(int ndevices)
{
    static int shared[N];
    for (int round = 0; round < ROUNDS; round++) {
        int device = round % ndevices, sums[THREADS] = {0};
        for (int i = 0; i < N; i++) shared[i] = i + round;
        if (__clang_major__ < 16) {
#pragma omp target enter data device(device) map(to : shared)
        }
#pragma omp parallel num_threads(THREADS)
        {
            int sum = 0;
#pragma omp target device(device) map(to : shared) map(tofrom : sum)
            for (int i = 0; i < N; i++) sum += shared[i];
            sums[omp_get_thread_num()] = sum;
        }
        if (__clang_major__ < 16) {
#pragma omp target exit data device(device) map(delete : shared)
        }
        for (int t = 0; t < THREADS; t++) check(sums[t] == N * (N - 1) / 2 + N * round);
        kernels += THREADS;
    }
}

static void between_devices(int from, int to)
{
    int in[N], out[N], host = omp_get_initial_device();
    for (int i = 0; i < N; i++) in[i] = i * i;
    void *a = omp_target_alloc(sizeof in, from), *b = omp_target_alloc(sizeof in, to);
    check(a && b);
    check(!omp_target_memcpy(a, in, sizeof in, 0, 0, from, host));
    check(!omp_target_memcpy(b, a, sizeof in, 0, 0, to, from));
    check(!omp_target_memcpy(out, b, sizeof in, 0, 0, host, to));
    for (int i = 0; i < N; i++) check(out[i] == i * i);
    omp_target_free(a, from);
    omp_target_free(b, to);
}

int main(void)
{
    int n = omp_get_num_devices();
    check(n > 1);
    for (int device = 0; device < n; device++) {
        maps(device);
        regions_and_updates(device);
        globals(device);
        diamonds(device);
        between_devices(device, (device + 1) % n);
    }
    chain(n);
    shared_maps(n);
    printf("%d devices, %d kernels\n", n, kernels);
    if (!failures) puts("PASS");
    return failures != 0;
}

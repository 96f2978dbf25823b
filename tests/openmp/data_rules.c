/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Counts, directions, always, present, update, use_device_ptr. */
#include "check.h"

enum { N = 100 };

static void counts(void)
{
    int a[N];
    for (int i = 0; i < N; i++) a[i] = i;
#pragma omp target enter data map(to : a)
#pragma omp target enter data map(to : a)
    CHECK(omp_target_is_present(a, 0));
#pragma omp target
    a[0] = 50;
    CHECK(a[0] == 0);
#pragma omp target exit data map(from : a)
    CHECK(a[0] == 0 && omp_target_is_present(a, 0));
#pragma omp target exit data map(from : a)
    CHECK(a[0] == 50 && !omp_target_is_present(a, 0));
}

static void directions(void)
{
    int a = 1, b = 2, c = 3;
#pragma omp target data map(to : a) map(from : b) map(tofrom : c)
    {
#pragma omp target map(to : a) map(from : b) map(tofrom : c)
        {
            b = a;
            c += a;
            a = 10;
        }
        CHECK(a == 1 && b == 2 && c == 3);
#pragma omp target update from(a, c)
        CHECK(a == 10 && c == 4);
        c = 20;
#pragma omp target update to(c)
#pragma omp target map(tofrom : c)
        c++;
    }
    CHECK(a == 10 && b == 1 && c == 21);
}

static void always_and_present(void)
{
    int a[N] = {0};
#pragma omp target enter data map(alloc : a)
    a[5] = 5;
#pragma omp target map(always, tofrom : a)
    a[5]++;
    CHECK(a[5] == 6);
#pragma omp target map(present, tofrom : a)
    a[5]++;
    CHECK(a[5] == 6);
#pragma omp target exit data map(delete : a)
    CHECK(!omp_target_is_present(a, 0));
#pragma omp target exit data map(from : a)
    CHECK(a[5] == 6);
}

static void device_pointers(void)
{
    int a[N], same = 0;
    for (int i = 0; i < N; i++) a[i] = i;
    int *p = a;
#pragma omp target data map(tofrom : a) use_device_addr(a)
    {
        int *device = a;
        CHECK(device == omp_get_mapped_ptr(p, 0));
#pragma omp target is_device_ptr(device)
        for (int i = 0; i < N; i++) device[i] += 1;
    }
    for (int i = 0; i < N; i++) CHECK(a[i] == i + 1);
#pragma omp target data map(to : p[0 : N]) use_device_ptr(p)
#pragma omp target is_device_ptr(p) map(from : same)
    same = p[N - 1] == N;
    CHECK(same);
}

static void strided(void)
{
    double m[10][10];
    for (int i = 0; i < 100; i++) m[i / 10][i % 10] = i;
#pragma omp target enter data map(to : m)
    for (int i = 0; i < 100; i++) m[i / 10][i % 10] = -i;
#pragma omp target update to(m[2 : 3][4 : 2])
#pragma omp target update from(m)
    for (int i = 0; i < 10; i++)
        for (int j = 0; j < 10; j++)
            CHECK(m[i][j] == (i >= 2 && i < 5 && j >= 4 && j < 6 ? -(i * 10 + j) : i * 10 + j));
#pragma omp target exit data map(delete : m)
}

int main(void)
{
    counts();
    directions();
    always_and_present();
    device_pointers();
    strided();
    return finish();
}

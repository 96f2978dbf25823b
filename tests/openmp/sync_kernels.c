/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Synchronous kernels: every way an argument reaches a kernel. */
#include "check.h"

struct pair {
    int a;
    double b;
};

static void scalars(void)
{
    int i = 7, out = 0;
    double d = 2.5;
    char c = 'x';
    float f = 0.5f;
    long long big = -(1ll << 40);
#pragma omp target map(from : out)
    out = i == 7 && d == 2.5 && c == 'x' && f == 0.5f && big == -(1ll << 40);
    CHECK(out);
#pragma omp target map(tofrom : i) firstprivate(d)
    {
        i += (int)d;
        d = 0;
    }
    CHECK(i == 9 && d == 2.5);
}

static void private_arrays(int n)
{
    int fixed[50], out[50] = {0};
    double vla[n];
    struct pair pair = {3, 4.5};
    for (int i = 0; i < 50; i++) fixed[i] = i;
    for (int i = 0; i < n; i++) vla[i] = i;
#pragma omp target firstprivate(fixed, vla, pair) map(tofrom : out)
    {
        for (int i = 0; i < 50; i++) out[i] = fixed[i] + (int)vla[i % n] + pair.a;
        for (int i = 0; i < n; i++) vla[i] = -1;
        for (int i = 0; i < 50; i++) fixed[i] = -1;
        pair.a = 0;
    }
    for (int i = 0; i < 50; i++) CHECK(out[i] == i + i % n + 3 && fixed[i] == i);
    for (int i = 0; i < n; i++) CHECK(vla[i] == i);
    CHECK(pair.a == 3);
}

static void mapped_vla(int rows, int columns)
{
    int matrix[rows][columns];
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < columns; c++) matrix[r][c] = r;
#pragma omp target map(tofrom : matrix)
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < columns; c++) matrix[r][c] += c;
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < columns; c++) CHECK(matrix[r][c] == r + c);
}

static void many_arguments(void)
{
    enum { N = 4 };
#define LIST(X)    X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9)
#define DECLARE(n) int v##n = 1##n;
    LIST(DECLARE)
#define TENS(d)                                                                                                        \
    int t##d##0 = d, t##d##1 = d, t##d##2 = d, t##d##3 = d, t##d##4 = d, t##d##5 = d, t##d##6 = d, t##d##7 = d;
    TENS(1) TENS(2) TENS(3) TENS(4) TENS(5) TENS(6) TENS(7) TENS(8) int sum = 0;
#define ADD(n)  +v##n
#define ADDS(d) +t##d##0 + t##d##1 + t##d##2 + t##d##3 + t##d##4 + t##d##5 + t##d##6 + t##d##7
#pragma omp target map(tofrom : sum)
    sum = 0 LIST(ADD) ADDS(1) ADDS(2) ADDS(3) ADDS(4) ADDS(5) ADDS(6) ADDS(7) ADDS(8);
    CHECK(sum == 145 + 8 * 36);
}

static void parallel_inside(void)
{
    enum { N = 1000 };
    static int a[N];
    long sum = 0;
#pragma omp target teams distribute parallel for map(from : a)
    for (int i = 0; i < N; i++) a[i] = i;
#pragma omp target teams distribute parallel for reduction(+ : sum) map(to : a) map(tofrom : sum)
    for (int i = 0; i < N; i++) sum += a[i];
    CHECK(sum == N * (N - 1) / 2);
#pragma omp target parallel num_threads(3) map(tofrom : sum)
#pragma omp atomic
    sum++;
    CHECK(sum > N * (N - 1) / 2);
}

static void pointers(void)
{
    int *heap = malloc(100 * sizeof *heap), *unmapped = heap + 3, seen = 0;
    for (int i = 0; i < 100; i++) heap[i] = i;
#pragma omp target map(tofrom : heap[10 : 20])
    for (int i = 10; i < 30; i++) heap[i] *= 2;
    for (int i = 0; i < 100; i++) CHECK(heap[i] == (i >= 10 && i < 30 ? 2 * i : i));
    /* Not mapped: the kernel gets the host's value. */
#pragma omp target map(from : seen)
    seen = unmapped == NULL;
    CHECK(!seen);
    int *null = NULL;
#pragma omp target map(from : seen)
    seen = null == NULL;
    CHECK(seen);
    free(heap);
}

int main(void)
{
    scalars();
    private_arrays(7);
    mapped_vla(5, 9);
    many_arguments();
    parallel_inside();
    pointers();
    return finish();
}

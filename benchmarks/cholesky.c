/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Tiled Cholesky factorisation, A = L L^T, with one OpenMP target task per tile operation. An ordinary OpenMP program:
 * it knows nothing about weir.
 *
 *     clang-22 -O3 -fopenmp -fopenmp-targets=x86_64-pc-linux-gnu cholesky.c -lm -o cholesky
 *     ./cholesky [size [tile [repetitions]]]
 *
 * The lower triangle is kept as column-major tiles, tile (i, j) behind tile (i, j - 1) … in one array that is mapped
 * once and stays on the device.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <omp.h>

/* ---- tile kernels: b x b, column-major ------------------------------------------------------------ */

#pragma omp begin declare target

/* c -= x y^T, four columns of x at a time. */
static void tile_gemm(const double *restrict x, const double *restrict y, double *restrict c, int b)
{
    for (int j = 0; j < b; j++) {
        double *restrict column = c + (size_t)j * b;
        int k = 0;
        for (; k + 4 <= b; k += 4) {
            const double *x0 = x + (size_t)k * b, *x1 = x0 + b, *x2 = x1 + b, *x3 = x2 + b;
            double y0 = y[j + (size_t)k * b], y1 = y[j + (size_t)(k + 1) * b];
            double y2 = y[j + (size_t)(k + 2) * b], y3 = y[j + (size_t)(k + 3) * b];
            for (int i = 0; i < b; i++) column[i] -= x0[i] * y0 + x1[i] * y1 + x2[i] * y2 + x3[i] * y3;
        }
        for (; k < b; k++)
            for (int i = 0; i < b; i++) column[i] -= x[i + (size_t)k * b] * y[j + (size_t)k * b];
    }
}

/* x = x l^-T with a lower triangular l. */
static void tile_trsm(const double *restrict l, double *restrict x, int b)
{
    for (int j = 0; j < b; j++) {
        double *restrict column = x + (size_t)j * b;
        for (int k = 0; k < j; k++) {
            double factor = l[j + (size_t)k * b];
            for (int i = 0; i < b; i++) column[i] -= x[i + (size_t)k * b] * factor;
        }
        double diagonal = l[j + (size_t)j * b];
        for (int i = 0; i < b; i++) column[i] /= diagonal;
    }
}

/* a = l l^T, l in place of the lower triangle and zero above it. */
static void tile_potrf(double *restrict a, int b)
{
    for (int j = 0; j < b; j++) {
        double *restrict column = a + (size_t)j * b;
        for (int k = 0; k < j; k++) {
            double factor = a[j + (size_t)k * b];
            for (int i = j; i < b; i++) column[i] -= a[i + (size_t)k * b] * factor;
        }
        double diagonal = sqrt(column[j]);
        for (int i = j; i < b; i++) column[i] /= diagonal;
        for (int i = 0; i < j; i++) column[i] = 0.0;
    }
}

#pragma omp end declare target

/* ---- the matrix ----------------------------------------------------------------------------------- */

struct matrix {
    int tiles;    /* per side */
    int b;        /* side of a tile */
    double *data; /* tiles * (tiles + 1) / 2 tiles */
};

static size_t matrix_elements(const struct matrix *m)
{
    return (size_t)m->tiles * (m->tiles + 1) / 2 * m->b * m->b;
}

static double *tile(const struct matrix *m, int i, int j)
{
    return m->data + ((size_t)i * (i + 1) / 2 + j) * m->b * m->b;
}

static struct matrix matrix_create(int tiles, int b)
{
    struct matrix m = {tiles, b, NULL};
    m.data = malloc(matrix_elements(&m) * sizeof *m.data);
    if (!m.data) {
        fprintf(stderr, "cholesky: out of memory\n");
        exit(2);
    }
    return m;
}

/* Symmetric, entries in [-0.5, 0.5), diagonal large enough to be positive definite. */
static void matrix_fill(struct matrix *m)
{
    unsigned long long state = 1;
    int b = m->b;
    for (size_t e = 0; e < matrix_elements(m); e++) {
        state = state * 6364136223846793005ULL + 1442695040888963407ULL;
        m->data[e] = (double)(state >> 11) / 9007199254740992.0 - 0.5;
    }
    for (int t = 0; t < m->tiles; t++) {
        double *a = tile(m, t, t);
        for (int j = 0; j < b; j++) {
            for (int i = 0; i < j; i++) a[i + (size_t)j * b] = a[j + (size_t)i * b];
            a[j + (size_t)j * b] += m->tiles * b;
        }
    }
}

/* |A - L L^T| / |A| in the Frobenius norm over the tiles kept; destroys @a. */
static double residual(struct matrix *a, const struct matrix *l)
{
    size_t n = (size_t)a->b * a->b;
    double error = 0.0, norm = 0.0;
#pragma omp parallel for schedule(dynamic) reduction(+ : error, norm)
    for (int i = 0; i < a->tiles; i++) {
        for (int j = 0; j <= i; j++) {
            double *t = tile(a, i, j);
            double weight = i == j ? 1.0 : 2.0;
            for (size_t e = 0; e < n; e++) norm += weight * t[e] * t[e];
            for (int k = 0; k <= j; k++) tile_gemm(tile(l, i, k), tile(l, j, k), t, a->b);
            for (size_t e = 0; e < n; e++) error += weight * t[e] * t[e];
        }
    }
    return sqrt(error / norm);
}

/* ---- the factorisation ---------------------------------------------------------------------------- */

/* Submits every task, then waits for the last. Returns how many tasks there were. */
static long factorise(const struct matrix *m)
{
    int n = m->tiles, b = m->b;
    long tasks = 0;
    for (int k = 0; k < n; k++) {
        double *kk = tile(m, k, k);
#pragma omp target nowait depend(inout : kk[0])
        tile_potrf(kk, b);
        tasks++;
        for (int i = k + 1; i < n; i++, tasks++) {
            double *ik = tile(m, i, k);
#pragma omp target nowait depend(in : kk[0]) depend(inout : ik[0])
            tile_trsm(kk, ik, b);
        }
        for (int i = k + 1; i < n; i++) {
            double *ik = tile(m, i, k), *ii = tile(m, i, i);
#pragma omp target nowait depend(in : ik[0]) depend(inout : ii[0])
            tile_gemm(ik, ik, ii, b); /* syrk */
            tasks++;
            for (int j = k + 1; j < i; j++, tasks++) {
                double *jk = tile(m, j, k), *ij = tile(m, i, j);
#pragma omp target nowait depend(in : ik[0], jk[0]) depend(inout : ij[0])
                tile_gemm(ik, jk, ij, b);
            }
        }
    }
#pragma omp taskwait
    return tasks;
}

static int argument(int argc, char **argv, int i, int standard)
{
    if (i >= argc) return standard;
    char *end;
    long value = strtol(argv[i], &end, 10);
    if (*end || value < 1 || value > 100000) {
        fprintf(stderr, "usage: %s [size [tile [repetitions]]], numbers from 1 to 100000\n", argv[0]);
        exit(2);
    }
    return (int)value;
}

int main(int argc, char **argv)
{
    int size = argument(argc, argv, 1, 1536), b = argument(argc, argv, 2, 32), reps = argument(argc, argv, 3, 3);
    if (argc > 4 || size % b) {
        fprintf(stderr, "cholesky: the size must be a multiple of the tile size\n");
        return 2;
    }
    struct matrix a = matrix_create(size / b, b), l = matrix_create(size / b, b);
    matrix_fill(&a);
    size_t elements = matrix_elements(&l);
    double *data = l.data, best = INFINITY;
    long tasks = 0;
    memcpy(data, a.data, elements * sizeof *data);
#pragma omp target enter data map(to : data[0 : elements])
    for (int r = 0; r < reps; r++) {
        memcpy(data, a.data, elements * sizeof *data);
#pragma omp target update to(data[0 : elements])
        double start = omp_get_wtime();
        tasks = factorise(&l);
        double seconds = omp_get_wtime() - start;
        best = seconds < best ? seconds : best;
    }
#pragma omp target exit data map(from : data[0 : elements])

    double error = residual(&a, &l);
    int right = error < 1e-14 * size;
    printf("cholesky %d x %d, tiles of %d, %ld tasks: %.3f s, %.2f GFLOP/s, best of %d\n", size, size, b, tasks, best,
           (double)size * size * size / 3.0 / best * 1e-9, reps);
    printf("residual |A - L L^T| / |A| = %.2e: %s\n", error, right ? "PASS" : "FAIL");
    free(a.data);
    free(l.data);
    return !right;
}

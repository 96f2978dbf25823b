/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What OpenMP target constructs cost: offload sync|nowait N REPEATS
 * An OpenMP program without any knowledge of weir; the same binary is run on weir's drop-in and on LLVM's own runtime
 * (run.sh). Prints the median in ns of one construct, and of one task of a chain for nowait; the results are checked.
 */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CELLS = 128, MAX_REPEATS = 64 };

static double cells[CELLS];

static double now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *v, int n)
{
    qsort(v, (size_t)n, sizeof(*v), compare);
    return v[n / 2];
}

static void expect(const char *what, double seen, double wanted)
{
    if (seen == wanted) return;
    printf("WRONG RESULT: %s is %.0f, not %.0f\n", what, seen, wanted);
    exit(1);
}

static double pointer_only(int n, double *device)
{
    double start = now();
    for (int i = 0; i < n; i++) {
#pragma omp target is_device_ptr(device)
        device[0] += 1;
    }
    return (now() - start) / n * 1e9;
}

static double present(int n)
{
    memset(cells, 0, sizeof(cells));
#pragma omp target enter data map(to : cells)
    double start = now();
    for (int i = 0; i < n; i++) {
#pragma omp target map(tofrom : cells)
        cells[0] += 1;
    }
    double took = (now() - start) / n * 1e9;
#pragma omp target exit data map(from : cells)
    expect("present", cells[0], n);
    return took;
}

static double copied(int n)
{
    memset(cells, 0, sizeof(cells));
    double start = now();
    for (int i = 0; i < n; i++) {
#pragma omp target map(tofrom : cells)
        cells[0] += 1;
    }
    double took = (now() - start) / n * 1e9;
    expect("copied", cells[0], n);
    return took;
}

static void chain(int n, double *device, double *submit, double *total)
{
#pragma omp parallel num_threads(2)
#pragma omp master
    {
        double start = now();
        for (int i = 0; i < n; i++) {
#pragma omp target nowait depend(inout : cells[0]) is_device_ptr(device)
            device[1] += 1;
        }
        *submit = (now() - start) / n * 1e9;
#pragma omp taskwait
        *total = (now() - start) / n * 1e9;
    }
}

int main(int argc, char **argv)
{
    const char *form = argc > 1 ? argv[1] : "sync";
    int n = argc > 2 ? atoi(argv[2]) : 20000, repeats = argc > 3 ? atoi(argv[3]) : 5, device = omp_get_default_device();
    double v[3][MAX_REPEATS], back[2] = {0, 0};
    if (n < 1 || repeats < 1 || repeats > MAX_REPEATS) return 2;
    if (omp_get_num_devices() < 1) return 77;
    double *memory = omp_target_alloc(sizeof(back), device);
    if (memory == NULL) return 1;
    omp_target_memcpy(memory, back, sizeof(back), 0, 0, device, omp_get_initial_device());
    for (int r = 0; r < repeats; r++) {
        if (strcmp(form, "sync") == 0) {
            v[0][r] = pointer_only(n, memory);
            v[1][r] = present(n);
            v[2][r] = copied(n);
        } else {
            chain(n, memory, &v[0][r], &v[1][r]);
        }
    }
    omp_target_memcpy(back, memory, sizeof(back), 0, 0, omp_get_initial_device(), device);
    omp_target_free(memory, device);
    expect("sum", back[0] + back[1], (double)n * repeats);
    if (strcmp(form, "sync") == 0)
        printf("target: is_device_ptr %.0f ns, present map %.0f ns, map with copies of 1 KiB both ways %.0f ns\n",
               median(v[0], repeats), median(v[1], repeats), median(v[2], repeats));
    else
        printf("target nowait depend chain: submit %.0f ns, total %.0f ns a task\n", median(v[0], repeats),
               median(v[1], repeats));
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What target tasks with nowait and dependences cost: target_tasks WORKLOAD|data N REPEATS [hold]
 * An OpenMP program without any knowledge of weir: target_tasks.sh runs the same binary on weir and on LLVM's runtime.
 *   WORKLOAD  of workload.h; prints submit (the loop) and total in ns a task, the first repeat apart
 *   data      ns a pair: enter and exit data, update to and from, both updates with nowait and depend
 *   hold      a kernel in front waits in the second repeat until all are submitted: the memory of a pending task
 */
#include <omp.h>

#include "workload.h"

#pragma omp begin declare target
static void update(uint64_t *cells, uint64_t v, uint32_t nin, uint32_t a, uint32_t b, uint32_t c, uint32_t out)
{
    if (nin > 0) v += cells[a];
    if (nin > 1) v += cells[b];
    if (nin > 2) v += cells[c];
    cells[out] = cells[out] * 3 + v;
}

static void wait_for(_Atomic int *open)
{
    while (!atomic_load(open)) usleep(1000);
}
#pragma omp end declare target

/* @x the host's cells, whose addresses are the dependences; @d the device's. */
static void submit(const struct workload *w, uint32_t i, uint64_t *x, uint64_t *d)
{
    const struct work *t = &w->work[i];
    uint32_t s = w->stride, nin = t->nin, a = t->in[0] * s, b = t->in[1] * s, c = t->in[2] * s, o = t->out * s;
    uint64_t v = i + 1;
    switch (nin) {
    case 0:
#pragma omp target nowait depend(inout : x[o]) is_device_ptr(d)
        update(d, v, nin, a, b, c, o);
        break;
    case 1:
#pragma omp target nowait depend(in : x[a]) depend(inout : x[o]) is_device_ptr(d)
        update(d, v, nin, a, b, c, o);
        break;
    case 2:
#pragma omp target nowait depend(in : x[a], x[b]) depend(inout : x[o]) is_device_ptr(d)
        update(d, v, nin, a, b, c, o);
        break;
    default:
#pragma omp target nowait depend(in : x[a], x[b], x[c]) depend(inout : x[o]) is_device_ptr(d)
        update(d, v, nin, a, b, c, o);
    }
}

static void run(struct workload *w, int repeats, int hold)
{
    int device = omp_get_default_device(), host = omp_get_initial_device();
    size_t bytes = (size_t)w->ncells * w->stride * 8;
    uint64_t *x = w->cells, *d = omp_target_alloc(bytes, device);
    _Atomic int open = 0, *gate = &open;
    if (d == NULL) exit(1);
    w->base_kb = workload_rss_kb();
    for (int r = 0; r < repeats; r++) {
        workload_clear(w);
        atomic_store(&open, 0);
        omp_target_memcpy(d, x, bytes, 0, 0, device, host);
#pragma omp parallel num_threads(2)
#pragma omp master
        {
            double start = workload_now();
            if (hold && r == 1) {
#pragma omp target nowait depend(inout : x[0]) is_device_ptr(gate)
                wait_for(gate);
            }
            for (uint32_t i = 0; i < w->n; i++) submit(w, i, x, d);
            w->submit[r] = workload_now() - start;
            atomic_store(&open, 1);
#pragma omp taskwait
            w->total[r] = workload_now() - start;
        }
    }
    omp_target_memcpy(x, d, bytes, 0, 0, host, device);
    omp_target_free(d, device);
    workload_report(w, "target tasks", repeats);
}

enum { CELLS = 128 };
static double cells[CELLS];

static double median(double *v, int n)
{
    qsort(v, (size_t)n, sizeof *v, workload_compare);
    return v[n / 2];
}

static void data(uint32_t n, int repeats)
{
    double v[3][WORKLOAD_REPEATS];
    for (int r = 0; r < repeats; r++) {
        double start = workload_now();
        for (uint32_t i = 0; i < n; i++) {
#pragma omp target enter data map(to : cells)
#pragma omp target exit data map(from : cells)
        }
        v[0][r] = (workload_now() - start) / n * 1e9;
#pragma omp target enter data map(to : cells)
        start = workload_now();
        for (uint32_t i = 0; i < n; i++) {
#pragma omp target update to(cells)
#pragma omp target update from(cells)
        }
        v[1][r] = (workload_now() - start) / n * 1e9;
        start = workload_now();
#pragma omp parallel num_threads(2)
#pragma omp master
        for (uint32_t i = 0; i < n; i++) {
#pragma omp target update to(cells) nowait depend(inout : cells[0])
#pragma omp target update from(cells) nowait depend(inout : cells[0])
        }
        v[2][r] = (workload_now() - start) / n * 1e9;
#pragma omp target exit data map(from : cells)
    }
    printf("data: enter+exit 1 KiB %.0f ns a pair, update to+from %.0f, the same with nowait depend %.0f\n",
           median(v[0], repeats), median(v[1], repeats), median(v[2], repeats));
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "chain";
    int n = argc > 2 ? atoi(argv[2]) : 20000, repeats = argc > 3 ? atoi(argv[3]) : 6, hold = argc > 4;
    struct workload w;
    if (n < 1 || repeats < 2 || repeats > WORKLOAD_REPEATS) return 2;
    if (omp_get_num_devices() < 1) return 77;
    if (strcmp(name, "data") == 0) {
        data((uint32_t)n, repeats);
        return 0;
    }
    if (workload_make(&w, name, (uint32_t)n)) return 2;
    run(&w, repeats, hold);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_TESTS_GENERATE_DRIVER_H
#define WEIR_TESTS_GENERATE_DRIVER_H

/*
 * What a generated program needs beside its graphs: the operations on cells, and who runs the graphs. tests/generate/
 * generate.c has the same operations for its sequential run. Environment: see tests/openmp/task_check.h.
 */

#include "task_check.h"

enum { LENGTH = 4 };

#pragma omp begin declare target
static inline unsigned sum(const unsigned *a)
{
    unsigned s = 0;
    for (int e = 0; e < LENGTH; e++) s = s * 5u + a[e];
    return s;
}

static inline void put_inout(unsigned *a, unsigned s)
{
    for (int e = 0; e < LENGTH; e++) a[e] = a[e] * 3u + s + (unsigned)e;
}

static inline void put_out(unsigned *a, unsigned s)
{
    for (int e = 0; e < LENGTH; e++) a[e] = s * 7u + (unsigned)e;
}

/* In any order, but one at a time. */
static inline void put_mutex(unsigned *a, unsigned s, unsigned z)
{
    for (int e = 0; e < LENGTH; e++) {
        unsigned before = __atomic_load_n(&a[e], __ATOMIC_RELAXED);
        if (!e) nap(z);
        __atomic_store_n(&a[e], before + s * 11u + (unsigned)e, __ATOMIC_RELAXED);
    }
}

/* Elements of one group are different. */
static inline void put_set(unsigned *a, int e, unsigned s)
{
    a[e] = a[e] * 3u + s;
}
#pragma omp end declare target

struct graph {
    const char *name;
    void (*run)(void);
    int needs_team; /* libomp is right about it in a team only */
};

static const char *current, *context;

static inline void expect(const char *what, const unsigned *got, const unsigned *want, int n)
{
    for (int i = 0; i < n; i++) {
        if (got[i] == want[i]) continue;
        if (!__atomic_fetch_add(&failures, 1, __ATOMIC_RELAXED)) {
            printf("graph %s, %s: %s[%d] is %u, not %u\n", current, context, what, i, got[i], want[i]);
        }
        return;
    }
}

static inline void run_in_team(const struct graph *g, int threads)
{
    context = threads == 1 ? "team of 1" : threads == 2 ? "team of 2" : "team of 4";
#pragma omp parallel num_threads(threads)
#pragma omp single
    g->run();
}

/* Each graph outside parallel regions, in teams of three sizes, as a task, and by all threads at once. */
static inline int run_graphs(const struct graph *graphs, int n)
{
    for (int i = 0; i < n * rounds(1); i++) {
        const struct graph *g = &graphs[i % n];
        current = g->name;
        context = "serial";
        if (strict() || !g->needs_team) {
            g->run();
            run_in_team(g, 1);
        }
        run_in_team(g, 2);
        run_in_team(g, 4);
        context = "task";
#pragma omp parallel num_threads(3)
#pragma omp single
        for (int k = 0; k < 2; k++) {
#pragma omp task
            g->run();
        }
        context = "all threads";
#pragma omp parallel num_threads(3)
        g->run();
    }
    return finish();
}

#endif

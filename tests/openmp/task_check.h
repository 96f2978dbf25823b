/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_TESTS_OPENMP_TASK_CHECK_H
#define WEIR_TESTS_OPENMP_TASK_CHECK_H

/*
 * For the programs about tasks. Each task applies one operation to a cell in host memory; whatever the order of tasks
 * that their dependences leave open, the cells end as if the tasks had run one after another as written. model() is
 * that run. Environment: REPEAT (how many rounds), SEED (of the random delays in kernels and tasks), STRICT.
 */

#include <sched.h>

#include "check.h"

#define PRAGMA(...) _Pragma(#__VA_ARGS__)

/* What a task does, named like the dependence that it needs. */
enum { IN, OUT, INOUT, MUTEX, SET, KINDS };

static unsigned draws;

static inline int rounds(int normal)
{
    const char *text = getenv("REPEAT");
    int n = text ? atoi(text) : 0;
    return n > 0 ? n : normal;
}

/* With STRICT set, the programs do more: what libomp gets wrong when weir does not stand before it. */
static inline int strict(void)
{
    return getenv("STRICT") != NULL;
}

/* A random number. Host code only, any thread. */
static inline unsigned draw(void)
{
    static unsigned seed;
    if (!__atomic_load_n(&seed, __ATOMIC_RELAXED)) {
        const char *text = getenv("SEED");
        __atomic_store_n(&seed, 2u * (text ? (unsigned)atoi(text) : 1u) + 1, __ATOMIC_RELAXED);
    }
    unsigned z = (__atomic_add_fetch(&draws, 1, __ATOMIC_RELAXED) + seed * 7919u) * 0x9e3779b9u;
    z = (z ^ z >> 16) * 0x85ebca6bu;
    z = (z ^ z >> 13) * 0xc2b2ae35u;
    return z ^ z >> 16;
}

#pragma omp begin declare target
/* Up to 200 us, by a number from draw(); most often nothing or a yield. */
static inline void nap(unsigned z)
{
    if (z % 4 == 0) usleep(z / 4 % 200);
    if (z % 4 == 1) sched_yield();
}

/* Apply @kind to the cell, or read it into *@seen. */
static inline void touch(uintptr_t at, int kind, unsigned id, unsigned z, uintptr_t seen)
{
    unsigned *cell = (unsigned *)at;
    nap(z);
    if (kind == SET) {
        __atomic_add_fetch(cell, id * 5u, __ATOMIC_RELAXED);
        return;
    }
    unsigned before = __atomic_load_n(cell, __ATOMIC_RELAXED);
    nap(z >> 8);
    if (kind == IN) __atomic_store_n((unsigned *)seen, before, __ATOMIC_RELAXED);
    if (kind == OUT) __atomic_store_n(cell, id * 7u, __ATOMIC_RELAXED);
    if (kind == INOUT) __atomic_store_n(cell, before * 3u + id, __ATOMIC_RELAXED);
    if (kind == MUTEX) __atomic_store_n(cell, before + id * 11u, __ATOMIC_RELAXED);
}
#pragma omp end declare target

/* A task that touches the cell, with the dependence for it: in, else inout. @device HOST: one of the host. */
enum { HOST = -1 };
static inline void touch_in_task(unsigned *cell, int kind, unsigned id, unsigned z, unsigned *seen, int device)
{
    uintptr_t at = (uintptr_t)cell, to = (uintptr_t)seen;
    if (device == HOST && kind == IN) {
#pragma omp task depend(in : cell[0]) firstprivate(at, id, z, to)
        touch(at, IN, id, z, to);
    } else if (device == HOST) {
#pragma omp task depend(inout : cell[0]) firstprivate(at, kind, id, z, to)
        touch(at, kind, id, z, to);
    } else if (kind == IN) {
#pragma omp target nowait depend(in : cell[0]) device(device)
        touch(at, IN, id, z, to);
    } else {
#pragma omp target nowait depend(inout : cell[0]) device(device)
        touch(at, kind, id, z, to);
    }
}

static inline void model(unsigned *cell, int kind, unsigned id, unsigned *seen)
{
    if (kind == IN) *seen = *cell;
    if (kind == OUT) *cell = id * 7u;
    if (kind == INOUT) *cell = *cell * 3u + id;
    if (kind == MUTEX) *cell += id * 11u;
    if (kind == SET) *cell += id * 5u;
}

/* @all by one thread outside of any region, by one of a team, and by each of a team of @threads; @most: as of rounds().
 */
static inline int everywhere(void (*all)(void), int most, int threads)
{
    for (int round = 0; round < rounds(most); round++) {
        all();
#pragma omp parallel num_threads(4)
#pragma omp single
        all();
#pragma omp parallel num_threads(threads)
        all();
    }
    return finish();
}

#endif

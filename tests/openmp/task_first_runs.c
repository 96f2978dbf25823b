/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Tasks of code that has not been run yet, behind what is not complete. Whether such code offloads is found out by its
 * first run; until then none of it may come before its predecessors, wait for those of another task, or be lost.
 * Each region below is there many times, so that there is something to find out many times.
 */
// run: OMP_TARGET_OFFLOAD=MANDATORY => PASS
// run: OMP_NUM_THREADS=1 => PASS
#include "task_check.h"

enum { CELLS = 4, TASKS = 24 };

struct state {
    int flag[2];
    unsigned gate[2], cell[CELLS], want[CELLS];
};

/* On a device or, by the other version of the region, on the host. */
#define REGION(n)                                                                                                      \
    static void region_##n(unsigned *gate, unsigned *cell, unsigned id, unsigned z, int kind, int offload)             \
    {                                                                                                                  \
        uintptr_t at = (uintptr_t)cell;                                                                                \
        if (kind == MUTEX) {                                                                                           \
            PRAGMA(omp target nowait depend(in : gate[0]) depend(mutexinoutset : cell[0]) if (target : offload))       \
            touch(at, MUTEX, id, z, 0);                                                                                \
        } else {                                                                                                       \
            PRAGMA(omp target nowait depend(in : gate[0]) depend(inout : cell[0]) if (target : offload))               \
            touch(at, INOUT, id, z, 0);                                                                                \
        }                                                                                                              \
    }
#define FOUR(n)    REGION(n##0) REGION(n##1) REGION(n##2) REGION(n##3)
#define SIXTEEN(n) FOUR(n##0) FOUR(n##1) FOUR(n##2) FOUR(n##3)
#define NAMES4(n)  region_##n##0, region_##n##1, region_##n##2, region_##n##3
#define NAMES16(n) NAMES4(n##0), NAMES4(n##1), NAMES4(n##2), NAMES4(n##3)

SIXTEEN(1)
SIXTEEN(2)
SIXTEEN(3)
static void (*const regions[])(unsigned *, unsigned *, unsigned, unsigned, int, int) = {NAMES16(1), NAMES16(2),
                                                                                      NAMES16(3)};
enum { REGIONS = sizeof regions / sizeof regions[0] };

static void hold(struct state *s, int i)
{
    uintptr_t flag = (uintptr_t)&s->flag[i];
    unsigned *gate = &s->gate[i];
#pragma omp target nowait depend(inout : gate[0])
    wait_flag(flag, 1);
}

static void check(const struct state *s)
{
    for (int c = 0; c < CELLS; c++) CHECK(s->cell[c] == s->want[c]);
}

/* All behind one kernel, or some, with host tasks in between. @odds: of 4 tasks so many on the host. */
static void mixed(int region, unsigned odds)
{
    struct state s;
    memset(&s, 0, sizeof s);
    hold(&s, 0);
    for (unsigned id = 1; id <= TASKS; id++) {
        int c = (int)(draw() % CELLS);
        unsigned *gate = &s.gate[draw() % 3 == 0];
        int kind = draw() % 3 ? INOUT : MUTEX;
        model(&s.want[c], kind, id, NULL);
        if (draw() % 6 == 0)
            touch_in_task(&s.cell[c], kind, id, draw(), NULL, HOST);
        else
            regions[region](gate, &s.cell[c], id, draw(), kind, draw() % 4 >= odds);
    }
    nap(draw());
    add_flag((uintptr_t)&s.flag[0]);
#pragma omp taskwait
    check(&s);
}

/* The first run is held; a second task of the same code, behind something else, does not wait for that. */
static void unrelated(int region, int offload)
{
    struct state s;
    memset(&s, 0, sizeof s);
    unsigned *second = &s.cell[1];
    hold(&s, 0);
    hold(&s, 1);
    for (unsigned i = 0; i < 2; i++) {
        regions[region](&s.gate[i], &s.cell[i], 5 + i, draw(), INOUT, offload);
        model(&s.want[i], INOUT, 5 + i, NULL);
    }
    add_flag((uintptr_t)&s.flag[1]);
#pragma omp taskwait depend(in : second[0])
    CHECK(s.cell[1] == s.want[1]);
    CHECK(__atomic_load_n(&s.cell[0], __ATOMIC_RELAXED) == 0);
    add_flag((uintptr_t)&s.flag[0]);
#pragma omp taskwait
    check(&s);
}

static void all(int from)
{
    for (int i = 0; i < REGIONS / 2; i++) {
        if (i % 4 == 3)
            unrelated(from + i, i % 8 == 3);
        else
            mixed(from + i, (unsigned)i % 5);
    }
}

int main(void)
{
    struct state s;
    memset(&s, 0, sizeof s);
    s.flag[0] = s.flag[1] = 1;
    hold(&s, 0);
#pragma omp taskwait
    for (int round = 0; round < rounds(3); round++) {
        all(0);
#pragma omp parallel num_threads(4)
#pragma omp single
        all(REGIONS / 2);
#pragma omp parallel num_threads(4)
        mixed(REGIONS / 2 + omp_get_thread_num(), 0);
    }
    return finish();
}

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The end of a taskgroup waits for the target tasks in it, for those of their children too, and for no others. */
// run: OMP_TARGET_OFFLOAD=MANDATORY => PASS
// run: OMP_NUM_THREADS=1 => PASS
// run: OMP_WAIT_POLICY=active => PASS
// preload only: OMP_THREAD_LIMIT=4 => PASS
#include "task_check.h"

enum { CELLS = 4, ALL = (1 << CELLS) - 1 };

static unsigned last_id = 1;

struct state {
    unsigned cell[CELLS], want[CELLS];
};

static void check(struct state *s, unsigned cells)
{
    for (int c = 0; c < CELLS; c++) {
        if (cells >> c & 1) CHECK(__atomic_load_n(&s->cell[c], __ATOMIC_RELAXED) == s->want[c]);
    }
}

/* Target and host tasks, one after another on each cell. Returns the set of the cells. */
static unsigned links(struct state *s, int n)
{
    unsigned cells = 0;
    for (int i = 0; i < n; i++) {
        int c = (int)(draw() % CELLS);
        unsigned id = __atomic_add_fetch(&last_id, 1, __ATOMIC_RELAXED), z = draw(), *cell = &s->cell[c];
        uintptr_t at = (uintptr_t)cell;
        cells |= 1u << c;
        model(&s->want[c], INOUT, id, NULL);
        if (draw() % 4) {
#pragma omp target nowait depend(inout : cell[0])
            touch(at, INOUT, id, z, 0);
        } else {
#pragma omp task depend(inout : cell[0]) firstprivate(at, id, z)
            touch(at, INOUT, id, z, 0);
        }
    }
    return cells;
}

/* Groups in groups: the end of the inner one waits for what its own tasks depend on and for nothing else. */
static unsigned nested(struct state *s, int depth)
{
    unsigned cells = 0;
#pragma omp taskgroup
    {
        cells |= links(s, 5);
        if (depth) cells |= nested(s, depth - 1);
        cells |= links(s, 5);
    }
    check(s, cells);
    return cells;
}

/* Tasks in the group have target tasks and tasks with target tasks, and wait for none of them. */
static void descendants(void)
{
    struct state s[8];
    memset(s, 0, sizeof s);
#pragma omp taskgroup
    for (int i = 0; i < 4; i++) {
#pragma omp task shared(s) firstprivate(i)
        {
            links(&s[i], 6);
#pragma omp task shared(s) firstprivate(i)
            links(&s[4 + i], 6);
        }
    }
    for (int i = 0; i < 8; i++) check(&s[i], ALL);
}

/* Without dependences, and with mapped results. */
static void independent(void)
{
    int out[12];
#pragma omp taskgroup
    for (int i = 0; i < 12; i++) {
        unsigned z = draw();
#pragma omp target nowait map(from : out[i : 1]) device(i % 4)
        {
            nap(z);
            out[i] = i * i;
        }
    }
    for (int i = 0; i < 12; i++) CHECK(out[i] == i * i);
}

/* The kernel before the group ends only after the group has ended. */
static void older_tasks_are_not_waited_for(void)
{
    int gate = 0, passed = 0;
    unsigned x = 1, z = draw();
    uintptr_t flag = (uintptr_t)&gate, at = (uintptr_t)&x;
#pragma omp target nowait map(from : passed)
    passed = wait_flag(flag, 1);
#pragma omp taskgroup
    {
#pragma omp target nowait depend(inout : x)
        touch(at, INOUT, 5, z, 0);
#pragma omp target nowait depend(inout : x)
        touch(at, INOUT, 6, z, 0);
    }
    CHECK(__atomic_load_n(&x, __ATOMIC_RELAXED) == 30);
    add_flag(flag);
#pragma omp taskwait
    CHECK(passed);
}

static void all(void)
{
    struct state s;
    memset(&s, 0, sizeof s);
    nested(&s, 3);
    descendants();
    independent();
    older_tasks_are_not_waited_for();
}

int main(void)
{
    for (int round = 0; round < rounds(5); round++) {
        all();
#pragma omp parallel num_threads(4)
#pragma omp single
        all();
#pragma omp parallel num_threads(16)
        nested(&(struct state){{0}, {0}}, 2);
    }
    return finish();
}

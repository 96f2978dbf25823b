/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Tasks that do not wait in a queue: if(0), final, depend without nowait, taskwait depend; and untied, priority,
 * cancel. Libomp crashes or hangs on untied tasks beside, and final tasks around, deferred target tasks: only STRICT
 * tries these.
 */
// run: OMP_TARGET_OFFLOAD=MANDATORY => PASS
// run: OMP_TARGET_OFFLOAD=DISABLED OMP_CANCELLATION=true => PASS
// preload only: OMP_CANCELLATION=true => PASS
// not yet: OMP_CANCELLATION=true as the drop-in, where libomp does not come back to a cancelled task's handle
// run: OMP_NUM_THREADS=1 OMP_MAX_TASK_PRIORITY=9 => PASS
// preload only: OMP_THREAD_LIMIT=1 OMP_CANCELLATION=true => PASS
// preload only: STRICT=1 => PASS
// preload only: STRICT=1 OMP_NUM_THREADS=1 => PASS
#include "task_check.h"

enum { CELLS = 3, TASKS = 60 };

struct chain {
    unsigned cell[CELLS], want[CELLS];
};

/* The generating task looks at the cell right behind an undeferred task. */
static void look(struct chain *g, int c, int complete)
{
    if (complete) CHECK(__atomic_load_n(&g->cell[c], __ATOMIC_RELAXED) == g->want[c]);
}

static void host_form(unsigned *cell, unsigned id, unsigned z, int form)
{
    uintptr_t at = (uintptr_t)cell;
    switch (form) {
    case 0:
#pragma omp task if (0) depend(inout : cell[0]) firstprivate(at, id, z)
        touch(at, INOUT, id, z, 0);
        break;
    case 1:
        if (!strict()) return host_form(cell, id, z, 4);
#pragma omp task untied priority(5) depend(inout : cell[0]) firstprivate(at, id, z)
        {
            nap(z);
#pragma omp taskyield
            touch(at, INOUT, id, z, 0);
        }
        break;
    case 2:
        if (!strict()) return host_form(cell, id, z, 0);
#pragma omp task final(1) depend(inout : cell[0]) firstprivate(cell, at, id, z)
        {
            int x = 0; /* children of a final task run at once */
#pragma omp target nowait depend(out : x) map(from : x)
            x = 1;
#pragma omp target nowait depend(inout : x) map(tofrom : x)
            x += 2;
#pragma omp task shared(x) depend(in : x)
            CHECK(x == 3);
#pragma omp target nowait depend(inout : x)
            touch(at, INOUT, id, z, 0);
#pragma omp taskwait
        }
        break;
    case 3: {
#pragma omp taskwait depend(inout : cell[0])
        touch(at, INOUT, id, z, 0);
    } break;
    default:
#pragma omp task priority(7) depend(inout : cell[0]) firstprivate(at, id, z)
        touch(at, INOUT, id, z, 0);
    }
}

static void target_form(unsigned *cell, unsigned id, unsigned z, int form)
{
    uintptr_t at = (uintptr_t)cell;
    int no = z > 0 ? 0 : 1, device = omp_get_initial_device();
    switch (form) {
    case 0:
#pragma omp target depend(inout : cell[0])
        touch(at, INOUT, id, z, 0);
        break;
    case 1:
#pragma omp target nowait depend(inout : cell[0]) if (0)
        touch(at, INOUT, id, z, 0);
        break;
    case 2:
#pragma omp target nowait depend(inout : cell[0]) if (no)
        touch(at, INOUT, id, z, 0);
        break;
    case 3:
#pragma omp target nowait depend(inout : cell[0]) device(device)
        touch(at, INOUT, id, z, 0);
        break;
    case 4:
#pragma omp target depend(inout : cell[0]) if (0)
        touch(at, INOUT, id, z, 0);
        break;
    default:
#pragma omp target nowait depend(inout : cell[0])
        touch(at, INOUT, id, z, 0);
    }
}

static void chains(void)
{
    struct chain g = {{0}, {0}};
    for (unsigned i = 0; i < TASKS; i++) {
        int c = (int)(draw() % CELLS), form = (int)(draw() % 5);
        unsigned z = draw() | 1;
        model(&g.want[c], INOUT, i, NULL);
        if (draw() % 2) {
            host_form(&g.cell[c], i, z, form);
            look(&g, c, form == 0 || form == 3 || (form == 2 && !strict()));
        } else {
            form += (int)(draw() % 2);
            target_form(&g.cell[c], i, z, form);
            look(&g, c, form == 0 || form == 4);
        }
    }
#pragma omp taskwait
    for (int c = 0; c < CELLS; c++) look(&g, c, 1);
}

/* Mapped data is home after each form that waits. */
static void mapped(void)
{
    int a[16] = {0}, no = draw() == 0;
    for (int i = 0; i < 6; i++) {
        unsigned z = draw();
#pragma omp target nowait map(tofrom : a) depend(inout : a)
        {
            nap(z);
            for (int k = 0; k < 16; k++) a[k] = a[k] * 3 + k;
        }
        if (i % 3 == 0) {
#pragma omp target map(tofrom : a) depend(inout : a)
            a[15]++;
        } else if (i % 3 == 1) {
#pragma omp taskwait depend(inout : a)
            a[15]++;
        } else {
#pragma omp target nowait map(tofrom : a) depend(inout : a) if (no)
            a[15]++;
#pragma omp task if (0) depend(in : a) shared(a)
            CHECK(a[1] == (i == 2 ? 13 : 364));
        }
        int want = 0;
        for (int k = 0; k <= i; k++) want = want * 3 + 15 + 1;
        CHECK(a[15] == want);
    }
#pragma omp taskwait
}

/* Cancelled groups end; what runs in them, runs whole. */
static void cancelled(void)
{
    unsigned started[8] = {0}, ended[8] = {0};
#pragma omp taskgroup
    for (int i = 0; i < 8; i++) {
        unsigned z = draw();
        uintptr_t s = (uintptr_t)&started[i], e = (uintptr_t)&ended[i];
#pragma omp target nowait depend(inout : started[i])
        {
            touch(s, OUT, 1, z, 0);
            touch(e, OUT, 1, z >> 4, 0);
        }
        unsigned *order = &started[i];
#pragma omp task depend(inout : order[0]) firstprivate(s, e)
        {
            touch(s, INOUT, 1, 3, 0);
#pragma omp cancellation point taskgroup
            touch(e, INOUT, 1, 3, 0);
        }
        if (i == 4) {
#pragma omp task
            {
#pragma omp cancel taskgroup
            }
        }
    }
    for (int i = 0; i < 8; i++) {
        CHECK(started[i] == 0 || started[i] == 1 || started[i] == 7 || started[i] == 22);
        CHECK(ended[i] == 0 || ended[i] == 1 || ended[i] == 7 || ended[i] == 22);
        if (!omp_get_cancellation()) CHECK(started[i] == 22 && ended[i] == 22);
        if (started[i] == 7) CHECK(ended[i] == 7);
    }
}

int main(void)
{
    for (int round = 0; round < rounds(5); round++) {
        chains();
        mapped();
#pragma omp parallel num_threads(4)
        {
            chains();
            mapped();
#pragma omp single
            for (int i = 0; i < 5; i++) cancelled();
        }
    }
    return finish();
}

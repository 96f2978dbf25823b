/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Host tasks and target tasks alternate at random on eight addresses, with dependences of every kind and spelling.
 * Only with STRICT do some exclude each other by mutexinoutset: libomp alone runs a host task outside of parallel regions
 * at once, whatever target task excludes it, and now and then hangs with such target tasks.
 */
// run: OMP_TARGET_OFFLOAD=MANDATORY => PASS
// run: OMP_TARGET_OFFLOAD=DISABLED => PASS
// run: LIBOMP_USE_HIDDEN_HELPER_TASK=0 => PASS
// run: OMP_WAIT_POLICY=active => PASS
// preload only: OMP_THREAD_LIMIT=1 STRICT=1 => PASS
// preload only: STRICT=1 => PASS
// preload only: LIBOMP_USE_HIDDEN_HELPER_TASK=0 STRICT=1 => PASS
#include "task_check.h"

enum { CELLS = 8, TASKS = 200, MOST = 3 };

struct step {
    int n, cell[MOST], kind[MOST]; /* n 0: omp_all_memory */
    unsigned id, z, seen[MOST], want[MOST];
};

struct graph {
    unsigned cell[CELLS], want[CELLS];
    omp_depend_t object[CELLS][KINDS];
    struct step step[TASKS];
};

#pragma omp begin declare target
static void run(uintptr_t cells, uintptr_t at)
{
    struct step *s = (struct step *)at;
    unsigned *cell = (unsigned *)cells;
    if (!s->n) {
        for (int c = 0; c < CELLS; c++) touch((uintptr_t)&cell[c], INOUT, s->id + (unsigned)c, c ? 3 : s->z, 0);
        return;
    }
    for (int i = 0; i < s->n; i++) {
        touch((uintptr_t)&cell[s->cell[i]], s->kind[i], s->id, i ? 3 : s->z, (uintptr_t)&s->seen[i]);
    }
}
#pragma omp end declare target

static void objects(struct graph *g, int make)
{
    for (int c = 0; c < CELLS; c++) {
        unsigned *cell = &g->cell[c];
        omp_depend_t *o = g->object[c];
        for (int k = 0; k < KINDS && !make; k++) {
#pragma omp depobj(o[k]) destroy
        }
        if (!make) continue;
#pragma omp depobj(o[IN]) depend(in : cell[0])
#pragma omp depobj(o[OUT]) depend(out : cell[0])
#pragma omp depobj(o[INOUT]) depend(inout : cell[0])
#pragma omp depobj(o[MUTEX]) depend(mutexinoutset : cell[0])
#pragma omp depobj(o[SET]) depend(inoutset : cell[0])
    }
}

/* One task with the given clause, for the host or for a device. */
#define BOTH(...)                                                                                                      \
    do {                                                                                                               \
        if (host) {                                                                                                    \
            PRAGMA(omp task depend(__VA_ARGS__) firstprivate(cells, at))                                               \
            run(cells, at);                                                                                            \
        } else {                                                                                                       \
            PRAGMA(omp target nowait depend(__VA_ARGS__))                                                              \
            run(cells, at);                                                                                            \
        }                                                                                                              \
    } while (0)

static void one_address(struct graph *g, struct step *s, int host)
{
    uintptr_t cells = (uintptr_t)g->cell, at = (uintptr_t)s;
    unsigned *cell = &g->cell[s->cell[0]];
    if (s->kind[0] == IN) BOTH(in : cell[0]);
    if (s->kind[0] == OUT) BOTH(out : cell[0]);
    if (s->kind[0] == INOUT) BOTH(inout : cell[0]);
    if (s->kind[0] == MUTEX) BOTH(mutexinoutset : cell[0]);
    if (s->kind[0] == SET) BOTH(inoutset : cell[0]);
}

static void more_addresses(struct graph *g, struct step *s, int host)
{
    uintptr_t cells = (uintptr_t)g->cell, at = (uintptr_t)s;
    omp_depend_t o[MOST];
    for (int i = 0; i < s->n; i++) o[i] = g->object[s->cell[i]][s->kind[i]];
    if (s->n == 1) BOTH(depobj : o[0]);
    if (s->n == 2) BOTH(depobj : o[0], o[1]);
    if (s->n == 3) BOTH(depobj : o[0], o[1], o[2]);
}

/* Two addresses or three, all read or all written, in an iterator. */
static void iterated(struct graph *g, struct step *s, int host)
{
    uintptr_t cells = (uintptr_t)g->cell, at = (uintptr_t)s;
    unsigned *cell = g->cell;
    int *list = s->cell, n = s->n;
    if (s->kind[0] == IN) BOTH(iterator(k = 0 : n), in : cell[list[k]]);
    if (s->kind[0] == INOUT) BOTH(iterator(k = 0 : n), inout : cell[list[k]]);
}

static void everything(struct graph *g, struct step *s, int host)
{
    uintptr_t cells = (uintptr_t)g->cell, at = (uintptr_t)s;
    BOTH(inout : omp_all_memory);
}

static void choose(struct graph *g, struct step *s, unsigned id, int form)
{
    s->id = id, s->z = draw();
    s->n = form == 0 ? 0 : form < 4 ? 1 : 1 + (int)(draw() % MOST);
    for (int c = 0; c < CELLS && !s->n; c++) model(&g->want[c], INOUT, id + (unsigned)c, NULL);
    int first = (int)(draw() % CELLS), kind = draw() % 2 ? IN : INOUT;
    for (int i = 0; i < s->n; i++) {
        s->cell[i] = (first + 3 * i) % CELLS;
        s->kind[i] = form > 6 ? kind : (int)(draw() % KINDS);
        if (s->kind[i] == MUTEX && !strict()) s->kind[i] = INOUT;
        model(&g->want[s->cell[i]], s->kind[i], id, &s->want[i]);
    }
}

static void graph(struct graph *g)
{
    memset(g, 0, sizeof *g);
    objects(g, 1);
    for (int i = 0; i < TASKS; i++) {
        struct step *s = &g->step[i];
        int form = (int)(draw() % 64 ? 1 + draw() % 8 : 0), host = draw() % 2;
        choose(g, s, (unsigned)i + 1, form);
        if (form == 0) everything(g, s, host);
        if (form > 0 && form < 4) one_address(g, s, host);
        if (form > 3 && form < 7) more_addresses(g, s, host);
        if (form > 6) iterated(g, s, host);
    }
#pragma omp taskwait
    CHECK(!memcmp(g->cell, g->want, sizeof g->cell));
    for (int i = 0; i < TASKS; i++) CHECK(!memcmp(g->step[i].seen, g->step[i].want, sizeof g->step[i].seen));
    objects(g, 0);
}

int main(void)
{
    static struct graph graphs[4];
    for (int round = 0; round < rounds(3); round++) {
        graph(&graphs[0]);
#pragma omp parallel num_threads(4)
#pragma omp single
        graph(&graphs[0]);
#pragma omp parallel num_threads(4)
        graph(&graphs[omp_get_thread_num()]);
    }
    return finish();
}

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Foreign work between two interop constructs is ordered by their dependences: behind tasks of the host and target
 * tasks that come before the first one, in front of those that come behind the second one, with and without nowait.
 * First every combination by itself, then many at random, several objects on several devices.
 */
// flags: -ldl
// run: OMP_TARGET_OFFLOAD=MANDATORY => PASS
// preload only: WEIR_HOST_DELAY_US=300 => PASS
// preload only: WEIR_STREAMS=2 WEIR_HOST_DEVICES=2 => PASS
// preload only: OMP_THREAD_LIMIT=1 => PASS
#include "foreign.h"

enum { CELLS = 6, STEPS = 120, OBJECTS = 4, MOST_WORK = 3, INIT = 0, USE, DESTROY };

struct step {
    unsigned seen[MOST_WORK + 1], want[MOST_WORK + 1];
    struct foreign work[MOST_WORK];
};

struct graph {
    unsigned cell[CELLS], want[CELLS];
    struct step step[STEPS];
    omp_interop_t object[OBJECTS];
    unsigned ids;
};

#define CONSTRUCT(clause)                                                                                              \
    do {                                                                                                               \
        if (action == INIT) {                                                                                          \
            PRAGMA(omp interop init(targetsync : o) device(device) clause)                                             \
        } else if (action == USE) {                                                                                    \
            PRAGMA(omp interop use(o) clause)                                                                          \
        } else {                                                                                                       \
            PRAGMA(omp interop destroy(o) clause)                                                                      \
        }                                                                                                              \
    } while (0)
#define EITHER(...)                                                                                                    \
    do {                                                                                                               \
        if (nowait)                                                                                                    \
            CONSTRUCT(depend(__VA_ARGS__) nowait);                                                                     \
        else                                                                                                           \
            CONSTRUCT(depend(__VA_ARGS__));                                                                            \
    } while (0)

static void construct(omp_interop_t *object, int device, int action, int kind, int nowait, unsigned *cell)
{
    omp_interop_t o = *object;
    if (kind == IN) EITHER(in : cell[0]);
    if (kind == OUT) EITHER(out : cell[0]);
    if (kind == INOUT) EITHER(inout : cell[0]);
    if (kind == MUTEX) EITHER(mutexinoutset : cell[0]);
    if (kind == SET) EITHER(inoutset : cell[0]);
    *object = o;
    CHECK(action == DESTROY ? o == omp_interop_none : o != omp_interop_none);
}

/* An OpenMP task on one cell. */
static void task(struct graph *g, struct step *s, int c, int kind, int host)
{
    unsigned id = ++g->ids, z = draw();
    int device = (int)(draw() % (unsigned)(omp_get_num_devices() ? omp_get_num_devices() : 1));
    model(&g->want[c], kind, id, &s->want[0]);
    touch_in_task(&g->cell[c], kind, id, z, &s->seen[0], host ? HOST : device);
}

static void foreign(struct graph *g, struct step *s, omp_interop_t object, int c, int kind, int n)
{
    for (int i = 0; i < n; i++) {
        s->work[i] = (struct foreign){&g->cell[c], &s->seen[1 + i], ++g->ids, draw(), kind};
        model(&g->want[c], kind, s->work[i].id, &s->want[1 + i]);
        foreign_enqueue(object, foreign_touch, &s->work[i]);
    }
}

static void begin(struct graph *g)
{
    memset(g, 0, sizeof *g);
}

static void end(struct graph *g)
{
#pragma omp taskwait
    CHECK(!memcmp(g->cell, g->want, sizeof g->cell));
    for (int i = 0; i < STEPS; i++) CHECK(!memcmp(g->step[i].seen, g->step[i].want, sizeof g->step[i].seen));
}

/* The operation that a dependence allows. MUTEX: the constructs exclude others, the work between them does not. */
static int operation_of(int kind)
{
    return kind == MUTEX ? INOUT : kind;
}

/* Predecessor, construct, foreign work, construct, successor. */
static void combination(struct graph *g, unsigned bits, int kind)
{
    int init = bits & 1, destroy = bits & 2, first_nowait = !!(bits & 4), second_nowait = !!(bits & 8),
        c = (int)draw() & 3;
    omp_interop_t o = omp_interop_none;
    begin(g);
    if (!init) construct(&o, 0, INIT, IN, 1, &g->cell[5]);
    task(g, &g->step[0], c, INOUT, !!(bits & 16));
    construct(&o, 0, init ? INIT : USE, kind, first_nowait, &g->cell[c]);
    foreign(g, &g->step[1], o, c, operation_of(kind), 2);
    construct(&o, 0, destroy ? DESTROY : USE, kind, second_nowait, &g->cell[c]);
    task(g, &g->step[2], c, INOUT, !!(bits & 32));
    task(g, &g->step[3], c, IN, !!(bits & 32));
    if (!destroy) construct(&o, 0, DESTROY, IN, 1, &g->cell[c]);
    end(g);
}

static void combinations(struct graph *g)
{
    for (unsigned bits = 0; bits < 64; bits++)
        for (int kind = 0; kind < KINDS; kind++) combination(g, bits, kind);
}

static void random_step(struct graph *g, struct step *s)
{
    int c = (int)(draw() % CELLS), kind = (int)(draw() % KINDS), n = omp_get_num_devices();
    if (kind == MUTEX) kind = INOUT;
    if (draw() % 2) {
        task(g, s, c, kind == SET ? INOUT : kind, draw() % 2);
        return;
    }
    omp_interop_t *o = &g->object[draw() % OBJECTS];
    int nowait = draw() % 4 != 0;
    construct(o, (int)(draw() % (unsigned)n), *o == omp_interop_none ? INIT : USE, kind, nowait, &g->cell[c]);
    foreign(g, s, *o, c, kind, (int)(draw() % (MOST_WORK + 1)));
    construct(o, 0, draw() % 3 ? USE : DESTROY, kind, draw() % 4 != 0, &g->cell[c]);
}

static void graph(struct graph *g)
{
    begin(g);
    for (int i = 0; i < STEPS; i++) random_step(g, &g->step[i]);
    for (int i = 0; i < OBJECTS; i++)
        if (g->object[i] != omp_interop_none) construct(&g->object[i], 0, DESTROY, IN, draw() % 2, &g->cell[0]);
    end(g);
}

static void all(void)
{
    struct graph *g = malloc(sizeof *g);
    if (omp_get_thread_num() == 0) combinations(g);
    for (int i = 0; i < 4; i++) graph(g);
    free(g);
}

int main(void)
{
#pragma omp target
    {
    }
    return everywhere(all, 1, 4);
}

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Interop constructs as nodes, under the sanitizers: several generating tasks with objects of their own, tasks of the
 * "host" that an agent completes whenever it likes, target tasks, and foreign work; cells say whether the order was
 * kept. What is libomp's and the shim's is stood in for: a generating task is a scope.
 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <exec/context.h>
#include <exec/work.h>
#include <trace/model.h>
#include <weir/host.h>
#include <weir/trace.h>

#include "done.h"
#include "interop/abi.h"
#include "interop/anchor.h"
#include "interop/interop_object.h"
#include "interop/interop_order.h"
#include "interop/libomp.h"
#include "interop/runtime.h"
#include "interop/shim.h"
#include "interop/siblings.h"

enum { GENERATORS = 3, DEVICES = 2, CELLS = 5, STEPS = 150, OBJECTS = 3 };

/* ---- stand-ins ---- */

static struct weir__runtime runtime;
static struct weir__target targets[DEVICES];
static struct weir__libomp libomp;
static _Atomic int anchors;
static _Thread_local struct weir__siblings *own;
static _Thread_local struct weir__thread thread;

static int no(void)
{
    return 0;
}
const struct weir__libomp *weir__libomp(void)
{
    return &libomp;
}
struct weir__runtime *weir__runtime_peek(void)
{
    return &runtime;
}
struct weir__thread *weir__runtime_thread(void)
{
    return &thread;
}
int weir__runtime_devices(void)
{
    return DEVICES;
}
bool weir__runtime_is_child(void)
{
    return false;
}
bool weir__runtime_in_kernel(void)
{
    return false;
}
int weir__runtime_routine_target(int number, struct weir__target **target_out)
{
    *target_out = &targets[number];
    return WEIR_OK;
}
void weir__fatal(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    abort();
}
bool weir__shim_is_on(void)
{
    return true;
}
void weir__shim_wait_for(struct weir__abi_ident *where, int32_t gtid, int32_t n, const struct weir__abi_depend *list,
                         struct weir_task *after)
{
    struct weir__depends depends;
    (void)where, (void)gtid;
    cr_assert_eq(weir__depends_decode(&depends, n, list, 0, NULL, WEIR__DEPENDS_WAITING), WEIR_OK);
    if (after) weir__depends_after(&depends, after);
    DONE(weir_scope_wait_for(own->scope, depends.at, depends.n));
}
struct weir__siblings *weir__siblings_get(int32_t gtid)
{
    (void)gtid;
    return own;
}
void weir__siblings_leave(struct weir__siblings *siblings)
{
    cr_assert_eq(siblings, own);
}
int weir__depends_decode(struct weir__depends *depends, int32_t n, const struct weir__abi_depend *list,
                         int32_t nnoalias, const struct weir__abi_depend *noalias, enum weir__depends_use use)
{
    (void)nnoalias, (void)noalias, (void)use;
    depends->at = depends->few;
    depends->n = 0;
    for (int32_t i = 0; i < n; i++)
        depends->few[depends->n++] = (struct weir_access){(const void *)list[i].base, 0, list[i].flags};
    return WEIR_OK;
}
void weir__depends_after(struct weir__depends *depends, struct weir_task *task)
{
    depends->few[depends->n++] = (struct weir_access){task, 0, WEIR_ACCESS_AFTER};
}
void weir__depends_fini(struct weir__depends *depends)
{
    (void)depends;
}
struct weir__anchor *weir__anchor_add(struct weir__siblings *siblings, struct weir__abi_ident *where, int32_t gtid)
{
    (void)siblings, (void)where, (void)gtid;
    atomic_fetch_add(&anchors, 1);
    return (struct weir__anchor *)&anchors;
}
void weir__anchor_drop(struct weir__anchor *anchor)
{
    cr_assert_eq((void *)anchor, (void *)&anchors);
    atomic_fetch_sub(&anchors, 1);
}

/* ---- the agent: completes tasks of the host some time ---- */

static struct {
    pthread_mutex_t lock;
    struct weir_task *waiting[GENERATORS * STEPS];
    int n;
    bool stop;
} agent = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void *agent_main(void *arg)
{
    unsigned seed = 5;
    (void)arg;
    for (bool stop = false; !stop;) {
        struct weir_task *task = NULL;
        pthread_mutex_lock(&agent.lock);
        if (agent.n) {
            int i = rand_r(&seed) % agent.n;
            task = agent.waiting[i];
            agent.waiting[i] = agent.waiting[--agent.n];
        } else {
            stop = agent.stop;
        }
        pthread_mutex_unlock(&agent.lock);
        if (task) DONE(weir_task_fulfill(task, 0));
        usleep((unsigned)rand_r(&seed) % 60);
    }
    return NULL;
}

static void agent_complete(struct weir_task *task)
{
    pthread_mutex_lock(&agent.lock);
    agent.waiting[agent.n++] = task;
    pthread_mutex_unlock(&agent.lock);
}

/* ---- work on cells: each knows how often the cell was written before it ---- */

struct work {
    unsigned *cell, want;
    bool writes;
};

static _Atomic int wrong;

static int run(void *arg)
{
    struct work *work = arg;
    if (*work->cell != work->want) atomic_fetch_add(&wrong, 1);
    if (work->writes) ++*work->cell;
    return 0;
}

static int issue(struct weir_task *task, void *native_stream, void *arg)
{
    (void)task;
    return weir_host_enqueue(native_stream, run, arg);
}

struct generator {
    struct weir__siblings siblings;
    unsigned cell[CELLS], written[CELLS], seed;
    struct weir__interop *object[OBJECTS];
    struct work work[STEPS * 4];
    int nwork;
};

static struct work *work_on(struct generator *g, int c, bool writes)
{
    struct work *work = &g->work[g->nwork++];
    *work = (struct work){&g->cell[c], g->written[c], writes};
    g->written[c] += writes;
    return work;
}

static unsigned draw(struct generator *g, unsigned n)
{
    return (unsigned)rand_r(&g->seed) % n;
}

static void construct(struct generator *g, struct weir__interop *object, enum weir__interop_action action, int c,
                      bool writes)
{
    struct weir__abi_depend depend = {.base = (intptr_t)&g->cell[c], .flags = writes ? 3 : 1};
    DONE(weir__interop_order(object, action, NULL, 0, draw(g, 8) != 0, &depend, draw(g, 6) != 0));
}

/* Between two constructs on the same cell; the first and last ones may be init and destroy. */
static void foreign(struct generator *g, int c, bool writes)
{
    struct weir__interop **object = &g->object[draw(g, OBJECTS)];
    struct weir__abi_depend depend = {.base = (intptr_t)&g->cell[c], .flags = writes ? 3 : 1};
    enum weir__interop_action first = WEIR__INTEROP_USE, last = draw(g, 3) ? WEIR__INTEROP_USE : WEIR__INTEROP_DESTROY;
    if (!*object) {
        int type = 1 + (int)draw(g, 2);
        DONE(weir__interop_create(draw(g, DEVICES), (enum weir__interop_type)type, 0, NULL, object));
        first = WEIR__INTEROP_INIT;
    }
    DONE(weir__interop_order(*object, first, NULL, 0, 1, &depend, draw(g, 6) != 0));
    for (unsigned i = draw(g, 3); i; i--)
        DONE(weir_host_enqueue(atomic_load(&(*object)->native_stream), run, work_on(g, c, writes)));
    DONE(weir__interop_order(*object, last, NULL, 0, 1, &depend, draw(g, 6) != 0));
    if (last == WEIR__INTEROP_USE) return;
    weir__interop_end(*object);
    *object = NULL;
}

static void step(struct generator *g)
{
    int c = (int)draw(g, CELLS);
    bool writes = draw(g, 2);
    struct weir_access access = {&g->cell[c], 0, writes ? WEIR_ACCESS_INOUT : WEIR_ACCESS_IN};
    struct weir_task *task;
    switch (draw(g, 6)) {
    case 0: /* a task of the host, complete when all before it are as well */
        DONE(weir_task_external(g->siblings.scope, &access, 1, NULL, &task));
        agent_complete(task);
        break;
    case 1:
    case 2:
        DONE(weir_task_submit(g->siblings.scope, targets[draw(g, DEVICES)].device, &access, 1, issue,
                              work_on(g, c, writes), NULL, NULL));
        break;
    default:
        foreign(g, c, writes);
    }
}

static void *generate(void *arg)
{
    struct generator *g = arg;
    own = &g->siblings;
    DONE(weir_scope_create(runtime.context, NULL, &g->siblings.scope));
    weir__scope_never_wait(g->siblings.scope);
    for (int i = 0; i < STEPS; i++) step(g);
    for (int i = 0; i < OBJECTS; i++) {
        if (!g->object[i]) continue;
        construct(g, g->object[i], WEIR__INTEROP_DESTROY, 0, false);
        weir__interop_end(g->object[i]);
        g->object[i] = NULL;
    }
    DONE(weir_scope_destroy(g->siblings.scope));
    for (int c = 0; c < CELLS; c++) cr_expect_eq(g->cell[c], g->written[c]);
    return NULL;
}

/* ---- tests ---- */

static void open_all(void)
{
    struct weir_context_options options = {.size = sizeof options, .host_devices = DEVICES, .streams_per_device = 3};
    libomp.in_final = no;
    DONE(weir_context_create(&options, &runtime.context));
    for (int i = 0; i < DEVICES; i++) {
        targets[i].device = weir_device_get(runtime.context, i);
        targets[i].number = i;
    }
}

TestSuite(interop_nodes, .init = open_all, .timeout = 100);

static void run_generators(unsigned rounds)
{
    for (unsigned round = 0; round < rounds; round++) {
        static struct generator generators[GENERATORS];
        pthread_t threads[GENERATORS], agent_thread;
        memset(generators, 0, sizeof generators);
        agent.stop = false;
        pthread_create(&agent_thread, NULL, agent_main, NULL);
        for (unsigned i = 0; i < GENERATORS; i++) {
            generators[i].seed = round * GENERATORS + i;
            pthread_create(&threads[i], NULL, generate, &generators[i]);
        }
        for (int i = 0; i < GENERATORS; i++) pthread_join(threads[i], NULL);
        pthread_mutex_lock(&agent.lock);
        agent.stop = true;
        pthread_mutex_unlock(&agent.lock);
        pthread_join(agent_thread, NULL);
        cr_assert_eq(atomic_load(&wrong), 0, "round %u", round);
        cr_assert_eq(atomic_load(&anchors), 0);
    }
}

/* A recording tells of constructs that were issued behind a task of the host, and why any of them was waited for. */
static void expect_held(bool held)
{
    struct weir__trace *trace;
    size_t released = 0, waited = 0;
    DONE(weir__trace_read(NULL, &trace));
    cr_assert_eq(trace->dropped, 0);
    for (size_t i = 0; i < trace->ntasks; i++) released += trace->tasks[i].interop && !trace->tasks[i].early;
    for (size_t i = 0; i < trace->nfallbacks; i++) waited += trace->fallbacks[i].why == WEIR__FALLBACK_NOT_HELD;
    weir__trace_free(trace);
    cr_expect_gt(released, 0);
    cr_expect_eq(waited == 0, held, "%zu were waited for", waited);
}

Test(interop_nodes, order_is_kept_in_both_directions)
{
    run_generators(30);
}

Test(interop_nodes, foreign_work_is_held_by_the_device)
{
    DONE(weir_trace_start(NULL));
    run_generators(5);
    expect_held(true);
}

/* A device that cannot hold a stream: the host waits, and nothing else changes. */
Test(interop_nodes, without_gates_the_host_waits)
{
    static struct weir__device_ops without;
    without = *targets[0].device->ops;
    without.gate_create = NULL;
    without.gate_wait = NULL;
    without.gate_open = NULL;
    for (int i = 0; i < DEVICES; i++) targets[i].device->ops = &without;
    DONE(weir_trace_start(NULL));
    run_generators(10);
    expect_held(false);
}

/* Every edge through the host: streams of this device cannot wait for each other. */
Test(interop_nodes, without_events_the_host_waits)
{
    for (int i = 0; i < DEVICES; i++) targets[i].device->domain = 0;
    run_generators(10);
}

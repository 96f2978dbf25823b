/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "dag.h"

_Atomic uint64_t dag_sequence;

static uint64_t draw(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static uint32_t below(uint64_t *state, uint32_t limit)
{
    return (uint32_t)(draw(state) >> 32) % limit;
}
static bool percent(uint64_t *state, uint32_t chance)
{
    return below(state, 100) < chance;
}

/* Weights of in, out, inout, mutexinoutset, inoutset, all-memory, after. */
static const uint8_t profiles[][7] = {
    {30, 10, 20, 15, 15, 2, 8}, {60, 5, 25, 5, 5, 0, 0},   {10, 5, 10, 40, 30, 2, 3},
    {20, 0, 80, 0, 0, 0, 0},    {25, 5, 10, 5, 40, 5, 10}, {10, 10, 10, 0, 0, 0, 70},
};

static uint32_t pick_kind(uint64_t *state, const uint8_t *weights)
{
    uint32_t x = below(state, 100), kind = 0;
    for (; kind < 6 && x >= weights[kind]; kind++) x -= weights[kind];
    return kind + 1;
}

static void make_access(struct dag_scope *scope, uint32_t task, uint64_t *state, const uint8_t *weights,
                        struct oracle_access *access_out)
{
    struct oracle_access a = {.kind = pick_kind(state, weights)};
    if (a.kind == WEIR_ACCESS_AFTER && task == 0) a.kind = WEIR_ACCESS_IN;
    if (a.kind == WEIR_ACCESS_AFTER) {
        uint32_t back = 1 + below(state, task < 8 ? task : 8);
        a.after = task - back;
    } else if (a.kind != WEIR_ACCESS_ALL_MEMORY) {
        if (scope->ranges) {
            uint32_t offset = below(state, DAG_CELLS - 16);
            a.address = (uintptr_t)&scope->cells[offset];
            a.bytes = 1 + below(state, 16);
        } else {
            a.address = (uintptr_t)&scope->cells[below(state, scope->naddresses) * 4];
            a.bytes = 1 + below(state, 16); /* says nothing here: only base addresses count */
        }
    }
    *access_out = a;
}

static uint32_t pick_form(uint64_t *state, uint32_t host_share, bool with_devices)
{
    if (percent(state, 5)) return DAG_EXTERNAL;
    if (percent(state, 2)) return DAG_WAIT_FOR;
    if (!with_devices || percent(state, host_share)) return DAG_HOST;
    if (percent(state, 60)) return DAG_SUBMIT;
    return percent(state, 50) ? DAG_BEGIN : DAG_BEGIN_BLOCK;
}

static uint32_t pick_delay(uint64_t *state)
{
    uint32_t x = below(state, 100);
    return x < 60 ? 0 : x < 97 ? below(state, 2000) : 100000;
}

static void make_task(struct dag_scope *scope, uint32_t index, uint64_t *state, const uint8_t *weights,
                      uint32_t host_share, bool with_devices)
{
    struct oracle_task *shape = &scope->shape[index];
    struct dag_task *task = &scope->tasks[index];
    task->scope = scope;
    task->index = index;
    task->form = pick_form(state, host_share, with_devices);
    task->device = below(state, 16);
    task->body_delay = pick_delay(state);
    task->agent_delay = pick_delay(state);
    task->by_agent = percent(state, 70);
    task->keeps_handle = percent(state, 70);
    task->has_callback = percent(state, 50);
    shape->naccesses = percent(state, 90) ? 1 + below(state, 3) : below(state, ORACLE_ACCESSES + 1);
    for (uint32_t i = 0; i < shape->naccesses; i++) {
        do make_access(scope, index, state, weights, &shape->accesses[i]);
        while (task->form == DAG_WAIT_FOR && shape->accesses[i].kind == WEIR_ACCESS_AFTER);
        if (shape->accesses[i].kind == WEIR_ACCESS_AFTER) scope->tasks[shape->accesses[i].after].keeps_handle = true;
    }
}

static void add_faults(struct dag_scope *scope, uint64_t *state)
{
    for (uint32_t k = 1 + below(state, 3); k > 0; k--) {
        struct dag_task *task = &scope->tasks[below(state, scope->n)];
        if (task->form == DAG_WAIT_FOR) continue;
        bool queued = task->form == DAG_SUBMIT || task->form == DAG_BEGIN || task->form == DAG_BEGIN_BLOCK;
        task->fault = queued && percent(state, 40) ? DAG_QUEUE_FAILS : DAG_BODY_FAILS;
    }
}

void dag_make(struct dag *dag, uint64_t seed, bool with_devices)
{
    uint64_t state = seed;
    memset(dag, 0, sizeof(*dag));
    dag->seed = seed;
    dag->nscopes = percent(&state, 80) ? 1 : 2 + below(&state, DAG_SCOPES - 1);
    dag->has_faults = percent(&state, 35);
    for (uint32_t s = 0; s < dag->nscopes; s++) {
        struct dag_scope *scope = &dag->scopes[s];
        const uint8_t *weights = profiles[below(&state, sizeof(profiles) / sizeof(profiles[0]))];
        uint32_t host_share = percent(&state, 30) ? 0 : percent(&state, 20) ? 100 : 10 + below(&state, 50);
        scope->n = percent(&state, 97) ? 5 + below(&state, 40) : 60 + below(&state, ORACLE_TASKS - 60);
        scope->naddresses = 1 + below(&state, percent(&state, 50) ? 3 : 10);
        scope->window = percent(&state, 40) ? 1 + below(&state, 8) : 0;
        scope->ranges = percent(&state, 25);
        for (uint32_t i = 0; i < scope->n; i++) make_task(scope, i, &state, weights, host_share, with_devices);
        if (dag->has_faults) add_faults(scope, &state);
    }
}

void dag_delay(uint32_t amount)
{
    if (amount >= 100000) {
        usleep(50);
        return;
    }
    for (volatile uint32_t i = 0; i < amount; i++) continue;
    if (amount & 1) sched_yield();
}

/* One access; @v depends on what the task reads. mutexinoutset is a plain load and store on purpose: an overlap loses
 * an update. Adding commutes, so the order of a set does not show. */
static void touch(uint8_t *cell, uint32_t kind, uint8_t v, uint32_t delay)
{
    uint8_t x;
    switch (kind) {
    case WEIR_ACCESS_OUT:
        *cell = v;
        break;
    case WEIR_ACCESS_INOUT:
    case WEIR_ACCESS_ALL_MEMORY:
        *cell = (uint8_t)(3 * *cell + v);
        break;
    case WEIR_ACCESS_MUTEXINOUTSET:
        x = *cell;
        if (delay) dag_delay(delay);
        *cell = (uint8_t)(x + v);
        break;
    case WEIR_ACCESS_INOUTSET:
        __atomic_fetch_add(cell, v, __ATOMIC_RELAXED);
        break;
    default:
        break;
    }
}

static void compute(const struct dag_task *task, uint8_t *cells, uint32_t delay)
{
    const struct dag_scope *scope = task->scope;
    const struct oracle_task *shape = &scope->shape[task->index];
    uint8_t v = (uint8_t)(task->index * 7 + 1);
    for (uint32_t i = 0; i < shape->naccesses; i++) {
        const struct oracle_access *a = &shape->accesses[i];
        if (a->kind != WEIR_ACCESS_IN) continue;
        size_t first = a->address - (uintptr_t)scope->cells, count = scope->ranges ? a->bytes : 1;
        for (size_t c = first; c < first + count; c++) v = (uint8_t)(v + cells[c]);
    }
    for (uint32_t i = 0; i < shape->naccesses; i++) {
        const struct oracle_access *a = &shape->accesses[i];
        if (a->kind == WEIR_ACCESS_AFTER) continue;
        if (a->kind == WEIR_ACCESS_ALL_MEMORY) {
            for (size_t c = 0; c < DAG_CELLS; c++) touch(&cells[c], a->kind, v, 0);
            continue;
        }
        size_t first = a->address - (uintptr_t)scope->cells, count = scope->ranges ? a->bytes : 1;
        for (size_t c = first; c < first + count; c++) touch(&cells[c], a->kind, v, c == first ? delay : 0);
    }
}

void dag_compute(const struct dag_task *task, uint8_t *cells)
{
    compute(task, cells, 0);
}

int dag_fault_status(const struct dag_task *task)
{
    return -1000 - (int)task->index;
}

int dag_body(void *arg)
{
    struct dag_task *task = arg;
    /* Relaxed: a counter that is read after the wait. */
    atomic_fetch_add_explicit(&task->runs, 1, memory_order_relaxed);
    task->start = dag_tick();
    if (task->form != DAG_EXTERNAL) {
        dag_delay(task->body_delay);
        compute(task, task->scope->cells, task->body_delay);
    }
    task->end = dag_tick();
    return task->fault == DAG_BODY_FAILS ? dag_fault_status(task) : 0;
}

void dag_print_task(FILE *to, const struct dag_task *task)
{
    static const char *const forms[] = {"?", "host", "submit", "begin", "begin-block", "external", "wait-for"};
    static const char *const kinds[] = {"?", "in", "out", "inout", "mutexinoutset", "inoutset", "all-memory", "after"};
    const struct oracle_task *shape = &task->scope->shape[task->index];
    fprintf(to, "  task %u %s fault=%u submit=%d status=%d callback=%d start=%llu end=%llu runs=%u:", task->index,
            forms[task->form], task->fault, task->submit_status, task->status, task->callback_status,
            (unsigned long long)task->start, (unsigned long long)task->end, atomic_load(&task->runs));
    for (uint32_t i = 0; i < shape->naccesses; i++) {
        const struct oracle_access *a = &shape->accesses[i];
        if (a->kind == WEIR_ACCESS_AFTER)
            fprintf(to, " after(%u)", a->after);
        else if (a->kind == WEIR_ACCESS_ALL_MEMORY)
            fprintf(to, " all-memory");
        else
            fprintf(to, " %s(%ld+%zu)", kinds[a->kind], (long)(a->address - (uintptr_t)task->scope->cells), a->bytes);
    }
    fputc('\n', to);
}

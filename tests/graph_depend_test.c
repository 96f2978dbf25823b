/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Random lists of tasks through the access table alone, run step by step by a small simulator with three domains (the
 * host and two kinds of devices), against the sequential oracle.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include <graph/depend.h>

#include "dag.h"

enum { FENCES = 1024, NODES = ORACLE_TASKS + FENCES };
enum state { FREE = 0, WAITING, READY, QUEUED, RUNNING, ENDED };

struct sim_node {
    struct weir__node node; /* first */
    struct dag_task *task;  /* NULL: a fence */
    enum state state;
};

struct sim {
    struct weir__fencer fencer; /* first */
    struct weir__extras extras;
    struct weir__depend depend;
    struct sim_node nodes[NODES];
    struct sim_node *of_task[ORACLE_TASKS]; /* NULL: its memory was used again */
    struct sim_node *reusable[NODES];
    uint32_t nreusable, nused, nfences;
    uint64_t last_id;
    bool reached[NODES + 1]; /* by id, which is also the node's point */
    uint64_t random;
};

static struct sim sim;
static struct dag dag;

static uint32_t below(uint32_t limit)
{
    sim.random ^= sim.random << 13;
    sim.random ^= sim.random >> 7;
    sim.random ^= sim.random << 17;
    return (uint32_t)(sim.random >> 33) % limit;
}

static void want(struct weir__node *pred)
{
    (void)pred;
}

/* Memory is used again at once, newest first, as a scheduler would: names of the former node must be seen through. */
static struct sim_node *open_node(struct dag_task *task, uint8_t domain)
{
    struct sim_node *n = sim.nreusable > 0 ? sim.reusable[--sim.nreusable] : &sim.nodes[sim.nused++];
    if (n->task != NULL) sim.of_task[n->task->index] = NULL;
    weir__node_open(&n->node, ++sim.last_id, domain);
    n->node.kind = domain ? WEIR__NODE_NOTICE : 0;
    n->task = task;
    n->state = WAITING;
    if (task != NULL) sim.of_task[task->index] = n;
    return n;
}

static struct weir__node *create_fence(struct weir__fencer *fencer, uint8_t domain, const struct weir__node *like)
{
    (void)fencer;
    cr_assert_eq(like != NULL, domain != 0);
    if (sim.nfences == FENCES || below(8) == 0) return NULL; /* no memory: must be right as well */
    sim.nfences++;
    return &open_node(NULL, domain)->node;
}

static void close_node(struct weir__linking *linking)
{
    struct sim_node *n = (struct sim_node *)linking->node;
    if (linking->failed != NULL) atomic_store(&n->node.poison, 1);
    if (weir__node_close(linking)) n->state = READY;
}

static void submit_fence(struct weir__fencer *fencer, struct weir__linking *linking)
{
    (void)fencer;
    close_node(linking);
}

static void walk(_Atomic uintptr_t *list, uint64_t point, bool failed)
{
    uintptr_t ref = weir__node_take(list);
    while (ref != 0 && ref != WEIR__REF_CLOSED) {
        struct weir__taken taken = weir__taken_next(&ref, point);
        if (failed) atomic_store(&taken.node->poison, 1);
        if (weir__node_unblock(taken.node)) ((struct sim_node *)taken.node)->state = READY;
    }
}

/* The members of a mutexinoutset group hold references to its lock. */
static void give_back(struct weir__node *node)
{
    for (uintptr_t e = (uintptr_t)node->extra; e != 0; e = weir__extra_of(e)->next) {
        if ((e & 7) != WEIR__EXTRA_LOCK) continue;
        struct weir__lock *lock = (struct weir__lock *)weir__extra_of(e)->value;
        if (lock->tail.node == node) lock->tail.node = NULL;
        weir__lock_release(lock);
    }
    weir__extras_recycle(&sim.extras, node);
}

static void complete(struct sim_node *n, int status)
{
    n->node.status = status;
    n->state = ENDED;
    sim.reached[n->node.id] = true;
    walk(&n->node.completed, 0, status != 0);
    walk(&n->node.issued, 0, status != 0);
    if (n->task != NULL) n->task->status = status;
    give_back(&n->node);
    /* Failed ones and those with a handle stay. */
    if (status == 0 && (n->task == NULL || !n->task->keeps_handle)) sim.reusable[sim.nreusable++] = n;
}

static bool has_locks_free(struct sim_node *n)
{
    for (uintptr_t e = (uintptr_t)n->node.extra; e != 0; e = weir__extra_of(e)->next) {
        if ((e & 7) != WEIR__EXTRA_LOCK) continue;
        struct weir__lock *lock = (struct weir__lock *)weir__extra_of(e)->value;
        struct sim_node *tail = (struct sim_node *)lock->tail.node;
        if (tail != NULL && tail != n && (tail->state == QUEUED || tail->state == RUNNING)) return false;
    }
    for (uintptr_t e = (uintptr_t)n->node.extra; e != 0; e = weir__extra_of(e)->next)
        if ((e & 7) == WEIR__EXTRA_LOCK) ((struct weir__lock *)weir__extra_of(e)->value)->tail.node = &n->node;
    return true;
}

static bool points_are_reached(const struct sim_node *n)
{
    for (uint32_t i = 0; i < n->node.nslots; i++)
        if (n->node.slot[i] != 0 && !sim.reached[n->node.slot[i]]) return false;
    for (uintptr_t e = (uintptr_t)n->node.extra; e != 0; e = weir__extra_of(e)->next) {
        uint64_t point = weir__extra_of(e)->link;
        if ((e & 7) == WEIR__EXTRA_EDGE && point != 0 && !sim.reached[point]) return false;
    }
    return true;
}

static void start(struct sim_node *n)
{
    n->state = RUNNING;
    if (n->task == NULL) return;
    n->task->start = dag_tick();
    dag_compute(n->task, n->task->scope->cells);
}

static void step(struct sim_node *n)
{
    switch (n->state) {
    case READY:
        if (atomic_load(&n->node.poison) == 1)
            complete(n, WEIR_E_PREDECESSOR);
        else if (!has_locks_free(n))
            break;
        else if (n->node.domain == 0)
            start(n);
        else {
            n->node.point = n->node.id;
            n->state = QUEUED;
            walk(&n->node.issued, n->node.point, false);
        }
        break;
    case QUEUED:
        if (points_are_reached(n)) start(n);
        break;
    case RUNNING:
        if (n->task != NULL) n->task->end = dag_tick();
        complete(n, n->task != NULL && n->task->fault == DAG_BODY_FAILS ? dag_fault_status(n->task) : 0);
        break;
    default:
        break;
    }
}

/* A task of @domain could be issued at once if all it depends on are done, or issued and of its domain. */
static bool could_be_issued(const struct dag_scope *scope, uint32_t index, uint8_t domain)
{
    for (uint32_t i = 0; i < index; i++) {
        const struct sim_node *n = sim.of_task[i];
        bool named = false;
        for (uint32_t k = 0; k < scope->shape[index].naccesses; k++)
            named |=
                scope->shape[index].accesses[k].kind == WEIR_ACCESS_AFTER && scope->shape[index].accesses[k].after == i;
        if (n == NULL || (!named && !oracle_conflict(&scope->shape[i], &scope->shape[index], scope->ranges))) continue;
        if (n->state == ENDED ? n->node.status != 0 : n->node.domain != domain || n->state < QUEUED) return false;
    }
    return true;
}

/* Fences are invisible to could_be_issued(): one that is not issued explains a refusal. */
static void fences_or_fail(uint32_t index)
{
    for (uint32_t i = 0; i < sim.nused; i++)
        if (sim.nodes[i].task == NULL && sim.nodes[i].state != ENDED) return;
    cr_assert_fail("seed %llu: probe refuses task %u without a reason", (unsigned long long)dag.seed, index);
}

static void submit(struct dag_scope *scope, uint32_t index)
{
    struct dag_task *task = &scope->tasks[index];
    struct oracle_task *shape = &scope->shape[index];
    struct weir_access a[ORACLE_ACCESSES];
    struct weir__linking linking = {.extras = &sim.extras, .want = want};
    for (uint32_t i = 0; i < shape->naccesses; i++) {
        const struct oracle_access *access = &shape->accesses[i];
        a[i] = (struct weir_access){(const void *)access->address, access->bytes, access->kind};
        if (access->kind == WEIR_ACCESS_AFTER) a[i].address = &sim.of_task[access->after]->node;
    }
    bool host = task->form == DAG_HOST || task->form == DAG_EXTERNAL || task->form == DAG_WAIT_FOR;
    if (!host) task->fault = DAG_FINE; /* failures known late are the business of those who see them */
    uint8_t domain = host ? 0 : 1 + task->device % 2;
    bool at_once = domain == 0 || weir__depend_probe(&sim.depend, a, shape->naccesses, domain) == WEIR_OK;
    if (!at_once && could_be_issued(scope, index, domain)) fences_or_fail(index);
    if (domain != 0 && at_once && !could_be_issued(scope, index, domain))
        cr_assert_fail("seed %llu: probe of task %u", (unsigned long long)dag.seed, index);
    cr_assert_eq(weir__depend_reserve(&sim.depend, a, shape->naccesses), WEIR_OK);
    linking.node = &open_node(task, domain)->node;
    weir__depend_enter(&sim.depend, a, shape->naccesses, &linking);
    close_node(&linking);
}

static void run_scope(struct dag_scope *scope)
{
    uint64_t random = sim.random;
    uint32_t pace = 1 + below(20);
    memset(&sim, 0, sizeof(sim));
    sim.random = random;
    sim.fencer =
        (struct weir__fencer){.create = create_fence, .submit = submit_fence, .want = want, .extras = &sim.extras};
    cr_assert_eq(weir__depend_init(&sim.depend, scope->ranges, &sim.fencer), WEIR_OK);
    for (uint32_t i = 0; i < scope->n; i++) {
        submit(scope, i);
        for (uint32_t k = below(pace); k > 0; k--) step(&sim.nodes[below(sim.nused)]);
    }
    for (uint32_t quiet = 0; quiet < 4; quiet++) {
        for (uint32_t i = 0; i < sim.nused; i++) {
            enum state before = sim.nodes[i].state;
            step(&sim.nodes[i]);
            if (sim.nodes[i].state != before) quiet = 0;
        }
    }
    for (uint32_t i = 0; i < NODES; i++) {
        cr_assert(sim.nodes[i].state == FREE || sim.nodes[i].state == ENDED, "seed %llu: node %u never ends",
                  (unsigned long long)dag.seed, i);
    }
    weir__depend_fini(&sim.depend);
    weir__extras_fini(&sim.extras);
}

static void fail_pair(const char *what, const struct dag_scope *scope, uint32_t i, uint32_t j)
{
    dag_print_task(stderr, &scope->tasks[i]);
    dag_print_task(stderr, &scope->tasks[j]);
    cr_assert_fail("seed %llu%s: %s: %u and %u", (unsigned long long)dag.seed, scope->ranges ? ", ranges" : "", what, i,
                   j);
}

static void check_scope(struct dag_scope *scope)
{
    static struct oracle_relation relation;
    uint64_t failed[ORACLE_WORDS] = {0}, cancelled[ORACLE_WORDS];
    uint8_t cells[DAG_CELLS] = {0};
    oracle_relate(scope->shape, scope->n, scope->ranges, &relation);
    for (uint32_t j = 0; j < scope->n; j++) {
        struct dag_task *task = &scope->tasks[j];
        oracle_cancel(&relation, failed, cancelled);
        if (oracle_has(cancelled, j)) {
            if (task->start != 0 || task->status != WEIR_E_PREDECESSOR) fail_pair("not cancelled", scope, j, j);
            continue;
        }
        if (task->start == 0) fail_pair("cancelled without a failed predecessor", scope, j, j);
        if (task->fault == DAG_BODY_FAILS) oracle_put(failed, j);
        dag_compute(task, cells);
        for (uint32_t i = 0; i < j; i++) {
            const struct dag_task *other = &scope->tasks[i];
            if (other->start == 0) continue;
            if (oracle_has(relation.before[j], i) && other->end > task->start) fail_pair("order", scope, i, j);
            if (oracle_has(relation.exclusive[j], i) && other->end > task->start && task->end > other->start)
                fail_pair("exclusion", scope, i, j);
        }
    }
    if (failed[0] == 0 && failed[1] == 0) cr_assert_arr_eq(cells, scope->cells, sizeof(cells));
}

Test(graph_depend, random_lists_keep_every_dependence, .timeout = 120)
{
    const char *seed = getenv("WEIR_TEST_SEED");
    uint64_t first = seed ? strtoull(seed, NULL, 10) : 1, last = seed ? first : 20000;
    sim.random = 88172645463325252u;
    for (uint64_t s = first; s <= last; s++) {
        dag_make(&dag, s, true);
        for (uint32_t i = 0; i < dag.nscopes; i++) {
            run_scope(&dag.scopes[i]);
            check_scope(&dag.scopes[i]);
        }
    }
}

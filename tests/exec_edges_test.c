/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Every edge is found once and realised once. Random lists are submitted behind a closed gate, so that no task can be
 * complete when its successors come and the edges are a matter of the accesses alone; the counters are then compared
 * with the edges of a sequential model. Lists for which fences are made are only run: their edges are others.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include <exec/work.h>

#include "oracle.h"
#include "rig.h"

/* Addresses 0 … ADDRESSES - 1, and one that only all-memory tasks use. */
enum { TASKS = 40, ADDRESSES = 6, SLOTS = ADDRESSES + 1, LISTS = 40 };

#define DONE(call)                                                                                                     \
    do {                                                                                                               \
        int rc_ = (call);                                                                                              \
        cr_assert_eq(rc_, WEIR_OK, "%s: %s: %s", #call, weir_error_name(rc_), weir_error_text());                      \
    } while (0)

struct listed {
    uint32_t kind[SLOTS];       /* enum weir_access_kind by address; 0: none */
    uint32_t after;             /* number of a task + 1; 0: none */
    struct weir_device *device; /* NULL: a host task */
    struct weir_task *handle;
};

static struct listed list[TASKS];
static uint32_t ntasks;
static double cells[ADDRESSES];

static bool all_memory(const struct listed *task)
{
    return task->kind[ADDRESSES] != 0;
}

static void make_list(struct rig *rig, unsigned *seed)
{
    static const uint32_t kinds[] = {WEIR_ACCESS_IN,    WEIR_ACCESS_IN,    WEIR_ACCESS_OUT,
                                     WEIR_ACCESS_INOUT, WEIR_ACCESS_INOUT, WEIR_ACCESS_INOUTSET};
    ntasks = 10 + (uint32_t)rand_r(seed) % (TASKS - 10);
    for (uint32_t j = 0; j < ntasks; j++) {
        struct listed *task = &list[j];
        bool all = j == 0 || rand_r(seed) % 20 == 0;
        *task = (struct listed){.after = j > 1 && rand_r(seed) % 8 == 0 ? 1 + (uint32_t)rand_r(seed) % j : 0};
        if (j > 0 && rig->ndevices > 0 && rand_r(seed) % 4 != 0)
            task->device = rig->devices[(uint32_t)rand_r(seed) % rig->ndevices];
        for (uint32_t s = 0; s < SLOTS; s++) {
            bool named = s < ADDRESSES && rand_r(seed) % ADDRESSES < 2;
            task->kind[s] = all ? WEIR_ACCESS_INOUT : named ? kinds[rand_r(seed) % 6] : 0;
        }
        if (task->kind[0] == 0) task->kind[j % ADDRESSES] = WEIR_ACCESS_IN; /* all are behind the gate */
    }
}

/* ---- the model ---- */

static bool conflict_at(const struct listed *a, const struct listed *b, uint32_t s)
{
    struct oracle_task one = {.naccesses = 1, .accesses = {{.kind = a->kind[s], .address = 1}}},
                       other = {.naccesses = 1, .accesses = {{.kind = b->kind[s], .address = 1}}};
    return a->kind[s] != 0 && b->kind[s] != 0 && oracle_conflict(&one, &other, false);
}

/* Do the conflicts at one address order i before j without the pair's own? */
static bool is_implied(uint32_t i, uint32_t j, uint32_t s)
{
    bool behind[TASKS] = {false}; /* i */
    for (uint32_t k = i + 1; k <= j; k++) {
        bool other = false;
        for (uint32_t m = i + 1; m < k && !other; m++) other = behind[m] && conflict_at(&list[m], &list[k], s);
        if (k == j) return other;
        behind[k] = other || conflict_at(&list[i], &list[k], s);
    }
    return false;
}

/* Two tasks conflict at an address, and the tasks between them do not order them there. */
static bool is_edge(uint32_t i, uint32_t j)
{
    if (list[j].after == i + 1) return true;
    for (uint32_t s = 0; s < SLOTS; s++)
        if (conflict_at(&list[i], &list[j], s) && !is_implied(i, j, s)) return true;
    return false;
}

static bool can_wait_on_device(const struct weir_device *a, const struct weir_device *b)
{
    uint32_t features = weir__device_info_of(a)->features & weir__device_info_of(b)->features;
    if (!(features & WEIR__DEVICE_WAIT) || weir__device_ops_of(a) != weir__device_ops_of(b)) return false;
    return a == b || (features & WEIR__DEVICE_CROSS_WAIT) != 0;
}

static struct weir_counters expected(void)
{
    struct weir_counters sum = {0};
    for (uint32_t j = 0; j < ntasks; j++)
        for (uint32_t i = 0; i < j; i++) {
            if (!is_edge(i, j)) continue;
            sum.edges++;
            if (list[i].device == NULL || list[j].device == NULL)
                sum.edges_host++;
            else if (!can_wait_on_device(list[i].device, list[j].device))
                sum.edges_host_only++;
            else
                sum.edges_event++; /* or done, stream, implied */
        }
    return sum;
}

/* ---- the library ---- */

static int nothing(void *arg)
{
    (void)arg;
    return 0;
}

static int issue(struct weir_task *task, void *native_stream, void *arg)
{
    (void)native_stream;
    return weir__task_host_function(task, nothing, arg);
}

static void submit(struct weir_scope *scope, struct listed *task)
{
    struct weir_access a[SLOTS + 1];
    size_t n = 0;
    if (task->after != 0) a[n++] = (struct weir_access)WEIR_AFTER(list[task->after - 1].handle);
    if (all_memory(task)) a[n++] = (struct weir_access)WEIR_ALL_MEMORY;
    for (uint32_t s = 0; s < ADDRESSES && !all_memory(task); s++)
        if (task->kind[s] != 0) a[n++] = (struct weir_access)WEIR_RANGE(&cells[s], sizeof(cells[s]), task->kind[s]);
    if (task == &list[0])
        DONE(weir_task_external(scope, a, n, NULL, &task->handle));
    else if (task->device != NULL)
        DONE(weir_task_submit(scope, task->device, a, n, issue, NULL, NULL, &task->handle));
    else
        DONE(weir_task_host(scope, nothing, NULL, a, n, NULL, &task->handle));
}

static struct weir_counters run_list(struct rig *rig, bool ranges)
{
    struct weir_scope_options options = {.size = sizeof(options), .ranges = ranges};
    struct weir_counters counters;
    struct weir_scope *scope;
    DONE(weir_scope_create(rig->context, &options, &scope));
    for (uint32_t j = 0; j < ntasks; j++) submit(scope, &list[j]);
    weir_scope_counters(scope, &counters);
    cr_assert_eq(counters.edges_done, 0, "the gate is open");
    DONE(weir_task_fulfill(list[0].handle, 0));
    DONE(weir_scope_wait(scope));
    weir_scope_counters(scope, &counters);
    for (uint32_t j = 1; j < ntasks; j++) weir_task_release(list[j].handle);
    DONE(weir_scope_destroy(scope));
    return counters;
}

#define SAME(what, got, wanted)                                                                                        \
    cr_assert_eq((got), (wanted), "%s, seed %u%s: %s: %llu, expected %llu", name, seed, ranges ? ", ranges" : "",      \
                 (what), (unsigned long long)(got), (unsigned long long)(wanted))

static void compare(const char *name, unsigned seed, bool ranges, const struct weir_counters *c)
{
    struct weir_counters e = expected();
    uint64_t on_device = c->edges_done + c->edges_stream + c->edges_implied + c->edges_event;
    SAME("all edges", c->edges, e.edges);
    SAME("edges with a host task", c->edges_host, e.edges_host);
    SAME("edges between devices that cannot wait", c->edges_host_only, e.edges_host_only);
    SAME("edges between devices that can", on_device, e.edges_event);
    cr_assert_leq(c->event_waits, c->edges_event);
    cr_assert_eq(c->event_waits == 0, c->edges_event == 0);
}

static void judge(const struct rig_kind *kind, uint32_t *compared, struct weir_counters *sum)
{
    static struct rig rig;
    bool violations;
    DONE(rig_open(&rig, kind, 0));
    for (unsigned seed = 1; seed <= LISTS; seed++) {
        unsigned state = seed;
        bool ranges = seed % 4 == 0;
        make_list(&rig, &state);
        struct weir_counters c = run_list(&rig, ranges);
        sum->edges_stream += c.edges_stream;
        sum->edges_implied += c.edges_implied;
        sum->edges_event += c.edges_event;
        sum->edges_host += c.edges_host;
        sum->edges_host_only += c.edges_host_only;
        if (c.fences != 0) continue;
        ++*compared;
        compare(kind->name, seed, ranges, &c);
    }
    DONE(rig_close(&rig, &violations));
    cr_assert(!violations);
}

Test(exec_edges, every_edge_is_counted_in_the_way_it_is_realised, .timeout = 120)
{
    struct weir_counters sum = {0};
    uint32_t compared = 0;
    for (size_t k = 0; k < rig_nkinds; k++) judge(&rig_kinds[k], &compared, &sum);
    fprintf(stderr, "%u of %zu lists compared\n", compared, rig_nkinds * LISTS);
    cr_assert_gt(2 * compared, rig_nkinds * LISTS);
    cr_assert(sum.edges_stream > 0 && sum.edges_implied > 0 && sum.edges_event > 0 && sum.edges_host > 0 &&
              sum.edges_host_only > 0);
}

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "data_rig.h"

/* Several constructs at once: what follows what on the device, what a failure leaves, and threads. */

enum { TO = WEIR__MAP_TO, FROM = WEIR__MAP_FROM, BOTH = TO | FROM, PARAM = WEIR__MAP_TARGET_PARAM };

static struct weir__table *table;
static struct weir__region a, b;

static void set_up(void)
{
    fake_reset(true);
    weir__region_init(&a);
    weir__region_init(&b);
    cr_assert_eq(weir__table_create(NULL, fake_device(), &table), WEIR_OK);
}

static void tear_down(void)
{
    fake_run_all();
    weir__region_fini(&a);
    weir__region_fini(&b);
    cr_expect_eq(fake_violations(), 0);
    weir__table_destroy(table);
    cr_expect_eq(fake_live(), 0, "device memory is left over");
    fake_reset(false);
}

TestSuite(interop_order, .init = set_up, .fini = tear_down, .timeout = 300);

#define BEGIN  weir__data_begin
#define END    weir__data_end
#define UPDATE weir__data_update

static void open_both(void)
{
    weir__region_open(&a, fake_task(), fake_device(), table);
    weir__region_open(&b, fake_task(), fake_device(), table);
}

static int do_in(struct weir__region *region, int (*operation)(struct weir__region *, const struct weir__map_args *),
                 const struct rig_map *maps, uint32_t n)
{
    struct rig_args args;
    return operation(region, rig_fill(&args, maps, n));
}

struct sum {
    const int *from;
    int *to;
    int value;
};

static void read_one(void *arg)
{
    struct sum *sum = arg;
    sum->value = *sum->from;
}

static void write_one(void *arg)
{
    struct sum *sum = arg;
    *sum->to = sum->value;
}

/* ---- order on the device ---- */

Test(interop_order, present_data_is_used_behind_its_transfer)
{
    static int x[4] = {41, 42, 43, 44};
    const struct rig_map map[] = {{x, x, sizeof x, TO, NULL}};
    open_both();
    cr_assert_eq(do_in(&a, BEGIN, map, 1), WEIR_OK);
    cr_assert_eq(do_in(&b, BEGIN, map, 1), WEIR_OK);
    struct sum sum = {.from = weir__table_lookup(table, x + 1)};
    fake_kernel(b.task, read_one, &sum);
    cr_assert_eq(do_in(&b, END, map, 1), WEIR_OK);
    fake_run(b.task);
    cr_expect_eq(sum.value, 42, "although its stream runs first");
    cr_assert_eq(do_in(&a, END, map, 1), WEIR_OK);
}

Test(interop_order, update_is_seen_by_who_maps_afterwards)
{
    static int x[4] = {1, 1, 1, 1};
    const struct rig_map map[] = {{x, x, sizeof x, TO, NULL}};
    open_both();
    cr_assert_eq(do_in(&a, BEGIN, map, 1), WEIR_OK);
    fake_run(a.task);
    x[0] = 2;
    cr_assert_eq(do_in(&a, UPDATE, map, 1), WEIR_OK);
    cr_assert_eq(do_in(&b, BEGIN, map, 1), WEIR_OK);
    struct sum sum = {.from = weir__table_lookup(table, x)};
    fake_kernel(b.task, read_one, &sum);
    fake_run(b.task);
    cr_expect_eq(sum.value, 2);
    cr_assert_eq(do_in(&a, END, map, 1), WEIR_OK);
    cr_assert_eq(do_in(&b, END, map, 1), WEIR_OK);
}

Test(interop_order, always_copy_is_seen_by_who_maps_afterwards)
{
    static int x[4] = {1, 1, 1, 1};
    const struct rig_map map[] = {{x, x, sizeof x, TO, NULL}},
                         always[] = {{x, x, sizeof x, TO | WEIR__MAP_ALWAYS, NULL}};
    open_both();
    cr_assert_eq(do_in(&a, BEGIN, map, 1), WEIR_OK);
    fake_run(a.task);
    x[0] = 3;
    cr_assert_eq(do_in(&b, BEGIN, always, 1), WEIR_OK);
    struct weir__region c;
    weir__region_init(&c);
    weir__region_open(&c, fake_task(), fake_device(), table);
    cr_assert_eq(do_in(&c, BEGIN, map, 1), WEIR_OK);
    struct sum sum = {.from = weir__table_lookup(table, x)};
    fake_kernel(c.task, read_one, &sum);
    cr_assert_eq(do_in(&c, END, map, 1), WEIR_OK);
    fake_run(c.task);
    cr_expect_eq(sum.value, 3);
    cr_assert_eq(do_in(&a, END, map, 1), WEIR_OK);
    cr_assert_eq(do_in(&b, END, map, 1), WEIR_OK);
    weir__region_fini(&c);
}

Test(interop_order, attached_pointer_is_seen_by_who_maps_afterwards)
{
    static int data[2] = {5, 6};
    static struct {
        int *p;
    } s;
    s.p = data;
    const struct rig_map whole[] = {{&s, &s, sizeof s, TO, NULL}};
    const struct rig_map part[] = {{data, data, sizeof data, TO, NULL}, {&s.p, data, 8, WEIR__MAP_ATTACH, NULL}};
    open_both();
    cr_assert_eq(do_in(&a, BEGIN, whole, 1), WEIR_OK);
    cr_assert_eq(do_in(&b, BEGIN, part, 2), WEIR_OK);
    struct weir__region c;
    weir__region_init(&c);
    weir__region_open(&c, fake_task(), fake_device(), table);
    cr_assert_eq(do_in(&c, BEGIN, whole, 1), WEIR_OK);
    struct {
        int *p;
    } *d = weir__table_lookup(table, &s);
    fake_run(c.task);
    cr_expect_eq(d->p, weir__table_lookup(table, data));
    cr_assert_eq(do_in(&c, END, whole, 1), WEIR_OK);
    cr_assert_eq(do_in(&b, END, part, 2), WEIR_OK);
    cr_assert_eq(do_in(&a, END, whole, 1), WEIR_OK);
    fake_run_all();
    weir__region_fini(&c);
}

Test(interop_order, last_end_follows_everybody_who_used_the_data)
{
    static int x[4] = {0};
    const struct rig_map map[] = {{x, x, sizeof x, BOTH, NULL}};
    open_both();
    cr_assert_eq(do_in(&b, BEGIN, map, 1), WEIR_OK);
    cr_assert_eq(do_in(&a, BEGIN, map, 1), WEIR_OK);
    struct sum sum = {.to = weir__table_lookup(table, x + 2), .value = 9};
    fake_kernel(a.task, write_one, &sum);
    cr_assert_eq(do_in(&a, END, map, 1), WEIR_OK);
    cr_assert_eq(do_in(&b, END, map, 1), WEIR_OK);
    cr_expect_null(weir__table_lookup(table, x), "it leaves the table at once");
    cr_expect_eq(fake_live(), 1, "but its memory is still in use");
    fake_run(b.task);
    cr_expect_eq(x[2], 9, "the copy back came behind the other construct's kernel");
    cr_expect_eq(fake_live(), 0);
}

Test(interop_order, end_by_another_construct_follows_the_transfer)
{
    static int x[4] = {1, 2, 3, 4};
    const struct rig_map map[] = {{x, x, sizeof x, BOTH, NULL}};
    open_both();
    cr_assert_eq(do_in(&a, BEGIN, map, 1), WEIR_OK);
    cr_assert_eq(do_in(&b, END, map, 1), WEIR_OK);
    fake_run(b.task);
    cr_expect(x[0] == 1 && x[3] == 4, "%d %d", x[0], x[3]);
}

Test(interop_order, new_mapping_begins_behind_the_copy_back_of_the_ending_one)
{
    static int x[4] = {1, 2, 3, 4};
    const struct rig_map map[] = {{x, x, sizeof x, BOTH, NULL}};
    open_both();
    cr_assert_eq(do_in(&a, BEGIN, map, 1), WEIR_OK);
    struct sum sum = {.to = weir__table_lookup(table, x), .value = 7};
    fake_kernel(a.task, write_one, &sum);
    cr_assert_eq(do_in(&a, END, map, 1), WEIR_OK);
    cr_assert_eq(do_in(&b, BEGIN, map, 1), WEIR_OK);
    cr_expect_neq(weir__table_lookup(table, x), sum.to);
    fake_run(b.task);
    cr_expect_eq(*(int *)weir__table_lookup(table, x), 7, "although its stream runs first");
    cr_assert_eq(do_in(&b, END, map, 1), WEIR_OK);
}

Test(interop_order, host_pointers_are_restored_in_stream_order)
{
    static int data[2] = {5, 6};
    static struct {
        int *p;
    } s;
    s.p = data;
    const struct rig_map maps[] = {
        {&s, &s, sizeof s, BOTH, NULL}, {data, data, sizeof data, BOTH, NULL}, {&s.p, data, 8, WEIR__MAP_ATTACH, NULL}};
    open_both();
    cr_assert_eq(do_in(&a, BEGIN, maps, 3), WEIR_OK);
    cr_assert_eq(do_in(&a, END, maps, 3), WEIR_OK);
    fake_run(a.task);
    cr_expect_eq(s.p, data, "before the construct is finished by the host");
}

Test(interop_order, device_without_ordered_free_gets_its_memory_back_at_the_finish)
{
    static int x[4] = {0};
    const struct rig_map map[] = {{x, x, sizeof x, BOTH, NULL}};
    fake_can(false);
    open_both();
    cr_assert_eq(do_in(&a, BEGIN, map, 1), WEIR_OK);
    cr_assert_eq(do_in(&a, END, map, 1), WEIR_OK);
    fake_run(a.task);
    cr_expect_eq(fake_live(), 1);
    weir__region_finish(&a);
    cr_expect_eq(fake_live(), 0);
}

Test(interop_order, users_do_not_grow_with_the_number_of_constructs)
{
    static int x[4] = {0};
    const struct rig_map map[] = {{x, x, sizeof x, TO, NULL}};
    open_both();
    cr_assert_eq(do_in(&a, BEGIN, map, 1), WEIR_OK);
    for (int i = 0; i < 1000; i++) {
        cr_assert_eq(do_in(&b, BEGIN, map, 1), WEIR_OK);
        cr_assert_eq(do_in(&b, END, map, 1), WEIR_OK);
    }
    struct weir__found found;
    weir__table_find(table, (uintptr_t)x, 1, &found);
    cr_expect_eq(found.entry->nusers, 1, "one per stream");
    cr_assert_eq(do_in(&a, END, map, 1), WEIR_OK);
}

/* ---- kernel parameters ---- */

struct closure {
    int *captured;
    int value;
};

Test(interop_order, parameters_follow_their_entries)
{
    static _Alignas(64) int x[8], other[2] = {0}, priv[6] = {1, 2, 3, 4, 5, 6};
    static int *px;
    uint64_t values[8];
    uint32_t n = 0;
    struct rig_args args;
    open_both();
    px = x;
    cr_assert_eq(do_in(&b, BEGIN, RIG_MAPS({x, x + 2, 16, 0, NULL})), WEIR_OK);
    rig_fill(&args,
             RIG_MAPS({(void *)77, (void *)77, 4, PARAM | WEIR__MAP_LITERAL, NULL}, {x, x + 2, 16, PARAM | BOTH, NULL},
                      {x, x + 3, 4, TO, NULL}, {other, other, 0, PARAM | WEIR__MAP_IMPLICIT, NULL},
                      {&px, x + 2, 8, PARAM | TO | WEIR__MAP_PTR_AND_OBJ, NULL},
                      {priv - 1, priv + 1, 16, PARAM | TO | WEIR__MAP_PRIVATE, NULL},
                      {&px, x + 3, 8, PARAM | WEIR__MAP_PRIVATE | WEIR__MAP_ATTACH, NULL}));
    cr_assert_eq(BEGIN(&a, &args.args), WEIR_OK);
    cr_assert_eq(weir__data_arguments(&a, &args.args, values, &n), WEIR_OK);
    priv[1] = 200; /* the caller's stack may be gone when the kernel runs */
    int *d = weir__table_lookup(table, x + 2);
    cr_assert_eq(n, 6, "entries without a parameter give none");
    cr_expect_eq(values[0], 77, "a literal is its value");
    cr_expect_eq(values[1], (uintptr_t)(d - 2), "a mapped array is its base on the device");
    cr_expect_eq(values[2], (uintptr_t)other, "what is not mapped is the host's pointer");
    cr_expect_eq(values[3], (uintptr_t)(d - 2), "a pointer and object is the object's base");
    fake_run(a.task);
    int *copy = (int *)values[4];
    cr_expect(copy[2] == 2 && copy[5] == 5, "private data is read before the launch (%d %d)", copy[2], copy[5]);
    cr_expect_eq((uintptr_t)(copy + 2) % 64, (uintptr_t)(priv + 1) % 64, "and keeps its alignment");
    cr_expect_eq(*(int **)values[5], d - 2, "a private pointer has the device's base");
    cr_assert_eq(END(&a, &args.args), WEIR_OK);
    cr_assert_eq(do_in(&b, END, RIG_MAPS({x, x + 2, 16, 0, NULL})), WEIR_OK);
    fake_run_all();
    cr_expect_eq(fake_live(), 0, "private data is given back");
}

Test(interop_order, captures_are_translated_in_the_closure)
{
    int x[2] = {1, 2}, unmapped[2];
    struct two {
        int *mapped, *unmapped;
    } closure = {x, unmapped}, shared = {x, unmapped};
    uint64_t values[2];
    uint32_t n = 0;
    struct rig_args args;
    uint64_t capture = WEIR__MAP_PTR_AND_OBJ | WEIR__MAP_LITERAL | WEIR__MAP_IMPLICIT;
    open_both();
    rig_fill(&args,
             RIG_MAPS({&closure, &closure, sizeof closure, PARAM | TO | WEIR__MAP_PRIVATE | WEIR__MAP_IMPLICIT, NULL},
                      {&shared, &shared, sizeof shared, PARAM | TO, NULL}, {x, x, sizeof x, TO, NULL},
                      {&closure.mapped, x, 8, RIG_MEMBER(1) | capture, NULL},
                      {&closure.unmapped, unmapped, 8, RIG_MEMBER(1) | capture, NULL},
                      {&shared.mapped, x, 8, RIG_MEMBER(2) | capture, NULL}));
    cr_assert_eq(BEGIN(&a, &args.args), WEIR_OK);
    cr_assert_eq(weir__data_arguments(&a, &args.args, values, &n), WEIR_OK);
    cr_assert_eq(n, 2);
    fake_run(a.task);
    int *d = weir__table_lookup(table, x);
    for (int i = 0; i < 2; i++) {
        struct two *device = (struct two *)values[i];
        cr_expect_eq(device->mapped, d);
        cr_expect_eq(device->unmapped, unmapped, "what is not mapped stays the host's");
    }
    cr_assert_eq(END(&a, &args.args), WEIR_OK);
}

/* ---- failures ---- */

struct everything {
    int x;
    int *p;
    int y;
};

enum { PHASES = 4 };

/* Runs a construct that uses most rules; what fails in it is told, later phases are left out. */
static int construct(struct everything *s, int *data, int *held, int *priv, int *phase)
{
    struct rig_args args;
    uint64_t values[RIG_ENTRIES];
    uint32_t n;
    int *second = data + 8;
    rig_fill(&args,
             RIG_MAPS({s, s, sizeof *s, 0, NULL}, {s, &s->x, 4, RIG_MEMBER(1) | BOTH, NULL},
                      {&s->p, data, 16, RIG_MEMBER(1) | BOTH | WEIR__MAP_PTR_AND_OBJ, NULL},
                      {held, held, 16, PARAM | BOTH | WEIR__MAP_ALWAYS, NULL}, {second, second, 16, PARAM | FROM, NULL},
                      {&s->p, data + 1, 8, WEIR__MAP_ATTACH | WEIR__MAP_ALWAYS, NULL},
                      {priv, priv, 16, PARAM | TO | WEIR__MAP_PRIVATE, NULL}));
    weir__region_open(&a, fake_task(), fake_device(), table);
    *phase = 0;
    int rc = BEGIN(&a, &args.args);
    if (rc) return rc;
    *phase = 1;
    rc = weir__data_arguments(&a, &args.args, values, &n);
    if (!rc) {
        *phase = 2;
        rc = UPDATE(&a, &args.args);
    }
    if (!rc) *phase = 3;
    int end = END(&a, &args.args);
    return rc ? rc : end;
}

static void fail_everywhere(void (*fail_at)(unsigned), bool fresh)
{
    unsigned seen[PHASES] = {0}, n = 1;
    for (;; n++) {
        int data[16] = {0}, held[4] = {0}, priv[4] = {0}, phase;
        struct everything s = {.p = data};
        if (fresh) {
            weir__region_fini(&a);
            weir__region_init(&a);
            weir__table_destroy(table);
            cr_assert_eq(weir__table_create(NULL, fake_device(), &table), WEIR_OK);
        }
        cr_assert_eq(rig_data(table, &b, BEGIN, RIG_MAPS({held, held, 16, 0, NULL})), WEIR_OK);
        fail_at(n);
        int rc = construct(&s, data, held, priv, &phase);
        bool failed = fake_failed();
        fail_at(0);
        if (rc) seen[phase]++;
        struct weir__found found;
        weir__table_find(table, (uintptr_t)held, 1, &found);
        cr_expect_eq(weir__table_count(table), 1, "failure %u: only what was mapped before is", n);
        cr_expect_eq(weir__state_dynamic(found.state), 1, "failure %u: %u references", n,
                     weir__state_dynamic(found.state));
        fake_run_all();
        weir__region_finish(&a);
        cr_expect_eq(fake_live(), 1, "failure %u in phase %d: %u pieces of memory", n, phase, fake_live());
        cr_expect_eq(s.p, data);
        cr_assert_eq(do_in(&b, END, RIG_MAPS({held, held, 16, 0, NULL})), WEIR_OK);
        fake_run_all();
        weir__region_finish(&b);
        cr_assert_eq(weir__table_count(table), 0);
        if (!failed) break;
    }
    fprintf(stderr, "failures: %u injected, in begin %u, arguments %u, update %u, end %u\n", n - 1, seen[0], seen[1],
            seen[2], seen[3]);
    cr_expect_gt(seen[0], 3);
    cr_expect_gt(n, 8);
}

Test(interop_order, every_device_call_may_fail)
{
    fail_everywhere(fake_fail_at, false);
}

Test(interop_order, every_allocation_may_fail)
{
    fail_everywhere(fake_fail_memory_at, true);
}

/* ---- the first transfer is another thread's ---- */

static int x_pending[4];
static atomic_int begun;

static void *begin_pending(void *arg)
{
    const struct rig_map map[] = {{x_pending, x_pending, sizeof x_pending, TO, NULL}};
    *(int *)arg = do_in(&b, BEGIN, map, 1);
    atomic_store(&begun, 1);
    return NULL;
}

static struct weir__mapped *pending_entry(void)
{
    struct weir__mapped *entry =
        weir__table_take(table, (uintptr_t)x_pending, sizeof x_pending, (uintptr_t)x_pending, 64);
    uint64_t state;
    cr_assert(entry);
    atomic_store(&entry->transfer, WEIR__TRANSFER_PENDING);
    cr_assert_eq(weir__table_insert(table, entry, 1, 0, &state), WEIR_OK);
    return entry;
}

Test(interop_order, begin_waits_until_another_thread_has_queued_the_transfer)
{
    pthread_t thread;
    int rc = -1;
    struct weir__mapped *entry = pending_entry();
    open_both();
    pthread_create(&thread, NULL, begin_pending, &rc);
    /* It cannot be over before this, however long it takes to get there. */
    while (weir__state_dynamic(atomic_load(&entry->state)) != 2) sched_yield();
    cr_expect_eq(atomic_load(&begun), 0);
    weir__table_publish(table, entry, 0, 0);
    pthread_join(thread, NULL);
    cr_expect_eq(rc, WEIR_OK);
}

Test(interop_order, failed_transfer_of_another_thread_fails_who_relies_on_it)
{
    pthread_t thread;
    int rc = 0;
    struct weir__mapped *entry = pending_entry();
    open_both();
    pthread_create(&thread, NULL, begin_pending, &rc);
    while (weir__state_dynamic(atomic_load(&entry->state)) != 2) sched_yield();
    weir__table_publish(table, entry, WEIR__TRANSFER_FAILED, 0);
    pthread_join(thread, NULL);
    cr_expect_eq(rc, WEIR_E_DEVICE);
    cr_expect_eq(weir__state_dynamic(atomic_load(&entry->state)), 1, "its reference is taken back");
}

/* ---- threads ---- */

enum { THREADS = 8, ROUNDS = 1000 };

static int common[64], neighbours[THREADS][16];
static struct {
    int *p;
    int n;
} shared_struct = {common + 32, 32};
static atomic_uint mistakes;

static void round_do(struct weir__region *region, int *mine, int round)
{
    struct rig_args args;
    uint64_t values[4];
    uint32_t n;
    rig_fill(&args, RIG_MAPS({common, common, 128, PARAM | TO, NULL},
                             {&shared_struct, &shared_struct, sizeof shared_struct, PARAM | TO, NULL},
                             {mine, mine, 64, PARAM | BOTH, NULL}, {common + 32, common + 32, 128, TO, NULL},
                             {&shared_struct.p, common + 32, 8, WEIR__MAP_ATTACH | WEIR__MAP_ALWAYS, NULL}));
    if (round % 3) args.args.n = 3; /* without the pointer */
    weir__region_open(region, fake_task(), fake_device(), table);
    if (BEGIN(region, &args.args) || weir__data_arguments(region, &args.args, values, &n)) {
        atomic_fetch_add(&mistakes, 1);
        return;
    }
    const int *c = (const int *)values[0];
    int *m = (int *)values[2];
    for (int i = 0; i < 32; i++)
        if (c[i] != i) atomic_fetch_add(&mistakes, 1);
    m[round % 16]++;
    if (END(region, &args.args)) atomic_fetch_add(&mistakes, 1);
    weir__region_finish(region);
}

static void *map_often(void *arg)
{
    int *mine = arg;
    struct weir__region region;
    weir__region_init(&region);
    for (int round = 0; round < ROUNDS; round++) {
        round_do(&region, mine, round);
        for (int i = 0; i < 16; i++)
            if (mine[i] != round / 16 + (i <= round % 16)) atomic_fetch_add(&mistakes, 1);
    }
    weir__region_fini(&region);
    return NULL;
}

Test(interop_order, threads_map_the_same_and_neighbouring_data)
{
    pthread_t threads[THREADS];
    fake_reset(false);
    for (int i = 0; i < 64; i++) common[i] = i;
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, map_often, neighbours[i]);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    cr_expect_eq(mistakes, 0);
    cr_expect_eq(weir__table_count(table), 0);
    cr_expect_eq(fake_live(), 0);
}

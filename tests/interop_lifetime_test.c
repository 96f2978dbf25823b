/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <criterion/criterion.h>

#include "data_rig.h"

/* Host ranges that are mapped again while the work of an earlier construct still copies them back. */

enum { TO = WEIR__MAP_TO, FROM = WEIR__MAP_FROM, BOTH = TO | FROM, ALWAYS = WEIR__MAP_ALWAYS, TASKS = 12 };

static struct weir__table *table;
static struct weir__region regions[TASKS];

static void set_up(void)
{
    fake_reset(true);
    cr_assert_eq(weir__table_create(NULL, fake_device(), &table), WEIR_OK);
    for (int i = 0; i < TASKS; i++) {
        weir__region_init(&regions[i]);
        weir__region_open(&regions[i], fake_task(), fake_device(), table);
    }
}

static void tear_down(void)
{
    fake_run_all();
    for (int i = 0; i < TASKS; i++) weir__region_fini(&regions[i]);
    cr_expect_eq(fake_violations(), 0);
    cr_expect_eq(weir__table_count(table), 0);
    weir__table_destroy(table);
    cr_expect_eq(fake_live(), 0, "device memory is left over");
    fake_reset(false);
}

TestSuite(interop_lifetime, .init = set_up, .fini = tear_down, .timeout = 300);

static void begin(int i, int *x, size_t n, uint64_t type)
{
    struct rig_args args;
    cr_assert_eq(weir__data_begin(&regions[i], rig_fill(&args, RIG_MAPS({x, x, (int64_t)(n * sizeof *x), type, NULL}))),
                 WEIR_OK);
}

static void end(int i, int *x, size_t n, uint64_t type)
{
    struct rig_args args;
    cr_assert_eq(weir__data_end(&regions[i], rig_fill(&args, RIG_MAPS({x, x, (int64_t)(n * sizeof *x), type, NULL}))),
                 WEIR_OK);
}

static void update(int i, int *x, size_t n, uint64_t type)
{
    struct rig_args args;
    cr_assert_eq(
        weir__data_update(&regions[i], rig_fill(&args, RIG_MAPS({x, x, (int64_t)(n * sizeof *x), type, NULL}))),
        WEIR_OK);
}

static void increment(void *arg)
{
    (*(int *)arg)++;
}

/* A task that maps x[0 : n] and increments x[at] on the device. */
static void task(int i, int *x, size_t n, size_t at)
{
    begin(i, x, n, BOTH);
    fake_kernel(regions[i].task, increment, weir__table_lookup(table, x + at));
    end(i, x, n, BOTH);
}

/* Runs the streams of the first tasks piece by piece, each time another one. */
static void run_mixed(unsigned n, unsigned seed)
{
    uint64_t random = seed * 0x9e3779b97f4a7c15u + 1;
    for (unsigned idle = 0; idle < 8 * n;) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        idle = fake_step(regions[(random >> 20) % n].task) ? 0 : idle + 1;
    }
    fake_run_all();
}

Test(interop_lifetime, tasks_without_order_keep_their_parts_in_every_order)
{
    enum { N = 5 };
    for (unsigned seed = 0; seed < 200; seed++) {
        int x[N] = {10, 20, 30, 40, 50};
        for (int i = 0; i < N; i++) task(i, x, N, (size_t)i);
        run_mixed(N, seed);
        for (int i = 0; i < N; i++) cr_expect_eq(x[i], 10 * (i + 1) + 1, "seed %u: x[%d] is %d", seed, i, x[i]);
    }
}

Test(interop_lifetime, overlapping_parts_keep_what_the_others_wrote)
{
    for (unsigned seed = 0; seed < 200; seed++) {
        int x[12] = {0};
        task(0, x, 12, 11);    /* all of it */
        task(1, x + 2, 4, 0);  /* inside: x[2] */
        task(2, x + 8, 4, 0);  /* beside that: x[8] */
        task(3, x, 3, 2);      /* x[2] again */
        task(4, x + 1, 10, 1); /* over most of them: x[2] */
        task(5, x + 5, 7, 6);  /* x[11] again */
        run_mixed(6, seed);
        cr_expect(x[2] == 3 && x[8] == 1 && x[11] == 2, "seed %u: %d %d %d", seed, x[2], x[8], x[11]);
    }
}

Test(interop_lifetime, copy_back_alone_comes_behind_the_earlier_one)
{
    static int x[2];
    task(0, x, 2, 0);
    begin(1, x, 2, FROM);
    fake_kernel(regions[1].task, increment, weir__table_lookup(table, x));
    /* Another task's end, which knows of the earlier life only through the entry. */
    end(2, x, 2, FROM);
    fake_run(regions[2].task);
    int newest = x[0];
    fake_run_all();
    cr_expect_eq(x[0], newest, "the earlier copy back came late");
}

Test(interop_lifetime, sharers_of_a_new_mapping_follow_what_ended_before_it)
{
    static int x[2], seen;
    task(0, x, 2, 0);
    begin(1, x, 2, TO);
    begin(2, x, 2, TO);
    update(2, x, 2, FROM);
    fake_run(regions[2].task);
    seen = x[0];
    end(1, x, 2, TO);
    end(2, x, 2, TO);
    cr_expect_eq(seen, 1);
}

/* The construct that ends the entry copies nothing itself. */
Test(interop_lifetime, updates_to_the_host_are_followed_after_the_end)
{
    static int x[2];
    begin(0, x, 2, TO);
    fake_kernel(regions[0].task, increment, weir__table_lookup(table, x));
    update(0, x, 2, FROM);
    end(0, x, 2, 0);
    task(1, x, 2, 0);
    fake_run(regions[1].task);
    cr_expect_eq(x[0], 2);
}

Test(interop_lifetime, updates_with_gaps_are_followed_after_the_end)
{
    static int x[3];
    /* x[0 : 2 : 2] as the compiler writes it: two pieces of one element. */
    uint64_t dims[2][3] = {{0, 2, 2 * sizeof *x}, {0, 1, sizeof *x}};
    struct rig_args args;
    begin(0, x, 3, TO);
    fake_kernel(regions[0].task, increment, weir__table_lookup(table, x));
    rig_fill(&args, RIG_MAPS({x, dims, 2, FROM | WEIR__MAP_NON_CONTIGUOUS, NULL}));
    cr_assert_eq(weir__data_update(&regions[0], &args.args), WEIR_OK);
    end(0, x, 3, 0);
    task(1, x, 3, 0);
    fake_run(regions[1].task);
    cr_expect_eq(x[0], 2);
}

Test(interop_lifetime, always_copies_to_the_host_are_followed_after_the_end)
{
    static int x[2];
    begin(0, x, 2, TO);
    fake_kernel(regions[0].task, increment, weir__table_lookup(table, x));
    begin(1, x, 2, FROM | ALWAYS);
    end(0, x, 2, FROM | ALWAYS); /* not the last one */
    end(1, x, 2, 0);
    task(2, x, 2, 0);
    fake_run(regions[2].task);
    cr_expect_eq(x[0], 2);
}

Test(interop_lifetime, readers_do_not_wait_for_each_other)
{
    static int x[2];
    struct fake_counts before = fake_counts();
    for (int i = 0; i < TASKS; i++) {
        begin(i, x, 2, TO);
        end(i, x, 2, TO);
    }
    cr_expect_eq(fake_counts().waits, before.waits);
    cr_expect_eq(fake_counts().marks - before.marks, TASKS, "one each, behind the copy");
    cr_expect_eq(weir__table_tombstones(table), 0);
}

Test(interop_lifetime, associated_memory_is_free_of_earlier_lives)
{
    static int x[2], memory[2];
    task(0, x, 2, 0);
    cr_assert_eq(weir__table_associate(table, x, memory, sizeof x, 0), WEIR_OK);
    cr_expect_eq(weir__table_lookup(table, x), memory);
    cr_assert_eq(weir__table_disassociate(table, x), WEIR_OK);
    cr_expect_eq(weir__table_tombstones(table), 1);
}

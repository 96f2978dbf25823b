/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_work.h"
#include "interop/mapping.h"

static struct weir__table *table;

static void set_up(void)
{
    fake_reset(false);
    cr_assert_eq(weir__table_create(NULL, fake_device(), &table), WEIR_OK);
}

static void tear_down(void)
{
    weir__table_destroy(table);
    fake_reset(false);
}

TestSuite(interop_mapping, .init = set_up, .fini = tear_down, .timeout = 300);

static struct weir__mapped *add(uintptr_t begin, size_t bytes, uintptr_t base, uint32_t dynamic, uint32_t hold)
{
    struct weir__mapped *entry = weir__table_take(table, begin, bytes, base, begin + 0x100000000);
    uint64_t state;
    if (entry && !weir__table_insert(table, entry, dynamic, hold, &state)) return entry;
    if (entry) weir__table_put(table, entry);
    return NULL;
}

static void drop_all(struct weir__mapped *entry)
{
    uint64_t state = atomic_load(&entry->state);
    cr_assert(weir__mapped_try_drop(entry, &state, weir__state_serial(state) << 36));
    cr_assert_eq(weir__table_bury(table, entry, 0), WEIR_OK);
}

struct find_row {
    const char *says;
    uintptr_t host;
    size_t bytes;
    enum weir__relation relation;
    uintptr_t entry; /* begin of what is found */
};

/* Mapped: [1000, 1100) with base 900, [1100, 1200) with base 1100, [2000, 2100) with base 2050. */
static const struct find_row find_rows[] = {
    {"a range that is an entry is contained in it", 1000, 100, WEIR__FOUND_CONTAINED, 1000},
    {"a part of an entry is contained", 1010, 20, WEIR__FOUND_CONTAINED, 1000},
    {"the last byte is contained", 1099, 1, WEIR__FOUND_CONTAINED, 1000},
    {"the byte behind belongs to the neighbour", 1100, 1, WEIR__FOUND_CONTAINED, 1100},
    {"a range that reaches into the neighbour goes beyond its entry", 1050, 100, WEIR__FOUND_AFTER, 1000},
    {"a range that begins inside and ends in nothing goes beyond", 1150, 100, WEIR__FOUND_AFTER, 1100},
    {"a range that begins before an entry overlaps it", 990, 20, WEIR__FOUND_BEFORE, 1000},
    {"a range around an entry begins before it", 1990, 500, WEIR__FOUND_BEFORE, 2000},
    {"a range that ends where an entry begins does not overlap", 990, 10, WEIR__FOUND_NONE, 0},
    {"a range between entries is not found", 1300, 100, WEIR__FOUND_NONE, 0},
    {"a range behind everything is not found", 5000, 100, WEIR__FOUND_NONE, 0},
    {"a range that goes on to the end of memory is not found", UINTPTR_MAX - 10, 10, WEIR__FOUND_NONE, 0},
    {"no bytes inside an entry are contained", 1010, 0, WEIR__FOUND_CONTAINED, 1000},
    {"no bytes at the begin are contained", 2000, 0, WEIR__FOUND_CONTAINED, 2000},
    {"no bytes behind the end are not found", 1200, 0, WEIR__FOUND_NONE, 0},
    {"no bytes between base and begin are the entry's", 950, 0, WEIR__FOUND_CONTAINED, 1000},
    {"no bytes at the base are the entry's", 900, 0, WEIR__FOUND_CONTAINED, 1000},
    {"no bytes below the base are not found", 899, 0, WEIR__FOUND_NONE, 0},
    {"bytes between base and begin are not found", 950, 1, WEIR__FOUND_NONE, 0},
};

Test(interop_mapping, ranges_are_found_by_their_relation)
{
    cr_assert(add(1000, 100, 900, 1, 0) && add(1100, 100, 1100, 1, 0) && add(2000, 100, 2050, 1, 0));
    for (size_t i = 0; i < sizeof find_rows / sizeof *find_rows; i++) {
        const struct find_row *row = &find_rows[i];
        for (int again = 0; again < 2; again++) {
            struct weir__found found;
            weir__table_find(table, row->host, row->bytes, &found);
            cr_expect_eq(found.relation, row->relation, "%s (got %d)", row->says, found.relation);
            cr_expect_eq(found.entry ? found.begin : 0, row->entry, "%s", row->says);
            if (found.relation == WEIR__FOUND_CONTAINED)
                cr_expect_eq(weir__found_address(&found, row->host), row->host + 0x100000000, "%s", row->says);
        }
    }
}

Test(interop_mapping, overlapping_ranges_are_not_inserted)
{
    cr_assert(add(1000, 100, 1000, 1, 0));
    cr_expect_null(add(1000, 100, 1000, 1, 0));
    cr_expect_null(add(990, 11, 990, 1, 0));
    cr_expect_null(add(1099, 1, 1099, 1, 0));
    cr_expect_null(add(900, 1000, 900, 1, 0));
    cr_expect(add(1100, 1, 1100, 1, 0));
    cr_expect(add(999, 1, 999, 1, 0));
    cr_expect_eq(weir__table_count(table), 3);
}

static void *add_overlapping(void *arg)
{
    *(struct weir__mapped **)arg = add(1050, 100, 1050, 1, 0);
    return NULL;
}

Test(interop_mapping, insert_waits_until_the_dead_entry_is_buried)
{
    pthread_t thread;
    struct weir__mapped *old = add(1000, 100, 1000, 1, 0), *new = NULL;
    uint64_t state = atomic_load(&old->state);
    cr_assert(weir__mapped_try_drop(old, &state, weir__state_dropped(state, false, false)));
    struct weir__found found;
    weir__table_find(table, 1010, 1, &found);
    cr_expect_eq(found.relation, WEIR__FOUND_NONE, "nobody finds it");
    cr_expect_null(weir__table_lookup(table, (void *)1010));
    pthread_create(&thread, NULL, add_overlapping, &new);
    /* However late the thread comes, it has to find the tombstone. */
    for (int i = 0; i < 1000; i++) sched_yield();
    cr_expect_eq(weir__table_count(table), 1);
    cr_assert_eq(weir__table_bury(table, old, 77), WEIR_OK);
    pthread_join(thread, NULL);
    cr_assert(new);
    cr_expect_eq(new->follows, 77);
    cr_expect_eq(new->followed, 1100);
    weir__table_find(table, 1060, 1, &found);
    cr_expect_eq(found.entry, new);
    cr_expect_eq(weir__table_count(table), 1);
}

/* Map and end [begin, begin + bytes), with this point behind it. */
static void live_and_end(uintptr_t begin, size_t bytes, uint64_t point)
{
    struct weir__mapped *entry = add(begin, bytes, begin, 1, 0);
    cr_assert(entry);
    uint64_t state = atomic_load(&entry->state);
    cr_assert(weir__mapped_try_drop(entry, &state, weir__state_serial(state) << 36));
    cr_assert_eq(weir__table_bury(table, entry, point), WEIR_OK);
}

struct ended_row {
    const char *says;
    struct {
        uintptr_t begin;
        size_t bytes;
        uint64_t point;
    } ends[4];
    uintptr_t begin;
    size_t bytes;
    uint64_t points[4]; /* in the order of addresses */
};

static const struct ended_row ended_rows[] = {
    {"nothing ended, nothing to follow", {{0, 0, 0}}, 100, 50, {0}},
    {"the same range again", {{100, 50, 1}}, 100, 50, {1}},
    {"neighbours are not followed", {{50, 50, 1}, {150, 50, 2}}, 100, 50, {0}},
    {"all that overlap are followed", {{90, 20, 1}, {120, 1, 2}, {149, 9, 3}}, 100, 50, {1, 2, 3}},
    {"a newer end replaces the older", {{100, 50, 1}, {100, 50, 2}}, 100, 50, {2}},
    {"a wider end replaces several", {{100, 5, 1}, {110, 5, 2}, {90, 70, 3}}, 100, 50, {3}},
    {"of the older one the front remains", {{100, 50, 1}, {120, 50, 2}}, 100, 10, {1}},
    {"of the older one the back remains", {{120, 50, 1}, {100, 50, 2}}, 160, 10, {1}},
    {"…and the replaced part does not", {{120, 50, 1}, {100, 50, 2}}, 120, 20, {2}},
    {"the middle is replaced, both sides remain", {{100, 50, 1}, {110, 10, 2}}, 100, 50, {1, 2, 1}},
    {"an end in the middle is not known beside it", {{100, 50, 1}, {110, 10, 2}}, 125, 5, {1}},
    {"an end without a copy leaves nothing", {{100, 50, 0}}, 100, 50, {0}},
    {"…and what was there before", {{100, 50, 1}, {90, 90, 0}}, 100, 50, {1}},
};

/* The fake's streams are all done; points of streams that it does not know are never asked for below SWEEP_LEAST. */
Test(interop_mapping, ended_ranges_are_followed_where_they_overlap)
{
    for (size_t i = 0; i < sizeof ended_rows / sizeof *ended_rows; i++) {
        const struct ended_row *row = &ended_rows[i];
        for (int j = 0; j < 4 && row->ends[j].bytes; j++)
            live_and_end(row->ends[j].begin, row->ends[j].bytes, row->ends[j].point);
        struct weir__mapped *entry = add(row->begin, row->bytes, row->begin, 1, 0);
        cr_assert(entry);
        cr_expect_eq(entry->follows, row->points[0], "%s", row->says);
        uintptr_t cursor = row->begin;
        for (int j = 0; j < 4; j++) {
            uint64_t point = weir__table_ended(table, &cursor, row->begin + row->bytes);
            cr_expect_eq(point, row->points[j], "%s: %zu", row->says, (size_t)point);
        }
        tear_down();
        set_up();
    }
}

Test(interop_mapping, ended_ranges_agree_with_an_array_of_bytes)
{
    enum { BYTES = 300 };
    static uint64_t last[BYTES];
    uint64_t n = 200 * 200, seed = 88172645463325252u;
    fake_reset(true);
    struct weir_task *task = fake_task();
    for (uint64_t i = 1; i <= n; i++) {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        size_t begin = seed % BYTES, bytes = 1 + (seed >> 20) % 40, end = begin + bytes < BYTES ? begin + bytes : BYTES;
        struct weir__point point;
        cr_assert_eq(weir__task_mark(task, &point), WEIR_OK);
        live_and_end(4096 + begin, end - begin, point.value);
        for (size_t k = begin; k < end; k++) last[k] = point.value;
        uintptr_t at = 4096 + (seed >> 40) % BYTES, byte = at;
        cr_assert_eq(weir__table_ended(table, &at, at + 1), last[byte - 4096], "end %zu", (size_t)i);
        cr_assert_leq(weir__table_tombstones(table), BYTES);
    }
}

Test(interop_mapping, reached_ends_are_forgotten)
{
    fake_reset(true);
    struct weir_task *task = fake_task(), *late = fake_task();
    struct weir__point point;
    for (uintptr_t i = 0; i < 10000; i++) {
        /* Every thousandth is not reached. */
        struct weir_task *on = i % 1000 ? task : late;
        cr_assert_eq(weir__task_mark(on, &point), WEIR_OK);
        if (on == task) fake_run(task);
        live_and_end(4096 + 64 * i, 64, point.value);
        cr_assert_leq(weir__table_tombstones(table), 100);
    }
    for (uintptr_t i = 0; i < 10000; i += 1000) {
        uintptr_t cursor = 4096 + 64 * i;
        cr_expect_neq(weir__table_ended(table, &cursor, cursor + 64), 0, "not reached, not forgotten");
    }
}

Test(interop_mapping, stale_look_up_cannot_take_a_reference)
{
    struct weir__mapped *entry = add(1000, 100, 1000, 1, 0);
    struct weir__found found;
    weir__table_find(table, 1000, 100, &found);
    drop_all(entry);
    cr_expect_eq(weir__mapped_retain(&found, false), WEIR_E_STATE, "the entry is gone");
    cr_assert_eq(add(1000, 50, 1000, 1, 0), entry, "the same memory is used again");
    cr_expect_eq(weir__mapped_retain(&found, false), WEIR_E_STATE, "the entry is another one");
    weir__table_find(table, 1000, 100, &found);
    cr_expect_eq(found.relation, WEIR__FOUND_AFTER, "what the thread remembers is not believed");
}

struct drop_row {
    const char *says;
    uint32_t dynamic, hold;
    bool of_hold, all;
    uint32_t dynamic_after, hold_after;
};

static const struct drop_row drop_rows[] = {
    {"one of two references goes", 2, 0, false, false, 1, 0},
    {"the last reference goes", 1, 0, false, false, 0, 0},
    {"delete takes all references", 7, 0, false, true, 0, 0},
    {"delete leaves holds alone", 7, 1, false, true, 0, 1},
    {"a hold goes by itself", 3, 2, true, false, 3, 1},
    {"a reference that is not there cannot go", 0, 1, false, false, 0, 1},
    {"an infinite count stays", WEIR__COUNT_INFINITE, 0, false, false, WEIR__COUNT_INFINITE, 0},
    {"delete does not remove an infinite count", WEIR__COUNT_INFINITE, 0, false, true, WEIR__COUNT_INFINITE, 0},
    {"a hold of an infinite entry goes", WEIR__COUNT_INFINITE, 1, true, false, WEIR__COUNT_INFINITE, 0},
};

Test(interop_mapping, references_go_by_their_kind)
{
    for (size_t i = 0; i < sizeof drop_rows / sizeof *drop_rows; i++) {
        const struct drop_row *row = &drop_rows[i];
        uint64_t state = (uint64_t)77 << 36 | (uint64_t)row->hold << 26 | row->dynamic;
        uint64_t after = weir__state_dropped(state, row->of_hold, row->all);
        cr_expect_eq(weir__state_dynamic(after), row->dynamic_after, "%s", row->says);
        cr_expect_eq(weir__state_hold(after), row->hold_after, "%s", row->says);
        cr_expect_eq(weir__state_serial(after), 77, "%s", row->says);
    }
}

Test(interop_mapping, counts_stop_at_their_limit)
{
    struct weir__mapped *entry = add(1000, 100, 1000, WEIR__COUNT_INFINITE - 1, WEIR__HOLD_MOST);
    struct weir__found found;
    cr_assert(entry);
    weir__table_find(table, 1000, 1, &found);
    cr_expect_eq(weir__mapped_retain(&found, false), WEIR_E_INVALID);
    cr_expect_eq(weir__mapped_retain(&found, true), WEIR_E_INVALID);
}

Test(interop_mapping, associated_memory_can_be_taken_back_once)
{
    char host[64] = {0}, memory[128] = {0};
    cr_assert_eq(weir__table_associate(table, host, memory, sizeof host, 16), WEIR_OK);
    cr_expect_eq(weir__table_lookup(table, host + 3), memory + 19);
    cr_expect_eq(weir__table_associate(table, host, memory, sizeof host, 16), WEIR_OK, "the same again is fine");
    cr_expect_eq(weir__table_associate(table, host, memory, sizeof host, 0), WEIR_E_BUSY, "elsewhere is not");
    cr_expect_eq(weir__table_associate(table, host + 60, memory, 10, 0), WEIR_E_BUSY);
    cr_expect_eq(weir__table_associate(table, host, memory, 0, 0), WEIR_E_INVALID);
    cr_expect(weir__table_is_accessible(table, host, sizeof host));
    cr_expect(!weir__table_is_accessible(table, host, sizeof host + 1));
    cr_expect_eq(weir__table_disassociate(table, host), WEIR_OK);
    cr_expect_eq(weir__table_disassociate(table, host), WEIR_E_NOT_FOUND);
    cr_expect_null(weir__table_lookup(table, host));
    cr_assert(add((uintptr_t)host, 8, (uintptr_t)host, 1, 0));
    cr_expect_eq(weir__table_disassociate(table, host), WEIR_E_BUSY, "a map clause's entry is not associated");
    weir__table_set_unified(table);
    cr_expect(weir__table_is_accessible(table, memory, 1), "unified memory is accessible anywhere");
}

Test(interop_mapping, dump_has_one_line_per_entry)
{
    char *text = NULL;
    size_t bytes, lines = 0;
    cr_assert(add(3000, 10, 3000, 2, 1) && add(1000, 10, 1000, WEIR__COUNT_INFINITE, 0) && add(2000, 10, 2000, 1, 0));
    FILE *file = open_memstream(&text, &bytes);
    weir__table_dump(table, file);
    fclose(file);
    for (const char *at = text; *at; at++) lines += *at == '\n';
    cr_expect_eq(lines, 5, "%s", text);
    const char *first = strstr(text, "0x00000000000003e8"), *last = strstr(text, "0x0000000000000bb8");
    cr_expect(first && last && first < last && strstr(first, "inf"), "%s", text);
    free(text);
}

/* ---- against a list ---- */

enum { SPACE = 4096, SLOTS = 256, STEPS = 40000 };

static struct {
    struct weir__mapped *entry;
    uintptr_t begin, end, base;
} list[SLOTS];

static uint64_t seed = 88172645463325252u;

static uint32_t draw(uint32_t n)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)(seed >> 20) % n;
}

static struct weir__mapped *list_find(uintptr_t host, size_t bytes, enum weir__relation *relation)
{
    *relation = WEIR__FOUND_NONE;
    size_t best = SLOTS;
    for (size_t i = 0; i < SLOTS; i++) {
        if (!list[i].entry) continue;
        uintptr_t begin = list[i].begin, end = list[i].end;
        bool hit = host < end && host + (bytes ? bytes : 1) > begin;
        if (!bytes && host < begin) hit = host >= list[i].base;
        if (hit && (best == SLOTS || begin < list[best].begin)) best = i;
    }
    if (best == SLOTS) return NULL;
    if (host < list[best].begin)
        *relation = bytes ? WEIR__FOUND_BEFORE : WEIR__FOUND_CONTAINED;
    else
        *relation = host + bytes <= list[best].end ? WEIR__FOUND_CONTAINED : WEIR__FOUND_AFTER;
    return list[best].entry;
}

static void list_change(void)
{
    size_t slot = draw(SLOTS);
    if (list[slot].entry) {
        drop_all(list[slot].entry);
        list[slot].entry = NULL;
        return;
    }
    uintptr_t begin = 10000 + draw(SPACE), back = draw(4) ? 0 : draw(8);
    size_t bytes = 1 + draw(40);
    enum weir__relation relation;
    bool is_free = !list_find(begin, bytes, &relation);
    /* The zone below the begin is only distinct if nothing else lies in it. */
    if (list_find(begin - back, back + 1, &relation)) back = 0;
    struct weir__mapped *entry = add(begin, bytes, begin - back, 1, 0);
    cr_assert_eq(entry != NULL, is_free);
    if (!entry) return;
    list[slot].entry = entry;
    list[slot].begin = begin;
    list[slot].end = begin + bytes;
    list[slot].base = begin - back;
}

Test(interop_mapping, random_look_ups_agree_with_a_list)
{
    size_t counts[4] = {0};
    for (int i = 0; i < STEPS; i++) {
        list_change();
        for (int j = 0; j < 4; j++) {
            uintptr_t host = 9990 + draw(SPACE + 60);
            size_t bytes = 1 + draw(30);
            enum weir__relation relation;
            struct weir__mapped *entry = list_find(host, bytes, &relation);
            struct weir__found found;
            weir__table_find(table, host, bytes, &found);
            cr_assert_eq(found.relation, relation, "step %d: %zu bytes at %zu", i, bytes, (size_t)host);
            cr_assert_eq(found.entry, entry);
            counts[relation]++;
        }
    }
    for (int i = 0; i < 4; i++) cr_expect_gt(counts[i], 1000, "relation %d was seen %zu times", i, counts[i]);
}

static double steps_with(size_t n)
{
    static size_t total;
    while (total < n) cr_assert(add(4096 + total++ * 64, 64, 0, 1, 0));
    double sum = 0;
    for (size_t i = 0; i < 1000; i++) sum += (double)weir__table_steps(table, 4096 + (i * 7919 % n) * 64 + 5);
    return sum / 1000;
}

Test(interop_mapping, look_ups_grow_with_the_logarithm)
{
    double small = steps_with(1000), medium = steps_with(10000), large = steps_with(100000);
    fprintf(stderr, "steps of a look-up: 1,000 ranges %.1f, 10,000 %.1f, 100,000 %.1f\n", small, medium, large);
    /* Ten times as many: 2 ln 10 = 4.6 more on average. */
    cr_expect_lt(medium - small, 10, "%.1f %.1f", small, medium);
    cr_expect_lt(large - medium, 10, "%.1f %.1f", medium, large);
    cr_expect_lt(large, 45);
}

/* ---- threads ---- */

enum { THREADS = 8, ROUNDS = 4000, RANGES = 16 };

static atomic_uint mistakes;

/* Each thread maps a range if it is not there, or counts it once more; the device address tells the range. */
static void map_once(uintptr_t begin)
{
    struct weir__found found;
    for (;;) {
        weir__table_find(table, begin, 64, &found);
        if (found.relation == WEIR__FOUND_CONTAINED) {
            if (!weir__mapped_retain(&found, false)) break;
            continue;
        }
        if (found.relation != WEIR__FOUND_NONE) atomic_fetch_add(&mistakes, 1);
        if (add(begin, 64, begin, 1, 0)) break;
    }
    /* The reference is held: the range must be found, always, and in its place. */
    weir__table_find(table, begin + 8, 8, &found);
    if (found.relation != WEIR__FOUND_CONTAINED || found.begin != begin || found.device != begin + 0x100000000)
        atomic_fetch_add(&mistakes, 1);
    uint64_t state = found.state;
    for (;;) {
        uint64_t dropped = weir__state_dropped(state, false, false);
        if (!weir__mapped_try_drop(found.entry, &state, dropped)) continue;
        if (!weir__state_alive(dropped)) {
            /* Every other one leaves a tombstone. */
            if (weir__table_bury(table, found.entry, begin / 64 % 2)) atomic_fetch_add(&mistakes, 1);
        }
        return;
    }
}

static void *map_often(void *arg)
{
    uint64_t own = (uintptr_t)arg * 2654435761u + 1;
    for (int i = 0; i < ROUNDS; i++) {
        own ^= own << 13;
        own ^= own >> 7;
        own ^= own << 17;
        map_once(4096 + own % RANGES * 64);
    }
    return NULL;
}

Test(interop_mapping, threads_map_and_unmap_the_same_and_neighbouring_ranges)
{
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, map_often, (void *)(i + 1));
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    cr_expect_eq(mistakes, 0);
    cr_expect_eq(weir__table_count(table), 0);
}

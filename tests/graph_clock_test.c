/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

#include <graph/clock.h>
#include <weir/error.h>

enum { WIDTH = 4 };

static void wait_for(struct weir__clock *consumer, uint64_t position, const struct weir__clock *producer, uint64_t at)
{
    uint64_t vector[WIDTH];
    weir__clock_snapshot(producer, at, vector, WIDTH);
    cr_assert_eq(weir__clock_wait(consumer, position, vector, WIDTH), WEIR_OK);
}

Test(clock, own_stream_is_always_known)
{
    struct weir__clock clock;
    weir__clock_init(&clock, 2);
    cr_assert(weir__clock_covers(&clock, 2, 99));
    cr_assert_not(weir__clock_covers(&clock, 1, 1));
    uint64_t vector[WIDTH];
    weir__clock_snapshot(&clock, 7, vector, WIDTH);
    cr_assert_eq(vector[2], 7);
    cr_assert_eq(vector[0] + vector[1] + vector[3], 0);
    weir__clock_fini(&clock);
}

Test(clock, knowledge_is_inherited_from_the_awaited_point)
{
    struct weir__clock a, b, c;
    weir__clock_init(&a, 0);
    weir__clock_init(&b, 1);
    weir__clock_init(&c, 2);
    wait_for(&b, 5, &a, 3);
    wait_for(&c, 1, &b, 5);
    cr_assert(weir__clock_covers(&c, 1, 5));
    cr_assert(weir__clock_covers(&c, 0, 3));
    cr_assert_not(weir__clock_covers(&c, 0, 4));
    weir__clock_fini(&a);
    weir__clock_fini(&b);
    weir__clock_fini(&c);
}

Test(clock, earlier_point_of_a_stream_knows_less)
{
    struct weir__clock a, b;
    uint64_t vector[WIDTH];
    weir__clock_init(&a, 0);
    weir__clock_init(&b, 1);
    wait_for(&b, 5, &a, 3);
    weir__clock_snapshot(&b, 4, vector, WIDTH);
    cr_assert_eq(vector[0], 0);
    weir__clock_snapshot(&b, 6, vector, WIDTH);
    cr_assert_eq(vector[0], 3);
    weir__clock_fini(&a);
    weir__clock_fini(&b);
}

Test(clock, forgotten_positions_know_nothing_and_later_ones_keep_their_vector)
{
    struct weir__clock a, b;
    uint64_t vector[WIDTH];
    weir__clock_init(&a, 0);
    weir__clock_init(&b, 1);
    wait_for(&b, 2, &a, 1);
    wait_for(&b, 5, &a, 3);
    wait_for(&b, 8, &a, 4);
    weir__clock_forget(&b, 5);
    cr_assert_eq(b.log_count, 2);
    weir__clock_snapshot(&b, 5, vector, WIDTH);
    cr_assert_eq(vector[0], 0);
    cr_assert_eq(vector[1], 5);
    weir__clock_snapshot(&b, 6, vector, WIDTH);
    cr_assert_eq(vector[0], 3);
    weir__clock_snapshot(&b, 8, vector, WIDTH);
    cr_assert_eq(vector[0], 4);
    weir__clock_forget(&b, 3); /* going back is ignored */
    cr_assert_eq(b.forgotten, 5);
    weir__clock_fini(&a);
    weir__clock_fini(&b);
}

/* Where nothing completes the log is cut: an old point is known to be behind its own stream only. */
Test(clock, shortened_clock_knows_the_newest_and_less_of_the_older)
{
    struct weir__clock a, b;
    uint64_t vector[WIDTH];
    weir__clock_init(&a, 0);
    weir__clock_init(&b, 1);
    for (uint64_t i = 1; i <= 1000; i++) {
        cr_assert_eq(weir__clock_reserve(&b, WIDTH, 1), WEIR_OK);
        wait_for(&b, 2 * i, &a, i);
        weir__clock_shorten(&b, 15);
    }
    cr_assert_eq(b.log_count, 15);
    cr_assert_leq(b.log_capacity, 16);
    for (uint64_t i = 1; i <= 1000; i++) {
        weir__clock_snapshot(&b, 2 * i + 1, vector, WIDTH);
        cr_assert_eq(vector[0], i > 1000 - 15 ? i : 0, "%d", (int)i);
        cr_assert_eq(vector[1], 2 * i + 1);
    }
    cr_assert(weir__clock_covers(&b, 0, 1000));
    weir__clock_shorten(&b, 1);
    weir__clock_snapshot(&b, 2000, vector, WIDTH);
    cr_assert_eq(vector[0], 1000);
    weir__clock_fini(&a);
    weir__clock_fini(&b);
}

Test(clock, ids_beyond_the_vector_are_unknown_not_wrong)
{
    struct weir__clock a, b;
    uint64_t vector[2] = {9, 9};
    weir__clock_init(&a, 70);
    weir__clock_init(&b, 1);
    weir__clock_snapshot(&a, 4, vector, 2);
    cr_assert_eq(vector[0] + vector[1], 0);
    uint64_t wide[71] = {[70] = 4};
    cr_assert_eq(weir__clock_wait(&b, 1, wide, 71), WEIR_OK);
    cr_assert(weir__clock_covers(&b, 70, 4));
    cr_assert_not(weir__clock_covers(&b, 700, 1));
    struct weir__clock_candidate candidate = {.stream = 700, .position = 1};
    cr_assert_eq(weir__clock_select(&b, &candidate, 1, wide, 71), 1);
    weir__clock_fini(&a);
    weir__clock_fini(&b);
}

Test(clock, first_of_two_equal_points_is_needed)
{
    struct weir__clock c;
    weir__clock_init(&c, 3);
    struct weir__clock_candidate pair[2] = {{.stream = 1, .position = 4}, {.stream = 1, .position = 4}};
    uint64_t vectors[2 * WIDTH] = {[1] = 4, [WIDTH + 1] = 4};
    cr_assert_eq(weir__clock_select(&c, pair, 2, vectors, WIDTH), 1);
    cr_assert_eq(pair[0].verdict, WEIR__CLOCK_NEEDED);
    cr_assert_eq(pair[1].verdict, WEIR__CLOCK_IMPLIED);
    cr_assert_eq(pair[1].by, 0);
    weir__clock_fini(&c);
}

Test(clock, chain_of_candidates_needs_its_end_only)
{
    struct weir__clock c;
    weir__clock_init(&c, 3);
    struct weir__clock_candidate chain[3] = {
        {.stream = 0, .position = 1}, {.stream = 1, .position = 1}, {.stream = 2, .position = 1}};
    uint64_t vectors[3 * WIDTH] = {[0] = 1,         [WIDTH] = 1,         [WIDTH + 1] = 1,
                                   [2 * WIDTH] = 1, [2 * WIDTH + 1] = 1, [2 * WIDTH + 2] = 1};
    cr_assert_eq(weir__clock_select(&c, chain, 3, vectors, WIDTH), 1);
    cr_assert_eq(chain[0].by, 2);
    cr_assert_eq(chain[1].by, 2);
    cr_assert_eq(chain[2].verdict, WEIR__CLOCK_NEEDED);
    weir__clock_fini(&c);
}

Test(clock, reserve_makes_the_next_waits_succeed_in_place)
{
    struct weir__clock b;
    weir__clock_init(&b, 1);
    cr_assert_eq(weir__clock_reserve(&b, WIDTH, 100), WEIR_OK);
    const void *known = b.known, *log = b.log;
    for (uint64_t i = 1; i <= 100; i++) {
        uint64_t vector[WIDTH] = {i};
        cr_assert_eq(weir__clock_wait(&b, i, vector, WIDTH), WEIR_OK);
    }
    cr_assert_eq(b.known, known);
    cr_assert_eq((const void *)b.log, log);
    weir__clock_fini(&b);
}

Test(clock, impossible_reservation_changes_nothing)
{
    struct weir__clock b;
    weir__clock_init(&b, 1);
    cr_assert_eq(weir__clock_reserve(&b, WIDTH, SIZE_MAX), WEIR_E_NO_MEMORY);
    cr_assert_eq(weir__clock_reserve(&b, UINT32_MAX, 1), WEIR_E_NO_MEMORY);
    cr_assert_eq(b.width, 0);
    cr_assert_eq(b.log_capacity, 0);
    weir__clock_fini(&b);
}

Test(clock, pruned_clock_stops_allocating)
{
    struct weir__clock b;
    weir__clock_init(&b, 1);
    const void *log = NULL;
    for (uint64_t i = 1; i <= 100000; i++) {
        uint64_t vector[WIDTH] = {i, 0, i / 2};
        cr_assert_eq(weir__clock_wait(&b, i, vector, WIDTH), WEIR_OK);
        if (i > 8) weir__clock_forget(&b, i - 8);
        if (i == 1000) log = b.log;
        if (i > 1000) cr_assert_eq((const void *)b.log, log);
    }
    cr_assert_leq(b.log_capacity, 16);
    weir__clock_fini(&b);
}

Test(clock, repeated_wait_takes_no_entry)
{
    struct weir__clock a, b;
    weir__clock_init(&a, 0);
    weir__clock_init(&b, 1);
    for (uint64_t i = 1; i <= 50; i++) wait_for(&b, i, &a, 3);
    cr_assert_eq(b.log_count, 1);
    weir__clock_fini(&a);
    weir__clock_fini(&b);
}

/* ---- against brute force: each point keeps the set of all points before it ---- */

enum { STREAMS = 6, POINTS = 40, MAX_CANDIDATES = 12 };

struct history {
    struct weir__clock clock[STREAMS];
    uint64_t length[STREAMS];
    bool before[STREAMS][POINTS + 1][STREAMS][POINTS + 1]; /* before[s][p][t][q]: (t, q) is before or at (s, p) */
    uint64_t seed;
};

static uint32_t draw(struct history *h, uint32_t n)
{
    h->seed = h->seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(h->seed >> 33) % n;
}

static void include(struct history *h, uint32_t s, uint64_t p, uint32_t t, uint64_t q)
{
    bool *to = &h->before[s][p][0][0], *from = &h->before[t][q][0][0];
    for (size_t i = 0; i < sizeof h->before[s][p]; i++) to[i] |= from[i];
}

static void check_candidates(struct history *h, uint32_t s, uint64_t p, const struct weir__clock_candidate *c, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bool known = h->before[s][p][c[i].stream][c[i].position], implied = false;
        for (size_t j = 0; j < n; j++) {
            bool equal = c[i].stream == c[j].stream && c[i].position == c[j].position;
            if (j != i && (!equal || j < i) && h->before[c[j].stream][c[j].position][c[i].stream][c[i].position])
                implied = true;
        }
        uint32_t expected = known ? WEIR__CLOCK_KNOWN : implied ? WEIR__CLOCK_IMPLIED : WEIR__CLOCK_NEEDED;
        cr_assert_eq(c[i].verdict, expected, "candidate %zu: %u, not %u", i, c[i].verdict, expected);
        const struct weir__clock_candidate *by = &c[c[i].by];
        cr_assert(known || by->verdict == WEIR__CLOCK_NEEDED);
        cr_assert(known || h->before[by->stream][by->position][c[i].stream][c[i].position]);
    }
}

static void check_snapshot(struct history *h, uint32_t s, uint64_t p)
{
    uint64_t vector[STREAMS];
    weir__clock_snapshot(&h->clock[s], p, vector, STREAMS);
    for (uint32_t t = 0; t < STREAMS; t++) {
        uint64_t newest = 0;
        for (uint64_t q = 1; q <= POINTS; q++)
            if (h->before[s][p][t][q]) newest = q;
        if (p <= h->clock[s].forgotten && t != s) newest = 0;
        cr_assert_eq(vector[t], newest);
    }
}

/* A task on a random stream behind random points. The points may be old; those forgotten are done and not asked for. */
static void step(struct history *h)
{
    struct weir__clock_candidate candidates[MAX_CANDIDATES];
    uint64_t vectors[MAX_CANDIDATES * STREAMS] = {0};
    uint32_t s = draw(h, STREAMS);
    if (h->length[s] == POINTS) return;
    uint64_t p = ++h->length[s];
    if (p > 1) include(h, s, p, s, p - 1);
    size_t n = 0, wanted = draw(h, draw(h, 4) ? 5 : MAX_CANDIDATES + 1);
    for (size_t i = 0; i < wanted; i++) {
        uint32_t t = draw(h, STREAMS);
        uint64_t oldest = h->clock[t].forgotten + 1;
        if (t == s || h->length[t] < oldest) continue;
        uint64_t q = oldest + draw(h, (uint32_t)(h->length[t] - oldest + 1));
        candidates[n] = (struct weir__clock_candidate){.stream = t, .position = q};
        weir__clock_snapshot(&h->clock[t], q, vectors + n++ * STREAMS, STREAMS);
    }
    size_t needed = weir__clock_select(&h->clock[s], candidates, n, vectors, STREAMS), counted = 0;
    check_candidates(h, s, p, candidates, n);
    for (size_t i = 0; i < n; i++) {
        if (candidates[i].verdict == WEIR__CLOCK_NEEDED) {
            cr_assert_eq(weir__clock_wait(&h->clock[s], p, vectors + i * STREAMS, STREAMS), WEIR_OK);
            counted++;
        }
        include(h, s, p, candidates[i].stream, candidates[i].position);
    }
    cr_assert_eq(counted, needed);
    h->before[s][p][s][p] = true;
    check_snapshot(h, s, p);
    check_snapshot(h, s, 1 + draw(h, (uint32_t)p));
}

/* What is done is closed under "before", as on a device: forget up to a point and everything it is behind. */
static void complete(struct history *h)
{
    uint32_t s = draw(h, STREAMS);
    if (!h->length[s]) return;
    uint64_t p = 1 + draw(h, (uint32_t)h->length[s]);
    for (uint32_t t = 0; t < STREAMS; t++)
        for (uint64_t q = 1; q <= POINTS; q++)
            if (h->before[s][p][t][q]) weir__clock_forget(&h->clock[t], q);
}

Test(clock, random_histories_match_brute_force)
{
    static struct history h;
    for (uint64_t seed = 1; seed <= 400; seed++) {
        memset(&h, 0, sizeof h);
        h.seed = seed;
        for (uint32_t s = 0; s < STREAMS; s++) weir__clock_init(&h.clock[s], s);
        for (int i = 0; i < STREAMS * POINTS; i++) {
            step(&h);
            if (seed % 2 && draw(&h, 10) == 0) complete(&h);
        }
        for (uint32_t s = 0; s < STREAMS; s++) {
            cr_assert_eq(h.clock[s].dropped, 0);
            weir__clock_fini(&h.clock[s]);
        }
    }
}

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

#include <graph/check.h>
#include <graph/clock.h>

enum {
    DONE = WEIR__CERTIFICATE_DONE,
    STREAM = WEIR__CERTIFICATE_STREAM,
    KNOWN = WEIR__CERTIFICATE_KNOWN,
    IMPLIED = WEIR__CERTIFICATE_IMPLIED,
    EVENT = WEIR__CERTIFICATE_EVENT,
    HOST = WEIR__CERTIFICATE_HOST
};

/* Hand-made certificates: up to five records, each with up to three edges and three waits; .task 0 ends the list. */
struct line {
    uint64_t task;
    uint32_t stream;
    uint64_t position;
    size_t nedges, nwaits;
    struct weir__certificate_edge edges[3];
    struct weir__certificate_wait waits[3];
    bool again;
};

struct row {
    const char *says;  /* what it shows */
    const char *fault; /* a part of the text, NULL: the certificate is good */
    struct line lines[5];
};

/* In all of them stream 1 waits for 0:1, so that 1:1 implies it. */
#define FIRST {.task = 1, .stream = 0, .position = 1}
#define SECOND                                                                                                         \
    {                                                                                                                  \
        .task = 2, .stream = 1, .position = 1, .nedges = 1, .nwaits = 1, .edges = {{0, EVENT, 1, 0}}, .waits = {       \
            {0, false, 1}                                                                                              \
        }                                                                                                              \
    }
#define THIRD(...) {.task = 3, .stream = 2, .position = 1, __VA_ARGS__}

static const struct row rows[] = {
    {"an event realises an edge", NULL, {FIRST, SECOND}},
    {"the same stream, done and the host need no wait",
     NULL,
     {FIRST,
      {.task = 2,
       .stream = 0,
       .position = 2,
       .nedges = 3,
       .edges = {{0, STREAM, 1, 0}, {4, DONE, 9, 0}, {5, HOST, 9, 0}}}}},
    {"a wait implies what its point is behind",
     NULL,
     {FIRST, SECOND,
      THIRD(.nedges = 2, .nwaits = 1, .edges = {{0, IMPLIED, 1, 0}, {1, EVENT, 1, 0}}, .waits = {{1, false, 1}})}},
    {"an equal point is implied",
     NULL,
     {FIRST,
      THIRD(.nedges = 2, .nwaits = 1, .edges = {{0, EVENT, 1, 0}, {0, IMPLIED, 1, 0}}, .waits = {{0, false, 1}})}},
    {"what a stream waited for stays known, by way of others as well",
     NULL,
     {FIRST,
      SECOND,
      THIRD(.nedges = 1, .nwaits = 1, .edges = {{1, EVENT, 1, 0}}, .waits = {{1, false, 1}}),
      {.task = 4, .stream = 2, .position = 2, .nedges = 2, .edges = {{0, KNOWN, 1, 0}, {1, KNOWN, 1, 0}}}}},
    {"a wait for a newer position of the stream realises an older edge",
     NULL,
     {FIRST,
      {.task = 2, .stream = 0, .position = 2},
      THIRD(.nedges = 2, .nwaits = 1, .edges = {{0, EVENT, 1, 0}, {0, EVENT, 2, 0}}, .waits = {{0, false, 2}})}},
    {"a position may be announced again by a task that waits again",
     NULL,
     {FIRST,
      SECOND,
      THIRD(.nedges = 1, .nwaits = 1, .edges = {{0, EVENT, 1, 0}}, .waits = {{0, false, 1}}),
      {.task = 3,
       .stream = 2,
       .position = 1,
       .again = true,
       .nedges = 1,
       .nwaits = 1,
       .edges = {{1, EVENT, 1, 0}},
       .waits = {{1, false, 1}}}}},
    {"what a blind wait implies could not be known",
     NULL,
     {FIRST, SECOND,
      THIRD(.nedges = 2, .nwaits = 2, .edges = {{0, EVENT, 1, 0}, {1, EVENT, 1, 1}},
            .waits = {{0, false, 1}, {1, true, 1}})}},
    {"and later neither",
     NULL,
     {FIRST,
      SECOND,
      THIRD(.nedges = 1, .nwaits = 1, .edges = {{1, EVENT, 1, 0}}, .waits = {{1, true, 1}}),
      {.task = 4,
       .stream = 2,
       .position = 2,
       .nedges = 1,
       .nwaits = 1,
       .edges = {{0, EVENT, 1, 0}},
       .waits = {{0, false, 1}}}}},

    {"an edge without a wait",
     "task 3 on 2:1: edge 0 (from 0:1, known): the stream was not behind it",
     {FIRST, THIRD(.nedges = 1, .edges = {{0, KNOWN, 1, 0}})}},
    {"an event that was not waited for",
     "there is no such wait",
     {FIRST, THIRD(.nedges = 1, .edges = {{0, EVENT, 1, 0}})}},
    {"a wait for an older position",
     "the wait is for an older position",
     {FIRST,
      {.task = 2, .stream = 0, .position = 2},
      THIRD(.nedges = 1, .nwaits = 1, .edges = {{0, EVENT, 2, 0}}, .waits = {{0, false, 1}})}},
    {"a wait for another stream",
     "the wait is for another stream",
     {FIRST, SECOND,
      THIRD(.nedges = 2, .nwaits = 1, .edges = {{1, EVENT, 1, 0}, {0, EVENT, 1, 0}}, .waits = {{1, false, 1}})}},
    {"the same stream that is another",
     "it is another stream",
     {FIRST, THIRD(.nedges = 1, .edges = {{0, STREAM, 1, 0}})}},
    {"the same stream at the task's own position",
     "not before the task's",
     {FIRST, {.task = 2, .stream = 0, .position = 2, .nedges = 1, .edges = {{0, STREAM, 2, 0}}}}},
    {"known that is the same stream",
     "it is the same stream",
     {FIRST, {.task = 2, .stream = 0, .position = 2, .nedges = 1, .edges = {{0, KNOWN, 1, 0}}}}},
    {"implied by a wait that is not behind it",
     "the wait does not imply it",
     {FIRST,
      {.task = 2, .stream = 1, .position = 1},
      THIRD(.nedges = 2, .nwaits = 1, .edges = {{1, EVENT, 1, 0}, {0, IMPLIED, 1, 0}}, .waits = {{1, false, 1}})}},
    {"implied by a point older than the wait it would inherit",
     "the wait does not imply it",
     {FIRST,
      {.task = 2, .stream = 1, .position = 1},
      {.task = 3,
       .stream = 1,
       .position = 2,
       .nedges = 1,
       .nwaits = 1,
       .edges = {{0, EVENT, 1, 0}},
       .waits = {{0, false, 1}}},
      THIRD(.nedges = 2, .nwaits = 1, .edges = {{1, EVENT, 1, 0}, {0, IMPLIED, 1, 0}}, .waits = {{1, false, 1}})}},
    {"implied by no wait", "there is no such wait", {FIRST, THIRD(.nedges = 1, .edges = {{0, IMPLIED, 1, 0}})}},
    {"no way at all", "no way to realise an edge", {FIRST, THIRD(.nedges = 1, .edges = {{0, 0, 1, 0}})}},
    {"a wait for what is known",
     "wait 0 for 0:1 is needless: the stream is behind 0:1",
     {FIRST,
      SECOND,
      {.task = 3,
       .stream = 1,
       .position = 2,
       .nedges = 1,
       .nwaits = 1,
       .edges = {{0, EVENT, 1, 0}},
       .waits = {{0, false, 1}}}}},
    {"a wait for what another wait implies",
     "wait 0 for 0:1 is needless: wait 1 implies it",
     {FIRST, SECOND,
      THIRD(.nedges = 2, .nwaits = 2, .edges = {{0, EVENT, 1, 0}, {1, EVENT, 1, 1}},
            .waits = {{0, false, 1}, {1, false, 1}})}},
    {"the same wait twice",
     "implies it",
     {FIRST, THIRD(.nedges = 2, .nwaits = 2, .edges = {{0, EVENT, 1, 0}, {0, EVENT, 1, 1}},
                   .waits = {{0, false, 1}, {0, false, 1}})}},
    {"a wait that no edge asks for",
     "no edge is realised by it",
     {FIRST, THIRD(.nwaits = 1, .waits = {{0, false, 1}})}},
    {"a wait for the own stream",
     "is for the own stream",
     {FIRST,
      {.task = 2,
       .stream = 0,
       .position = 2,
       .nedges = 1,
       .nwaits = 1,
       .edges = {{0, EVENT, 1, 0}},
       .waits = {{0, false, 1}}}}},
    {"a position that is used twice", "the stream was at 1 already", {FIRST, {.task = 2, .stream = 0, .position = 1}}},
    {"a position that goes back",
     "the stream was at 5 already",
     {{.task = 1, .stream = 0, .position = 5}, {.task = 2, .stream = 0, .position = 4, .again = true}}},
};

static struct weir__certificate *make(const struct line *lines, size_t n)
{
    struct weir__certificate *certificate;
    cr_assert_eq(weir__certificate_create(&certificate), WEIR_OK);
    for (size_t i = 0; i < n && lines[i].task; i++) {
        struct weir__certificate_record record = {.task = lines[i].task,
                                                  .stream = lines[i].stream,
                                                  .position = lines[i].position,
                                                  .again = lines[i].again,
                                                  .nedges = lines[i].nedges,
                                                  .nwaits = lines[i].nwaits,
                                                  .edges = lines[i].edges,
                                                  .waits = lines[i].waits};
        cr_assert_eq(weir__certificate_add(certificate, &record), WEIR_OK);
    }
    return certificate;
}

Test(certificate, each_rule_is_kept_by_good_ones_and_noticed_in_bad_ones)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct weir__certificate *certificate = make(rows[i].lines, 5);
        struct weir__check_fault fault = {.text = "none"};
        int r = weir__certificate_check(certificate, &fault);
        cr_expect_eq(r, rows[i].fault ? WEIR_E_INVALID : WEIR_OK, "%s: %s", rows[i].says, fault.text);
        cr_expect(strstr(fault.text, rows[i].fault ? rows[i].fault : "none"), "%s: %s", rows[i].says, fault.text);
        cr_expect_eq(weir__certificate_check(certificate, NULL), r);
        weir__certificate_destroy(certificate);
    }
}

Test(certificate, fault_names_the_record_and_its_task)
{
    const struct line lines[] = {FIRST, SECOND, THIRD(.nedges = 1, .edges = {{0, KNOWN, 1, 0}})};
    struct weir__certificate *certificate = make(lines, 3);
    struct weir__check_fault fault;
    cr_assert_eq(weir__certificate_check(certificate, &fault), WEIR_E_INVALID);
    cr_expect_eq(fault.record, 2);
    cr_expect_eq(fault.task, 3);
    weir__certificate_destroy(certificate);
}

Test(certificate, empty_one_is_good)
{
    struct weir__certificate *certificate;
    cr_assert_eq(weir__certificate_create(&certificate), WEIR_OK);
    cr_expect_eq(weir__certificate_check(certificate, NULL), WEIR_OK);
    cr_expect_eq(weir__certificate_count(certificate), 0);
    weir__certificate_destroy(certificate);
    weir__certificate_destroy(NULL);
}

Test(certificate, records_read_back_as_they_were_added)
{
    struct weir__certificate *certificate;
    cr_assert_eq(weir__certificate_create(&certificate), WEIR_OK);
    for (uint64_t i = 0; i < 1000; i++) {
        struct weir__certificate_edge edges[3] = {{1, DONE, i, 0}, {2, HOST, i + 1, 0}, {3, DONE, i + 2, 0}};
        struct weir__certificate_wait waits[2] = {{4, false, i + 3}, {5, true, i + 4}};
        struct weir__certificate_record record = {
            .task = i, .stream = 9, .position = i, .nedges = i % 4, .nwaits = i % 3, .edges = edges, .waits = waits};
        cr_assert_eq(weir__certificate_add(certificate, &record), WEIR_OK);
    }
    cr_assert_eq(weir__certificate_count(certificate), 1000);
    for (uint64_t i = 0; i < 1000; i++) {
        struct weir__certificate_record record = weir__certificate_get(certificate, i);
        cr_assert_eq(record.task, i);
        cr_assert_eq(record.nedges, i % 4);
        for (size_t e = 0; e < record.nedges; e++) cr_assert_eq(record.edges[e].position, i + e);
        for (size_t w = 0; w < record.nwaits; w++)
            cr_assert(record.waits[w].position == i + 3 + w && record.waits[w].blind == (w == 1));
    }
    weir__certificate_destroy(certificate);
}

Test(certificate, print_is_a_line_a_record)
{
    struct weir__certificate *certificate = make(rows[2].lines, 5);
    char *text;
    size_t length;
    FILE *file = open_memstream(&text, &length);
    cr_assert(file);
    weir__certificate_print(certificate, file);
    fclose(file);
    cr_expect_str_eq(text, "task 1 on 0:1 | edges | waits\n"
                           "task 2 on 1:1 | edges 0:1 event 0 | waits 0:1\n"
                           "task 3 on 2:1 | edges 0:1 implied 0, 1:1 event 0 | waits 1:1\n");
    free(text);
    weir__certificate_destroy(certificate);
}

/* ---- random ones, decided by the clocks ---- */

enum { STREAMS = 5, TASKS = 120, MOST = 8 };

struct task {
    struct weir__certificate_record record;
    struct weir__certificate_edge edges[MOST + 1];
    struct weir__certificate_wait waits[MOST + 1];
};

struct run {
    struct weir__clock clocks[STREAMS];
    uint64_t length[STREAMS];
    struct task tasks[TASKS];
    uint64_t seed;
    bool forgets; /* some points are complete and forgotten when they are waited for */
};

static uint32_t draw(struct run *run, uint32_t n)
{
    run->seed = run->seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(run->seed >> 33) % n;
}

static size_t draw_candidates(struct run *run, uint32_t stream, struct weir__clock_candidate *candidates,
                              uint64_t *vectors)
{
    size_t n = 0;
    for (uint32_t wanted = draw(run, MOST + 1); wanted; wanted--) {
        uint32_t other = draw(run, STREAMS);
        if (other == stream || !run->length[other]) continue;
        candidates[n] =
            (struct weir__clock_candidate){.stream = other, .position = 1 + draw(run, (uint32_t)run->length[other])};
        weir__clock_snapshot(&run->clocks[other], candidates[n].position, vectors + n * STREAMS, STREAMS);
        n++;
    }
    return n;
}

static void decide(struct run *run, struct task *task)
{
    struct weir__clock_candidate candidates[MOST];
    uint64_t vectors[MOST * STREAMS] = {0};
    uint32_t stream = draw(run, STREAMS), wait_of[MOST] = {0};
    uint64_t position = ++run->length[stream];
    size_t n = draw_candidates(run, stream, candidates, vectors), nwaits = 0, nedges = 0;
    weir__clock_select(&run->clocks[stream], candidates, n, vectors, STREAMS);
    for (size_t i = 0; i < n; i++) {
        if (candidates[i].verdict != WEIR__CLOCK_NEEDED) continue;
        wait_of[i] = (uint32_t)nwaits;
        task->waits[nwaits++] = (struct weir__certificate_wait){.stream = candidates[i].stream,
                                                                .position = candidates[i].position,
                                                                .blind = candidates[i].position <=
                                                                         run->clocks[candidates[i].stream].forgotten};
        cr_assert_eq(weir__clock_wait(&run->clocks[stream], position, vectors + i * STREAMS, STREAMS), WEIR_OK);
    }
    for (size_t i = 0; i < n; i++) {
        uint32_t how = candidates[i].verdict == WEIR__CLOCK_NEEDED  ? EVENT
                       : candidates[i].verdict == WEIR__CLOCK_KNOWN ? KNOWN
                                                                    : IMPLIED;
        task->edges[nedges++] = (struct weir__certificate_edge){.stream = candidates[i].stream,
                                                                .how = how,
                                                                .position = candidates[i].position,
                                                                .wait = how == KNOWN ? 0 : wait_of[candidates[i].by]};
    }
    task->record = (struct weir__certificate_record){.task = (uint64_t)(task - run->tasks) + 1,
                                                     .stream = stream,
                                                     .position = position,
                                                     .nedges = nedges,
                                                     .nwaits = nwaits,
                                                     .edges = task->edges,
                                                     .waits = task->waits};
}

static void run_make(struct run *run, uint64_t seed, bool forgets)
{
    *run = (struct run){.seed = seed, .forgets = forgets};
    for (uint32_t s = 0; s < STREAMS; s++) weir__clock_init(&run->clocks[s], s);
    for (int i = 0; i < TASKS; i++) {
        decide(run, &run->tasks[i]);
        uint32_t s = draw(run, STREAMS);
        if (forgets && draw(run, 4) == 0 && run->length[s]) {
            /* Complete means that what is before is complete too, but not that anybody has looked at the other streams.
             */
            weir__clock_forget(&run->clocks[s], 1 + draw(run, (uint32_t)run->length[s]));
        }
    }
    for (uint32_t s = 0; s < STREAMS; s++) weir__clock_fini(&run->clocks[s]);
}

static int judge(const struct run *run, struct weir__check_fault *fault)
{
    struct weir__certificate *certificate;
    cr_assert_eq(weir__certificate_create(&certificate), WEIR_OK);
    for (int i = 0; i < TASKS; i++) cr_assert_eq(weir__certificate_add(certificate, &run->tasks[i].record), WEIR_OK);
    int r = weir__certificate_check(certificate, fault);
    weir__certificate_destroy(certificate);
    return r;
}

Test(certificate, decisions_of_the_clocks_are_good)
{
    static struct run run;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct weir__check_fault fault = {.text = ""};
        run_make(&run, seed, seed % 2);
        cr_assert_eq(judge(&run, &fault), WEIR_OK, "seed %lu: %s", (unsigned long)seed, fault.text);
    }
}

/* A scheduler that forgets the wait and says that all was well. */
static void remove_wait(struct task *task, uint32_t wait, uint32_t lie)
{
    for (uint32_t w = wait; w + 1 < task->record.nwaits; w++) task->waits[w] = task->waits[w + 1];
    task->record.nwaits--;
    for (size_t i = 0; i < task->record.nedges; i++) {
        struct weir__certificate_edge *edge = &task->edges[i];
        if (edge->how != EVENT && edge->how != IMPLIED) continue;
        if (edge->wait == wait) {
            edge->how = lie;
            edge->wait = 0;
        } else if (edge->wait > wait) {
            edge->wait--;
        }
    }
}

Test(certificate, removed_wait_is_noticed_whatever_the_edges_say)
{
    static struct run run;
    static struct task kept;
    const uint32_t lies[] = {KNOWN, IMPLIED, EVENT};
    size_t removed = 0;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        run_make(&run, seed, false);
        for (int i = 0; i < TASKS; i++) {
            for (uint32_t w = 0; w < run.tasks[i].record.nwaits; w++, removed++) {
                struct weir__check_fault fault = {.task = 0};
                memcpy(&kept, &run.tasks[i], sizeof kept);
                remove_wait(&run.tasks[i], w, lies[removed % 3]);
                cr_assert_eq(judge(&run, &fault), WEIR_E_INVALID);
                cr_assert_eq(fault.task, (uint64_t)i + 1, "%s", fault.text);
                memcpy(&run.tasks[i], &kept, sizeof kept);
            }
        }
    }
    cr_assert_gt(removed, 1000);
}

/* Give an edge that needed no wait one of its own. */
static void add_wait(struct task *task, struct weir__certificate_edge *edge)
{
    uint32_t wait = (uint32_t)task->record.nwaits++;
    task->waits[wait] = (struct weir__certificate_wait){.stream = edge->stream, .position = edge->position};
    edge->how = EVENT;
    edge->wait = wait;
}

Test(certificate, added_wait_is_noticed_although_an_edge_asks_for_it)
{
    static struct run run;
    static struct task kept;
    size_t added = 0;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        run_make(&run, seed, false);
        for (int i = 0; i < TASKS; i++) {
            for (size_t e = 0; e < run.tasks[i].record.nedges; e++) {
                if (run.tasks[i].edges[e].how == EVENT) continue;
                struct weir__check_fault fault = {.task = 0};
                memcpy(&kept, &run.tasks[i], sizeof kept);
                add_wait(&run.tasks[i], &run.tasks[i].edges[e]);
                cr_assert_eq(judge(&run, &fault), WEIR_E_INVALID);
                cr_assert_eq(fault.task, (uint64_t)i + 1, "%s", fault.text);
                cr_assert(strstr(fault.text, "needless"), "%s", fault.text);
                memcpy(&run.tasks[i], &kept, sizeof kept);
                added++;
            }
        }
    }
    cr_assert_gt(added, 1000);
}

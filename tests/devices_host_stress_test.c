/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Random graphs on many streams of two devices, from several threads, against what a sequential run would compute: each
 * task mixes the results of its predecessors. Whether a task may read a result is decided by waits alone.
 */
#include <stdlib.h>

#include "devices_host_rig.h"

TestSuite(host_stress, .timeout = 300);

enum { SUBMITTERS = 4, STREAMS = 8, TASKS = 2000, PREDECESSORS = 3 };

struct task {
    uint64_t *result;
    uint64_t seed;
    uint64_t *from[PREDECESSORS];
    void *stream;
    uint64_t position;
};

static uint64_t mix(uint64_t a, uint64_t b)
{
    a ^= b + 0x9e3779b97f4a7c15u + (a << 6) + (a >> 2);
    return a * 0xbf58476d1ce4e5b9u;
}

static int run_task(void *arg)
{
    struct task *task = arg;
    uint64_t value = task->seed;
    for (int i = 0; i < PREDECESSORS; i++)
        if (task->from[i]) value = mix(value, *task->from[i]);
    *task->result = value;
    return 0;
}

/* Tasks of all threads that others may wait for; streams live until all threads are done. */
struct board {
    pthread_mutex_t lock;
    struct task *newest[64];
};

struct submitter {
    struct rig *rig;
    struct board *board;
    uint64_t random;
    struct task tasks[TASKS];
    uint64_t results[TASKS];
    void *streams[STREAMS];
    struct owner owners[STREAMS];
    int errors;
};

static uint32_t draw(struct submitter *self, uint32_t n)
{
    self->random = self->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(self->random >> 33) % n;
}

static void choose_predecessors(struct submitter *self, int number, void *stream)
{
    struct task *task = &self->tasks[number];
    void *streams[PREDECESSORS];
    uint64_t positions[PREDECESSORS];
    size_t n = 0;
    uint32_t wanted = draw(self, PREDECESSORS + 1);
    for (uint32_t i = 0; i < wanted; i++) {
        struct task *other = NULL;
        if (draw(self, 4) == 0) {
            pthread_mutex_lock(&self->board->lock);
            other = self->board->newest[draw(self, 64)];
            pthread_mutex_unlock(&self->board->lock);
        } else if (number) {
            int back = (int)draw(self, number < 40 ? (uint32_t)number : 40u) + 1;
            other = &self->tasks[number - back];
        }
        if (!other) continue;
        task->from[i] = other->result;
        if (other->stream == stream) continue;
        streams[n] = other->stream;
        positions[n++] = other->position;
    }
    self->errors += OPS->position_wait(stream, streams, positions, n) != 0;
}

static void *submit_all(void *arg)
{
    struct submitter *self = arg;
    for (int i = 0; i < TASKS; i++) {
        struct task *task = &self->tasks[i];
        uint32_t which = draw(self, STREAMS);
        void *stream = self->streams[which];
        task->result = &self->results[i];
        task->seed = self->random;
        choose_predecessors(self, i, stream);
        self->errors += OPS->host_function(stream, run_task, task) != 0;
        self->errors += OPS->record(stream, &task->position) != 0;
        task->stream = stream;
        pthread_mutex_lock(&self->board->lock);
        self->board->newest[draw(self, 64)] = task;
        pthread_mutex_unlock(&self->board->lock);
        if (draw(self, 3)) OPS->flush(stream);
        if (draw(self, 16) == 0) self->errors += OPS->notify(stream, task->position) != 0;
        if (draw(self, 32) == 0) {
            struct task *old = &self->tasks[i - (int)draw(self, i < 20 ? (uint32_t)i + 1 : 20u)];
            self->errors += OPS->sync(old->stream, old->position) != 0;
            self->errors += OPS->completed(old->stream, NULL) < old->position;
        }
    }
    return NULL;
}

/* A result that was read too early was 0. Sequentially: the same mix of final results. */
static void check(struct submitter *all)
{
    for (int s = 0; s < SUBMITTERS; s++)
        for (int i = 0; i < TASKS; i++) {
            struct task *task = &all[s].tasks[i];
            uint64_t value = task->seed;
            for (int k = 0; k < PREDECESSORS; k++)
                if (task->from[k]) value = mix(value, *task->from[k]);
            cr_assert_eq(value, *task->result, "submitter %d task %d", s, i);
        }
}

static void storm(uint64_t seed)
{
    struct rig rig;
    struct board board = {.lock = PTHREAD_MUTEX_INITIALIZER};
    struct submitter *all = calloc(SUBMITTERS, sizeof *all);
    pthread_t threads[SUBMITTERS];
    rig_open(&rig, 2);
    for (int s = 0; s < SUBMITTERS; s++) {
        all[s].rig = &rig;
        all[s].board = &board;
        all[s].random = seed * 1000 + (uint64_t)s;
        for (int i = 0; i < STREAMS; i++)
            must(OPS->stream_create(rig.devices[i % 2], &all[s].owners[i], i % 3 - 1, &all[s].streams[i]));
    }
    for (int s = 0; s < SUBMITTERS; s++) pthread_create(&threads[s], NULL, submit_all, &all[s]);
    for (int s = 0; s < SUBMITTERS; s++) pthread_join(threads[s], NULL);
    for (int s = 0; s < SUBMITTERS; s++) {
        cr_assert_eq(all[s].errors, 0);
        for (int i = 0; i < STREAMS; i++) {
            uint64_t position = 0;
            must(OPS->record(all[s].streams[i], &position));
            must(OPS->sync(all[s].streams[i], position));
        }
    }
    check(all);
    for (int s = 0; s < SUBMITTERS; s++)
        for (int i = 0; i < STREAMS; i++) OPS->stream_destroy(all[s].streams[i]);
    rig_close(&rig);
    free(all);
}

Test(host_stress, random_graphs_of_four_threads)
{
    for (uint64_t seed = 1; seed <= 10; seed++) storm(seed);
}

Test(host_stress, random_graphs_with_slow_commands)
{
    rig_options.delay_us = 30;
    rig_options.delay_seed = 11;
    storm(99);
}

static int add_plain(void *arg)
{
    ++*(int *)arg; /* not atomic: the streams' waits order it */
    return 0;
}

/* One token goes round all streams; every hop is a wait for the stream before. */
Test(host_stress, token_round_many_streams)
{
    enum { RING = 16, ROUNDS = 400 };
    struct rig rig;
    rig_open(&rig, 2);
    void *streams[RING], *before = NULL;
    uint64_t position = 0;
    int token = 0;
    for (int i = 0; i < RING; i++) streams[i] = rig_stream(&rig, (uint32_t)i % 2);
    for (int i = 0; i < RING * ROUNDS; i++) {
        void *stream = streams[i % RING];
        if (before) must(OPS->position_wait(stream, &before, &position, 1));
        must(OPS->host_function(stream, add_plain, &token));
        position = rig_record(stream);
        before = stream;
    }
    must(OPS->sync(before, position));
    cr_assert_eq(token, RING * ROUNDS);
    for (int i = 0; i < RING; i++) rig_sync_and_destroy(streams[i]);
    rig_close(&rig);
}

struct rival {
    void *stream;
    _Atomic int round, done; /* spun on, so that both threads start together */
    int rounds;
};

static void spin_until(_Atomic int *counter, int value)
{
    for (unsigned i = 0; atomic_load(counter) < value; i++)
        if (i > 20000) usleep(1);
}

static void *sync_each_round(void *arg)
{
    struct rival *rival = arg;
    uint64_t errors = 0;
    for (int i = 1; i <= rival->rounds; i++) {
        spin_until(&rival->round, i);
        errors += OPS->sync(rival->stream, 2 * (uint64_t)i - 1) != 0;
        atomic_store(&rival->done, i);
    }
    return (void *)(uintptr_t)errors;
}

static int spin_for(void *arg)
{
    for (intptr_t i = 0; i < (intptr_t)arg; i++) __asm__ volatile("" ::: "memory");
    return 0;
}

/*
 * Two threads run the same producer, one of them because a stream that it holds waits for it. What the producer does
 * next waits for that stream, so whoever comes second must not go on with it. The durations sweep over the meeting,
 * which is met by chance: without the check in run_commands() three of four runs hang under the thread sanitizer, few
 * without.
 */
Test(host_stress, producer_is_not_run_past_what_is_needed)
{
    struct rig rig;
    rig_open(&rig, 1);
    void *producer = rig_stream(&rig, 0), *consumer = rig_stream(&rig, 0), *failed = NULL;
    struct rival rival = {.stream = producer, .rounds = 20000};
    pthread_t thread;
    pthread_create(&thread, NULL, sync_each_round, &rival);
    for (int i = 1; i <= rival.rounds; i++) {
        uint64_t at = 0, consumed = 0;
        must(OPS->host_function(producer, spin_for, (void *)(intptr_t)(i % 100 * 3)));
        must(OPS->record(producer, &at));
        must(OPS->position_wait(consumer, &producer, &at, 1));
        must(OPS->host_function(consumer, spin_for, NULL));
        must(OPS->record(consumer, &consumed));
        must(OPS->position_wait(producer, &consumer, &consumed, 1));
        must(OPS->record(producer, &at));
        atomic_store(&rival.round, i);
        spin_for((void *)(intptr_t)(i / 100 % 100 * 3));
        must(OPS->sync(consumer, consumed));
        spin_until(&rival.done, i);
        must(OPS->sync(producer, at));
    }
    pthread_join(thread, &failed);
    cr_assert_null(failed);
    OPS->stream_destroy(producer);
    OPS->stream_destroy(consumer);
    rig_close(&rig);
}

/* Submitter and worker meet at the moment when the stream runs empty: no start may be lost. */
Test(host_stress, stream_running_empty_is_started_again)
{
    struct rig rig;
    rig_open(&rig, 1);
    void *stream = rig_stream(&rig, 0);
    _Atomic int count = 0;
    for (int i = 0; i < 20000; i++) {
        must(OPS->host_function(stream, count_up, &count));
        rig_record(stream);
        for (int k = 0; k < i % 1000; k++) __asm__ volatile("" ::: "memory");
        if (i % 16 == 0) until(&count, i + 1);
    }
    until(&count, 20000);
    rig_sync_and_destroy(stream);
    rig_close(&rig);
}

/* A waiter and its producer's last record meet: no wake-up may be lost. Devices and streams come and go meanwhile. */
Test(host_stress, waiter_meets_the_record_it_waits_for)
{
    for (int i = 0; i < 300; i++) {
        struct rig rig;
        rig_open(&rig, 2);
        _Atomic int count = 0;
        void *producer = rig_stream(&rig, 0), *waiter = rig_stream(&rig, 1);
        for (int k = 0; k < 10; k++) {
            must(OPS->host_function(producer, count_up, &count));
            uint64_t position = rig_record(producer);
            must(OPS->position_wait(waiter, &producer, &position, 1));
            must(OPS->host_function(waiter, count_up, &count));
            rig_record(waiter);
            if (k % 3 == 0) until(&count, 2 * k + 2);
        }
        rig_sync_and_destroy(waiter);
        rig_sync_and_destroy(producer);
        cr_assert_eq(atomic_load(&count), 20);
        rig_close(&rig);
    }
}

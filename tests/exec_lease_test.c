/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Streams on which others queue for a while: pieces of work that follow each other on one stream, and gates. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <devices/mock/mock.h>
#include <exec/work.h>
#include <weir/weir.h>

#include "bodies.h"
#include "done.h"

static struct weir_context *context;
static struct weir_scope *scope;
static struct weir_device *device;
static int x; /* an address */

static void open_all(void)
{
    struct weir_context_options options = {.size = sizeof options, .streams_per_device = 4};
    DONE(weir_context_create(&options, &context));
    DONE(weir_scope_create(context, NULL, &scope));
    weir__scope_never_wait(scope);
    device = weir_device_get(context, 0);
    ran = 0;
}

static void close_all(void)
{
    (void)weir_scope_destroy(scope); /* some tests leave a failure */
    DONE(weir_context_destroy(context));
}

TestSuite(exec_lease, .init = open_all, .fini = close_all, .timeout = 60);

static struct weir_task *begin(void)
{
    struct weir_task *task;
    DONE(weir_task_begin(scope, device, NULL, 0, NULL, &task));
    return task;
}

static struct weir_task *renew(struct weir_task *task)
{
    struct weir_task *next = NULL;
    DONE(weir__task_renew(task, &next));
    cr_assert_not_null(next);
    return next;
}

/* A piece of work ends, and a handle of it stays. */
static struct weir_task *renew_and_keep(struct weir_task **task)
{
    struct weir_task *ended = weir_task_retain(*task);
    *task = renew(*task);
    return ended;
}

static void enqueue(struct weir_task *task, int (*function)(void *arg), void *arg)
{
    DONE(weir_host_enqueue(weir_task_stream(task), function, arg));
}

Test(exec_lease, pieces_are_tasks_on_one_stream)
{
    struct weir_task *task = begin();
    void *stream = weir_task_stream(task);
    for (int i = 1; i <= 5000; i++) {
        enqueue(task, body, NULL);
        struct weir_task *ended = renew_and_keep(&task);
        cr_assert_eq(weir_task_stream(task), stream);
        cr_assert_null(weir_task_stream(ended), "it is not open any more");
        if (i % 100 == 0) {
            DONE(weir_task_wait(ended));
            cr_assert_eq(ran, i);
        }
        weir_task_release(ended);
    }
    DONE(weir_task_end(task));
    DONE(weir_scope_wait(scope));
}

/* Nobody else comes on the stream in between: another task would have to wait for what holds it. */
Test(exec_lease, the_stream_is_nobody_elses)
{
    struct weir_task *task = begin(), *other;
    struct weir__gate gate;
    void *stream = weir_task_stream(task);
    DONE(weir__gate_create(device, &gate));
    DONE(weir__task_wait_gate(task, &gate));
    for (int i = 0; i < 50; i++) {
        struct weir_access on_x[] = {WEIR_INOUT(x)};
        task = renew(task);
        DONE(weir_task_begin(scope, device, on_x, 1, NULL, &other));
        cr_assert_neq(weir_task_stream(other), stream);
        enqueue(other, body, NULL);
        DONE(weir__task_end_and_wait(other));
    }
    cr_assert_eq(ran, 50);
    weir__gate_open(&gate);
    DONE(weir_task_end(task));
    DONE(weir_scope_wait(scope));
}

/* Streams beyond the limit may share hardware queues with the others: what is held there holds those up. */
Test(exec_lease, streams_beyond_the_limit_are_the_last_choice)
{
    enum { LIMIT = 4, OPEN = 3 * LIMIT };
    struct weir_task *task[OPEN];
    void *stream[OPEN];
    for (int i = 0; i < OPEN; i++) stream[i] = weir_task_stream(task[i] = begin());
    for (int i = 0; i < OPEN; i++) DONE(weir_task_end(task[i]));
    DONE(weir_scope_wait(scope));
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < LIMIT; i++) {
            int at = 0;
            task[i] = begin();
            while (weir_task_stream(task[i]) != stream[at]) at++;
            cr_assert_lt(at, LIMIT);
        }
        for (int i = 0; i < LIMIT; i++) DONE(weir_task_end(task[i]));
        DONE(weir_scope_wait(scope));
    }
}

Test(exec_lease, lent_streams_leave_the_others_their_limit)
{
    enum { LIMIT = 4 };
    struct weir_task *lent[LIMIT], *held[LIMIT];
    struct weir__gate gate[LIMIT];
    void *stream[LIMIT];
    for (int i = 0; i < LIMIT; i++) weir__task_lend(lent[i] = begin(), true);
    for (int i = 0; i < LIMIT; i++) {
        held[i] = begin();
        stream[i] = weir_task_stream(held[i]);
        for (int other = 0; other < i; other++) cr_assert_neq(stream[i], stream[other]);
        DONE(weir__gate_create(device, &gate[i]));
        DONE(weir__task_wait_gate(held[i], &gate[i]));
        DONE(weir_task_end(held[i]));
    }
    for (int i = 0; i < LIMIT; i++) {
        weir__gate_open(&gate[i]);
        weir__task_lend(lent[i], false);
        DONE(weir_task_end(lent[i]));
    }
    DONE(weir_scope_wait(scope));
}

Test(exec_lease, a_piece_fails_by_itself)
{
    struct weir_task *task = begin(), *ended[3], *behind;
    for (int i = 0; i < 3; i++) {
        enqueue(task, i == 1 ? failing_body : body, NULL);
        ended[i] = renew_and_keep(&task);
    }
    struct weir_access after[] = {WEIR_AFTER(ended[1])};
    DONE(weir_task_host(scope, body, NULL, after, 1, NULL, &behind));
    DONE(weir_task_end(task));
    DONE(weir_task_wait(ended[0]));
    cr_assert_eq(weir_task_wait(ended[1]), -77);
    DONE(weir_task_wait(ended[2]));
    cr_assert_eq(weir_task_wait(behind), WEIR_E_PREDECESSOR);
    for (int i = 0; i < 3; i++) weir_task_release(ended[i]);
    weir_task_release(behind);
    cr_assert_neq(weir_scope_wait(scope), WEIR_OK);
}

static int wait_for_it(void *arg)
{
    while (!__atomic_load_n((int *)arg, __ATOMIC_ACQUIRE)) usleep(100);
    return 0;
}

Test(exec_lease, work_on_a_lent_stream_starts_by_itself)
{
    struct weir_task *task = begin();
    weir__task_lend(task, true);
    enqueue(task, body, NULL);
    while (ran < 1) usleep(100);
    task = renew(task);
    enqueue(task, body, NULL);
    while (ran < 2) usleep(100);
    weir__task_lend(task, false);
    DONE(weir_task_end(task));
    DONE(weir_scope_wait(scope));
}

/* ---- gates ---- */

Test(exec_lease, a_gate_holds_its_stream_and_no_thread)
{
    enum { N = 100 }; /* more than a device has threads */
    struct weir_task *task[N], *plain;
    struct weir__gate gate[N];
    for (int i = 0; i < N; i++) {
        task[i] = begin();
        DONE(weir__gate_create(device, &gate[i]));
        DONE(weir__task_wait_gate(task[i], &gate[i]));
        enqueue(task[i], body, NULL);
        task[i] = renew(task[i]);
    }
    plain = begin();
    DONE(weir__task_end_and_wait(plain));
    cr_assert_eq(ran, 0);
    for (int i = N - 1; i >= 0; i--) {
        weir__gate_open(&gate[i]);
        DONE(weir__task_end_and_wait(task[i]));
        cr_assert_eq(ran, N - i);
    }
}

Test(exec_lease, a_stream_opens_a_gate_in_its_place)
{
    struct weir_task *held = begin(), *opener = begin();
    struct weir__gate gate;
    int go = 0;
    DONE(weir__gate_create(device, &gate));
    DONE(weir__task_wait_gate(held, &gate));
    enqueue(held, body, NULL);
    enqueue(opener, wait_for_it, &go);
    DONE(weir__task_open_gate(opener, &gate));
    held = renew(held);
    DONE(weir_task_end(opener));
    usleep(2000);
    cr_assert_eq(ran, 0);
    __atomic_store_n(&go, 1, __ATOMIC_RELEASE);
    DONE(weir__task_end_and_wait(held));
    cr_assert_eq(ran, 1);
}

Test(exec_lease, devices_without_gates_say_so)
{
    struct weir__mock *mock;
    struct weir__gate gate;
    DONE(weir_scope_destroy(scope));
    DONE(weir__mock_create(&(struct weir__mock_options){.clock = WEIR__MOCK_TICKER}, &mock));
    DONE(weir__context_add_backend(context, weir__mock_ops(mock), mock));
    cr_assert_eq(weir__gate_create(weir_device_get(context, 1), &gate), WEIR_E_UNSUPPORTED);
    DONE(weir_context_destroy(context));
    weir__mock_destroy(mock);
    open_all();
}

Test(exec_lease, a_renewal_that_fails_changes_nothing)
{
    static const char *const slots[] = {"event_create", "event_record"};
    struct weir__mock *mock;
    DONE(weir_scope_destroy(scope));
    DONE(weir__mock_create(&(struct weir__mock_options){.clock = WEIR__MOCK_TICKER}, &mock));
    DONE(weir__context_add_backend(context, weir__mock_ops(mock), mock));
    DONE(weir_scope_create(context, NULL, &scope));
    device = weir_device_get(context, 1);
    for (int slot = 0; slot < 2; slot++) {
        struct weir_task *task = begin(), *next = NULL;
        int refused = 0;
        cr_assert(weir__mock_fail(mock, slots[slot], 1, WEIR_E_NO_MEMORY));
        for (int i = 0; i < 200; i++) {
            int rc = weir__task_renew(task, &next);
            refused += rc != WEIR_OK;
            if (rc == WEIR_OK)
                task = next;
            else
                cr_assert_not_null(weir_task_stream(task), "still open");
        }
        cr_expect_leq(refused, 1);
        cr_expect(slot == 0 || refused == 1, "%s", slots[slot]);
        weir__mock_failures_clear(mock);
        DONE(weir_task_end(task));
        DONE(weir_scope_wait(scope));
    }
    DONE(weir_scope_destroy(scope));
    DONE(weir_context_destroy(context));
    cr_expect_str_eq(weir__mock_violations(mock), "");
    weir__mock_destroy(mock);
    open_all();
}

/* Gates opened by other threads at any time, while the streams behind them are waited for. */
enum { OPENERS = 3, ROUNDS = 400 };
static struct weir__gate gates[ROUNDS][OPENERS];
static _Atomic int ready;

static void *open_gates(void *arg)
{
    unsigned me = (unsigned)(uintptr_t)arg;
    for (int i = 0; i < ROUNDS; i++) {
        while (atomic_load(&ready) <= i) sched_yield();
        if (rand_r(&me) % 2) usleep(rand_r(&me) % 50);
        weir__gate_open(&gates[i][(uintptr_t)arg]);
    }
    return NULL;
}

Test(exec_lease, gates_open_while_others_wait)
{
    pthread_t thread[OPENERS];
    int order = 0;
    for (uintptr_t i = 0; i < OPENERS; i++) cr_assert_eq(pthread_create(&thread[i], NULL, open_gates, (void *)i), 0);
    for (int i = 0; i < ROUNDS; i++) {
        struct weir_task *task = begin(), *behind;
        for (int g = 0; g < OPENERS; g++) {
            DONE(weir__gate_create(device, &gates[i][g]));
            DONE(weir__task_wait_gate(task, &gates[i][g]));
        }
        enqueue(task, body, NULL);
        struct weir_task *ended = renew_and_keep(&task);
        struct weir_access after[] = {WEIR_AFTER(ended)};
        DONE(weir_task_begin(scope, device, after, 1, NULL, &behind));
        enqueue(behind, body, NULL);
        atomic_store(&ready, i + 1);
        DONE(weir__task_end_and_wait(behind));
        order += 2;
        cr_assert_eq(ran, order);
        weir_task_release(ended);
        DONE(weir_task_end(task));
    }
    for (int i = 0; i < OPENERS; i++) pthread_join(thread[i], NULL);
    DONE(weir_scope_wait(scope));
}

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Who waits for what, and who does not: weir_scope_wait_for() behind failures, weir_task_begin() between mutually
 * exclusive neighbours, and the end of a context with work that nobody waits for. Where something must be waited for,
 * the other side is slow on purpose: only a wrong library can pass by luck.
 */
#include <criterion/criterion.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <devices/mock/mock.h>
#include <exec/futex.h>
#include <exec/scope.h>
#include <exec/work.h>
#include <weir/weir.h>

#include "bodies.h"
#include "done.h"

static struct weir__mock *mock;
static struct weir_context *context;
static struct weir_scope *scope;
static struct weir_device *device;
static int x, y, z; /* addresses */

/* The device is the mock's, whose clock stands still unless a test moves it. */
static void open_all(void)
{
    struct weir__mock_options options = {.clock = WEIR__MOCK_MANUAL};
    struct weir_context_options two = {.size = sizeof(two), .workers = 2};
    DONE(weir__mock_create(&options, &mock));
    DONE(weir_context_create(&two, &context));
    DONE(weir__context_add_backend(context, weir__mock_ops(mock), mock));
    DONE(weir_scope_create(context, NULL, &scope));
    device = weir_device_get(context, weir_device_count(context) - 1);
    ran = 0;
}

static void close_context(void)
{
    if (context == NULL) return;
    DONE(weir_scope_destroy(scope));
    DONE(weir_context_destroy(context));
    context = NULL;
}

static void close_all(void)
{
    close_context();
    cr_assert_str_eq(weir__mock_violations(mock), "");
    cr_assert_eq(weir__mock_objects(mock), 0);
    weir__mock_destroy(mock);
}

TestSuite(exec_wait, .init = open_all, .fini = close_all, .timeout = 60);

static int issue(struct weir_task *task, void *native_stream, void *arg)
{
    (void)native_stream;
    return weir__task_host_function(task, body, arg);
}

/* A thread that moves the clock until it is told to stop. */
static _Atomic bool clock_stop;

static void *move_clock(void *arg)
{
    while (!clock_stop) {
        usleep(1000);
        weir__mock_advance(mock, 1);
    }
    return arg;
}

static pthread_t start_clock(void)
{
    pthread_t thread;
    clock_stop = false;
    if (pthread_create(&thread, NULL, move_clock, NULL) != 0) abort();
    return thread;
}

static void stop_clock(pthread_t thread)
{
    clock_stop = true;
    pthread_join(thread, NULL);
}

static bool nothing_in_flight(void *arg)
{
    (void)arg;
    return weir__scope_is_idle(scope);
}

/* Who waits may be woken again and again before the device is through: it asks for a notice once. */
Test(exec_wait, long_wait_with_many_wakes_takes_no_memory)
{
    struct weir_access on_x[] = {WEIR_INOUT(x)};
    DONE(weir_task_submit(scope, device, on_x, 1, issue, NULL, NULL, NULL));
    cr_assert_not(weir__scope_wait_until(scope, nothing_in_flight, NULL, 1000, false));
    size_t before = mallinfo2().uordblks;
    for (int i = 0; i < 5000; i++) cr_assert_not(weir__scope_wait_until(scope, nothing_in_flight, NULL, 1000, false));
    cr_assert_lt(mallinfo2().uordblks, before + 5000);
    pthread_t thread = start_clock();
    DONE(weir_scope_wait(scope));
    stop_clock(thread);
    cr_assert_eq(ran, 1);
}

/* Wakes for nothing: of the scope and of what was told before it slept. */
static void *wake_and_move(void *arg)
{
    for (int i = 0; i < 100; i++) {
        weir__futex_wake(arg, INT32_MAX);
        usleep(50);
    }
    weir__mock_advance(mock, 1);
    return NULL;
}

Test(exec_wait, submitter_that_is_woken_early_keeps_its_window)
{
    struct weir_scope *narrow;
    struct weir_scope_options options = {.size = sizeof options, .window = 1};
    DONE(weir_scope_create(context, &options, &narrow));
    for (int i = 0; i < 20; i++) {
        struct weir_counters counters;
        pthread_t thread;
        DONE(weir_task_submit(narrow, device, NULL, 0, issue, NULL, NULL, NULL));
        cr_assert_eq(pthread_create(&thread, NULL, wake_and_move, &narrow->pool->event), 0);
        DONE(weir_task_submit(narrow, device, NULL, 0, issue, NULL, NULL, NULL));
        weir_scope_counters(narrow, &counters);
        cr_assert_eq(counters.window_exceeded, 0);
        pthread_join(thread, NULL);
        weir__mock_advance(mock, 1);
        DONE(weir_scope_wait(narrow));
    }
    DONE(weir_scope_destroy(narrow));
}

/* ---- weir_scope_wait_for() ---- */

/* first: on x, on the device. gate: on y. second: on x, behind both, so that x is second's. */
static void submit_two_and_gate(struct weir_task **first, struct weir_task **gate, struct weir_task **second)
{
    struct weir_access on_x[] = {WEIR_INOUT(x)}, on_y[] = {WEIR_INOUT(y)}, on_both[] = {WEIR_INOUT(x), WEIR_IN(y)};
    DONE(weir_task_submit(scope, device, on_x, 1, issue, NULL, NULL, first));
    DONE(weir_task_external(scope, on_y, 1, NULL, gate));
    DONE(weir_task_submit(scope, device, on_both, 2, issue, NULL, NULL, second));
}

Test(exec_wait, wait_for_returns_when_all_that_conflict_are_complete)
{
    struct weir_access in_x[] = {WEIR_IN(x)};
    struct weir_task *first, *gate, *second;
    submit_two_and_gate(&first, &gate, &second);
    DONE(weir_task_fulfill(gate, 0));
    pthread_t thread = start_clock();
    DONE(weir_scope_wait_for(scope, in_x, 1));
    cr_assert_eq(ran, 2);
    DONE(weir_task_test(second));
    DONE(weir_task_test(first));
    stop_clock(thread);
    weir_task_release(first);
    weir_task_release(second);
}

/* The clock stands still: a call that waited for the first task would not return. */
Test(exec_wait, wait_for_behind_a_failure_leaves_others_on_their_devices)
{
    struct weir_access in_x[] = {WEIR_IN(x)};
    struct weir_task *first, *gate, *second;
    submit_two_and_gate(&first, &gate, &second);
    DONE(weir_task_fulfill(gate, -77));
    cr_assert_eq(weir_scope_wait_for(scope, in_x, 1), WEIR_E_PREDECESSOR);
    cr_assert_neq(weir_error_text()[0], '\0');
    cr_assert_eq(weir_task_test(second), WEIR_E_PREDECESSOR);
    cr_assert_eq(weir_task_test(first), WEIR_E_PENDING);
    cr_assert_eq(ran, 0);
    /* A wait for the scope does wait for it, and still has the failure to tell. */
    pthread_t thread = start_clock();
    cr_assert_eq(weir_scope_wait(scope), -77);
    DONE(weir_task_test(first));
    cr_assert_eq(ran, 1);
    stop_clock(thread);
    weir_task_release(first);
    weir_task_release(second);
}

/* All that conflict directly are waited for, whichever of them failed. */
Test(exec_wait, wait_for_behind_a_failure_waits_for_its_own_predecessors)
{
    struct weir_access on_x[] = {WEIR_INOUT(x)}, on_y[] = {WEIR_INOUT(y)}, in_both[] = {WEIR_IN(x), WEIR_IN(y)};
    struct weir_task *slow;
    DONE(weir_task_submit(scope, device, on_x, 1, issue, NULL, NULL, &slow));
    DONE(weir_task_host(scope, failing_body, NULL, on_y, 1, NULL, NULL));
    pthread_t thread = start_clock();
    cr_assert_eq(weir_scope_wait_for(scope, in_both, 2), WEIR_E_PREDECESSOR);
    DONE(weir_task_test(slow));
    stop_clock(thread);
    weir_task_release(slow);
    cr_assert_eq(weir_scope_wait(scope), -77);
}

/* If the call were a task, what writes z after it would be cancelled with it. */
Test(exec_wait, wait_for_leaves_no_trace)
{
    struct weir_access on_y[] = {WEIR_INOUT(y)}, on_z[] = {WEIR_INOUT(z)}, on_both[] = {WEIR_INOUT(z), WEIR_IN(y)};
    struct weir_task *later;
    DONE(weir_task_host(scope, failing_body, NULL, on_y, 1, NULL, NULL));
    cr_assert_eq(weir_scope_wait_for(scope, on_both, 2), WEIR_E_PREDECESSOR);
    DONE(weir_task_host(scope, body, NULL, on_z, 1, NULL, &later));
    DONE(weir_task_wait(later));
    weir_task_release(later);
    cr_assert_eq(ran, 1);
    cr_assert_eq(weir_scope_wait(scope), -77);
}

/* ---- begin between mutually exclusive neighbours ---- */

static _Atomic bool neighbour_started, begin_called, neighbour_ended;

static int slow_neighbour(void *arg)
{
    (void)arg;
    neighbour_started = true;
    while (!begin_called) sched_yield();
    usleep(20000);
    neighbour_ended = true;
    return 0;
}

static void begin_and_end_exclusively(void)
{
    struct weir_access set_x[] = {WEIR_MUTEXINOUTSET(x)};
    struct weir_task *task;
    begin_called = true;
    DONE(weir_task_begin(scope, device, set_x, 1, NULL, &task)); /* without .block */
    cr_assert(neighbour_ended, "begin did not wait for its neighbour");
    DONE(weir_task_end(task));
}

static void *end_neighbour(void *arg)
{
    while (!begin_called) sched_yield();
    usleep(20000);
    neighbour_ended = true;
    DONE(weir_task_end(arg));
    return NULL;
}

static void forget_neighbour(void)
{
    neighbour_started = begin_called = neighbour_ended = false;
}

Test(exec_wait, begin_waits_for_a_running_mutexinoutset_neighbour)
{
    struct weir_access set_x[] = {WEIR_MUTEXINOUTSET(x)};
    forget_neighbour();
    DONE(weir_task_host(scope, slow_neighbour, NULL, set_x, 1, NULL, NULL));
    while (!neighbour_started) sched_yield();
    begin_and_end_exclusively();
    pthread_t thread = start_clock();
    DONE(weir_scope_wait(scope));
    stop_clock(thread);
}

Test(exec_wait, begin_waits_for_an_open_mutexinoutset_neighbour)
{
    struct weir_access set_x[] = {WEIR_MUTEXINOUTSET(x)};
    struct weir_task *open;
    pthread_t thread;
    forget_neighbour();
    DONE(weir_task_begin(scope, device, set_x, 1, NULL, &open));
    if (pthread_create(&thread, NULL, end_neighbour, open) != 0) abort();
    begin_and_end_exclusively();
    pthread_join(thread, NULL);
    thread = start_clock();
    DONE(weir_scope_wait(scope));
    stop_clock(thread);
}

/* Issued is enough, and who is not ready has no turn yet: with the clock standing still, waiting would hang. */
Test(exec_wait, begin_waits_for_no_other_mutexinoutset_neighbour)
{
    struct weir_access set_x[] = {WEIR_MUTEXINOUTSET(x)}, on_y[] = {WEIR_INOUT(y)},
                       both[] = {WEIR_IN(y), WEIR_MUTEXINOUTSET(x)};
    struct weir_task *gate, *task;
    DONE(weir_task_external(scope, on_y, 1, NULL, &gate));
    DONE(weir_task_submit(scope, device, set_x, 1, issue, NULL, NULL, NULL)); /* issued, not complete */
    DONE(weir_task_host(scope, body, NULL, both, 2, NULL, NULL));             /* not ready */
    DONE(weir_task_begin(scope, device, set_x, 1, NULL, &task));
    DONE(weir_task_end(task));
    cr_assert_eq(ran, 0);
    DONE(weir_task_fulfill(gate, 0));
    pthread_t thread = start_clock();
    DONE(weir_scope_wait(scope));
    cr_assert_eq(ran, 2);
    stop_clock(thread);
}

/* ---- work that nobody waits for ---- */

/* The record fails, so the task is over at once; what it had queued runs before its stream is destroyed. */
Test(exec_wait, work_of_a_task_without_a_record_ends_before_its_context)
{
    static char from[64], to[64];
    struct weir_task *task;
    from[63] = 7;
    DONE(weir_task_begin(scope, device, NULL, 0, NULL, &task));
    DONE(weir_task_copy(task, to, device, from, NULL, sizeof(to)));
    DONE(weir__task_host_function(task, body, NULL));
    cr_assert(weir__mock_fail(mock, "event_record", 1, WEIR_E_SYSTEM));
    cr_assert(weir__mock_fail(mock, "event_record", 2, WEIR_E_SYSTEM));
    cr_assert_eq(weir_task_end(task), WEIR_E_SYSTEM);
    cr_assert_eq(weir_scope_wait(scope), WEIR_E_SYSTEM);
    cr_assert_eq(ran, 0);
    pthread_t thread = start_clock();
    close_context();
    stop_clock(thread);
    cr_assert_eq(ran, 1);
    cr_assert_eq(to[63], 7);
}

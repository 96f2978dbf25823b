/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * After a failure: a wait that has told it makes the scope as good as new; what is left by those who go away without
 * finishing fails instead of being waited for; what is still held keeps the context.
 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <devices/mock/mock.h>
#include <exec/work.h>
#include <weir/weir.h>

#include "bodies.h"
#include "done.h"

/* The text of the newest failure contains @part. */
#define TOLD(part) cr_assert(strstr(weir_error_text(), (part)) != NULL, "'%s' is not in: %s", (part), weir_error_text())

static struct weir_context *context;
static struct weir_scope *scope;
static struct weir_device *device;
static int x; /* addresses */

static void open_scope(bool ranges)
{
    struct weir_scope_options options = {.size = sizeof(options), .ranges = ranges};
    DONE(weir_scope_create(context, &options, &scope));
}

static void open_all(void)
{
    DONE(weir_context_create(NULL, &context));
    open_scope(false);
    device = weir_device_get(context, 0);
    ran = 0;
}

static void close_all(void)
{
    DONE(weir_scope_destroy(scope));
    DONE(weir_context_destroy(context));
}

TestSuite(exec_recovery, .init = open_all, .fini = close_all, .timeout = 60);

static int issue(struct weir_task *task, void *native_stream, void *arg)
{
    (void)task;
    return weir_host_enqueue(native_stream, arg != NULL ? failing_body : body, arg);
}

static void submit_host(int (*function)(void *arg), uint32_t kind, const char *name)
{
    struct weir_access on_x[] = {WEIR_ACCESS(x, kind)};
    struct weir_task_options options = {.size = sizeof(options), .name = name};
    DONE(weir_task_host(scope, function, NULL, on_x, 1, &options, NULL));
}

static void submit_device(void *fail)
{
    struct weir_access on_x[] = {WEIR_INOUT(x)};
    DONE(weir_task_submit(scope, device, on_x, 1, issue, fail, NULL, NULL));
}

static int as_from_a_wait(void *arg)
{
    (void)arg;
    return WEIR_E_PREDECESSOR;
}

static int issue_as_from_a_wait(struct weir_task *task, void *native_stream, void *arg)
{
    (void)task, (void)native_stream;
    return as_from_a_wait(arg);
}

/* The code of cancelled tasks does not make one of a task that a function fails with it. */
Test(exec_recovery, function_that_returns_the_code_of_a_cancelled_task_has_failed)
{
    struct weir_task *tasks[2];
    struct weir_access on_x[] = {WEIR_INOUT(x)};
    DONE(weir_task_host(scope, as_from_a_wait, &x, NULL, 0, NULL, &tasks[0]));
    DONE(weir_task_submit(scope, device, on_x, 1, issue_as_from_a_wait, &x, NULL, &tasks[1]));
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(weir_task_wait(tasks[i]), WEIR_E_TASK);
        weir_task_release(tasks[i]);
    }
    cr_assert_eq(weir_scope_wait(scope), WEIR_E_TASK);
}

/* ---- a wait consumes what it tells ---- */

Test(exec_recovery, tasks_after_a_told_failure_run)
{
    static const uint32_t kinds[] = {WEIR_ACCESS_IN, WEIR_ACCESS_OUT, WEIR_ACCESS_INOUT, WEIR_ACCESS_MUTEXINOUTSET,
                                     WEIR_ACCESS_INOUTSET, WEIR_ACCESS_ALL_MEMORY};
    for (int ranges = 0; ranges < 2; ranges++) {
        DONE(weir_scope_destroy(scope));
        open_scope(ranges != 0);
        for (size_t failed = 0; failed < 6; failed++)
            for (size_t later = 0; later < 6; later++) {
                ran = 0;
                submit_host(failing_body, kinds[failed], "bad");
                cr_assert_eq(weir_scope_wait(scope), -77);
                submit_host(body, kinds[later], "later");
                DONE(weir_scope_wait(scope));
                submit_device(NULL);
                DONE(weir_scope_wait(scope));
                cr_assert_eq(ran, 2);
            }
    }
}

Test(exec_recovery, device_tasks_after_a_told_failure_run)
{
    for (int round = 0; round < 20; round++) {
        struct weir_access on_x[] = {WEIR_INOUT(x)};
        struct weir_task *task;
        ran = 0;
        submit_device(&x);
        cr_assert_eq(weir_scope_wait(scope), -77);
        submit_device(NULL);
        DONE(weir_scope_wait(scope));
        DONE(weir_task_begin(scope, device, on_x, 1, NULL, &task));
        DONE(weir_host_enqueue(weir_task_stream(task), body, NULL));
        DONE(weir_task_end(task));
        DONE(weir_scope_wait_for(scope, on_x, 1));
        cr_assert_eq(ran, 2);
    }
}

/* Thousands of failures between two waits: the table may not remember one of them. */
Test(exec_recovery, many_failures_are_forgotten_at_once)
{
    static char cells[3000];
    for (size_t i = 0; i < sizeof(cells); i++) {
        struct weir_access on_cell[] = {WEIR_INOUT(cells[i])};
        DONE(weir_task_host(scope, failing_body, NULL, on_cell, 1, NULL, NULL));
    }
    cr_assert_eq(weir_scope_wait(scope), -77);
    for (size_t i = 0; i < sizeof(cells); i++) {
        struct weir_access on_cell[] = {WEIR_INOUT(cells[i])};
        DONE(weir_task_host(scope, body, NULL, on_cell, 1, NULL, NULL));
    }
    DONE(weir_scope_wait(scope));
    cr_assert_eq(ran, (int)sizeof(cells));
}

static void *wait_for_scope(void *arg)
{
    *(int *)arg = weir_scope_wait(scope);
    return NULL;
}

Test(exec_recovery, wait_of_another_thread_counts_as_well)
{
    pthread_t thread;
    int rc = 0;
    submit_host(failing_body, WEIR_ACCESS_INOUT, "bad");
    cr_assert_eq(pthread_create(&thread, NULL, wait_for_scope, &rc), 0);
    pthread_join(thread, NULL);
    cr_assert_eq(rc, -77);
    submit_host(body, WEIR_ACCESS_INOUT, "later");
    DONE(weir_scope_wait(scope));
    cr_assert_eq(ran, 1);
}

/* Nobody was told: whoever comes later is still behind it. */
Test(exec_recovery, failure_that_was_not_told_stays)
{
    struct weir_access on_x[] = {WEIR_INOUT(x)};
    struct weir_task *task;
    submit_host(failing_body, WEIR_ACCESS_INOUT, "bad");
    while (weir_scope_test(scope) != WEIR_OK) usleep(100);
    cr_assert_eq(weir_scope_wait_for(scope, on_x, 1), WEIR_E_PREDECESSOR);
    cr_assert_eq(weir_task_begin(scope, device, on_x, 1, NULL, &task), WEIR_E_PREDECESSOR);
    submit_host(body, WEIR_ACCESS_INOUT, "later");
    cr_assert_eq(weir_scope_wait(scope), -77);
    TOLD("bad failed");
    TOLD("; 1 task after it was cancelled");
    cr_assert_eq(ran, 0);
    DONE(weir_scope_wait(scope));
}

/* ---- a wait does not keep quiet about what it cancelled ---- */

Test(exec_recovery, wait_tells_of_tasks_behind_a_failure_told_before)
{
    struct weir_access behind[] = {WEIR_INOUT(x), {NULL, 0, WEIR_ACCESS_AFTER}};
    struct weir_task *bad, *later;
    struct weir_access on_x[] = {WEIR_INOUT(x)};
    DONE(weir_task_host(scope, failing_body, NULL, on_x, 1, WEIR_TASK("bad"), &bad));
    cr_assert_eq(weir_scope_wait(scope), -77);
    behind[1].address = bad; /* a handle has a memory of its own */
    DONE(weir_task_host(scope, body, NULL, behind, 2, WEIR_TASK("first"), NULL));
    DONE(weir_task_host(scope, body, NULL, on_x, 1, WEIR_TASK("second"), &later));
    cr_assert_eq(weir_scope_wait(scope), WEIR_E_PREDECESSOR);
    TOLD("2 tasks were cancelled: bad at ");
    cr_assert_eq(weir_task_wait(later), WEIR_E_PREDECESSOR);
    TOLD("second at ");
    TOLD(" was cancelled: bad at ");
    DONE(weir_scope_wait(scope));
    submit_host(body, WEIR_ACCESS_INOUT, "last");
    DONE(weir_scope_wait(scope));
    cr_assert_eq(ran, 1);
    weir_task_release(bad);
    weir_task_release(later);
}

Test(exec_recovery, failure_in_another_scope_is_told_where_it_cancels)
{
    struct weir_scope *other;
    struct weir_task *bad;
    DONE(weir_scope_create(context, NULL, &other));
    DONE(weir_task_host(other, failing_body, NULL, NULL, 0, WEIR_TASK("bad"), &bad));
    struct weir_access after[] = {WEIR_AFTER(bad)};
    DONE(weir_task_host(scope, body, NULL, after, 1, NULL, NULL));
    cr_assert_eq(weir_scope_wait(scope), WEIR_E_PREDECESSOR);
    TOLD("1 task was cancelled: bad at ");
    cr_assert_eq(weir_scope_destroy(other), -77);
    weir_task_release(bad);
    cr_assert_eq(ran, 0);
}

/* Three device tasks, issued before anybody can know that the first one fails. */
Test(exec_recovery, issued_successors_run_and_name_who_failed)
{
    struct weir__mock_options manual = {.clock = WEIR__MOCK_MANUAL};
    struct weir__mock *mock;
    struct weir_context *mocked;
    struct weir_scope *in_it;
    struct weir_task *last;
    struct weir_access on_x[] = {WEIR_INOUT(x)};
    DONE(weir__mock_create(&manual, &mock));
    DONE(weir_context_create(NULL, &mocked));
    DONE(weir__context_add_backend(mocked, weir__mock_ops(mock), mock));
    DONE(weir_scope_create(mocked, NULL, &in_it));
    for (int i = 0; i < 3; i++) {
        struct weir_task *task;
        DONE(weir_task_begin(in_it, weir_device_get(mocked, 1), on_x, 1, i == 0 ? WEIR_TASK("root") : WEIR_TASK("behind"), &task));
        DONE(weir__task_host_function(task, i == 0 ? failing_body : body, NULL));
        if (i == 2) last = weir_task_retain(task);
        DONE(weir_task_end(task));
    }
    weir__mock_advance(mock, 1000);
    cr_assert_eq(weir_scope_wait(in_it), -77);
    TOLD("2 tasks after it were cancelled");
    cr_assert_eq(ran, 2);
    cr_assert_eq(weir_task_wait(last), WEIR_E_PREDECESSOR);
    TOLD("behind at ");
    TOLD(" had been issued when root at ");
    weir_task_release(last);
    DONE(weir_scope_destroy(in_it));
    DONE(weir_context_destroy(mocked));
    weir__mock_destroy(mock);
}

static struct weir_task *begin_and_end(struct weir_scope *in_it, struct weir_device *on, int (*function)(void *arg),
                                       const struct weir_access *accesses, size_t n, weir_complete_function complete)
{
    struct weir_task_options options = {.size = sizeof(options), .complete = complete};
    struct weir_task *task, *kept;
    DONE(weir_task_begin(in_it, on, accesses, n, &options, &task));
    DONE(weir__task_host_function(task, function, NULL));
    kept = weir_task_retain(task);
    DONE(weir_task_end(task));
    return kept;
}

static void nothing_more(struct weir_task *task, int status, void *arg)
{
    (void)task, (void)status, (void)arg;
}

/* The last task is told to be done by a notice, while the stream of the failed one has not been asked yet. */
Test(exec_recovery, failure_on_a_stream_that_does_not_know_yet_is_found)
{
    struct weir__mock_options late = {.clock = WEIR__MOCK_MANUAL, .late_answers = true};
    static int y;
    struct weir_access on_x[] = {WEIR_INOUT(x)}, on_y[] = {WEIR_INOUT(y)}, on_both[] = {WEIR_INOUT(x), WEIR_INOUT(y)};
    struct weir__mock *mock;
    struct weir_context *mocked;
    struct weir_scope *in_it;
    DONE(weir__mock_create(&late, &mock));
    DONE(weir_context_create(NULL, &mocked));
    DONE(weir__context_add_backend(mocked, weir__mock_ops(mock), mock));
    DONE(weir_scope_create(mocked, NULL, &in_it));
    struct weir_device *on = weir_device_get(mocked, 1);
    weir_task_release(begin_and_end(in_it, on, failing_body, on_x, 1, NULL));
    weir_task_release(begin_and_end(in_it, on, body, on_y, 1, NULL));
    struct weir_task *last = begin_and_end(in_it, on, body, on_both, 2, nothing_more);
    weir__mock_advance(mock, 1000);
    cr_assert_eq(weir_task_wait(last), WEIR_E_PREDECESSOR);
    cr_assert_eq(weir_scope_wait(in_it), -77);
    weir_task_release(last);
    DONE(weir_scope_destroy(in_it));
    DONE(weir_context_destroy(mocked));
    weir__mock_destroy(mock);
}

/* ---- handles ---- */

Test(exec_recovery, external_task_that_nobody_can_fulfill_fails)
{
    struct weir_access on_x[] = {WEIR_INOUT(x)};
    struct weir_task *external;
    DONE(weir_task_external(scope, on_x, 1, WEIR_TASK("message"), &external));
    submit_host(body, WEIR_ACCESS_INOUT, "behind");
    weir_task_release(weir_task_retain(external)); /* one is left */
    cr_assert_eq(weir_scope_test(scope), WEIR_E_PENDING);
    weir_task_release(external);
    cr_assert_eq(weir_scope_wait(scope), WEIR_E_STATE);
    TOLD("message at ");
    cr_assert_eq(ran, 0);
}

Test(exec_recovery, open_task_that_nobody_can_end_fails)
{
    struct weir_access on_x[] = {WEIR_INOUT(x)};
    struct weir_task *open;
    DONE(weir_task_begin(scope, device, on_x, 1, WEIR_TASK("open"), &open));
    DONE(weir_host_enqueue(weir_task_stream(open), body, NULL));
    weir_task_release(open);
    cr_assert_eq(weir_scope_wait(scope), WEIR_E_STATE);
    TOLD("open at ");
    cr_assert_eq(ran, 1);
}

Test(exec_recovery, context_with_a_held_handle_is_busy)
{
    struct weir_access on_x[] = {WEIR_INOUT(x)};
    struct weir_task *task, *external;
    DONE(weir_task_external(scope, on_x, 1, NULL, &external));
    /* Refused and waited for: their memory is free again, though it had handles. */
    cr_assert_eq(weir_task_begin(scope, device, on_x, 1, NULL, &task), WEIR_E_NOT_ISSUED);
    DONE(weir_task_fulfill(external, 0));
    DONE(weir_scope_wait_for(scope, on_x, 1));
    DONE(weir_task_host(scope, body, NULL, NULL, 0, WEIR_TASK("held"), &task));
    DONE(weir_scope_destroy(scope));
    cr_assert_eq(weir_context_destroy(context), WEIR_E_BUSY);
    TOLD("the handle of held at ");
    open_scope(false); /* nothing was done */
    submit_host(body, WEIR_ACCESS_INOUT, "later");
    DONE(weir_scope_wait(scope));
    cr_assert_eq(ran, 2);
    weir_task_release(task);
}

static int child_of_fork(struct weir_task *external, struct weir_task *open, struct weir_task *behind)
{
    if (weir_scope_test(scope) != WEIR_E_FORKED) return 1;
    if (weir_task_test(behind) != WEIR_E_FORKED) return 2;
    if (weir_task_fulfill(external, 0) != WEIR_E_FORKED) return 3;
    if (weir_task_end(open) != WEIR_E_FORKED) return 4;
    if (weir_task_fail(open, -1) != WEIR_E_FORKED) return 5;
    weir_task_release(behind);
    weir_task_release(external);
    return 0;
}

Test(exec_recovery, child_of_a_fork_touches_no_task)
{
    struct weir_access on_x[] = {WEIR_INOUT(x)};
    struct weir_task *external, *open, *behind;
    int status = -1;
    DONE(weir_task_begin(scope, device, NULL, 0, NULL, &open));
    DONE(weir_task_external(scope, on_x, 1, NULL, &external));
    DONE(weir_task_host(scope, body, NULL, on_x, 1, NULL, &behind));
    pid_t child = fork();
    if (child == 0) {
        alarm(20); /* a child that hangs fails the test */
        _exit(child_of_fork(external, open, behind));
    }
    cr_assert_gt(child, 0);
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status));
    cr_assert_eq(WEXITSTATUS(status), 0, "step %d in the child", WEXITSTATUS(status));
    DONE(weir_task_fulfill(external, 0));
    DONE(weir_task_end(open));
    DONE(weir_task_wait(behind));
    weir_task_release(behind);
}

/* ---- bad arguments ---- */

Test(exec_recovery, limits_of_options_are_kept)
{
    struct weir_context *made;
    struct weir_scope *other;
    struct weir_context_options bad[] = {{.workers = 257}, {.host_devices = 255}, {.window = (1u << 24) + 1},
                                         {.streams_per_device = 513}};
    struct weir_scope_options window = {.size = sizeof(window), .window = (1u << 24) + 1};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        bad[i].size = sizeof(bad[i]);
        cr_assert_eq(weir_context_create(&bad[i], &made), WEIR_E_INVALID);
        TOLD("at most");
    }
    cr_assert_eq(weir_scope_create(context, &window, &other), WEIR_E_INVALID);
    struct weir_context_options most = {.size = sizeof(most), .workers = 256, .host_devices = 254, .window = 1u << 24,
                                        .streams_per_device = 512};
    DONE(weir_context_create(&most, &made));
    cr_assert_eq(weir_device_count(made), 254);
    DONE(weir_context_destroy(made));
}

Test(exec_recovery, nonsense_in_the_environment_counts_as_not_set)
{
    static const char *const words[] = {"abc", "-1", "0", "255", "99999999999999999999", " 3", "3x", "", "+3"};
    struct weir_context *made;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        setenv("WEIR_HOST_DEVICES", words[i], 1);
        DONE(weir_context_create(NULL, &made));
        cr_assert_eq(weir_device_count(made), 1, "'%s'", words[i]);
        DONE(weir_context_destroy(made));
    }
    setenv("WEIR_HOST_DEVICES", "254", 1);
    DONE(weir_context_create(NULL, &made));
    cr_assert_eq(weir_device_count(made), 254);
    DONE(weir_context_destroy(made));
    unsetenv("WEIR_HOST_DEVICES");
}

Test(exec_recovery, counters_without_a_place_are_not_counted)
{
    weir_context_counters(context, NULL);
    weir_scope_counters(scope, NULL);
    weir_context_counters(NULL, NULL);
    weir_scope_counters(NULL, NULL);
}

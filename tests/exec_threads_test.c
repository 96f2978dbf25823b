/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Threads that meet in one context: submitters with scopes of their own, foreign waiters, fulfilment against
 * submission, nesting, small windows, two contexts, fork. A hang ends in the time-out of the suite.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <exec/work.h>

#include "done.h"
#include "rig.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SCALE 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define SCALE 1
#endif
#endif
#ifndef SCALE
#define SCALE 10
#endif

static struct rig rig;

static void open_host(void)
{
    DONE(rig_open(&rig, &rig_kinds[0], 0));
}

static void close_rig(void)
{
    bool violations;
    DONE(rig_close(&rig, &violations));
    cr_assert(!violations);
}

TestSuite(exec_threads, .init = open_host, .fini = close_rig, .timeout = 240);
TestSuite(exec_threads_bare, .timeout = 240);

static int add_one(void *arg)
{
    atomic_fetch_add_explicit((_Atomic int *)arg, 1, memory_order_relaxed);
    return 0;
}

static int issue_add_one(struct weir_task *task, void *native_stream, void *arg)
{
    (void)native_stream;
    return weir__task_host_function(task, add_one, arg);
}

static void run_threads(size_t n, void *(*function)(void *), void *arg)
{
    pthread_t threads[16];
    for (size_t i = 0; i < n; i++) cr_assert_eq(pthread_create(&threads[i], NULL, function, arg), 0);
    for (size_t i = 0; i < n; i++) pthread_join(threads[i], NULL);
}

/* ---- scopes ---- */

static void *churn_scopes(void *arg)
{
    (void)arg;
    for (int round = 0; round < 100 * SCALE; round++) {
        struct weir_scope *scope;
        _Atomic int count = 0;
        int plain = 0;
        struct weir_access a[] = {WEIR_INOUT(plain)};
        DONE(weir_scope_create(rig.context, NULL, &scope));
        for (int i = 0; i < round % 7; i++) {
            DONE(weir_task_host(scope, add_one, &count, a, 1, NULL, NULL));
            DONE(weir_task_submit(scope, rig.devices[0], a, i & 1, issue_add_one, &count, NULL, NULL));
        }
        DONE(weir_scope_destroy(scope)); /* with work pending: it waits */
        if (count != round % 7 * 2) abort();
    }
    return NULL;
}

Test(exec_threads, scopes_come_and_go_on_many_threads)
{
    run_threads(8, churn_scopes, NULL);
}

/* ---- waiters and references against completion ---- */

enum { WAITERS = 4 };

struct shared_task {
    _Atomic(struct weir_task *) task;
    _Atomic(struct weir_scope *) scope;
    _Atomic int turn, left;
    pthread_barrier_t start, end;
};

static void *wait_for_shared(void *arg)
{
    struct shared_task *shared = arg;
    int me = atomic_fetch_add(&shared->turn, 1);
    for (int round = 0; round < 200 * SCALE; round++) {
        pthread_barrier_wait(&shared->start);
        struct weir_task *task = atomic_load(&shared->task);
        int way = (me + round) % 4;
        if (way == 0)
            DONE(weir_task_wait(task));
        else if (way == 1)
            DONE(weir_scope_wait(atomic_load(&shared->scope)));
        else if (way == 2) {
            int rc;
            while ((rc = weir_task_test(task)) == WEIR_E_PENDING) sched_yield();
            DONE(rc);
        } else {
            struct weir_task *again = weir_task_retain(task);
            weir_task_release(task);
            DONE(weir_task_wait(again));
            task = again;
        }
        weir_task_release(task);
        pthread_barrier_wait(&shared->end);
    }
    return NULL;
}

Test(exec_threads, foreign_waiters_race_completion)
{
    struct shared_task shared = {.turn = 0};
    pthread_t threads[WAITERS];
    struct weir_scope *scope;
    _Atomic int count = 0;
    int rounds = 200 * SCALE;
    pthread_barrier_init(&shared.start, NULL, WAITERS + 1);
    pthread_barrier_init(&shared.end, NULL, WAITERS + 1);
    DONE(weir_scope_create(rig.context, NULL, &scope));
    atomic_store(&shared.scope, scope);
    for (size_t i = 0; i < WAITERS; i++) cr_assert_eq(pthread_create(&threads[i], NULL, wait_for_shared, &shared), 0);
    for (int round = 0; round < rounds; round++) {
        struct weir_task *task, *external = NULL;
        int kind = round % 3;
        if (kind == 0)
            DONE(weir_task_host(scope, add_one, &count, NULL, 0, NULL, &task));
        else if (kind == 1)
            DONE(weir_task_submit(scope, rig.devices[0], NULL, 0, issue_add_one, &count, NULL, &task));
        else {
            DONE(weir_task_external(scope, NULL, 0, NULL, &task));
            external = weir_task_retain(task);
        }
        for (int i = 1; i < WAITERS; i++) weir_task_retain(task);
        atomic_store(&shared.task, task);
        pthread_barrier_wait(&shared.start);
        if (external != NULL) DONE(weir_task_fulfill(external, 0));
        pthread_barrier_wait(&shared.end);
    }
    for (size_t i = 0; i < WAITERS; i++) pthread_join(threads[i], NULL);
    cr_assert_eq(count, rounds - rounds / 3);
    DONE(weir_scope_destroy(scope));
}

/* ---- fulfilment against submission ---- */

static void fulfill(void *arg)
{
    DONE(weir_task_fulfill(arg, 0));
}

Test(exec_threads, fulfilment_races_the_submission_of_successors)
{
    struct weir_scope *scope;
    _Atomic int count = 0;
    int x = 0, rounds = 1000 * SCALE;
    struct weir_access a[] = {WEIR_INOUT(x)};
    DONE(weir_scope_create(rig.context, NULL, &scope));
    for (int round = 0; round < rounds; round++) {
        struct weir_task *external;
        DONE(weir_task_external(scope, a, 1, NULL, &external));
        rig_agent_push(&rig, fulfill, external);
        for (int i = 0; i < round % 5; i++) sched_yield();
        DONE(weir_task_host(scope, add_one, &count, a, 1, NULL, NULL));
        DONE(weir_task_submit(scope, rig.devices[0], a, 1, issue_add_one, &count, NULL, NULL));
    }
    DONE(weir_scope_wait(scope));
    cr_assert_eq(count, 2 * rounds);
    DONE(weir_scope_destroy(scope));
}

/* ---- nesting ---- */

struct nest {
    int depth;
    _Atomic int *leaves;
};

static int nested(void *arg)
{
    struct nest *nest = arg;
    struct weir_scope *scope;
    struct nest child = {nest->depth - 1, nest->leaves};
    int x = 0;
    struct weir_access a[] = {WEIR_INOUT(x)};
    if (nest->depth == 0) return add_one(nest->leaves);
    DONE(weir_scope_create(rig.context, NULL, &scope));
    for (int i = 0; i < 3; i++) DONE(weir_task_host(scope, nested, &child, a, nest->depth & 1, NULL, NULL));
    DONE(weir_scope_wait(scope)); /* more waiters than workers: they run each other's tasks */
    DONE(weir_task_submit(scope, rig.devices[0], a, 1, issue_add_one, nest->leaves, NULL, NULL));
    DONE(weir_scope_destroy(scope));
    return 0;
}

Test(exec_threads, host_tasks_make_scopes_and_wait)
{
    _Atomic int leaves = 0;
    struct nest top = {5, &leaves};
    struct weir_scope *scope;
    DONE(weir_scope_create(rig.context, NULL, &scope));
    for (int i = 0; i < 4; i++) DONE(weir_task_host(scope, nested, &top, NULL, 0, NULL, NULL));
    DONE(weir_scope_wait(scope));
    /* 3^5 leaves, and one device task in each of the 1 + 3 + 9 + 27 + 81 inner ones. */
    cr_assert_eq(leaves, 4 * (243 + 121));
    DONE(weir_scope_destroy(scope));
}

/* ---- back-pressure ---- */

enum { FILLERS = 200, ATTEMPTS = 4 };

/* A window that was exceeded k times is that much wider. */
static uint32_t widened(uint32_t window, uint64_t exceeded)
{
    while (exceeded-- > 0) window += window / 2 + 1;
    return window;
}

static void fill(struct weir_scope *scope, uint32_t window, const char *name)
{
    _Atomic int count = 0;
    int x[3] = {0};
    for (int i = 0; i < FILLERS; i++) {
        struct weir_counters counters;
        struct weir_access a[] = {WEIR_INOUT(x[i % 3]), WEIR_IN(x[(i + 1) % 3])};
        if (rig.ndevices > 0 && i % 4 != 0)
            DONE(weir_task_submit(scope, rig.devices[(uint32_t)i % rig.ndevices], a, 2, issue_add_one, &count, NULL,
                                  NULL));
        else
            DONE(weir_task_host(scope, add_one, &count, a, 2, NULL, NULL));
        weir_scope_counters(scope, &counters);
        /* Whose function has not run is in flight. */
        int in_flight = i + 1 - atomic_load(&count);
        cr_assert_leq((uint32_t)in_flight, widened(window, counters.window_exceeded),
                      "%s: %d tasks in flight, window %u, exceeded %llu times", name, in_flight, window,
                      (unsigned long long)counters.window_exceeded);
    }
    DONE(weir_scope_wait(scope));
    cr_assert_eq(count, FILLERS);
}

/* False: the window was exceeded. */
static bool window_is_kept(const struct rig_kind *kind, uint32_t window)
{
    struct weir_scope *scope;
    struct weir_scope_options options = {.size = sizeof(options), .window = window};
    struct weir_counters counters;
    bool violations;
    DONE(rig_open(&rig, kind, 0));
    DONE(weir_scope_create(rig.context, &options, &scope));
    fill(scope, window, kind->name);
    weir_scope_counters(scope, &counters);
    cr_assert_gt(counters.window_waits, 0, "%s: nothing was in the way of the submitter", kind->name);
    DONE(weir_scope_destroy(scope));
    DONE(rig_close(&rig, &violations));
    cr_assert(!violations);
    return counters.window_exceeded == 0;
}

/* All of this work finishes by itself. On a machine that is busy nothing may finish for so long that the submitter goes
 * on; hardly ever, and not again and again. */
Test(exec_threads_bare, small_windows_are_kept_and_never_deadlock)
{
    for (size_t k = 0; k < rig_nkinds; k++)
        for (uint32_t window = 1; window <= 8; window++) {
            bool kept = false;
            for (int attempt = 0; attempt < ATTEMPTS && !kept; attempt++) kept = window_is_kept(&rig_kinds[k], window);
            cr_assert(kept, "%s: a window of %u tasks was exceeded every time", rig_kinds[k].name, window);
        }
}

/* Nothing in flight can finish before the submitter has fulfilled: it must get past its window. */
Test(exec_threads, submitter_gets_past_a_window_that_only_it_can_open)
{
    for (uint32_t window = 1; window <= 8; window++) {
        struct weir_scope *scope;
        struct weir_scope_options options = {.size = sizeof(options), .window = window};
        struct weir_task *external;
        _Atomic int count = 0;
        int x = 0;
        struct weir_access a[] = {WEIR_INOUT(x)};
        DONE(weir_scope_create(rig.context, &options, &scope));
        DONE(weir_task_external(scope, a, 1, NULL, &external));
        for (int i = 0; i < 20; i++) {
            DONE(weir_task_host(scope, add_one, &count, a, 1, NULL, NULL));
            DONE(weir_task_submit(scope, rig.devices[0], a, 1, issue_add_one, &count, NULL, NULL));
        }
        cr_assert_eq(count, 0);
        DONE(weir_task_fulfill(external, 0));
        DONE(weir_scope_wait(scope));
        cr_assert_eq(count, 40);
        DONE(weir_scope_destroy(scope));
    }
}

/* The same with work in flight that does finish: waiting for it is allowed, waiting for the rest is not. */
Test(exec_threads, mixed_window_is_not_waited_for_to_the_end)
{
    struct weir_scope *scope;
    struct weir_scope_options options = {.size = sizeof(options), .window = 4};
    struct weir_task *external, *open;
    _Atomic int count = 0;
    int x = 0, y = 0, z = 0;
    struct weir_access a[] = {WEIR_INOUT(x)}, b[] = {WEIR_INOUT(y)}, c[] = {WEIR_INOUT(z)};
    DONE(weir_scope_create(rig.context, &options, &scope));
    DONE(weir_task_external(scope, a, 1, NULL, &external));
    DONE(weir_task_begin(scope, rig.devices[0], c, 1, NULL, &open));
    for (int i = 0; i < 50; i++) {
        DONE(weir_task_host(scope, add_one, &count, a, 1, NULL, NULL));
        DONE(weir_task_host(scope, add_one, &count, b, 1, NULL, NULL));
        DONE(weir_task_submit(scope, rig.devices[0], b, 1, issue_add_one, &count, NULL, NULL));
        DONE(weir_task_submit(scope, rig.devices[0], c, 1, issue_add_one, &count, NULL, NULL));
    }
    DONE(weir_task_end(open));
    DONE(weir_task_fulfill(external, 0));
    DONE(weir_scope_wait(scope));
    cr_assert_eq(count, 200);
    DONE(weir_scope_destroy(scope));
}

static int fulfill_body(void *arg)
{
    return weir_task_fulfill(arg, 0);
}

/* A host task fulfils what everything before it waits for; the only way to it leads through a full window. */
Test(exec_threads, host_task_fulfils_what_fills_the_window)
{
    for (int round = 0; round < 100; round++) { /* a tenth of a second each: the patience of a full window */
        struct weir_scope *scope;
        struct weir_scope_options options = {.size = sizeof(options), .window = 2};
        struct weir_task *external;
        _Atomic int count = 0;
        int x = 0;
        struct weir_access a[] = {WEIR_INOUT(x)};
        DONE(weir_scope_create(rig.context, &options, &scope));
        DONE(weir_task_external(scope, a, 1, NULL, &external));
        for (int i = 0; i < 5; i++) DONE(weir_task_host(scope, add_one, &count, a, 1, NULL, NULL));
        DONE(weir_task_host(scope, fulfill_body, external, NULL, 0, NULL, NULL));
        for (int i = 0; i < 5; i++) DONE(weir_task_host(scope, add_one, &count, a, 1, NULL, NULL));
        DONE(weir_scope_destroy(scope));
        cr_assert_eq(count, 10);
    }
}

/* ---- contexts and processes ---- */

static void *use_context(void *arg)
{
    struct weir_context *context = arg;
    struct weir_scope *scope;
    _Atomic int count = 0;
    int x = 0;
    struct weir_access a[] = {WEIR_INOUT(x)};
    DONE(weir_scope_create(context, NULL, &scope));
    for (int i = 0; i < 500 * SCALE; i++) {
        DONE(weir_task_host(scope, add_one, &count, a, 1, NULL, NULL));
        DONE(weir_task_submit(scope, weir_device_get(context, 0), a, 1, issue_add_one, &count, NULL, NULL));
    }
    DONE(weir_scope_destroy(scope));
    if (count != 1000 * SCALE) abort();
    return NULL;
}

Test(exec_threads, two_contexts_share_nothing)
{
    struct weir_context *other;
    struct weir_counters counters;
    pthread_t thread;
    DONE(weir_context_create(NULL, &other));
    cr_assert_eq(pthread_create(&thread, NULL, use_context, other), 0);
    use_context(rig.context);
    pthread_join(thread, NULL);
    weir_context_counters(other, &counters);
    cr_assert_eq(counters.tasks, (uint64_t)1000 * SCALE);
    cr_assert_eq(counters.completed, counters.tasks);
    DONE(weir_context_destroy(other));
    use_context(rig.context);
}

Test(exec_threads_bare, context_can_be_made_and_destroyed_many_times)
{
    for (int round = 0; round < 20 * SCALE; round++) {
        struct weir_context *context;
        struct weir_scope *scope;
        _Atomic int count = 0;
        DONE(weir_context_create(NULL, &context));
        DONE(weir_scope_create(context, NULL, &scope));
        if (round & 1) DONE(weir_task_host(scope, add_one, &count, NULL, 0, NULL, NULL));
        if (round & 2)
            DONE(weir_task_submit(scope, weir_device_get(context, 0), NULL, 0, issue_add_one, &count, NULL, NULL));
        DONE(weir_scope_destroy(scope));
        DONE(weir_context_destroy(context));
        cr_assert_eq(count, (round & 1) + (round >> 1 & 1));
    }
}

static int child_of_fork(struct weir_scope *scope, struct weir_task *task)
{
    struct weir_scope *made;
    struct weir_task *out;
    if (weir_task_host(scope, add_one, NULL, NULL, 0, NULL, NULL) != WEIR_E_FORKED) return 1;
    if (weir_task_submit(scope, rig.devices[0], NULL, 0, issue_add_one, NULL, NULL, NULL) != WEIR_E_FORKED) return 2;
    if (weir_task_begin(scope, rig.devices[0], NULL, 0, NULL, &out) != WEIR_E_FORKED) return 3;
    if (weir_task_external(scope, NULL, 0, NULL, &out) != WEIR_E_FORKED) return 4;
    if (weir_scope_create(rig.context, NULL, &made) != WEIR_E_FORKED) return 5;
    if (weir_scope_wait(scope) != WEIR_E_FORKED) return 6;
    if (weir_task_wait(task) != WEIR_E_FORKED) return 7;
    if (weir_scope_destroy(scope) != WEIR_E_FORKED) return 8;
    if (weir_context_destroy(rig.context) != WEIR_E_FORKED) return 9;
    if (weir_error_text()[0] == '\0') return 10;
    return 0;
}

Test(exec_threads, child_of_a_fork_is_told_and_can_leave)
{
    struct weir_scope *scope;
    struct weir_task *external, *behind;
    _Atomic int count = 0;
    int x = 0, status = -1;
    struct weir_access a[] = {WEIR_INOUT(x)};
    DONE(weir_scope_create(rig.context, NULL, &scope));
    DONE(weir_task_external(scope, a, 1, NULL, &external));
    DONE(weir_task_host(scope, add_one, &count, a, 1, NULL, &behind));
    DONE(weir_task_submit(scope, rig.devices[0], a, 1, issue_add_one, &count, NULL, NULL));
    pid_t child = fork();
    if (child == 0) {
        alarm(20); /* a child that hangs fails the test */
        _exit(child_of_fork(scope, behind));
    }
    cr_assert_gt(child, 0);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    cr_assert(WIFEXITED(status), "the child ended by signal %d", WTERMSIG(status));
    cr_assert_eq(WEXITSTATUS(status), 0, "step %d in the child", WEXITSTATUS(status));
    DONE(weir_task_fulfill(external, 0));
    DONE(weir_task_wait(behind));
    weir_task_release(behind);
    DONE(weir_scope_destroy(scope));
    cr_assert_eq(count, 2);
}

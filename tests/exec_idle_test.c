/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * A process that has nothing to do does nothing: the threads that a context has made are not scheduled a single time
 * while nobody calls. Processor time is compared as well, and is what the time-keeping of the kernel lets it be.
 */
#include <criterion/criterion.h>
#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <devices/mock/mock.h>
#include <exec/work.h>
#include <weir/weir.h>

#include "done.h"

#ifdef WEIR_TEST_SANITIZED
enum { IDLE_SECONDS = 1 };
#else
enum { IDLE_SECONDS = 5 };
#endif
enum { THREADS = 256, CPU_LIMIT_US = 20000 };

/* ---- what the kernel knows of our threads ---- */

struct snapshot {
    size_t n;
    struct {
        int id;
        long switches; /* voluntary and other */
    } thread[THREADS];
};

/* Threads that were there before: the test's, the sanitizer's. They are left out. */
static struct snapshot before;

static bool was_there(int id)
{
    for (size_t i = 0; i < before.n; i++)
        if (before.thread[i].id == id) return true;
    return false;
}

static long switches_of(int id)
{
    char path[64], line[128];
    long sum = 0, n;
    snprintf(path, sizeof(path), "/proc/self/task/%d/status", id);
    FILE *file = fopen(path, "r");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL)
        if (sscanf(line, "voluntary_ctxt_switches: %ld", &n) == 1 ||
            sscanf(line, "nonvoluntary_ctxt_switches: %ld", &n) == 1)
            sum += n;
    if (file != NULL) fclose(file);
    return sum;
}

static void look(struct snapshot *out)
{
    DIR *directory = opendir("/proc/self/task");
    cr_assert_not_null(directory);
    out->n = 0;
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        int id = atoi(entry->d_name);
        if (id == 0 || was_there(id)) continue;
        cr_assert_lt(out->n, THREADS);
        out->thread[out->n].id = id;
        out->thread[out->n++].switches = switches_of(id);
    }
    closedir(directory);
}

static bool same(const struct snapshot *a, const struct snapshot *b)
{
    if (a->n != b->n) return false;
    for (size_t i = 0; i < a->n; i++)
        if (a->thread[i].id != b->thread[i].id || a->thread[i].switches != b->thread[i].switches) return false;
    return true;
}

static void nap(long ms)
{
    struct timespec left = {ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&left, &left) != 0) continue;
}

static long cpu_us(void)
{
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return used.tv_sec * 1000000 + used.tv_nsec / 1000;
}

/* Threads may take a moment to find out that there is nothing left. */
static void settle(struct snapshot *last)
{
    struct snapshot now;
    look(last);
    for (int i = 0; i < 200; i++) {
        nap(50);
        look(&now);
        if (same(last, &now)) return;
        *last = now;
    }
    cr_assert_fail("the threads never come to rest");
}

static void expect_rest(size_t least_threads)
{
    struct snapshot first, last;
    settle(&first);
    cr_assert_geq(first.n, least_threads, "%zu threads: nothing is put to the test", first.n);
    long cpu = cpu_us();
    nap(1000 * IDLE_SECONDS);
    cpu = cpu_us() - cpu;
    look(&last);
    fprintf(stderr, "%zu threads, %d s: %ld us of processor time by all of the process\n", first.n, IDLE_SECONDS, cpu);
    for (size_t i = 0; i < last.n && i < first.n; i++)
        cr_assert_eq(last.thread[i].switches, first.thread[i].switches, "thread %zu of %zu was scheduled %ld times", i,
                     last.n, last.thread[i].switches - first.thread[i].switches);
    cr_assert(same(&first, &last), "threads came or went");
    cr_assert_lt(cpu, CPU_LIMIT_US);
}

/* ---- contexts that were used ---- */

static struct weir_context *context;
static struct weir_scope *scope;
static struct weir__mock *mock;
static struct weir_device *host, *other; /* other: the mock's, whose clock stands still */
static int x, y, z;                      /* addresses */

static void *leave(void *arg)
{
    return arg;
}

static void open_all(void)
{
    pthread_t first;
    struct weir__mock_options options = {.clock = WEIR__MOCK_MANUAL, .no_event_notify = true};
    struct weir_context_options two = {.size = sizeof(two), .workers = 2};
    /* A sanitizer starts its thread with the first one of the program. */
    cr_assert_eq(pthread_create(&first, NULL, leave, NULL), 0);
    pthread_join(first, NULL);
    look(&before);
    DONE(weir__mock_create(&options, &mock));
    DONE(weir_context_create(&two, &context));
    DONE(weir__context_add_backend(context, weir__mock_ops(mock), mock));
    DONE(weir_scope_create(context, NULL, &scope));
    host = weir_device_get(context, 0);
    other = weir_device_get(context, weir_device_count(context) - 1);
}

static void close_all(void)
{
    DONE(weir_scope_destroy(scope));
    DONE(weir_context_destroy(context));
    weir__mock_destroy(mock);
}

TestSuite(exec_idle, .init = open_all, .fini = close_all, .timeout = 60);

static int body(void *arg)
{
    nap(1); /* long enough for others to be woken */
    return arg != NULL;
}

static int issue(struct weir_task *task, void *native_stream, void *arg)
{
    (void)native_stream;
    return weir__task_host_function(task, body, arg);
}

/* Some on every stream, and host tasks that wait for them. */
static void use(void)
{
    static int cells[16];
    for (int i = 0; i < 64; i++) {
        struct weir_access a[] = {WEIR_INOUT(cells[i % 16])};
        DONE(weir_task_submit(scope, host, a, 1, issue, NULL, NULL, NULL));
        if (i % 3 == 0) DONE(weir_task_host(scope, body, NULL, a, 1, NULL, NULL));
    }
    DONE(weir_scope_wait(scope));
}

Test(exec_idle, used_devices_cost_nothing)
{
    use();
    expect_rest(2);
}

static void *wait_for_scope(void *arg)
{
    DONE(weir_scope_wait(scope));
    return arg;
}

/* Pending: an external task, an open task, work of a device that takes its time, what comes after them, and a waiter.
 */
Test(exec_idle, what_is_pending_is_not_asked_for)
{
    struct weir_access on_x[] = {WEIR_INOUT(x)}, on_y[] = {WEIR_INOUT(y)}, on_z[] = {WEIR_INOUT(z)};
    struct weir_task *external, *open;
    pthread_t waiter;
    use();
    DONE(weir_task_external(scope, on_x, 1, NULL, &external));
    DONE(weir_task_begin(scope, host, on_y, 1, NULL, &open));
    DONE(weir_task_submit(scope, other, on_z, 1, issue, NULL, NULL, NULL));
    DONE(weir_task_submit(scope, host, on_x, 1, issue, NULL, NULL, NULL));
    DONE(weir_task_host(scope, body, NULL, on_y, 1, NULL, NULL));
    DONE(weir_task_host(scope, body, NULL, on_z, 1, NULL, NULL));
    cr_assert_eq(pthread_create(&waiter, NULL, wait_for_scope, NULL), 0);
    expect_rest(3);
    DONE(weir_task_fulfill(external, 0));
    DONE(weir_task_end(open));
    while (weir_scope_test(scope) == WEIR_E_PENDING) weir__mock_advance(mock, 1);
    pthread_join(waiter, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Memory: every allocation and thread creation of a scenario made to fail in turn, constant memory for ten million
 * tasks (fewer under a sanitizer), edges linear in large groups. The executable is linked with --wrap, so the functions
 * below see the calls of the library's objects and of nobody else.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <devices/mock/mock.h>
#include <exec/work.h>
#include <weir/weir.h>

/* ---- allocations that fail on request ---- */

static _Atomic long calls, fail_at, live; /* fail_at: 0 never */
static _Atomic long bytes, peak_bytes;    /* allocated */
static _Atomic bool fail_onwards;         /* this one and all that follow */

static bool refuse(void)
{
    long number = atomic_fetch_add(&calls, 1) + 1, at = atomic_load(&fail_at);
    return at != 0 && (number == at || (number > at && atomic_load(&fail_onwards)));
}

static void add_bytes(long more)
{
    long now = atomic_fetch_add(&bytes, more) + more, peak = atomic_load(&peak_bytes);
    while (now > peak && !atomic_compare_exchange_weak(&peak_bytes, &peak, now)) continue;
}

static void *counted(void *memory)
{
    if (memory != NULL) atomic_fetch_add(&live, 1);
    add_bytes((long)malloc_usable_size(memory));
    return memory;
}

/* The CPU backend, the only one to use posix_memalign(), keeps streams and devices for the next context, and how many
 * it needed is a matter of time: these are left to the leak sanitizer. */
static struct {
    pthread_mutex_t lock;
    void *memory[4096];
    size_t count;
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void keep(void *memory)
{
    pthread_mutex_lock(&kept.lock);
    if (kept.count == sizeof(kept.memory) / sizeof(kept.memory[0])) abort();
    kept.memory[kept.count++] = memory;
    pthread_mutex_unlock(&kept.lock);
}

static bool unkeep(void *memory)
{
    bool found = false;
    pthread_mutex_lock(&kept.lock);
    for (size_t i = 0; i < kept.count && !found; i++) {
        found = kept.memory[i] == memory;
        if (found) kept.memory[i] = kept.memory[--kept.count];
    }
    pthread_mutex_unlock(&kept.lock);
    return found;
}

void *__real_malloc(size_t n);
void *__real_calloc(size_t count, size_t n);
void *__real_realloc(void *memory, size_t n);
void *__real_aligned_alloc(size_t alignment, size_t n);
int __real_posix_memalign(void **memory_out, size_t alignment, size_t n);
void __real_free(void *memory);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *arg);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t count, size_t n);
void *__wrap_realloc(void *memory, size_t n);
void *__wrap_aligned_alloc(size_t alignment, size_t n);
int __wrap_posix_memalign(void **memory_out, size_t alignment, size_t n);
void __wrap_free(void *memory);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *arg);

void *__wrap_malloc(size_t n)
{
    return refuse() ? NULL : counted(__real_malloc(n));
}
void *__wrap_calloc(size_t count, size_t n)
{
    return refuse() ? NULL : counted(__real_calloc(count, n));
}

void *__wrap_realloc(void *memory, size_t n)
{
    if (refuse()) return NULL;
    long before = (long)malloc_usable_size(memory);
    void *moved = __real_realloc(memory, n);
    if (memory == NULL) return counted(moved);
    if (moved != NULL) add_bytes((long)malloc_usable_size(moved) - before);
    return moved;
}

void *__wrap_aligned_alloc(size_t alignment, size_t n)
{
    return refuse() ? NULL : counted(__real_aligned_alloc(alignment, n));
}

int __wrap_posix_memalign(void **memory_out, size_t alignment, size_t n)
{
    if (refuse()) return ENOMEM;
    int rc = __real_posix_memalign(memory_out, alignment, n);
    if (rc == 0) keep(*memory_out);
    if (rc == 0) add_bytes((long)malloc_usable_size(*memory_out));
    return rc;
}

void __wrap_free(void *memory)
{
    if (memory != NULL && !unkeep(memory)) atomic_fetch_sub(&live, 1);
    add_bytes(-(long)malloc_usable_size(memory));
    __real_free(memory);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *arg)
{
    return refuse() ? EAGAIN : __real_pthread_create(thread, attributes, start, arg);
}

static void arm(long at, bool onwards)
{
    atomic_store(&calls, 0);
    atomic_store(&fail_onwards, onwards);
    atomic_store(&fail_at, at);
}

/* ---- the scenario ---- */

static _Atomic int bodies, callbacks, gave_up;
static int accepted, accepted_callbacks;
static bool any_failed; /* a task was accepted and could not be issued */
static long cells[32];

static bool is_shortage(int rc)
{
    return rc == WEIR_E_NO_MEMORY || rc == WEIR_E_SYSTEM;
}

/* Was it accepted? Only a shortage may be told. */
static bool took(int rc, const char *what)
{
    cr_assert(rc == WEIR_OK || is_shortage(rc), "call %ld failed: %s: %s: %s", (long)fail_at, what, weir_error_name(rc),
              weir_error_text());
    return rc == WEIR_OK;
}
#define TOOK(call) took((call), #call)

static int body(void *arg)
{
    (void)arg;
    bodies++;
    return 0;
}

static int issue(struct weir_task *task, void *native_stream, void *arg)
{
    (void)native_stream;
    return weir__task_host_function(task, body, arg);
}

static void complete(struct weir_task *task, int status, void *arg)
{
    (void)task;
    (void)arg;
    (void)status;
    callbacks++;
}

static size_t many_accesses(struct weir_access *a, size_t n, uint32_t kind)
{
    for (size_t i = 0; i < n; i++) a[i] = (struct weir_access){&cells[i], sizeof(cells[i]), kind};
    return n;
}

static void submit_tasks(struct weir_scope *scope, struct weir_device *device)
{
    static const uint32_t kinds[] = {WEIR_ACCESS_IN,  WEIR_ACCESS_INOUTSET,  WEIR_ACCESS_IN, WEIR_ACCESS_MUTEXINOUTSET,
                                     WEIR_ACCESS_OUT, WEIR_ACCESS_ALL_MEMORY};
    struct weir_task_options options = {
        .size = sizeof(options), .name = "memory", .file = __FILE__, .line = 1, .complete = complete};
    struct weir_access a[32];
    for (size_t i = 0; i < 36; i++) {
        size_t n = many_accesses(a, i % 3 == 0 ? 1 : i % 3 == 1 ? 3 : 20, kinds[i / 6]);
        bool marked = i % 2;
        int rc = i & 4 ? weir_task_submit(scope, device, a, n, issue, NULL, marked ? &options : NULL, NULL)
                       : weir_task_host(scope, body, NULL, a, n, marked ? &options : NULL, NULL);
        if (!took(rc, "submission")) continue;
        accepted++;
        accepted_callbacks += marked;
    }
}

static bool has_failures(struct weir_scope *scope)
{
    struct weir_counters counters;
    weir_scope_counters(scope, &counters);
    return counters.failed > 0;
}

static void open_and_end(struct weir_scope *scope, struct weir_device *device, void *memory)
{
    struct weir_task_options options = {.size = sizeof(options), .block = true};
    struct weir_access a[] = {WEIR_INOUT(cells[0]), WEIR_INOUT(cells[1])};
    struct weir_task *task;
    int rc = weir_task_begin(scope, device, a, 2, &options, &task);
    /* A predecessor may have failed for want of memory when it was issued. */
    if (rc == WEIR_E_PREDECESSOR && has_failures(scope)) return;
    if (!took(rc, "weir_task_begin")) return;
    weir_task_retain(task);
    if (memory != NULL) (void)TOOK(weir_task_copy(task, memory, device, cells, NULL, sizeof(cells)));
    accepted += TOOK(weir__task_host_function(task, body, NULL));
    (void)TOOK(weir_task_end(task));
    rc = weir_task_wait(task);
    cr_assert(rc == WEIR_OK || has_failures(scope), "%s", weir_error_name(rc));
    weir_task_release(task);
}

/* What was queued before the task was given up runs all the same, and its memory must be there until the task's end. */
static int copy_and_give_up(struct weir_task *task, void *native_stream, void *arg)
{
    (void)native_stream;
    if (weir_task_copy(task, ((void **)arg)[0], ((void **)arg)[1], cells, NULL, sizeof(cells)) == WEIR_OK) gave_up++;
    return WEIR_E_NO_MEMORY;
}

static void give_up(struct weir_scope *scope, struct weir_device *device)
{
    void *arg[2] = {NULL, device};
    struct weir_task *task;
    if (!TOOK(weir_device_alloc(device, sizeof(cells), &arg[0]))) return;
    if (TOOK(weir_task_submit(scope, device, NULL, 0, copy_and_give_up, arg, NULL, &task))) {
        cr_assert(is_shortage(weir_task_wait(task)));
        weir_task_release(task);
        int rc = weir_scope_wait(scope);
        cr_assert(is_shortage(rc), "%s", weir_error_name(rc));
    }
    cr_assert_eq(weir_device_free(device, arg[0]), WEIR_OK);
}

static void fulfil_between(struct weir_scope *scope, struct weir_device *device)
{
    struct weir_access a[] = {WEIR_INOUT(cells[2]), WEIR_IN(cells[3])}, after[] = {WEIR_AFTER(NULL)};
    struct weir_task *external;
    if (!TOOK(weir_task_external(scope, a, 2, NULL, &external))) return;
    weir_task_retain(external);
    after[0].address = external;
    accepted += TOOK(weir_task_submit(scope, device, a, 1, issue, NULL, NULL, NULL));
    accepted += TOOK(weir_task_host(scope, body, NULL, after, 1, NULL, NULL));
    accepted += TOOK(weir_task_submit(scope, device, after, 1, issue, NULL, NULL, NULL));
    cr_assert_eq(weir_task_fulfill(external, 0), WEIR_OK);
    weir_task_release(external);
    int rc = weir_scope_wait_for(scope, a, 1);
    cr_assert(rc == WEIR_OK || is_shortage(rc) || has_failures(scope), "wait_for: %s", weir_error_name(rc));
}

static void foreign_work(struct weir_scope *scope, struct weir_device *device)
{
    struct weir_task *task;
    void *stream, *event;
    if (!TOOK(weir_host_stream_create(device, &stream))) return;
    bool queued = TOOK(weir_host_enqueue(stream, body, NULL));
    if (TOOK(weir_host_event_record(stream, &event))) {
        if (TOOK(weir_task_import(scope, device, event, NULL, 0, NULL, &task))) {
            (void)TOOK(weir_task_export(task, stream));
            weir_task_release(task);
        }
        weir_host_event_destroy(event);
    }
    cr_assert_eq(weir_host_stream_wait(stream), WEIR_OK);
    weir_host_stream_destroy(stream);
    accepted += queued; /* its body counts as well */
}

static void use_scope(struct weir_context *context, struct weir_device *device, bool ranges, bool is_host)
{
    struct weir_scope_options options = {.size = sizeof(options), .window = 8, .ranges = ranges};
    struct weir_scope *scope;
    void *memory = NULL;
    if (!TOOK(weir_scope_create(context, &options, &scope))) return;
    (void)TOOK(weir_device_alloc(device, sizeof(cells), &memory));
    submit_tasks(scope, device);
    open_and_end(scope, device, memory);
    fulfil_between(scope, device);
    if (is_host) foreign_work(scope, device);
    int rc = weir_scope_wait(scope);
    bool failed = has_failures(scope);
    cr_assert(failed ? is_shortage(rc) : rc == WEIR_OK, "call %ld failed: wait: %s: %s", (long)fail_at,
              weir_error_name(rc), weir_error_text());
    any_failed |= failed;
    give_up(scope, device);
    cr_assert_eq(weir_scope_destroy(scope), WEIR_OK);
    cr_assert_eq(weir_device_free(device, memory), WEIR_OK);
}

static void scenario(bool with_mock)
{
    struct weir_context_options options = {.size = sizeof(options), .workers = 2};
    struct weir__mock_options mock_options = {.clock = WEIR__MOCK_TICKER};
    struct weir_context *context;
    struct weir__mock *mock = NULL;
    bodies = callbacks = 0;
    accepted = accepted_callbacks = 0;
    any_failed = false;
    if (with_mock && !TOOK(weir__mock_create(&mock_options, &mock))) return;
    if (TOOK(weir_context_create(&options, &context))) {
        int number = 0;
        if (with_mock && TOOK(weir__context_add_backend(context, weir__mock_ops(mock), mock)))
            number = weir_device_count(context) - 1;
        struct weir_device *device = weir_device_get(context, number);
        use_scope(context, device, false, number == 0);
        use_scope(context, device, true, number == 0);
        cr_assert_eq(weir_context_destroy(context), WEIR_OK);
    }
    if (!any_failed) cr_assert_eq(bodies, accepted, "%d bodies ran, %d accepted", bodies, accepted);
    cr_assert_leq(bodies, accepted);
    cr_assert_eq(callbacks, accepted_callbacks, "%d callbacks, %d expected", callbacks, accepted_callbacks);
    if (mock != NULL) {
        cr_assert_eq(weir__mock_violations(mock)[0], '\0', "call %ld failed: %s", (long)fail_at,
                     weir__mock_violations(mock));
        cr_assert_eq(weir__mock_objects(mock), 0);
        weir__mock_destroy(mock);
    }
}

static void fail_each_in_turn(bool with_mock, bool onwards)
{
    long at = 0, before;
    arm(0, false);
    scenario(false); /* what is made once and kept is made here */
    scenario(true);
    before = live;
    do {
        long after = before;
        int grown = 0;
        arm(++at, onwards);
        scenario(with_mock);
        /* What is pooled for good (streams and threads of the CPU device) follows the most that was ever needed at
         * once, and that differs from run to run; what is lost grows with every repetition. */
        while (live > after && grown < 6) {
            after = live;
            grown++;
            arm(at, onwards);
            scenario(with_mock);
        }
        cr_assert_lt(grown, 6, "failing call %ld: %ld allocations left, more each time", at, live - before);
        before = live;
    } while (atomic_load(&calls) >= at);
    arm(0, false);
    fprintf(stderr, "%ld allocations failed in turn; %d copies of tasks that were given up\n", at - 1, gave_up);
    cr_assert_gt(gave_up, 0);
    cr_assert_gt(at, 20);
}

TestSuite(exec_memory, .timeout = 240);

Test(exec_memory, one_allocation_fails_on_the_host_device)
{
    fail_each_in_turn(false, false);
}
Test(exec_memory, all_allocations_fail_from_one_on_on_the_host_device)
{
    fail_each_in_turn(false, true);
}
Test(exec_memory, one_allocation_fails_on_the_mock)
{
    fail_each_in_turn(true, false);
}
Test(exec_memory, all_allocations_fail_from_one_on_on_the_mock)
{
    fail_each_in_turn(true, true);
}

/* ---- groups ---- */

enum { GROUP = 500 };

static uint64_t edges_between(uint32_t first, uint32_t second, bool on_device)
{
    struct weir_context *context;
    struct weir_scope *scope;
    struct weir_task *gate;
    struct weir_counters counters;
    struct weir_access all[] = {WEIR_ALL_MEMORY}, a[] = {WEIR_RANGE(&cells[0], 8, first)};
    bodies = 0;
    cr_assert_eq(weir_context_create(NULL, &context), WEIR_OK);
    cr_assert_eq(weir_scope_create(context, NULL, &scope), WEIR_OK);
    cr_assert_eq(weir_task_external(scope, all, 1, NULL, &gate), WEIR_OK);
    for (int i = 0; i < 2 * GROUP; i++) {
        a[0].kind = i < GROUP ? first : second;
        int rc = on_device ? weir_task_submit(scope, weir_device_get(context, 0), a, 1, issue, NULL, NULL, NULL)
                           : weir_task_host(scope, body, NULL, a, 1, NULL, NULL);
        cr_assert_eq(rc, WEIR_OK);
    }
    cr_assert_eq(weir_task_fulfill(gate, 0), WEIR_OK);
    cr_assert_eq(weir_scope_wait(scope), WEIR_OK);
    cr_assert_eq(bodies, 2 * GROUP);
    weir_scope_counters(scope, &counters);
    cr_assert_eq(weir_scope_destroy(scope), WEIR_OK);
    cr_assert_eq(weir_context_destroy(context), WEIR_OK);
    return counters.edges;
}

Test(exec_memory, groups_behind_groups_cost_edges_in_their_sum)
{
    static const uint32_t pairs[][2] = {
        {WEIR_ACCESS_IN, WEIR_ACCESS_INOUTSET},
        {WEIR_ACCESS_INOUTSET, WEIR_ACCESS_IN},
        {WEIR_ACCESS_IN, WEIR_ACCESS_MUTEXINOUTSET},
        {WEIR_ACCESS_MUTEXINOUTSET, WEIR_ACCESS_IN},
        {WEIR_ACCESS_MUTEXINOUTSET, WEIR_ACCESS_INOUTSET},
    };
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
        for (int on_device = 0; on_device < 2; on_device++) {
            uint64_t edges = edges_between(pairs[i][0], pairs[i][1], on_device);
            cr_assert_leq(edges, 5 * GROUP, "kinds %u then %u: %llu edges", pairs[i][0], pairs[i][1],
                          (unsigned long long)edges);
        }
}

/* ---- ten million ---- */

#if defined(__OPTIMIZE__) && !defined(WEIR_TEST_SANITIZED)
enum { MANY = 10000000, SOME = 2000000 };
#else
enum { MANY = 300000, SOME = 500000 }; /* each costs ten times as much */
#endif
enum { ROOM_KB = 512, PROCESS_ROOM_KB = 1024 };

static int nothing(void *arg)
{
    (void)arg;
    return 0;
}

static int issue_nothing(struct weir_task *task, void *native_stream, void *arg)
{
    (void)native_stream;
    return weir__task_host_function(task, nothing, arg);
}

/* Of this program alone: what getrusage() tells includes the program that executed it. */
static long peak_kb(void)
{
    char line[128];
    long kb = -1;
    FILE *file = fopen("/proc/self/status", "r");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL)
        if (sscanf(line, "VmHWM: %ld", &kb) == 1) break;
    if (file != NULL) fclose(file);
    return kb;
}

/* @addresses: 0 gives every task an address of its own that is never used again. */
static void submit_many(struct weir_scope *scope, struct weir_device *device, size_t first, size_t n, size_t addresses)
{
    for (size_t i = first; i < first + n; i++) {
        uintptr_t at = 4096 + 8 * (addresses ? i % addresses : i),
                  near = 4096 + 8 * (addresses ? (i + 1) % addresses : i);
        struct weir_access a[] = {{(void *)at, 8, WEIR_ACCESS_INOUT}, {(void *)near, 8, WEIR_ACCESS_IN}};
        size_t count = addresses ? 2 : 1;
        int rc = device ? weir_task_submit(scope, device, a, count, issue_nothing, NULL, NULL, NULL)
                        : weir_task_host(scope, nothing, NULL, a, count, NULL, NULL);
        if (rc != WEIR_OK) cr_assert_fail("task %zu: %s", i, weir_error_text());
    }
}

/*
 * After a warm-up neither the most that the library had allocated nor the most that the process had grows. Under a
 * sanitizer, whose own memory grows, only the former is looked at.
 */
static void submit_and_measure(struct weir_scope *scope, struct weir_device *device, size_t n, size_t addresses)
{
    size_t warm = n / 10;
    submit_many(scope, device, 0, warm, addresses);
    long before_kb = peak_kb(), before = peak_bytes;
    submit_many(scope, device, warm, n - warm, addresses);
    long grown = (peak_bytes - before) / 1024, grown_kb = peak_kb() - before_kb;
    cr_assert_eq(weir_scope_wait(scope), WEIR_OK);
    fprintf(stderr, "%zu tasks; after the first %zu: %ld kB allocated, %ld kB of the process\n", n, warm, grown,
            grown_kb);
    cr_assert_gt(before, 0);
    cr_assert_gt(before_kb, 0);
    cr_assert_lt(grown, ROOM_KB, "%ld kB allocated by %zu tasks", grown, n);
#ifndef WEIR_TEST_SANITIZED
    cr_assert_lt(grown_kb, PROCESS_ROOM_KB, "%ld kB more after %zu tasks", grown_kb, n);
#endif
}

/* @options NULL: no mock. */
static void run_many(const struct weir__mock_options *options, bool on_device, size_t n, size_t addresses)
{
    struct weir_context *context;
    struct weir_scope *scope;
    struct weir_counters counters;
    struct weir__mock *mock = NULL;
    cr_assert_eq(weir_context_create(NULL, &context), WEIR_OK);
    if (options != NULL) {
        cr_assert_eq(weir__mock_create(options, &mock), WEIR_OK);
        cr_assert_eq(weir__context_add_backend(context, weir__mock_ops(mock), mock), WEIR_OK);
    }
    struct weir_device *device = weir_device_get(context, weir_device_count(context) - 1);
    cr_assert_eq(weir_scope_create(context, NULL, &scope), WEIR_OK);
    submit_and_measure(scope, on_device ? device : NULL, n, addresses);
    weir_scope_counters(scope, &counters);
    cr_assert_eq(counters.completed, n);
    cr_assert_eq(weir_scope_destroy(scope), WEIR_OK);
    cr_assert_eq(weir_context_destroy(context), WEIR_OK);
    if (mock != NULL) weir__mock_destroy(mock);
}

Test(exec_memory, ten_million_host_tasks_in_constant_memory)
{
    run_many(NULL, false, MANY, 64);
}
Test(exec_memory, ten_million_device_tasks_in_constant_memory)
{
    run_many(&(struct weir__mock_options){.positions = true}, true, MANY, 64);
}
Test(exec_memory, ten_million_addresses_in_constant_memory)
{
    run_many(&(struct weir__mock_options){.positions = true}, true, MANY, 0);
}
Test(exec_memory, many_tasks_on_the_host_device_in_constant_memory)
{
    run_many(NULL, true, SOME, 64);
}
Test(exec_memory, many_tasks_with_events_in_constant_memory)
{
    run_many(&(struct weir__mock_options){.clock = WEIR__MOCK_AUTOMATIC}, true, SOME / 10, 64);
}

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What a task costs: bench WORKLOAD N REPEATS [VARIANT] [THREADS]
 *   VARIANT  host    host tasks
 *            mock    device tasks on a device that does everything at once and costs next to nothing
 *            device  device tasks on the embedded CPU device
 *            (static and async are other names of host and device); nothing: all three
 *            none    only make the workload and its serial result: the base line of instructions.sh
 *   THREADS  that work, the submitting one included; default 2
 * PEERS_HOLD=1 blocks the first task and prints the memory of a pending one. PEERS_WINDOW sets the window.
 * BENCH_COUNTERS=1 prints the scheduler's counters. bench idle SECONDS prints the CPU time of waiting.
 */
#include <devices/mock/mock.h>
#include <exec/work.h>
#include <weir/weir.h>

#include "workload.h"

static struct workload w;
static struct workload_gate gate;

static void check(int rc, const char *what)
{
    if (rc == 0) return;
    fprintf(stderr, "%s: %s: %s\n", what, weir_error_name(rc), weir_error_text());
    exit(1);
}

static int body(void *arg)
{
    uint32_t i = (uint32_t)(uintptr_t)arg;
    if (__builtin_expect(gate.hold && i == 0, 0)) {
        atomic_store(&gate.started, 1);
        while (!atomic_load(&gate.open)) usleep(100);
    }
    workload_body(&w, i);
    return 0;
}

static int issue_mock(struct weir_task *task, void *native_stream, void *arg)
{
    (void)native_stream;
    return weir__task_host_function(task, body, arg);
}

static int issue_host_device(struct weir_task *task, void *native_stream, void *arg)
{
    (void)task;
    return weir_host_enqueue(native_stream, body, arg);
}

static size_t list_accesses(uint32_t i, struct weir_access *accesses_out)
{
    const struct work *t = &w.work[i];
    size_t n = 0;
    for (; n < t->nin; n++) accesses_out[n] = (struct weir_access){workload_cell(&w, t->in[n]), 8, WEIR_ACCESS_IN};
    if (t->kind == WORK_READ) return n;
    accesses_out[n].address = workload_cell(&w, t->out);
    accesses_out[n].bytes = 8;
    accesses_out[n].kind = t->kind == WORK_SET ? WEIR_ACCESS_INOUTSET : WEIR_ACCESS_INOUT;
    return n + 1;
}

struct variant {
    const char *name, *alias;
    weir_issue_function issue; /* NULL: host tasks */
};

static const struct variant variants[] = {
    {"host", "static", NULL},
    {"mock", "mock", issue_mock},
    {"device", "async", issue_host_device},
};

static void submit_all(struct weir_scope *scope, struct weir_device *device, weir_issue_function issue)
{
    struct weir_access a[4];
    for (uint32_t i = 0; i < w.n; i++) {
        void *arg = (void *)(uintptr_t)i;
        size_t n = list_accesses(i, a);
        int rc = issue == NULL ? weir_task_host(scope, body, arg, a, n, NULL, NULL)
                               : weir_task_submit(scope, device, a, n, issue, arg, NULL, NULL);
        if (__builtin_expect(rc != 0, 0)) check(rc, "submit");
        if (__builtin_expect(gate.hold && i == 0, 0))
            while (!atomic_load(&gate.started)) usleep(100);
    }
}

static void print_counters(struct weir_context *context)
{
    struct weir_counters c;
    weir_context_counters(context, &c);
    printf("  tasks %llu edges %llu done %llu stream %llu implied %llu event %llu host %llu; waits %llu fences %llu "
           "late %llu window %llu exceeded %llu peak %llu\n",
           (unsigned long long)c.tasks, (unsigned long long)c.edges, (unsigned long long)c.edges_done,
           (unsigned long long)c.edges_stream, (unsigned long long)c.edges_implied, (unsigned long long)c.edges_event,
           (unsigned long long)c.edges_host, (unsigned long long)c.event_waits, (unsigned long long)c.fences,
           (unsigned long long)c.issued_late, (unsigned long long)c.window_waits, (unsigned long long)c.window_exceeded,
           (unsigned long long)c.peak_in_flight);
}

struct setup {
    struct weir_context *context;
    struct weir__mock *mock;
    struct weir_device *device;
};

static void set_up(struct setup *s, const struct variant *v, uint32_t threads)
{
    const char *window = getenv("PEERS_WINDOW");
    struct weir_context_options options = {.size = sizeof(options), .workers = threads > 1 ? threads - 1 : 1};
    memset(s, 0, sizeof(*s));
    options.window = gate.hold ? w.n + 1 : window != NULL ? (uint32_t)atoi(window) : 0;
    check(weir_context_create(&options, &s->context), "weir_context_create");
    s->device = weir_device_get(s->context, 0);
    if (v->issue == issue_mock) {
        struct weir__mock_options mock = {.positions = true};
        check(weir__mock_create(&mock, &s->mock), "weir__mock_create");
        check(weir__context_add_backend(s->context, weir__mock_ops(s->mock), s->mock), "weir__context_add_backend");
        s->device = weir_device_get(s->context, weir_device_count(s->context) - 1);
    }
}

static void tear_down(struct setup *s)
{
    check(weir_context_destroy(s->context), "weir_context_destroy");
    if (s->mock != NULL) weir__mock_destroy(s->mock);
}

static void run_held(struct setup *s, const struct variant *v, struct weir_scope *scope)
{
    long before = workload_rss_kb();
    double start = workload_now();
    submit_all(scope, s->device, v->issue);
    double seconds = workload_now() - start;
    printf("HOLD weir-%s %s n=%u bytes/pending task=%.0f submit_only=%.0f ns\n", v->name, w.name, w.n,
           (double)(workload_rss_kb() - before) * 1024 / w.n, seconds / w.n * 1e9);
    fflush(stdout);
    atomic_store(&gate.open, 1);
    check(weir_scope_wait(scope), "weir_scope_wait");
}

static void run_variant(const struct variant *v, int repeats, uint32_t threads)
{
    struct setup s;
    struct weir_scope *scope;
    char who[64];
    set_up(&s, v, threads);
    check(weir_scope_create(s.context, NULL, &scope), "weir_scope_create");
    w.base_kb = workload_rss_kb();
    workload_clear(&w);
    if (gate.hold) {
        run_held(&s, v, scope);
        workload_check(&w);
    }
    for (int r = 0; r < repeats && !gate.hold; r++) {
        workload_clear(&w);
        double start = workload_now();
        submit_all(scope, s.device, v->issue);
        w.submit[r] = workload_now() - start;
        check(weir_scope_wait(scope), "weir_scope_wait");
        w.total[r] = workload_now() - start;
    }
    snprintf(who, sizeof(who), "weir-%s", v->name);
    if (!gate.hold) workload_report(&w, who, repeats);
    if (getenv("BENCH_COUNTERS") != NULL) print_counters(s.context);
    check(weir_scope_destroy(scope), "weir_scope_destroy");
    tear_down(&s);
}

static int nothing(void *arg)
{
    (void)arg;
    return 0;
}

static int issue_nothing(struct weir_task *task, void *native_stream, void *arg)
{
    (void)task;
    return weir_host_enqueue(native_stream, nothing, arg);
}

static double cpu_seconds(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

/* Everything has been used once, device tasks and host tasks are pending behind an external one, nobody has work. */
static int measure_idle(unsigned seconds)
{
    struct weir_context *context;
    struct weir_scope *scope;
    struct weir_task *external;
    struct weir_access a[1] = {{&context, 8, WEIR_ACCESS_INOUT}};
    check(weir_context_create(NULL, &context), "weir_context_create");
    check(weir_scope_create(context, NULL, &scope), "weir_scope_create");
    for (int round = 0; round < 2; round++) {
        check(weir_task_external(scope, a, 1, NULL, &external), "external");
        for (int i = 0; i < 100; i++) {
            check(weir_task_submit(scope, weir_device_get(context, 0), a, 1, issue_nothing, NULL, NULL, NULL),
                  "submit");
            check(weir_task_host(scope, nothing, NULL, a, 1, NULL, NULL), "host");
        }
        if (round == 1) {
            double before = cpu_seconds();
            sleep(seconds);
            printf("idle: %.4f CPU seconds in %u s\n", cpu_seconds() - before, seconds);
        }
        check(weir_task_fulfill(external, 0), "fulfill");
        check(weir_scope_wait(scope), "wait");
    }
    check(weir_scope_destroy(scope), "weir_scope_destroy");
    check(weir_context_destroy(context), "weir_context_destroy");
    return 0;
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "chain", *only = argc > 4 ? argv[4] : NULL;
    uint32_t n = argc > 2 ? (uint32_t)atoi(argv[2]) : 100000, threads = argc > 5 ? (uint32_t)atoi(argv[5]) : 2;
    int repeats = argc > 3 ? atoi(argv[3]) : 6, found = 0;
    if (strcmp(name, "idle") == 0) return measure_idle(argc > 2 ? n : 5);
    gate.hold = getenv("PEERS_HOLD") != NULL;
    if (n == 0 || repeats < (gate.hold ? 1 : 2) || repeats > WORKLOAD_REPEATS || workload_make(&w, name, n) != 0) {
        fprintf(stderr,
                "usage: bench chain|indep|chains16|stencil|random|chol|readers N REPEATS(2..%d) "
                "[host|mock|device] [THREADS]\n",
                WORKLOAD_REPEATS);
        return 2;
    }
    if (only != NULL && strcmp(only, "none") == 0) {
        for (int r = 0; r < repeats; r++) workload_clear(&w);
        return 0;
    }
    for (size_t i = 0; i < sizeof(variants) / sizeof(variants[0]); i++) {
        const struct variant *v = &variants[i];
        if (only != NULL && strcmp(only, v->name) != 0 && strcmp(only, v->alias) != 0) continue;
        found = 1;
        if (gate.hold && v->issue == issue_mock) continue; /* runs everything at once: cannot be held */
        atomic_store(&gate.started, 0);
        atomic_store(&gate.open, 0);
        run_variant(v, repeats, threads);
    }
    if (!found) fprintf(stderr, "unknown variant %s\n", only);
    return found ? 0 : 2;
}

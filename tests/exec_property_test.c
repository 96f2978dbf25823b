/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Random task lists on every set of devices, against the sequential oracle. WEIR_TEST_SEED runs that one list on every
 * set of devices; WEIR_TEST_DAGS sets how many lists are made; WEIR_TEST_RIG limits the run to one set, by number;
 * WEIR_TEST_VERBOSE prints the whole list behind a problem.
 */
#include <criterion/criterion.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <exec/scope.h>
#include <exec/work.h>
#include <graph/check.h>

#include "dag.h"
#include "dag_trace.h"
#include "rig.h"

#ifndef WEIR_TEST_DAGS
#define WEIR_TEST_DAGS 10000
#endif
enum { BATCH = 50, HANG_SECONDS = 60 };

struct run {
    struct rig *rig;
    const struct dag *dag;
    struct dag_scope *dag_scope;
    struct weir_scope *scope;
    uint32_t number; /* the scope's, in a recording */
    int wait_status, destroy_status;
    char wait_text[512];
    struct weir_counters counters;
    struct oracle_relation relation;
    uint64_t failed[ORACLE_WORDS], cancelled[ORACLE_WORDS], either[ORACLE_WORDS];
};

static _Atomic uint32_t problems;
static struct dag the_dag;
static struct run runs[DAG_SCOPES];

__attribute__((format(printf, 2, 3))) static void problem(const struct run *run, const char *format, ...)
{
    if (atomic_fetch_add(&problems, 1) >= 5) return;
    va_list args;
    va_start(args, format);
    fprintf(stderr, "seed %llu, %s, scope %ld (%u tasks%s): ", (unsigned long long)run->dag->seed, run->rig->kind->name,
            (long)(run->dag_scope - run->dag->scopes), run->dag_scope->n, run->dag_scope->ranges ? ", ranges" : "");
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
}

static void problem_pair(const struct run *run, const char *what, uint32_t i, uint32_t j)
{
    problem(run, "%s: task %u and task %u", what, i, j);
    dag_print_task(stderr, &run->dag_scope->tasks[i]);
    if (i != j) dag_print_task(stderr, &run->dag_scope->tasks[j]);
}

/* ---- running one scope ---- */

static struct run *run_of(const struct dag_task *task)
{
    return &runs[task->scope - the_dag.scopes];
}

static void on_complete(struct weir_task *handle, int status, void *arg)
{
    struct dag_task *task = arg;
    (void)handle;
    task->callback_status = status;
    /* Release: publishes callback_status; pairs with the acquire in check_status(). */
    atomic_fetch_add_explicit(&task->callbacks, 1, memory_order_release);
}

static int queue_body(struct dag_task *task, struct weir_task *handle, void *native_stream)
{
    const struct run *run = run_of(task);
    bool own_way = task->body_delay & 1;
    if (own_way && run->rig->is_host[task->device % run->rig->ndevices])
        return weir_host_enqueue(native_stream, dag_body, task);
    return weir__task_host_function(handle, dag_body, task);
}

static int issue(struct weir_task *handle, void *native_stream, void *arg)
{
    struct dag_task *task = arg;
    if (task->fault == DAG_QUEUE_FAILS) return dag_fault_status(task);
    return queue_body(task, handle, native_stream);
}

struct open_task {
    struct dag_task *task;
    struct weir_task *handle;
};

static void finish(struct dag_task *task, struct weir_task *handle)
{
    int rc;
    if (task->form == DAG_EXTERNAL)
        rc = weir_task_fulfill(handle, dag_body(task));
    else if (task->fault == DAG_QUEUE_FAILS)
        rc = weir_task_fail(handle, dag_fault_status(task));
    else {
        rc = queue_body(task, handle, weir_task_stream(handle));
        if (rc != 0)
            problem(run_of(task), "task %u: queueing on an open task: %d %s", task->index, rc, weir_error_text());
        rc = weir_task_end(handle);
    }
    if (rc != 0) problem(run_of(task), "task %u: end or fulfil: %d %s", task->index, rc, weir_error_text());
}

static void finish_by_agent(void *arg)
{
    struct open_task open = *(struct open_task *)arg;
    free(arg);
    dag_delay(open.task->agent_delay);
    finish(open.task, open.handle);
}

/* An open or external task: the first handle is given back by who finishes it, a second one stays with the test. */
static void hand_over(struct run *run, struct dag_task *task, struct weir_task *handle)
{
    if (task->keeps_handle) task->handle = weir_task_retain(handle);
    if (!task->by_agent) {
        finish(task, handle);
        return;
    }
    struct open_task *open = malloc(sizeof(*open));
    *open = (struct open_task){task, handle};
    rig_agent_push(run->rig, finish_by_agent, open);
}

/* Explicit edges to what is no task (refused, or a wait) are dropped from the list. */
static size_t build_accesses(struct dag_scope *scope, uint32_t index, struct weir_access *accesses_out)
{
    struct oracle_task *shape = &scope->shape[index];
    uint32_t n = 0;
    for (uint32_t i = 0; i < shape->naccesses; i++) {
        const struct oracle_access a = shape->accesses[i];
        const void *address = (const void *)a.address;
        if (a.kind == WEIR_ACCESS_AFTER) {
            address = scope->tasks[a.after].handle;
            if (address == NULL) continue;
        }
        accesses_out[n] = (struct weir_access){address, a.bytes, a.kind};
        shape->accesses[n++] = a;
    }
    shape->naccesses = n;
    return n;
}

static int submit(struct run *run, struct dag_task *task, const struct weir_access *a, size_t n)
{
    struct weir_device *device = run->rig->ndevices > 0 ? run->rig->devices[task->device % run->rig->ndevices] : NULL;
    struct weir_task *handle = NULL, **out = task->keeps_handle ? &task->handle : NULL;
    struct weir_task_options options = {.size = sizeof(options), .name = "dag", .line = task->index};
    int rc;
    if (task->has_callback) {
        options.complete = on_complete;
        options.complete_arg = task;
    }
    switch (task->form) {
    case DAG_HOST:
        return weir_task_host(run->scope, dag_body, task, a, n, &options, out);
    case DAG_SUBMIT:
        return weir_task_submit(run->scope, device, a, n, issue, task, &options, out);
    case DAG_WAIT_FOR:
        task->status = weir_scope_wait_for(run->scope, a, n);
        task->start = task->end = dag_tick();
        return WEIR_OK;
    case DAG_EXTERNAL:
        rc = weir_task_external(run->scope, a, n, &options, &handle);
        break;
    default:
        options.block = task->form == DAG_BEGIN_BLOCK;
        rc = weir_task_begin(run->scope, device, a, n, &options, &handle);
        break;
    }
    if (rc == 0) hand_over(run, task, handle);
    return rc;
}

static void submit_next(struct run *run, uint32_t index)
{
    struct dag_scope *scope = run->dag_scope;
    struct dag_task *task = &scope->tasks[index];
    struct weir_access a[ORACLE_ACCESSES];
    size_t n = build_accesses(scope, index, a);
    task->submitted = dag_tick();
    task->submit_status = submit(run, task, a, n);
    scope->shape[index].absent = task->submit_status != 0 || task->form == DAG_WAIT_FOR;
    if (task->submit_status == 0) return;
    bool is_begin = task->form == DAG_BEGIN || task->form == DAG_BEGIN_BLOCK;
    if (is_begin && task->submit_status == WEIR_E_PREDECESSOR) return;
    if (task->form == DAG_BEGIN && task->submit_status == WEIR_E_NOT_ISSUED) return;
    problem(run, "task %u refused: %d %s", index, task->submit_status, weir_error_text());
}

static int count_up(void *arg)
{
    if (arg != NULL) ++*(uint32_t *)arg;
    return 0;
}

/* Whatever failed was told by the wait: tasks on the same addresses run again. */
static void run_once_more(struct run *run)
{
    uint32_t ran = 0;
    struct weir_access all[] = {WEIR_ALL_MEMORY};
    for (uint32_t i = 0; i < run->dag_scope->n; i += 7) {
        const struct oracle_task *shape = &run->dag_scope->shape[i];
        struct weir_access a[ORACLE_ACCESSES];
        size_t n = 0;
        for (uint32_t k = 0; k < shape->naccesses; k++)
            if (shape->accesses[k].kind < WEIR_ACCESS_ALL_MEMORY)
                a[n++] = (struct weir_access){(const void *)shape->accesses[k].address, shape->accesses[k].bytes, WEIR_ACCESS_INOUT};
        if (weir_task_host(run->scope, count_up, NULL, a, n, NULL, NULL) != 0) problem(run, "a task after the wait: %s", weir_error_text());
    }
    if (weir_task_host(run->scope, count_up, &ran, all, 1, NULL, NULL) != 0) problem(run, "a task after the wait: %s", weir_error_text());
    int rc = weir_scope_wait(run->scope);
    if (rc != 0 || ran != 1) problem(run, "tasks after the wait: %d %s", rc, weir_error_text());
}

static void *run_scope(void *arg)
{
    struct run *run = arg;
    struct dag_scope *dag_scope = run->dag_scope;
    struct weir_scope_options options = {
        .size = sizeof(options), .window = dag_scope->window, .ranges = dag_scope->ranges};
    int rc = weir_scope_create(run->rig->context, &options, &run->scope);
    if (rc != 0) {
        problem(run, "weir_scope_create: %d", rc);
        return NULL;
    }
    run->number = run->scope->number;
    for (uint32_t i = 0; i < dag_scope->n; i++) submit_next(run, i);
    run->wait_status = weir_scope_wait(run->scope);
    if (run->wait_status != 0) snprintf(run->wait_text, sizeof(run->wait_text), "%s", weir_error_text());
    rc = weir_scope_test(run->scope);
    if (rc != 0) problem(run, "weir_scope_test after the wait: %d", rc);
    weir_scope_counters(run->scope, &run->counters);
    run_once_more(run);
    for (uint32_t i = 0; i < dag_scope->n; i++) {
        struct dag_task *task = &dag_scope->tasks[i];
        if (task->handle == NULL) continue;
        task->status = task->index & 1 ? weir_task_wait(task->handle) : weir_task_test(task->handle);
        weir_task_release(task->handle);
    }
    run->destroy_status = weir_scope_destroy(run->scope);
    return NULL;
}

/* ---- judging it ---- */

static bool is_device(const struct dag_task *task)
{
    return task->form == DAG_SUBMIT || task->form == DAG_BEGIN || task->form == DAG_BEGIN_BLOCK;
}

/* Who must fail and who must be cancelled. A task with a fault behind a failed one may show either status. */
static void expect(struct run *run)
{
    const struct dag_scope *scope = run->dag_scope;
    oracle_relate(scope->shape, scope->n, scope->ranges, &run->relation);
    for (uint32_t i = 0; i < scope->n; i++) {
        if (scope->shape[i].absent || scope->tasks[i].fault == DAG_FINE) continue;
        oracle_cancel(&run->relation, run->failed, run->cancelled);
        if (oracle_has(run->cancelled, i))
            oracle_put(run->either, i);
        else
            oracle_put(run->failed, i);
    }
    oracle_cancel(&run->relation, run->failed, run->cancelled);
}

static bool has_body(const struct dag_task *task)
{
    return task->form != DAG_EXTERNAL && task->form != DAG_WAIT_FOR;
}

static void check_order(const struct run *run)
{
    const struct dag_task *tasks = run->dag_scope->tasks;
    for (uint32_t j = 0; j < run->dag_scope->n; j++) {
        if (tasks[j].start == 0 || run->dag_scope->shape[j].absent) continue;
        for (uint32_t i = 0; i < j; i++) {
            if (tasks[i].start == 0) continue;
            if (oracle_has(run->relation.before[j], i) && tasks[j].form != DAG_EXTERNAL &&
                tasks[i].end > tasks[j].start)
                problem_pair(run, "a predecessor ended after its successor started", i, j);
            if (oracle_has(run->relation.exclusive[j], i) && has_body(&tasks[i]) && has_body(&tasks[j]) &&
                tasks[i].end > tasks[j].start && tasks[j].end > tasks[i].start)
                problem_pair(run, "mutually exclusive tasks overlapped", i, j);
        }
    }
}

/* A cancelled task may have run only on a device, behind failures that nobody could know yet. */
static void check_cancelled_run(const struct run *run, uint32_t j)
{
    const struct dag_task *tasks = run->dag_scope->tasks;
    if (!is_device(&tasks[j])) {
        problem_pair(run, "a cancelled task ran on the host", j, j);
        return;
    }
    for (uint32_t i = 0; i < j; i++) {
        bool bad = oracle_has(run->failed, i) || oracle_has(run->cancelled, i);
        if (!bad || !oracle_has(run->relation.direct[j], i)) continue;
        /* begin looks first and enters then: what becomes known between is as if it came later. */
        bool looked = tasks[j].form == DAG_BEGIN || tasks[j].form == DAG_BEGIN_BLOCK;
        if ((!is_device(&tasks[i]) || tasks[i].start == 0) && !looked)
            problem_pair(run, "a task ran behind a failure that was known before it was issued", i, j);
    }
}

static void check_status(const struct run *run, uint32_t i, int status, const char *what)
{
    const struct dag_task *task = &run->dag_scope->tasks[i];
    bool cancelled = oracle_has(run->cancelled, i), either = oracle_has(run->either, i);
    int expected = cancelled ? WEIR_E_PREDECESSOR : oracle_has(run->failed, i) ? dag_fault_status(task) : 0;
    if (status == expected || (either && status == dag_fault_status(task))) return;
    problem(run, "task %u: status by %s %d, expected %d", i, what, status, expected);
    dag_print_task(stderr, task);
    for (uint32_t p = 0; p < i; p++)
        if (oracle_has(run->relation.direct[i], p) && (oracle_has(run->failed, p) || oracle_has(run->cancelled, p)))
            dag_print_task(stderr, &run->dag_scope->tasks[p]);
}

static void check_task(const struct run *run, uint32_t i)
{
    const struct dag_task *task = &run->dag_scope->tasks[i];
    uint32_t ran = atomic_load(&task->runs);
    /* Acquire: pairs with the release in on_complete(). */
    uint32_t callbacks = atomic_load_explicit(&task->callbacks, memory_order_acquire);
    bool absent = run->dag_scope->shape[i].absent;
    if (callbacks != (!absent && task->has_callback)) problem(run, "task %u: %u callbacks", i, callbacks);
    if (absent) {
        if (ran > 0) problem_pair(run, "a refused task ran", i, i);
        return;
    }
    bool must_run = !oracle_has(run->cancelled, i) && (task->fault != DAG_QUEUE_FAILS);
    if (ran > 1 || (must_run && ran != 1)) problem_pair(run, "a task ran not exactly once", i, i);
    if (oracle_has(run->cancelled, i) && ran > 0 && task->form != DAG_EXTERNAL) check_cancelled_run(run, i);
    if (task->keeps_handle) check_status(run, i, task->status, "handle");
    if (callbacks == 1) check_status(run, i, task->callback_status, "callback");
}

/* A refusal needs a predecessor that explains it. A wait waits for all that its accesses conflict with, and tells the
 * failure of one of them; then it may return early. */
static void check_absent(const struct run *run, uint32_t j)
{
    const struct dag_scope *scope = run->dag_scope;
    const struct dag_task *task = &scope->tasks[j];
    bool pending = false, failed = false;
    for (uint32_t i = 0; i < j; i++) {
        bool named = false;
        if (scope->shape[i].absent) continue;
        for (uint32_t k = 0; k < scope->shape[j].naccesses; k++)
            named |= scope->shape[j].accesses[k].kind == WEIR_ACCESS_AFTER && scope->shape[j].accesses[k].after == i;
        if (!named && !oracle_conflict(&scope->shape[i], &scope->shape[j], scope->ranges)) continue;
        failed |= oracle_has(run->failed, i) || oracle_has(run->cancelled, i);
        pending = true;
        if (task->form == DAG_WAIT_FOR && task->status == 0 && scope->tasks[i].end > task->start)
            problem_pair(run, "weir_scope_wait_for() returned too early", i, j);
    }
    if (task->form == DAG_WAIT_FOR) {
        if (task->status != (failed ? WEIR_E_PREDECESSOR : 0))
            problem_pair(run, "status of weir_scope_wait_for()", j, j);
        return;
    }
    if (task->submit_status == WEIR_E_PREDECESSOR ? !failed : !pending)
        problem_pair(run, "refused without a reason", j, j);
}

static void check_counters(const struct run *run)
{
    const struct weir_counters *c = &run->counters;
    const struct dag_scope *scope = run->dag_scope;
    uint32_t tasks = 0, failed = 0, cancelled = 0, either = 0, device = 0;
    uint64_t extra = c->fences; /* fences and waits for accesses may count as tasks */
    for (uint32_t i = 0; i < scope->n; i++) {
        tasks += !scope->shape[i].absent;
        device += !scope->shape[i].absent && is_device(&scope->tasks[i]);
        failed += oracle_has(run->failed, i);
        cancelled += oracle_has(run->cancelled, i);
        either += oracle_has(run->either, i);
        extra += scope->tasks[i].form == DAG_WAIT_FOR;
    }
    if (c->tasks < tasks || c->tasks > tasks + extra || c->completed != c->tasks || c->tasks_device < device ||
        c->tasks_device > device + c->fences)
        problem(run, "tasks %llu, of these on devices %llu, completed %llu; expected %u and %u, and up to %llu more",
                (unsigned long long)c->tasks, (unsigned long long)c->tasks_device, (unsigned long long)c->completed,
                tasks, device, (unsigned long long)extra);
    uint64_t bad = c->failed + c->cancelled;
    if (c->failed < failed || c->failed > failed + either || bad < failed + cancelled ||
        bad > failed + cancelled + extra)
        problem(run, "failed %llu, cancelled %llu; expected %u and %u", (unsigned long long)c->failed,
                (unsigned long long)c->cancelled, failed, cancelled);
}

static void check_wait(const struct run *run)
{
    const struct dag_scope *scope = run->dag_scope;
    bool any = false, right = false;
    for (uint32_t i = 0; i < scope->n; i++) {
        bool may = oracle_has(run->failed, i);
        any |= may;
        may |= oracle_has(run->either, i);
        right |= may && run->wait_status == dag_fault_status(&scope->tasks[i]);
    }
    if (any ? !right : run->wait_status != 0)
        problem(run, "weir_scope_wait returned %d: %s", run->wait_status, run->wait_text);
    if (any && run->wait_text[0] == '\0') problem(run, "weir_scope_wait failed without a text");
    if (run->destroy_status != 0) problem(run, "weir_scope_destroy returned %d after the wait", run->destroy_status);
}

static void check_contents(const struct run *run)
{
    const struct dag_scope *scope = run->dag_scope;
    uint8_t cells[DAG_CELLS] = {0};
    for (uint32_t i = 0; i < scope->n; i++)
        if (!scope->shape[i].absent && scope->tasks[i].form < DAG_EXTERNAL) dag_compute(&scope->tasks[i], cells);
    for (uint32_t c = 0; c < DAG_CELLS; c++)
        if (cells[c] != scope->cells[c]) {
            problem(run, "cell %u is %u, sequentially %u", c, scope->cells[c], cells[c]);
            return;
        }
}

static void check_scope(struct run *run)
{
    expect(run);
    check_order(run);
    for (uint32_t i = 0; i < run->dag_scope->n; i++) {
        check_task(run, i);
        if (run->dag_scope->shape[i].absent) check_absent(run, i);
    }
    check_counters(run);
    check_wait(run);
    if (!run->dag->has_faults) check_contents(run);
    if (atomic_load(&problems) == 0 || getenv("WEIR_TEST_VERBOSE") == NULL) return;
    for (uint32_t i = 0; i < run->dag_scope->n; i++) dag_print_task(stderr, &run->dag_scope->tasks[i]);
}

/* What was recorded of the list that ran last. */
static void check_recording(const struct run *run)
{
    struct weir__trace *trace;
    int rc = weir__trace_read(NULL, &trace);
    if (rc != 0) {
        problem(run, "no recording: %d %s", rc, weir_error_text());
        return;
    }
    for (uint32_t s = 0; s < run->dag->nscopes; s++) {
        const struct run *of = run + s;
        const char *wrong = dag_trace_fault(trace, of->number, of->dag_scope, &of->relation, &of->counters);
        if (wrong[0] != '\0') {
            problem(of, "the recording: %s", wrong);
            for (uint32_t i = 0; i < of->dag_scope->n && atomic_load(&problems) < 3; i++) dag_print_task(stderr, &of->dag_scope->tasks[i]);
        }
    }
    if (trace->dropped != 0) problem(run, "%llu records were dropped", (unsigned long long)trace->dropped);
    weir__trace_free(trace);
}

/* ---- many ---- */

static _Atomic uint64_t beat, beat_seed;
static const char *_Atomic beat_rig;

/* A hang would otherwise end in a time-out that names nothing. */
static void *watch(void *arg)
{
    uint64_t last = 0;
    for (int quiet = 0; quiet < HANG_SECONDS; quiet++) {
        sleep(1);
        uint64_t now = atomic_load(&beat);
        if (now != last) quiet = 0;
        last = now;
    }
    fprintf(stderr, "no progress for %d s: seed %llu, %s\n", HANG_SECONDS, (unsigned long long)atomic_load(&beat_seed),
            atomic_load(&beat_rig));
    for (uint32_t s = 0; s < the_dag.nscopes; s++)
        for (uint32_t i = 0; i < the_dag.scopes[s].n; i++) dag_print_task(stderr, &the_dag.scopes[s].tasks[i]);
    abort();
    return arg;
}

static void run_dag(struct rig *rig, uint64_t seed)
{
    pthread_t threads[DAG_SCOPES];
    atomic_fetch_add(&beat, 1);
    atomic_store(&beat_seed, seed);
    atomic_store(&beat_rig, rig->kind->name);
    dag_make(&the_dag, seed, rig->ndevices > 0);
    if (the_dag.has_faults && rig->kind->no_faults) return;
    memset(runs, 0, sizeof(runs));
    for (uint32_t s = 0; s < the_dag.nscopes; s++) {
        runs[s].rig = rig;
        runs[s].dag = &the_dag;
        runs[s].dag_scope = &the_dag.scopes[s];
        if (s > 0 && pthread_create(&threads[s], NULL, run_scope, &runs[s]) != 0) abort();
    }
    run_scope(&runs[0]);
    for (uint32_t s = 1; s < the_dag.nscopes; s++) pthread_join(threads[s], NULL);
    rig_agent_drain(rig);
    for (uint32_t s = 0; s < the_dag.nscopes; s++) check_scope(&runs[s]);
    if (weir__record_is_on()) check_recording(&runs[0]);
}

static uint64_t decisions; /* records of all certificates */

static void run_batch(const struct rig_kind *kind, uint64_t seed, uint32_t count)
{
    static struct rig rig;
    struct weir__certificate *certificate;
    struct weir__check_fault fault = {.text = ""};
    bool violations = false;
    cr_assert_eq(weir__certificate_create(&certificate), 0);
    int rc = rig_open(&rig, kind, 0);
    cr_assert_eq(rc, 0, "%s: rig_open: %d %s", kind->name, rc, weir_error_text());
    weir__context_certify(rig.context, certificate);
    for (uint32_t i = 0; i < count && atomic_load(&problems) == 0; i++) run_dag(&rig, seed + i);
    rc = rig_close(&rig, &violations);
    cr_assert_eq(rc, 0, "%s: weir_context_destroy: %d %s", kind->name, rc, weir_error_text());
    rc = weir__certificate_check(certificate, &fault);
    decisions += weir__certificate_count(certificate);
    cr_assert_eq(rc, 0, "%s, seeds %llu to %llu: the certificate is wrong: %s", kind->name, (unsigned long long)seed,
                 (unsigned long long)(seed + count - 1), fault.text);
    weir__certificate_destroy(certificate);
    cr_assert(!violations, "%s: the mock saw its rules broken, seeds %llu to %llu", kind->name,
              (unsigned long long)seed, (unsigned long long)(seed + count - 1));
    cr_assert_eq(atomic_load(&problems), 0, "see the problems above; repeat with WEIR_TEST_SEED");
}

static uint64_t number_from(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text != NULL ? strtoull(text, NULL, 10) : otherwise;
}

Test(exec_property, random_graphs_keep_every_dependence, .timeout = 600)
{
    uint64_t seed = number_from("WEIR_TEST_SEED", 0), dags = number_from("WEIR_TEST_DAGS", WEIR_TEST_DAGS);
    size_t only = (size_t)number_from("WEIR_TEST_RIG", rig_nkinds);
    pthread_t watcher;
    cr_assert_eq(pthread_create(&watcher, NULL, watch, NULL), 0);
    pthread_detach(watcher);
    if (seed != 0) {
        uint64_t repeat = number_from("WEIR_TEST_DAGS", 20);
        for (size_t k = 0; k < rig_nkinds; k++)
            for (uint64_t i = 0; i < repeat && (only == rig_nkinds || only == k); i++)
                run_batch(&rig_kinds[k], seed, 1);
        return;
    }
    /* The same lists on every run: a failure in one place is a failure in all. Time makes the interleavings new. */
    for (uint64_t i = 0, k = 0; i < dags; i += BATCH, k++) {
        size_t kind = only == rig_nkinds ? k % rig_nkinds : only;
        run_batch(&rig_kinds[kind], 1 + i, dags - i < BATCH ? (uint32_t)(dags - i) : BATCH);
    }
    fprintf(stderr, "%llu graphs, seeds 1 to %llu, %llu certified decisions\n", (unsigned long long)dags,
            (unsigned long long)dags, (unsigned long long)decisions);
}

/* The same while everything is recorded: the graph that is found in the records is the oracle's. */
Test(exec_property, recorded_graphs_are_those_of_the_oracle, .timeout = 600)
{
    uint64_t seed = number_from("WEIR_TEST_SEED", 1), dags = number_from("WEIR_TEST_RECORDED", 20);
    cr_assert_eq(weir__record_start(0, NULL, false), 0);
    for (size_t k = 0; k < rig_nkinds; k++) run_batch(&rig_kinds[k], seed + 1000 * k, (uint32_t)dags);
    weir__record_stop();
}

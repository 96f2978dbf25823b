/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* What is written of a recording: files that can be parsed, and that say what happened. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <trace/model.h>
#include <weir/trace.h>
#include <weir/weir.h>

#include "bodies.h"
#include "done.h"
#include "json.h"

static char folder[] = "/tmp/weir-trace-XXXXXX";

static char *path_of(const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

/* The file's content, to be freed. */
static char *content_of(const char *name)
{
    FILE *file = fopen(path_of(name), "r");
    cr_assert_not_null(file, "%s was not written", name);
    cr_assert_eq(fseek(file, 0, SEEK_END), 0);
    long bytes = ftell(file);
    char *text = malloc((size_t)bytes + 1);
    rewind(file);
    cr_assert_eq(fread(text, 1, (size_t)bytes, file), (size_t)bytes);
    text[bytes] = '\0';
    fclose(file);
    return text;
}

static size_t count_of(const char *text, const char *word)
{
    size_t n = 0;
    for (; (text = strstr(text, word)); text += strlen(word)) n++;
    return n;
}

static void set_up(void)
{
    cr_assert_not_null(mkdtemp(folder));
    DONE(weir_trace_start(NULL));
}

static void tear_down(void)
{
    char command[300];
    snprintf(command, sizeof command, "rm -r %s", folder);
    cr_assert_eq(system(command), 0);
}

TestSuite(exec_trace, .init = set_up, .fini = tear_down, .timeout = 120);
TestSuite(exec_trace_cold, .timeout = 120); /* recording is not on yet */

static int enqueue_body(struct weir_task *task, void *native_stream, void *arg)
{
    (void)task;
    return weir_host_enqueue(native_stream, body, arg);
}

static double cells[4];

/* A device task, two behind it, and a host task that needs both. */
static void submit_diamond(struct weir_context *context, struct weir_scope *scope)
{
    struct weir_device *device = weir_device_get(context, 0);
    weir_trace_name(&cells[0], sizeof cells[0], "first");
    DONE(weir_task_submit(scope, device, (struct weir_access[]){WEIR_OUT(cells[0])}, 1, enqueue_body, NULL,
                          WEIR_TASK("top"), NULL));
    for (int i = 1; i < 3; i++)
        DONE(weir_task_submit(scope, device, (struct weir_access[]){WEIR_IN(cells[0]), WEIR_OUT(cells[i])}, 2,
                              enqueue_body, NULL, WEIR_TASK("side \"<&>\""), NULL));
    DONE(weir_task_host(scope, body, NULL, (struct weir_access[]){WEIR_IN(cells[1]), WEIR_IN(cells[2])}, 2,
                        WEIR_TASK("bottom"), NULL));
}

Test(exec_trace, all_files_of_a_diamond_tell_its_edges)
{
    struct weir_context *context;
    struct weir_scope *scope;
    DONE(weir_context_create(NULL, &context));
    DONE(weir_scope_create(context, NULL, &scope));
    submit_diamond(context, scope);
    DONE(weir_scope_destroy(scope));
    DONE(weir_context_destroy(context));
    DONE(weir_trace_write(path_of("g.dot"), WEIR_TRACE_BY_NAME));
    DONE(weir_trace_write(path_of("g.html"), WEIR_TRACE_BY_NAME));
    DONE(weir_trace_write(path_of("t.json"), WEIR_TRACE_BY_NAME));
    DONE(weir_trace_write(path_of("r.txt"), WEIR_TRACE_BY_NAME));
    DONE(weir_trace_write(path_of("r.json"), WEIR_TRACE_REPORT_JSON));
    char *dot = content_of("g.dot"), *html = content_of("g.html"), *text = content_of("r.txt"),
         *report = content_of("r.json"), *timeline = content_of("t.json");
    cr_expect_eq(count_of(dot, " -> n"), 4);
    cr_expect_eq(count_of(dot, "first RAW"), 2, "the name of the memory");
    cr_expect_not_null(strstr(dot, "side &quot;&lt;&amp;&gt;&quot;"));
    cr_expect_eq(count_of(html, "read after write of first"), 2);
    cr_expect_null(strstr(html, "src="), "one file without references");
    cr_expect_not_null(strstr(text, "tasks      3 on devices, 1 on the host, 0 external; 0 failed"));
    struct json *parsed = json_parse(report);
    cr_assert_not_null(parsed);
    cr_expect_eq(json_number(parsed, "edges"), 4);
    cr_expect_eq(json_number(json_get(parsed, "tasks"), "device"), 3);
    json_free(parsed);
    parsed = json_parse(timeline);
    cr_assert_not_null(parsed);
    const struct json *events = json_get(parsed, "traceEvents");
    cr_assert_not_null(events);
    int device = 0, issue = 0, host = 0;
    for (size_t i = 0; i < events->n; i++) {
        const char *category = json_text(&events->items[i], "cat");
        device += strcmp(category, "device") == 0;
        issue += strcmp(category, "issue") == 0;
        host += strcmp(category, "host") == 0;
    }
    cr_expect(device == 3 && issue == 3 && host == 1, "%d %d %d", device, issue, host);
    json_free(parsed);
    free(dot), free(html), free(text), free(report), free(timeline);
}

Test(exec_trace, consumers_begin_on_the_time_line_when_producers_have_ended)
{
    struct weir_context *context;
    struct weir_scope *scope;
    DONE(weir_context_create(NULL, &context));
    DONE(weir_scope_create(context, NULL, &scope));
    for (int i = 0; i < 200; i++) submit_diamond(context, scope);
    DONE(weir_scope_destroy(scope));
    DONE(weir_context_destroy(context));
    DONE(weir_trace_write(path_of("t.json"), WEIR_TRACE_BY_NAME));
    char *timeline = content_of("t.json");
    struct json *parsed = json_parse(timeline);
    cr_assert_not_null(parsed);
    const struct json *events = json_get(parsed, "traceEvents");
    static double from[100000], to[100000];
    size_t arrows = 0;
    for (size_t i = 0; i < events->n; i++) {
        const char *phase = json_text(&events->items[i], "ph");
        size_t id = (size_t)json_number(&events->items[i], "id");
        cr_assert_lt(id, 100000);
        if (strcmp(phase, "s") == 0) from[id] = json_number(&events->items[i], "ts");
        if (strcmp(phase, "f") == 0) to[id] = json_number(&events->items[i], "ts"), arrows++;
    }
    for (size_t id = 1; id <= arrows; id++) cr_expect_leq(from[id], to[id]);
    json_free(parsed);
    free(timeline);
}

/* One that is issued in the call that made it, and one that is not, though its submitter issues it. */
Test(exec_trace, early_is_what_was_issued_where_it_was_made)
{
    struct weir_context *context;
    struct weir_scope *scope;
    struct weir__trace *trace;
    struct weir_task *held;
    struct weir_counters counters;
    DONE(weir_context_create(NULL, &context));
    DONE(weir_scope_create(context, NULL, &scope));
    struct weir_device *device = weir_device_get(context, 0);
    struct weir_access mutex[] = {{&cells[1], sizeof cells[1], WEIR_ACCESS_MUTEXINOUTSET}};
    DONE(weir_task_external(scope, (struct weir_access[]){WEIR_OUT(cells[0])}, 1, NULL, &held));
    DONE(weir_task_submit(scope, device, (struct weir_access[]){WEIR_IN(cells[0])}, 1, enqueue_body, NULL,
                          WEIR_TASK("behind"), NULL));
    DONE(weir_task_submit(scope, device, NULL, 0, enqueue_body, NULL, WEIR_TASK("free"), NULL));
    DONE(weir_task_submit(scope, device, mutex, 1, enqueue_body, NULL, WEIR_TASK("locked"), NULL));
    DONE(weir_task_fulfill(held, 0));
    DONE(weir_scope_wait_for(scope, (struct weir_access[]){WEIR_OUT(cells[0])}, 1));
    DONE(weir_scope_wait(scope));
    weir_scope_counters(scope, &counters);
    DONE(weir__trace_read(NULL, &trace));
    for (size_t i = 0; i < trace->ntasks; i++) {
        const struct weir__trace_task *task = &trace->tasks[i];
        if (task->kind == WEIR__TRACE_DEVICE) cr_expect_eq(task->early, strcmp(task->name, "behind") != 0, "%s", task->name);
    }
    weir__trace_free(trace);
    cr_expect_eq(counters.issued_late, 1);
    cr_expect_eq(counters.tasks - counters.inner, 4);
    cr_expect_eq(counters.edges, 1, "the wait is no edge of the program's");
    DONE(weir_scope_destroy(scope));
    DONE(weir_context_destroy(context));
}

Test(exec_trace, failed_tasks_and_what_they_cancelled_are_marked)
{
    struct weir_context *context;
    struct weir_scope *scope;
    struct weir_access writes[] = {WEIR_INOUT(cells[0])};
    DONE(weir_context_create(NULL, &context));
    DONE(weir_scope_create(context, NULL, &scope));
    DONE(weir_task_host(scope, failing_body, NULL, writes, 1, WEIR_TASK("culprit"), NULL));
    DONE(weir_task_host(scope, body, NULL, writes, 1, WEIR_TASK("victim"), NULL));
    cr_expect_eq(weir_scope_wait(scope), -77);
    DONE(weir_task_host(scope, body, NULL, writes, 1, WEIR_TASK("later"), NULL)); /* the failure is told: no edge */
    DONE(weir_scope_destroy(scope));
    DONE(weir_context_destroy(context));
    struct weir__trace *trace;
    DONE(weir__trace_read(NULL, &trace));
    cr_assert_eq(trace->ntasks, 3);
    cr_expect_eq(trace->tasks[0].status, WEIR__NODE_FAILED);
    cr_expect_eq(trace->tasks[0].code, -77);
    cr_expect_eq(trace->tasks[1].status, WEIR__NODE_CANCELLED);
    cr_expect_eq(trace->tasks[1].root, 0);
    cr_expect_eq(trace->tasks[2].status, WEIR__NODE_COMPLETE);
    cr_expect_eq(trace->nedges, 1);
    weir__trace_free(trace);
    DONE(weir_trace_write(path_of("g.dot"), WEIR_TRACE_DOT));
    char *dot = content_of("g.dot");
    cr_expect_not_null(strstr(dot, "cancelled: culprit failed"));
    free(dot);
}

/* Two sets of four: within each one after the other, in whichever order; the reader is behind all of one. */
Test(exec_trace, mutexinoutset_neighbours_have_their_turns)
{
    struct weir_context *context;
    struct weir_scope *scope;
    struct weir__trace *trace;
    DONE(weir_context_create(NULL, &context));
    DONE(weir_scope_create(context, NULL, &scope));
    struct weir_device *device = weir_device_get(context, 0);
    for (int i = 0; i < 8; i++) {
        struct weir_access accesses[] = {{&cells[i % 2], sizeof cells[0], WEIR_ACCESS_MUTEXINOUTSET}};
        if (i % 2)
            DONE(weir_task_submit(scope, device, accesses, 1, enqueue_body, NULL, WEIR_TASK("set"), NULL));
        else
            DONE(weir_task_host(scope, body, NULL, accesses, 1, WEIR_TASK("set"), NULL));
    }
    DONE(weir_task_host(scope, body, NULL, (struct weir_access[]){WEIR_IN(cells[0])}, 1, WEIR_TASK("reader"), NULL));
    DONE(weir_scope_destroy(scope));
    DONE(weir_context_destroy(context));
    DONE(weir__trace_read(NULL, &trace));
    cr_expect_eq(trace->nedges, 4, "they depend on each other in no way");
    cr_expect_eq(trace->nturns, 6, "%zu turns", trace->nturns);
    for (size_t i = 0; i < trace->nturns; i++) {
        const struct weir__trace_edge *turn = &trace->turns[i];
        const struct weir__trace_task *from = &trace->tasks[turn->from], *to = &trace->tasks[turn->to];
        cr_expect_eq(turn->from % 2, turn->to % 2, "of one set");
        cr_expect_leq(from->end, to->begin, "one after the other");
        cr_expect_neq(turn->how, WEIR__HOW_OPEN);
    }
    weir__trace_free(trace);
    DONE(weir_trace_write(path_of("g.dot"), WEIR_TRACE_DOT));
    char *dot = content_of("g.dot");
    cr_expect_eq(count_of(dot, " -> n"), 10);
    cr_expect_not_null(strstr(dot, "one after the other (mutexinoutset) of"));
    cr_expect_not_null(strstr(dot, "9 tasks, 4 edges"));
    free(dot);
}

static void *submit_chain(void *arg)
{
    struct weir_context *context;
    struct weir_scope *scope;
    double *mine = arg;
    DONE(weir_context_create(NULL, &context));
    DONE(weir_scope_create(context, NULL, &scope));
    for (int i = 0; i < 1000; i++)
        DONE(weir_task_host(scope, body, NULL, (struct weir_access[]){WEIR_INOUT(*mine)}, 1, NULL, NULL));
    DONE(weir_scope_destroy(scope));
    DONE(weir_context_destroy(context));
    return NULL;
}

Test(exec_trace, contexts_of_several_threads_lie_side_by_side)
{
    pthread_t threads[4];
    struct weir__trace *trace;
    for (int i = 0; i < 4; i++) cr_assert_eq(pthread_create(&threads[i], NULL, submit_chain, &cells[i]), 0);
    for (int i = 0; i < 10; i++) { /* in the middle of it */
        DONE(weir_trace_write(path_of("t.json"), WEIR_TRACE_BY_NAME));
        char *timeline = content_of("t.json");
        struct json *parsed = json_parse(timeline);
        cr_expect_not_null(parsed);
        json_free(parsed);
        free(timeline);
    }
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    DONE(weir__trace_read(NULL, &trace));
    cr_expect_eq(trace->ntasks, 4000);
    cr_expect_eq(trace->nedges, 4 * 999, "%zu edges", trace->nedges);
    weir__trace_free(trace);
}

Test(exec_trace, a_hundred_thousand_tasks_are_summarised_and_say_so)
{
    struct weir_context *context;
    struct weir_scope *scope;
    DONE(weir_context_create(NULL, &context));
    DONE(weir_scope_create(context, NULL, &scope));
    for (int i = 0; i < 100000; i++)
        DONE(weir_task_host(scope, body, NULL, (struct weir_access[]){WEIR_INOUT(cells[i % 4])}, 1,
                            i % 2 ? WEIR_TASK("odd") : WEIR_TASK("even"), NULL));
    DONE(weir_scope_destroy(scope));
    DONE(weir_context_destroy(context));
    DONE(weir_trace_write(path_of("g.dot"), WEIR_TRACE_DOT));
    DONE(weir_trace_write(path_of("g.html"), WEIR_TRACE_HTML));
    char *dot = content_of("g.dot"), *html = content_of("g.html");
    cr_expect_not_null(strstr(dot, "100000 tasks, 99996 edges"));
    cr_expect_not_null(strstr(dot, "summarised by name"));
    cr_expect_eq(count_of(dot, "50000 tasks"), 4, "in the label and the details of two nodes");
    cr_expect_not_null(strstr(html, "summarised by name"));
    free(dot), free(html);
}

static _Atomic bool gate;

static int gate_body(void *arg)
{
    (void)arg;
    while (!gate) usleep(100);
    return 0;
}

static int enqueue_gate(struct weir_task *task, void *native_stream, void *arg)
{
    (void)task;
    return weir_host_enqueue(native_stream, gate_body, arg);
}

enum { CROWD = 200000 };

/* One stream: a task that is held, a crowd behind it, and one task behind all of these. */
static void submit_crowd(struct weir_context *context, struct weir_scope *scope)
{
    static double cells_of_crowd[CROWD];
    static struct weir_access accesses[CROWD];
    struct weir_device *device = weir_device_get(context, 0);
    DONE(weir_task_submit(scope, device, NULL, 0, enqueue_gate, NULL, WEIR_TASK("gate"), NULL));
    for (int i = 0; i < CROWD; i++) {
        accesses[i] = (struct weir_access)WEIR_OUT(cells_of_crowd[i]);
        DONE(weir_task_submit(scope, device, &accesses[i], 1, enqueue_body, NULL, WEIR_TASK("one"), NULL));
    }
    DONE(weir_task_submit(scope, device, accesses, CROWD, enqueue_body, NULL, WEIR_TASK("all"), NULL));
}

Test(exec_trace, a_crowd_of_predecessors_on_one_stream_takes_no_search_for_each)
{
    struct weir_context_options options = {.size = sizeof options, .window = CROWD + 10, .streams_per_device = 1};
    struct weir_context *context;
    struct weir_scope *scope;
    struct weir__trace *trace;
    DONE(weir_context_create(&options, &context));
    DONE(weir_scope_create(context, NULL, &scope));
    submit_crowd(context, scope);
    gate = true;
    DONE(weir_scope_destroy(scope));
    DONE(weir_context_destroy(context));
    DONE(weir__trace_read(NULL, &trace));
    cr_expect_eq(trace->dropped, 0);
    cr_assert_eq(trace->nedges, CROWD, "%zu edges", trace->nedges);
    size_t on_stream = 0;
    for (size_t i = 0; i < trace->nedges; i++) on_stream += trace->edges[i].how == WEIR__HOW_STREAM;
    cr_expect_eq(on_stream, CROWD, "%zu", on_stream);
    weir__trace_free(trace);
}

Test(exec_trace_cold, what_goes_past_the_limit_is_counted)
{
    struct weir__trace *trace;
    struct weir_trace_options options = {.size = sizeof options, .limit_bytes = 256 << 10};
    DONE(weir_trace_start(&options));
    for (int i = 0; i < 40; i++) submit_chain(&cells[0]);
    DONE(weir__trace_read(NULL, &trace));
    cr_expect_gt(trace->dropped, 0);
    cr_expect_gt(trace->ntasks, 1000);
    weir__trace_free(trace);
}

Test(exec_trace, a_stopped_recording_grows_no_more)
{
    struct weir__trace *trace;
    submit_chain(&cells[0]);
    weir_trace_stop();
    submit_chain(&cells[0]);
    DONE(weir__trace_read(NULL, &trace));
    cr_expect_eq(trace->ntasks, 1000);
    weir__trace_free(trace);
}

Test(exec_trace, a_recording_that_is_resumed_holds_both_parts)
{
    struct weir_trace_options resume = {.size = sizeof resume, .resume = true};
    struct weir__trace *trace;
    submit_chain(&cells[0]);
    weir_trace_stop();
    submit_chain(&cells[0]);
    DONE(weir_trace_start(&resume));
    submit_chain(&cells[0]);
    DONE(weir__trace_read(NULL, &trace));
    cr_expect_eq(trace->ntasks, 2000);
    weir__trace_free(trace);
}

/* Some of it in blocks, some in slots, all by threads that go on. */
Test(exec_trace, a_second_start_discards_what_was_before)
{
    struct weir_context *context;
    struct weir_scope *scope;
    struct weir__trace *trace;
    DONE(weir_context_create(NULL, &context));
    DONE(weir_scope_create(context, NULL, &scope));
    for (int i = 0; i < 2000; i++) submit_diamond(context, scope);
    DONE(weir_scope_wait(scope));
    weir_trace_stop();
    for (int i = 0; i < 10; i++) submit_diamond(context, scope);
    DONE(weir_scope_wait(scope));
    for (int round = 0; round < 3; round++) {
        DONE(weir_trace_start(NULL));
        submit_diamond(context, scope);
        DONE(weir_scope_wait(scope));
        weir_trace_stop();
        DONE(weir__trace_read(NULL, &trace));
        cr_assert_eq(trace->ntasks, 4, "%zu tasks", trace->ntasks);
        cr_expect_eq(trace->nedges, 4);
        cr_expect_str_eq(trace->tasks[0].name, "top", "names stay");
        cr_expect_leq(trace->nwaits, 1, "of this round only");
        char name[64];
        cr_expect_str_eq(weir__address_name(trace, (uintptr_t)&cells[0], name, sizeof name), "first");
        for (size_t i = 0; i < trace->ntasks; i++) {
            const struct weir__trace_task *task = &trace->tasks[i];
            cr_expect_eq(task->status, WEIR__NODE_COMPLETE);
            cr_expect_geq(task->begin, task->made, "%s began before it was made", task->name);
        }
        weir__trace_free(trace);
    }
    DONE(weir_scope_destroy(scope));
    DONE(weir_context_destroy(context));
}

static uint64_t slow_end; /* CLOCK_MONOTONIC */

static int slow_body(void *arg)
{
    struct timespec now;
    (void)arg;
    usleep(5000);
    clock_gettime(CLOCK_MONOTONIC, &now);
    slow_end = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    return 0;
}

static int enqueue_slow(struct weir_task *task, void *native_stream, void *arg)
{
    (void)task;
    return weir_host_enqueue(native_stream, slow_body, arg);
}

/* The device still has work from before: that is no part of the first task that is recorded. */
Test(exec_trace_cold, work_from_before_the_start_is_not_the_first_task_s)
{
    struct weir_context_options options = {.size = sizeof options, .streams_per_device = 1};
    struct weir_context *context;
    struct weir_scope *scope;
    struct weir__trace *trace;
    DONE(weir_context_create(&options, &context));
    DONE(weir_scope_create(context, NULL, &scope));
    struct weir_device *device = weir_device_get(context, 0);
    DONE(weir_task_submit(scope, device, NULL, 0, enqueue_gate, NULL, WEIR_TASK("gate"), NULL));
    DONE(weir_task_submit(scope, device, NULL, 0, enqueue_slow, NULL, WEIR_TASK("slow"), NULL));
    DONE(weir_trace_start(NULL));
    DONE(weir_task_submit(scope, device, NULL, 0, enqueue_body, NULL, WEIR_TASK("first"), NULL));
    gate = true;
    DONE(weir_scope_destroy(scope));
    DONE(weir_context_destroy(context));
    DONE(weir__trace_read(NULL, &trace));
    cr_assert_eq(trace->ntasks, 1);
    const struct weir__trace_task *task = &trace->tasks[0];
    cr_expect_geq(trace->begin_ns + task->begin + 1000000, slow_end, "the clock of one is converted to the other's");
    weir__trace_free(trace);
}

Test(exec_trace_cold, limits_are_of_each_recording)
{
    struct weir__trace *trace;
    struct weir_trace_options options = {.size = sizeof options, .limit_bytes = 256 << 10};
    size_t first = 0;
    for (int round = 0; round < 3; round++) {
        DONE(weir_trace_start(&options));
        for (int i = 0; i < 40; i++) submit_chain(&cells[0]);
        weir_trace_stop();
        DONE(weir__trace_read(NULL, &trace));
        cr_expect_gt(trace->dropped, 0);
        if (!round) first = trace->ntasks;
        cr_expect_gt(trace->ntasks, first / 2, "%zu tasks in round %d, %zu at first", trace->ntasks, round, first);
        weir__trace_free(trace);
    }
}

Test(exec_trace_cold, bad_calls_get_an_answer)
{
    struct weir_trace_options bad = {.size = 1}, nowhere = {.size = sizeof nowhere, .file = "/nowhere/at/all"};
    cr_expect_eq(weir_trace_write("x.dot", WEIR_TRACE_BY_NAME), WEIR_E_NOT_FOUND);
    cr_expect_eq(weir_trace_start(&bad), WEIR_E_VERSION);
    cr_expect_eq(weir_trace_start(&nowhere), WEIR_E_SYSTEM);
    weir_trace_name(cells, sizeof cells, "unheard");
    DONE(weir_trace_start(NULL));
    weir_trace_name(cells, sizeof cells, NULL);
    cr_expect_eq(weir_trace_write(NULL, WEIR_TRACE_DOT), WEIR_E_INVALID);
    cr_expect_eq(weir_trace_write("picture", WEIR_TRACE_BY_NAME), WEIR_E_INVALID);
    cr_expect_eq(weir_trace_write("x.dot", (enum weir_trace_format)99), WEIR_E_INVALID);
    cr_expect_eq(weir_trace_write("/nowhere/x.dot", WEIR_TRACE_DOT), WEIR_E_SYSTEM);
    struct weir__trace *trace;
    cr_expect_eq(weir__trace_read("/dev/null", &trace), WEIR_E_INVALID);
    cr_expect_eq(weir__trace_read("/nowhere", &trace), WEIR_E_NOT_FOUND);
}

Test(exec_trace_cold, a_process_that_was_killed_leaves_its_records)
{
    cr_assert_not_null(mkdtemp(folder));
    pid_t child = fork();
    if (child == 0) {
        struct weir_trace_options options = {.size = sizeof options, .file = path_of("records")};
        DONE(weir_trace_start(&options));
        for (int i = 0; i < 3; i++) submit_chain(&cells[0]);
        kill(getpid(), SIGKILL);
    }
    int status;
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFSIGNALED(status));
    struct weir__trace *trace;
    DONE(weir__trace_read(path_of("records"), &trace));
    cr_expect_eq(trace->ntasks, 3000);
    cr_expect_eq(trace->nedges, 3 * 999);
    cr_expect_eq(trace->pid, (uint32_t)child);
    weir__trace_free(trace);
    tear_down();
}

Test(exec_trace_cold, a_damaged_file_is_read_as_far_as_it_goes)
{
    cr_assert_not_null(mkdtemp(folder));
    struct weir_trace_options options = {.size = sizeof options, .file = path_of("records")};
    DONE(weir_trace_start(&options));
    for (int i = 0; i < 3; i++) submit_chain(&cells[0]);
    weir_trace_stop();
    FILE *file = fopen(path_of("records"), "r+");
    cr_assert_not_null(file);
    for (uint64_t seed = 1; seed < 200; seed++) { /* holes all over the first slots and blocks */
        uint64_t z = seed * UINT64_C(0x9E3779B97F4A7C15);
        long at = (long)(z >> 16) % (2 << 20);
        if (seed % 2)
            at += WEIR__ARENA_BYTES + (long)WEIR__SLOTS * (long)WEIR__SLOT_BYTES;
        else
            at += WEIR__ARENA_BYTES;
        fseek(file, at, SEEK_SET);
        fwrite(&z, sizeof z, 1, file);
    }
    fclose(file);
    struct weir__trace *trace;
    if (weir__trace_read(path_of("records"), &trace) == WEIR_OK) weir__trace_free(trace);
    tear_down();
}

Test(exec_trace, a_child_of_fork_records_nothing_of_its_own_accord)
{
    submit_chain(&cells[0]);
    pid_t child = fork();
    if (child == 0) {
        submit_chain(&cells[0]);
        _exit(weir_trace_write(path_of("child.dot"), WEIR_TRACE_DOT) == WEIR_E_NOT_FOUND ? 0 : 1);
    }
    int status;
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    struct weir__trace *trace;
    DONE(weir__trace_read(NULL, &trace));
    cr_expect_eq(trace->ntasks, 1000);
    weir__trace_free(trace);
}

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Timelines of runs of all kinds, held against the rules of the format. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/trace.h>
#include <weir/weir.h>

#include "bodies.h"
#include "done.h"
#include "timeline_rules.h"

TestSuite(exec_timeline, .timeout = 120);

static double cells[8];
static struct weir_context *context;
static struct weir_scope *scope;
static struct weir_device *device;

static void set_up(void)
{
    DONE(weir_trace_start(NULL));
    DONE(weir_context_create(NULL, &context));
    DONE(weir_scope_create(context, NULL, &scope));
    device = weir_device_get(context, 0);
}

/* The timeline of what has happened. */
static struct timeline_counts judged(void)
{
    char path[] = "/tmp/weir-timeline-XXXXXX";
    int fd = mkstemp(path);
    cr_assert_geq(fd, 0);
    DONE(weir_trace_write(path, WEIR_TRACE_TIMELINE));
    close(fd);
    FILE *file = fopen(path, "r");
    cr_assert_not_null(file);
    fseek(file, 0, SEEK_END);
    size_t bytes = (size_t)ftell(file);
    char *text = malloc(bytes + 1);
    rewind(file);
    text[fread(text, 1, bytes, file)] = '\0';
    fclose(file);
    unlink(path);
    struct timeline_counts counts;
    struct json *timeline = json_parse(text);
    cr_assert_not_null(timeline, "no JSON");
    const char *wrong = timeline_fault(timeline, &counts);
    cr_expect_str_eq(wrong, "");
    json_free(timeline);
    free(text);
    return counts;
}

static void tear_down(void)
{
    (void)weir_scope_destroy(scope);
    DONE(weir_context_destroy(context));
}

static int enqueue_body(struct weir_task *task, void *native_stream, void *arg)
{
    (void)task;
    return weir_host_enqueue(native_stream, body, arg);
}

/* Mixed kinds over few cells: waits by events, by completion, on the host. */
static void submit_mixed(int n)
{
    for (int i = 0; i < n; i++) {
        struct weir_access accesses[] = {WEIR_IN(cells[i * 5 % 8]), WEIR_INOUT(cells[i * 3 % 7])};
        if (i % 11 == 10)
            DONE(weir_task_host(scope, body, NULL, accesses, 2, WEIR_TASK("host"), NULL));
        else
            DONE(weir_task_submit(scope, device, accesses, 2, enqueue_body, NULL, WEIR_TASK("device"), NULL));
    }
}

Test(exec_timeline, lanes_nest_and_arrows_lie_in_slices)
{
    set_up();
    for (int round = 0; round < 20; round++) {
        submit_mixed(100);
        DONE(weir_scope_wait(scope));
    }
    struct timeline_counts counts = judged();
    cr_expect_eq(counts.host, 20 * 9);
    cr_expect_eq(counts.device, 20 * 91);
    cr_expect_eq(counts.issue, 20 * 91);
    cr_expect_gt(counts.counters, 0);
    tear_down();
}

Test(exec_timeline, rules_hold_in_the_middle_of_a_run)
{
    set_up();
    for (int round = 0; round < 20; round++) {
        submit_mixed(50);
        judged();
    }
    DONE(weir_scope_wait(scope));
    tear_down();
}

Test(exec_timeline, external_tasks_and_failures_have_their_place)
{
    struct weir_task *external;
    set_up();
    DONE(weir_task_external(scope, (struct weir_access[]){WEIR_OUT(cells[0])}, 1, WEIR_TASK("message"), &external));
    DONE(weir_task_submit(scope, device, (struct weir_access[]){WEIR_IN(cells[0])}, 1, enqueue_body, NULL,
                          WEIR_TASK("after"), NULL));
    DONE(weir_task_host(scope, failing_body, NULL, (struct weir_access[]){WEIR_OUT(cells[1])}, 1, WEIR_TASK("culprit"),
                        NULL));
    DONE(weir_task_host(scope, body, NULL, (struct weir_access[]){WEIR_IN(cells[1])}, 1, WEIR_TASK("victim"), NULL));
    DONE(weir_task_fulfill(external, 0));
    cr_expect_eq(weir_scope_wait(scope), -77);
    struct timeline_counts counts = judged();
    cr_expect_eq(counts.asynchronous, 1);
    cr_expect_eq(counts.host, 1, "the victim did not run");
    cr_expect_eq(counts.device, 1);
    tear_down();
}

/* A task that waits for others within itself, on the thread that runs it. */
static int outer_body(void *arg)
{
    struct weir_scope *inner;
    (void)arg;
    DONE(weir_scope_create(context, NULL, &inner));
    for (int i = 0; i < 20; i++)
        DONE(weir_task_host(inner, body, NULL, (struct weir_access[]){WEIR_INOUT(cells[i % 2])}, 1, WEIR_TASK("inner"),
                            NULL));
    return weir_scope_destroy(inner);
}

Test(exec_timeline, tasks_within_tasks_are_slices_within_slices)
{
    set_up();
    for (int i = 0; i < 50; i++)
        DONE(weir_task_host(scope, outer_body, NULL, (struct weir_access[]){WEIR_IN(cells[i % 4])}, 1,
                            WEIR_TASK("outer"), NULL));
    DONE(weir_scope_wait(scope));
    struct timeline_counts counts = judged();
    cr_expect_eq(counts.host, 50 * 21);
    tear_down();
}

/* What the rules are for: each of these is refused. */
Test(exec_timeline, a_file_that_breaks_a_rule_is_found_out)
{
#define LANE                                                                                                           \
    "{\"ph\":\"M\",\"pid\":1,\"tid\":2,\"name\":\"process_name\",\"args\":{\"name\":\"p\"}},"                          \
    "{\"ph\":\"M\",\"pid\":1,\"tid\":2,\"name\":\"thread_name\",\"args\":{\"name\":\"t\"}},"
#define SLICE(ts, dur)                                                                                                 \
    "{\"ph\":\"X\",\"cat\":\"host\",\"pid\":1,\"tid\":2,\"name\":\"a\",\"ts\":" #ts ",\"dur\":" #dur "}"
#define ARROW(ph, ts)                                                                                                  \
    "{\"ph\":\"" #ph "\",\"cat\":\"event\",\"pid\":1,\"tid\":2,\"name\":\"e\",\"bp\":\"e\",\"id\":1,\"ts\":" #ts "}"
    static const char *const bad[] = {
        SLICE(1, 1),
        LANE SLICE(1, -1),
        LANE SLICE(1, 5) "," SLICE(3, 5),
        LANE SLICE(1, 5) "," ARROW(s, 2),
        LANE SLICE(1, 5) "," ARROW(s, 2) "," ARROW(f, 6),
        LANE SLICE(1, 5) "," ARROW(s, 3) "," ARROW(f, 2),
        LANE SLICE(1, 5) "," ARROW(b, 3),
    };
    static const char *const good[] = {
        LANE SLICE(1, 5) "," SLICE(1, 2) "," SLICE(3, 3) "," ARROW(s, 2) "," ARROW(f, 3)};
    struct timeline_counts counts;
    char text[2000];
    for (size_t i = 0; i < sizeof bad / sizeof bad[0] + 1; i++) {
        bool is_good = i == sizeof bad / sizeof bad[0];
        snprintf(text, sizeof text, "{\"traceEvents\":[%s]}", is_good ? good[0] : bad[i]);
        struct json *timeline = json_parse(text);
        cr_assert_not_null(timeline);
        cr_expect_eq(timeline_fault(timeline, &counts)[0] == '\0', is_good, "%s", text);
        json_free(timeline);
    }
}

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Wrong calls of the public API: the code that is promised, a text, and nothing changed. */
#include <criterion/criterion.h>
#include <string.h>

#include <devices/mock/mock.h>
#include <exec/work.h>
#include <weir/weir.h>

#include "bodies.h"

/* Asking for more memory than there is must not end the program under the address sanitizer. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
    return "allocator_may_return_null=1";
}

#define REFUSED(code, call)                                                                                            \
    do {                                                                                                               \
        int rc_ = (call);                                                                                              \
        cr_assert_eq(rc_, (code), "%s: %s instead of %s", #call, weir_error_name(rc_), weir_error_name(code));         \
        cr_assert_neq(weir_error_text()[0], '\0', "%s: no text", #call);                                               \
    } while (0)
#define DONE(call)                                                                                                     \
    do {                                                                                                               \
        int rc_ = (call);                                                                                              \
        cr_assert_eq(rc_, WEIR_OK, "%s: %s: %s", #call, weir_error_name(rc_), weir_error_text());                      \
    } while (0)

static struct weir_context *context;
static struct weir_scope *scope;
static struct weir_device *device;
static int x, y; /* addresses */

static int issue(struct weir_task *task, void *native_stream, void *arg)
{
    (void)native_stream;
    return weir__task_host_function(task, body, arg);
}

static void open_all(void)
{
    ran = 0;
    DONE(weir_context_create(NULL, &context));
    DONE(weir_scope_create(context, NULL, &scope));
    device = weir_device_get(context, 0);
    cr_assert_not_null(device);
}

static void close_all(void)
{
    DONE(weir_scope_destroy(scope));
    DONE(weir_context_destroy(context));
}

TestSuite(exec_input, .timeout = 60);
TestSuite(exec_input_open, .init = open_all, .fini = close_all, .timeout = 60);

enum form { HOST, SUBMIT, BEGIN, EXTERNAL, FORMS };

static int submit(enum form form, struct weir_scope *to, const struct weir_access *a, size_t n,
                  const struct weir_task_options *options, struct weir_task **out)
{
    switch (form) {
    case HOST:
        return weir_task_host(to, body, NULL, a, n, options, out);
    case SUBMIT:
        return weir_task_submit(to, device, a, n, issue, NULL, options, out);
    case BEGIN:
        return weir_task_begin(to, device, a, n, options, out);
    default:
        return weir_task_external(to, a, n, options, out);
    }
}

/* Nothing has changed: no task, no edge, no body, no output. */
static void refuse_in_every_form(int code, struct weir_scope *to, const struct weir_access *a, size_t n,
                                 const struct weir_task_options *options)
{
    struct weir_counters before, after;
    weir_scope_counters(scope, &before);
    for (enum form form = HOST; form < FORMS; form++) {
        struct weir_task *task = (struct weir_task *)&x;
        int rc = submit(form, to, a, n, options, &task);
        cr_assert_eq(rc, code, "form %d: %s instead of %s", (int)form, weir_error_name(rc), weir_error_name(code));
        cr_assert_eq(task, (struct weir_task *)&x, "form %d set its output", (int)form);
        cr_assert_neq(weir_error_text()[0], '\0');
    }
    weir_scope_counters(scope, &after);
    cr_assert_eq(memcmp(&before, &after, sizeof(before)), 0, "a refused submission was counted");
    DONE(weir_scope_wait(scope));
    cr_assert_eq(ran, 0);
}

Test(exec_input, context_options_of_unknown_size_are_refused)
{
    struct weir_context *made = (struct weir_context *)&x;
    struct weir_context_options options = {.size = 0};
    REFUSED(WEIR_E_VERSION, weir_context_create(&options, &made));
    options.size = SIZE_MAX;
    REFUSED(WEIR_E_VERSION, weir_context_create(&options, &made));
    options.size = 1;
    REFUSED(WEIR_E_VERSION, weir_context_create(&options, &made));
    cr_assert_eq(made, (struct weir_context *)&x);
    REFUSED(WEIR_E_INVALID, weir_context_create(NULL, NULL));
}

Test(exec_input, every_code_has_a_name_and_a_text)
{
    for (int code = -40; code < 5; code++) {
        cr_assert_not_null(weir_error_name(code));
        cr_assert_not_null(weir_error_string(code));
    }
    cr_assert_str_eq(weir_error_name(WEIR_E_NOT_ISSUED), "WEIR_E_NOT_ISSUED");
    cr_assert_str_eq(weir_error_name(1), "WEIR_E_UNKNOWN");
    cr_assert_str_eq(weir_error_name(-4000), "WEIR_E_UNKNOWN");
}

Test(exec_input_open, bad_device_numbers_and_sizes_are_refused)
{
    void *address = &x;
    cr_assert_null(weir_device_get(context, -1));
    cr_assert_null(weir_device_get(context, weir_device_count(context)));
    cr_assert_neq(weir_error_text()[0], '\0');
    REFUSED(WEIR_E_INVALID, weir_device_alloc(device, 0, &address));
    REFUSED(WEIR_E_INVALID, weir_device_alloc(NULL, 16, &address));
    REFUSED(WEIR_E_INVALID, weir_device_alloc(device, 16, NULL));
    REFUSED(WEIR_E_NO_MEMORY, weir_device_alloc(device, SIZE_MAX / 2, &address));
    cr_assert_eq(address, (void *)&x);
    DONE(weir_device_free(device, NULL));
}

Test(exec_input_open, scope_creation_checks_its_arguments)
{
    struct weir_scope *made = (struct weir_scope *)&x;
    struct weir_scope_options options = {.size = 0};
    REFUSED(WEIR_E_INVALID, weir_scope_create(NULL, NULL, &made));
    REFUSED(WEIR_E_INVALID, weir_scope_create(context, NULL, NULL));
    REFUSED(WEIR_E_VERSION, weir_scope_create(context, &options, &made));
    options.size = SIZE_MAX;
    REFUSED(WEIR_E_VERSION, weir_scope_create(context, &options, &made));
    cr_assert_eq(made, (struct weir_scope *)&x);
}

Test(exec_input_open, null_scope_is_refused)
{
    refuse_in_every_form(WEIR_E_INVALID, NULL, NULL, 0, NULL);
    REFUSED(WEIR_E_INVALID, weir_scope_wait(NULL));
    REFUSED(WEIR_E_INVALID, weir_scope_wait_for(NULL, NULL, 0));
    REFUSED(WEIR_E_INVALID, weir_scope_test(NULL));
}

Test(exec_input_open, null_functions_and_devices_are_refused)
{
    struct weir_task *task = (struct weir_task *)&x;
    REFUSED(WEIR_E_INVALID, weir_task_host(scope, NULL, NULL, NULL, 0, NULL, &task));
    REFUSED(WEIR_E_INVALID, weir_task_submit(scope, device, NULL, 0, NULL, NULL, NULL, &task));
    REFUSED(WEIR_E_NO_DEVICE, weir_task_submit(scope, NULL, NULL, 0, issue, NULL, NULL, &task));
    REFUSED(WEIR_E_NO_DEVICE, weir_task_begin(scope, NULL, NULL, 0, NULL, &task));
    cr_assert_eq(task, (struct weir_task *)&x);
    REFUSED(WEIR_E_INVALID, weir_task_begin(scope, device, NULL, 0, NULL, NULL));
    REFUSED(WEIR_E_INVALID, weir_task_external(scope, NULL, 0, NULL, NULL));
}

Test(exec_input_open, accesses_without_an_array_are_refused)
{
    refuse_in_every_form(WEIR_E_INVALID, scope, NULL, 1, NULL);
    refuse_in_every_form(WEIR_E_INVALID, scope, NULL, SIZE_MAX, NULL);
    REFUSED(WEIR_E_INVALID, weir_scope_wait_for(scope, NULL, 3));
}

Test(exec_input_open, unknown_kinds_are_refused_also_in_the_last_place)
{
    const uint32_t kinds[] = {0, WEIR_ACCESS_AFTER + 1, 0x80, UINT32_MAX};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        struct weir_access a[] = {WEIR_INOUT(x), WEIR_IN(y), WEIR_RANGE(&y, 1, kinds[i])};
        refuse_in_every_form(WEIR_E_INVALID, scope, a, 3, NULL);
        REFUSED(WEIR_E_INVALID, weir_scope_wait_for(scope, a, 3));
    }
    struct weir_access after[] = {WEIR_AFTER(NULL)};
    refuse_in_every_form(WEIR_E_INVALID, scope, after, 1, NULL);
}

Test(exec_input_open, task_options_of_unknown_size_are_refused)
{
    struct weir_task_options options = {.size = 0};
    refuse_in_every_form(WEIR_E_VERSION, scope, NULL, 0, &options);
    options.size = SIZE_MAX;
    refuse_in_every_form(WEIR_E_VERSION, scope, NULL, 0, &options);
}

Test(exec_input_open, device_of_another_context_is_refused)
{
    struct weir_context *other;
    struct weir_task *task = NULL;
    DONE(weir_context_create(NULL, &other));
    struct weir_device *foreign = weir_device_get(other, 0);
    REFUSED(WEIR_E_NO_DEVICE, weir_task_submit(scope, foreign, NULL, 0, issue, NULL, NULL, &task));
    REFUSED(WEIR_E_NO_DEVICE, weir_task_begin(scope, foreign, NULL, 0, NULL, &task));
    cr_assert_null(task);
    DONE(weir_context_destroy(other));
}

/* Allowed or refused, but never an edge that does not order. */
Test(exec_input_open, explicit_edge_to_a_task_of_another_scope_orders_or_is_refused)
{
    struct weir_scope *other;
    struct weir_task *first;
    DONE(weir_scope_create(context, NULL, &other));
    DONE(weir_task_external(other, NULL, 0, NULL, &first));
    struct weir_access after[] = {WEIR_AFTER(first)};
    int rc = weir_task_host(scope, body, NULL, after, 1, NULL, NULL);
    cr_assert(rc == WEIR_OK || rc == WEIR_E_INVALID, "%s", weir_error_name(rc));
    if (rc == WEIR_OK) cr_assert_eq(weir_scope_test(scope), WEIR_E_PENDING);
    DONE(weir_task_fulfill(first, 0));
    DONE(weir_scope_wait(scope));
    cr_assert_eq(ran, rc == WEIR_OK);
    DONE(weir_scope_destroy(other));
}

Test(exec_input_open, handle_outlives_its_scope_and_serves_as_predecessor_or_is_refused)
{
    struct weir_scope *other;
    struct weir_task *first;
    DONE(weir_scope_create(context, NULL, &other));
    DONE(weir_task_host(other, body, NULL, NULL, 0, NULL, &first));
    DONE(weir_scope_destroy(other));
    DONE(weir_task_test(first));
    DONE(weir_task_wait(first));
    struct weir_access after[] = {WEIR_AFTER(first)};
    int rc = weir_task_host(scope, body, NULL, after, 1, NULL, NULL);
    cr_assert(rc == WEIR_OK || rc == WEIR_E_INVALID, "%s", weir_error_name(rc));
    weir_task_release(first);
    DONE(weir_scope_wait(scope));
}

/* begin that is refused leaves no trace: what it would have written is free. */
Test(exec_input_open, begin_behind_what_is_not_issued_changes_nothing)
{
    struct weir_task *external, *open = NULL, *reader;
    struct weir_access inout_x[] = {WEIR_INOUT(x)}, both[] = {WEIR_IN(x), WEIR_OUT(y)}, in_y[] = {WEIR_IN(y)};
    struct weir_counters before, after;
    DONE(weir_task_external(scope, inout_x, 1, NULL, &external));
    weir_scope_counters(scope, &before);
    REFUSED(WEIR_E_NOT_ISSUED, weir_task_begin(scope, device, both, 2, NULL, &open));
    weir_scope_counters(scope, &after);
    cr_assert_null(open);
    cr_assert_eq(memcmp(&before, &after, sizeof(before)), 0);
    DONE(weir_task_host(scope, body, NULL, in_y, 1, NULL, &reader));
    DONE(weir_task_wait(reader));
    weir_task_release(reader);
    DONE(weir_task_fulfill(external, 0));
    DONE(weir_scope_wait(scope));
    DONE(weir_task_begin(scope, device, both, 2, NULL, &open));
    DONE(weir_task_end(open));
}

Test(exec_input_open, begin_behind_an_open_task_is_not_issued)
{
    struct weir_task *first, *second = NULL;
    struct weir_access inout_x[] = {WEIR_INOUT(x)};
    DONE(weir_task_begin(scope, device, inout_x, 1, NULL, &first));
    REFUSED(WEIR_E_NOT_ISSUED, weir_task_begin(scope, device, inout_x, 1, NULL, &second));
    cr_assert_null(second);
    DONE(weir_task_end(first));
    DONE(weir_task_begin(scope, device, inout_x, 1, NULL, &second));
    DONE(weir_task_end(second));
}

Test(exec_input_open, begin_behind_a_failure_changes_nothing)
{
    struct weir_task *task, *open = NULL;
    struct weir_access inout_x[] = {WEIR_INOUT(x)};
    struct weir_counters before, after;
    DONE(weir_task_host(scope, failing_body, NULL, inout_x, 1, NULL, &task));
    cr_assert_eq(weir_task_wait(task), -77);
    weir_scope_counters(scope, &before);
    REFUSED(WEIR_E_PREDECESSOR, weir_task_begin(scope, device, inout_x, 1, NULL, &open));
    weir_scope_counters(scope, &after);
    cr_assert_eq(memcmp(&before, &after, sizeof(before)), 0);
    weir_task_release(task);
    cr_assert_eq(weir_scope_wait(scope), -77);
    DONE(weir_scope_wait(scope));
}

Test(exec_input_open, ending_twice_is_refused)
{
    struct weir_task *task;
    DONE(weir_task_begin(scope, device, NULL, 0, NULL, &task));
    cr_assert_not_null(weir_task_stream(task));
    weir_task_retain(task);
    DONE(weir_task_end(task));
    REFUSED(WEIR_E_STATE, weir_task_end(task));
    REFUSED(WEIR_E_STATE, weir_task_fail(task, -5));
    REFUSED(WEIR_E_STATE, weir_task_copy(task, &x, NULL, &y, NULL, sizeof(x)));
    cr_assert_null(weir_task_stream(task));
    DONE(weir_task_wait(task));
    REFUSED(WEIR_E_STATE, weir_task_end(task));
    weir_task_release(task);
    REFUSED(WEIR_E_INVALID, weir_task_end(NULL));
    REFUSED(WEIR_E_INVALID, weir_task_fail(NULL, -5));
}

Test(exec_input_open, failing_without_a_negative_status_leaves_the_task_open)
{
    struct weir_task *task;
    DONE(weir_task_begin(scope, device, NULL, 0, NULL, &task));
    REFUSED(WEIR_E_INVALID, weir_task_fail(task, 0));
    REFUSED(WEIR_E_INVALID, weir_task_fail(task, 3));
    DONE(weir_task_end(task));
    DONE(weir_scope_wait(scope));
}

Test(exec_input_open, fulfilling_twice_or_what_is_not_external_is_refused)
{
    struct weir_task *external, *host, *open;
    DONE(weir_task_external(scope, NULL, 0, NULL, &external));
    weir_task_retain(external);
    REFUSED(WEIR_E_INVALID, weir_task_fulfill(external, 1));
    REFUSED(WEIR_E_STATE, weir_task_end(external));
    DONE(weir_task_fulfill(external, 0));
    REFUSED(WEIR_E_STATE, weir_task_fulfill(external, 0));
    REFUSED(WEIR_E_STATE, weir_task_fulfill(external, -5));
    DONE(weir_task_wait(external));
    weir_task_release(external);
    DONE(weir_task_host(scope, body, NULL, NULL, 0, NULL, &host));
    REFUSED(WEIR_E_STATE, weir_task_fulfill(host, 0));
    REFUSED(WEIR_E_STATE, weir_task_end(host));
    weir_task_release(host);
    DONE(weir_task_begin(scope, device, NULL, 0, NULL, &open));
    REFUSED(WEIR_E_STATE, weir_task_fulfill(open, 0));
    DONE(weir_task_end(open));
    REFUSED(WEIR_E_INVALID, weir_task_fulfill(NULL, 0));
    DONE(weir_scope_wait(scope));
}

Test(exec_input_open, null_handles_are_refused_or_ignored)
{
    REFUSED(WEIR_E_INVALID, weir_task_wait(NULL));
    REFUSED(WEIR_E_INVALID, weir_task_test(NULL));
    weir_task_release(NULL);
    cr_assert_null(weir_task_retain(NULL));
    cr_assert_null(weir_task_stream(NULL));
    REFUSED(WEIR_E_INVALID, weir_task_export(NULL, &x));
    REFUSED(WEIR_E_INVALID, weir_task_copy(NULL, &x, NULL, &y, NULL, 4));
    REFUSED(WEIR_E_INVALID, weir_context_destroy(NULL));
    weir_host_stream_destroy(NULL);
    weir_host_event_destroy(NULL);
}

Test(exec_input_open, copies_without_memory_or_length_are_refused)
{
    struct weir_task *task;
    DONE(weir_task_begin(scope, device, NULL, 0, NULL, &task));
    REFUSED(WEIR_E_INVALID, weir_task_copy(task, NULL, device, &x, NULL, 4));
    REFUSED(WEIR_E_INVALID, weir_task_copy(task, &x, NULL, NULL, device, 4));
    REFUSED(WEIR_E_INVALID, weir_task_copy(task, &x, NULL, &y, NULL, 0));
    DONE(weir_task_end(task));
    DONE(weir_scope_wait(scope));
}

Test(exec_input_open, foreign_work_needs_an_event_and_an_issued_task)
{
    struct weir_task *task = NULL, *external;
    struct weir_access inout_x[] = {WEIR_INOUT(x)};
    void *stream;
    REFUSED(WEIR_E_INVALID, weir_task_import(scope, device, NULL, NULL, 0, NULL, &task));
    cr_assert_null(task);
    DONE(weir_task_external(scope, inout_x, 1, NULL, &external));
    DONE(weir_task_submit(scope, device, inout_x, 1, issue, NULL, NULL, &task));
    DONE(weir_host_stream_create(device, &stream));
    REFUSED(WEIR_E_NOT_ISSUED, weir_task_export(task, stream));
    DONE(weir_task_fulfill(external, 0));
    DONE(weir_task_wait(task));
    DONE(weir_task_export(task, stream));
    REFUSED(WEIR_E_INVALID, weir_task_export(task, NULL));
    weir_task_release(task);
    weir_host_stream_destroy(stream);
}

Test(exec_input_open, host_calls_check_their_arguments)
{
    void *stream = &x, *event = &x;
    REFUSED(WEIR_E_INVALID, weir_host_enqueue(NULL, body, NULL));
    REFUSED(WEIR_E_INVALID, weir_host_stream_create(NULL, &stream));
    REFUSED(WEIR_E_INVALID, weir_host_stream_create(device, NULL));
    REFUSED(WEIR_E_INVALID, weir_host_event_record(NULL, &event));
    REFUSED(WEIR_E_INVALID, weir_host_stream_wait(NULL));
    cr_assert_eq(stream, (void *)&x);
    cr_assert_eq(event, (void *)&x);
    DONE(weir_host_stream_create(device, &stream));
    REFUSED(WEIR_E_INVALID, weir_host_enqueue(stream, NULL, NULL));
    DONE(weir_host_stream_wait(stream));
    weir_host_stream_destroy(stream);
}

Test(exec_input, host_streams_exist_on_the_cpu_device_only)
{
    struct weir__mock *mock;
    struct weir__mock_options options = {.clock = WEIR__MOCK_AUTOMATIC, .no_events = true};
    struct weir_task *task = NULL;
    void *stream = &x;
    DONE(weir_context_create(NULL, &context));
    DONE(weir__mock_create(&options, &mock));
    DONE(weir__context_add_backend(context, weir__mock_ops(mock), mock));
    device = weir_device_get(context, weir_device_count(context) - 1);
    REFUSED(WEIR_E_INVALID, weir_host_stream_create(device, &stream));
    DONE(weir_scope_create(context, NULL, &scope));
    REFUSED(WEIR_E_UNSUPPORTED, weir_task_import(scope, device, &x, NULL, 0, NULL, &task));
    cr_assert_null(task);
    close_all();
    weir__mock_destroy(mock);
}

Test(exec_input_open, context_with_a_live_scope_is_busy_and_goes_on)
{
    REFUSED(WEIR_E_BUSY, weir_context_destroy(context));
    DONE(weir_task_host(scope, body, NULL, NULL, 0, NULL, NULL));
    DONE(weir_scope_wait(scope));
    cr_assert_eq(ran, 1);
}

Test(exec_input, odd_ranges_neither_crash_nor_hang)
{
    struct weir_scope_options options = {.size = sizeof(options), .ranges = true};
    open_all();
    struct weir_scope *ranges;
    DONE(weir_scope_create(context, &options, &ranges));
    struct weir_access odd[][1] = {
        {WEIR_RANGE(&x, 0, WEIR_ACCESS_INOUT)},
        {WEIR_RANGE(&x, SIZE_MAX, WEIR_ACCESS_INOUT)},
        {WEIR_RANGE((void *)UINTPTR_MAX, 8, WEIR_ACCESS_INOUT)},
        {WEIR_RANGE(NULL, 8, WEIR_ACCESS_INOUT)},
        {WEIR_RANGE(NULL, SIZE_MAX, WEIR_ACCESS_IN)},
    };
    int accepted = 0;
    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        int rc = weir_task_host(ranges, body, NULL, odd[i], 1, NULL, NULL);
        cr_assert(rc == WEIR_OK || rc == WEIR_E_INVALID, "row %zu: %s", i, weir_error_name(rc));
        accepted += rc == WEIR_OK;
    }
    DONE(weir_scope_wait(ranges));
    cr_assert_eq(ran, accepted);
    DONE(weir_scope_destroy(ranges));
    close_all();
}

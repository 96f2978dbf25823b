/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <criterion/criterion.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include <devices/mock/mock.h>

struct rig {
    struct weir__mock *mock;
    const struct weir__device_ops *ops;
    void *device, *stream;
    struct weir__device_info info;
};

static void note(void *owner, uint64_t reached)
{
    atomic_store((_Atomic uint64_t *)owner, reached);
}

static const struct weir__device_notice notice = {.reached = note};
static _Atomic uint64_t told;

static struct rig rig_open(const struct weir__mock_options *options)
{
    struct rig rig = {0};
    cr_assert_eq(weir__mock_create(options, &rig.mock), WEIR_OK);
    rig.ops = weir__mock_ops(rig.mock);
    cr_assert_eq(rig.ops->device_open(rig.mock, 0, &notice, &rig.info, &rig.device), WEIR_OK);
    cr_assert_eq(rig.ops->stream_create(rig.device, &told, 0, &rig.stream), WEIR_OK);
    return rig;
}

/* @violation: a part of the only line that is expected, NULL for none. */
static void rig_close(struct rig *rig, const char *violation)
{
    if (rig->stream) rig->ops->stream_destroy(rig->stream);
    rig->ops->device_close(rig->device);
    const char *seen = weir__mock_violations(rig->mock);
    if (violation) {
        cr_expect(strstr(seen, violation), "expected: %s; seen: %s", violation, seen);
        cr_expect_eq(strchr(seen, '\n'), seen + strlen(seen) - 1, "more than one: %s", seen);
    } else {
        cr_expect_str_eq(seen, "");
    }
    weir__mock_destroy(rig->mock);
}

static int increment(void *arg)
{
    atomic_fetch_add((atomic_int *)arg, 1);
    return 0;
}

static void kernel_add(const uint64_t *args)
{
    *(uint64_t *)(uintptr_t)args[0] += args[1] * args[2];
}

Test(mock, work_takes_effect_when_its_time_is_over)
{
    struct rig rig = rig_open(&(struct weir__mock_options){.duration = 3});
    char from[4] = "abc", to[4] = "", filled[4] = "";
    void *module, *kernel;
    uint64_t sum = 1;
    cr_assert_eq(weir__mock_register_kernel(rig.mock, "add", kernel_add), WEIR_OK);
    cr_assert_eq(rig.ops->module_load(rig.device, "", 0, &module), WEIR_OK);
    cr_assert_eq(rig.ops->module_symbol(module, "add", &kernel, NULL), WEIR_OK);
    struct weir__copy copy = {.kind = WEIR__COPY_TO_DEVICE, .to = to, .from = from, .bytes = 4};
    cr_assert_eq(rig.ops->copy(rig.stream, &copy), WEIR_OK);
    cr_assert_eq(rig.ops->fill(rig.stream, filled, 'x', 3), WEIR_OK);
    uint64_t args[3] = {(uintptr_t)&sum, 6, 7};
    struct weir__launch launch = {.kernel = kernel, .nargs = 3, .args = args};
    cr_assert_eq(rig.ops->launch(rig.stream, &launch), WEIR_OK);
    args[2] = 0; /* arguments are read before return */
    weir__mock_advance(rig.mock, 2);
    cr_expect_str_eq(to, "");
    weir__mock_advance(rig.mock, 1);
    cr_expect_str_eq(to, "abc");
    cr_expect_str_eq(filled, "");
    weir__mock_advance(rig.mock, 3);
    cr_expect_str_eq(filled, "xxx");
    cr_expect_eq(sum, 1);
    weir__mock_advance(rig.mock, 30);
    cr_expect_eq(sum, 43);
    cr_expect_eq(weir__mock_now(rig.mock), 36);
    cr_expect_eq(weir__mock_items_ended(rig.mock), 3);
    rig.ops->module_unload(module);
    rig_close(&rig, NULL);
}

Test(mock, copy_of_a_block_respects_its_pitches)
{
    struct rig rig = rig_open(&(struct weir__mock_options){.clock = WEIR__MOCK_AUTOMATIC});
    char from[24], to[24];
    for (int i = 0; i < 24; i++) from[i] = (char)('a' + i);
    memset(to, '.', sizeof to);
    struct weir__copy copy = {.kind = WEIR__COPY_TO_DEVICE,
                              .to = to,
                              .from = from,
                              .bytes = 2,
                              .count = {2, 2},
                              .to_pitch = {3, 12},
                              .from_pitch = {4, 12}};
    cr_assert_eq(rig.ops->copy(rig.stream, &copy), WEIR_OK);
    cr_expect_arr_eq(to, "ab.ef.......mn.qr.......", 24);
    rig_close(&rig, NULL);
}

Test(mock, streams_run_side_by_side_and_waits_hold_them)
{
    struct rig rig = rig_open(NULL);
    void *other, *event;
    atomic_int first = 0, second = 0, third = 0;
    cr_assert_eq(rig.ops->stream_create(rig.device, NULL, 0, &other), WEIR_OK);
    cr_assert_eq(rig.ops->event_create(rig.device, &event), WEIR_OK);
    cr_assert_eq(rig.ops->host_function(rig.stream, increment, &first), WEIR_OK);
    cr_assert_eq(rig.ops->event_record(rig.stream, event), WEIR_OK);
    cr_assert_eq(rig.ops->host_function(other, increment, &second), WEIR_OK);
    cr_assert_eq(rig.ops->event_wait(other, &event, 1), WEIR_OK);
    cr_assert_eq(rig.ops->host_function(other, increment, &third), WEIR_OK);
    cr_expect_eq(rig.ops->event_query(event), WEIR_E_PENDING);
    weir__mock_advance(rig.mock, 1);
    cr_expect_eq(first * 100 + second * 10 + third, 110);
    cr_expect_eq(rig.ops->event_query(event), WEIR_OK);
    cr_expect_eq(weir__mock_run(rig.mock), 0);
    cr_expect_eq(atomic_load(&third), 1);
    cr_expect_eq(weir__mock_now(rig.mock), 2);
    rig.ops->event_destroy(event);
    rig.ops->stream_destroy(other);
    rig_close(&rig, NULL);
}

/* A wait stands for the record that it saw, not for a later one of the same event. */
Test(mock, wait_is_for_the_record_at_its_time)
{
    struct rig rig = rig_open(NULL);
    void *other, *event;
    atomic_int before = 0, later = 0, waited = 0;
    cr_assert_eq(rig.ops->stream_create(rig.device, NULL, 0, &other), WEIR_OK);
    cr_assert_eq(rig.ops->event_create(rig.device, &event), WEIR_OK);
    cr_assert_eq(rig.ops->host_function(rig.stream, increment, &before), WEIR_OK);
    cr_assert_eq(rig.ops->event_record(rig.stream, event), WEIR_OK);
    weir__mock_run(rig.mock);
    cr_assert_eq(rig.ops->event_wait(other, &event, 1), WEIR_OK);
    for (int i = 0; i < 5; i++) cr_assert_eq(rig.ops->host_function(rig.stream, increment, &later), WEIR_OK);
    cr_assert_eq(rig.ops->event_record(rig.stream, event), WEIR_OK);
    cr_assert_eq(rig.ops->host_function(other, increment, &waited), WEIR_OK);
    weir__mock_advance(rig.mock, 1);
    cr_expect_eq(atomic_load(&waited), 1);
    weir__mock_run(rig.mock);
    rig.ops->event_destroy(event);
    rig.ops->stream_destroy(other);
    rig_close(&rig, NULL);
}

static void *advance_until_done(void *arg)
{
    struct rig *rig = arg;
    while (weir__mock_items_ended(rig->mock) < 2) {
        weir__mock_advance(rig->mock, 1);
        sched_yield();
    }
    return NULL;
}

Test(mock, blocking_call_returns_when_another_thread_moves_the_clock)
{
    struct rig rig = rig_open(&(struct weir__mock_options){.duration = 50});
    atomic_int count = 0;
    pthread_t mover;
    void *event;
    cr_assert_eq(rig.ops->event_create(rig.device, &event), WEIR_OK);
    cr_assert_eq(rig.ops->host_function(rig.stream, increment, &count), WEIR_OK);
    cr_assert_eq(rig.ops->event_record(rig.stream, event), WEIR_OK);
    cr_assert_eq(rig.ops->host_function(rig.stream, increment, &count), WEIR_OK);
    cr_assert_eq(pthread_create(&mover, NULL, advance_until_done, &rig), 0);
    cr_expect_eq(rig.ops->event_sync(event), WEIR_OK);
    cr_expect_geq(atomic_load(&count), 1);
    cr_expect_eq(rig.ops->stream_sync(rig.stream), WEIR_OK);
    cr_expect_eq(atomic_load(&count), 2);
    pthread_join(mover, NULL);
    rig.ops->event_destroy(event);
    rig_close(&rig, NULL);
}

static uint64_t by_number(void *arg, enum weir__mock_item kind, uint32_t device, uint64_t number)
{
    (void)arg;
    cr_expect_eq(kind, WEIR__MOCK_HOST_FUNCTION);
    cr_expect_eq(device, 0);
    return number * 10;
}

Test(mock, blocking_calls_move_the_clock_themselves_on_request)
{
    struct rig rig =
        rig_open(&(struct weir__mock_options){.clock = WEIR__MOCK_AUTO_ADVANCE, .item_duration = by_number});
    atomic_int count = 0;
    for (int i = 0; i < 3; i++) cr_assert_eq(rig.ops->host_function(rig.stream, increment, &count), WEIR_OK);
    cr_expect_eq(rig.ops->stream_sync(rig.stream), WEIR_OK);
    cr_expect_eq(atomic_load(&count), 3);
    cr_expect_eq(weir__mock_now(rig.mock), 60);
    rig_close(&rig, NULL);
}

/* ---- failures ---- */

Test(mock, planned_call_fails_once_and_changes_nothing)
{
    struct rig rig = rig_open(NULL);
    void *event = NULL;
    cr_expect_not(weir__mock_fail(rig.mock, "no_such_slot", 1, WEIR_E_SYSTEM));
    cr_assert(weir__mock_fail(rig.mock, "event_create", 2, WEIR_E_SYSTEM));
    cr_assert_eq(rig.ops->event_create(rig.device, &event), WEIR_OK);
    rig.ops->event_destroy(event);
    event = NULL;
    cr_expect_eq(weir__mock_failures_planned(rig.mock), 1);
    cr_expect_eq(rig.ops->event_create(rig.device, &event), WEIR_E_SYSTEM);
    cr_expect_null(event);
    cr_expect_str_eq(rig.ops->last_error(rig.device), "mock: planned failure of event_create");
    cr_expect_eq(weir__mock_failures_planned(rig.mock), 0);
    cr_expect_eq(weir__mock_calls(rig.mock, "event_create"), 2);
    cr_expect_eq(weir__mock_objects(rig.mock), 1);
    rig_close(&rig, NULL);
}

Test(mock, nth_call_of_any_kind_fails)
{
    struct rig rig = rig_open(NULL);
    void *event, *address = NULL;
    weir__mock_fail_nth_call(rig.mock, 2, WEIR_E_NO_MEMORY);
    cr_assert_eq(rig.ops->event_create(rig.device, &event), WEIR_OK);
    cr_expect_eq(rig.ops->event_query(event), WEIR_OK); /* reports, does not count */
    cr_expect_eq(rig.ops->alloc(rig.device, 8, &address), WEIR_E_NO_MEMORY);
    cr_expect_null(address);
    weir__mock_fail_nth_call(rig.mock, 1, WEIR_E_NO_MEMORY);
    weir__mock_failures_clear(rig.mock);
    cr_assert_eq(rig.ops->alloc(rig.device, 8, &address), WEIR_OK);
    cr_assert_eq(rig.ops->free(rig.device, address), WEIR_OK);
    rig.ops->event_destroy(event);
    rig_close(&rig, NULL);
}

Test(mock, failed_item_marks_its_stretch_only)
{
    struct rig rig = rig_open(NULL);
    void *events[3];
    atomic_int count = 0;
    weir__mock_fail_item(rig.mock, 2, WEIR_E_SYSTEM);
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(rig.ops->event_create(rig.device, &events[i]), WEIR_OK);
        cr_assert_eq(rig.ops->host_function(rig.stream, increment, &count), WEIR_OK);
        cr_assert_eq(rig.ops->event_record(rig.stream, events[i]), WEIR_OK);
    }
    weir__mock_run(rig.mock);
    cr_expect_eq(rig.ops->event_query(events[0]), WEIR_OK);
    cr_expect_eq(rig.ops->event_query(events[1]), WEIR_E_SYSTEM);
    cr_expect_eq(rig.ops->event_query(events[2]), WEIR_OK);
    cr_expect_eq(atomic_load(&count), 2);
    cr_expect_eq(rig.ops->stream_sync(rig.stream), WEIR_E_SYSTEM);
    cr_expect_eq(rig.ops->stream_sync(rig.stream), WEIR_OK);
    for (int i = 0; i < 3; i++) rig.ops->event_destroy(events[i]);
    rig_close(&rig, NULL);
}

static void done_with(void *arg, int status)
{
    atomic_store((atomic_int *)arg, status);
}

Test(mock, lost_device_stays_lost_and_lets_waiters_go)
{
    struct rig rig = rig_open(NULL);
    void *event, *address;
    atomic_int count = 0, status = 0;
    cr_assert_eq(rig.ops->event_create(rig.device, &event), WEIR_OK);
    cr_assert_eq(rig.ops->alloc(rig.device, 8, &address), WEIR_OK);
    weir__mock_fail_item(rig.mock, 1, WEIR_E_DEVICE);
    for (int i = 0; i < 2; i++) cr_assert_eq(rig.ops->host_function(rig.stream, increment, &count), WEIR_OK);
    cr_assert_eq(rig.ops->event_record(rig.stream, event), WEIR_OK);
    cr_assert_eq(rig.ops->event_notify(event, done_with, &status), WEIR_OK);
    weir__mock_advance(rig.mock, 1);
    cr_expect_eq(atomic_load(&status), WEIR_E_DEVICE);
    cr_expect_eq(atomic_load(&count), 0);
    cr_expect_eq(rig.ops->event_query(event), WEIR_E_DEVICE);
    cr_expect_eq(rig.ops->event_sync(event), WEIR_E_DEVICE);
    cr_expect_eq(rig.ops->stream_sync(rig.stream), WEIR_E_DEVICE);
    cr_expect_eq(rig.ops->host_function(rig.stream, increment, &count), WEIR_E_DEVICE);
    cr_expect_eq(rig.ops->event_record(rig.stream, event), WEIR_E_DEVICE);
    cr_expect_eq(rig.ops->free(rig.device, address), WEIR_OK); /* giving back is possible */
    rig.ops->event_destroy(event);
    rig_close(&rig, NULL);
}

/* ---- breaches: each is named ---- */

Test(mock, wait_for_an_event_never_recorded_is_a_breach)
{
    struct rig rig = rig_open(NULL);
    void *event;
    cr_assert_eq(rig.ops->event_create(rig.device, &event), WEIR_OK);
    cr_expect_eq(rig.ops->event_wait(rig.stream, &event, 1), WEIR_OK); /* as in CUDA: it counts as done */
    cr_expect_eq(weir__mock_run(rig.mock), 0);
    rig.ops->event_destroy(event);
    rig_close(&rig, "event_wait: the event was never recorded");
}

Test(mock, record_of_a_pending_event_is_a_breach)
{
    struct rig rig = rig_open(NULL);
    void *event;
    atomic_int count = 0;
    cr_assert_eq(rig.ops->event_create(rig.device, &event), WEIR_OK);
    cr_assert_eq(rig.ops->host_function(rig.stream, increment, &count), WEIR_OK);
    cr_assert_eq(rig.ops->event_record(rig.stream, event), WEIR_OK);
    cr_assert_eq(rig.ops->event_record(rig.stream, event), WEIR_OK);
    weir__mock_run(rig.mock);
    rig.ops->event_destroy(event);
    rig_close(&rig, "event_record: the former record is pending");
}

Test(mock, destroyed_event_is_recognised)
{
    struct rig rig = rig_open(NULL);
    void *event;
    cr_assert_eq(rig.ops->event_create(rig.device, &event), WEIR_OK);
    rig.ops->event_destroy(event);
    cr_expect_eq(rig.ops->event_record(rig.stream, event), WEIR_E_INVALID);
    rig_close(&rig, "event_record: the event was destroyed");
}

Test(mock, second_destroy_is_a_breach)
{
    struct rig rig = rig_open(NULL);
    void *event;
    cr_assert_eq(rig.ops->event_create(rig.device, &event), WEIR_OK);
    rig.ops->event_destroy(event);
    rig.ops->event_destroy(event);
    rig_close(&rig, "event_destroy: the event was destroyed");
}

Test(mock, destroy_of_a_pending_event_is_none)
{
    struct rig rig = rig_open(NULL);
    void *event;
    atomic_int count = 0;
    cr_assert_eq(rig.ops->event_create(rig.device, &event), WEIR_OK);
    cr_assert_eq(rig.ops->host_function(rig.stream, increment, &count), WEIR_OK);
    cr_assert_eq(rig.ops->event_record(rig.stream, event), WEIR_OK);
    rig.ops->event_destroy(event);
    weir__mock_run(rig.mock);
    rig_close(&rig, NULL);
}

Test(mock, stream_destroyed_with_work_queued_is_a_breach)
{
    struct rig rig = rig_open(NULL);
    atomic_int count = 0;
    cr_assert_eq(rig.ops->host_function(rig.stream, increment, &count), WEIR_OK);
    rig_close(&rig, "stream_destroy: work is queued");
}

Test(mock, leaks_are_told_at_close)
{
    struct rig rig = rig_open(NULL);
    void *event;
    cr_assert_eq(rig.ops->event_create(rig.device, &event), WEIR_OK);
    rig_close(&rig, "close: a event of device 0 leaks");
    rig = rig_open(NULL);
    cr_assert_eq(rig.ops->alloc(rig.device, 8, &event), WEIR_OK);
    rig_close(&rig, "close: 1 pieces of memory of device 0 leak");
}

Test(mock, memory_freed_twice_is_a_breach)
{
    struct rig rig = rig_open(NULL);
    void *address;
    cr_assert_eq(rig.ops->alloc(rig.device, 8, &address), WEIR_OK);
    cr_assert_eq(rig.ops->free_on_stream(rig.stream, address), WEIR_OK);
    weir__mock_run(rig.mock);
    cr_expect_eq(rig.ops->free(rig.device, address), WEIR_E_INVALID);
    rig_close(&rig, "is not live memory of device 0");
}

Test(mock, cross_wait_without_the_feature_is_a_breach)
{
    struct rig rig = rig_open(&(struct weir__mock_options){.devices = 2, .no_cross_wait = true});
    void *device, *stream, *event;
    struct weir__device_info info;
    cr_expect_eq(rig.info.features & WEIR__DEVICE_CROSS_WAIT, 0);
    cr_assert_eq(rig.ops->device_open(rig.mock, 1, &notice, &info, &device), WEIR_OK);
    cr_assert_eq(rig.ops->stream_create(device, NULL, 0, &stream), WEIR_OK);
    cr_assert_eq(rig.ops->event_create(device, &event), WEIR_OK);
    cr_assert_eq(rig.ops->event_record(stream, event), WEIR_OK);
    cr_assert_eq(rig.ops->event_wait(rig.stream, &event, 1), WEIR_OK);
    weir__mock_run(rig.mock);
    rig.ops->event_destroy(event);
    rig.ops->stream_destroy(stream);
    rig.ops->device_close(device);
    rig_close(&rig, "a device that cannot be waited for");
}

/* An automatic host function runs inside the stream call: a second call from it on the same stream overlaps. */
static int calls_back(void *arg)
{
    struct rig *rig = arg;
    static char byte; /* the fill takes effect after this function */
    return rig->ops->fill(rig->stream, &byte, 0, 1);
}

Test(mock, overlapping_stream_calls_are_a_breach)
{
    struct rig rig = rig_open(&(struct weir__mock_options){.clock = WEIR__MOCK_AUTOMATIC});
    cr_expect_eq(rig.ops->host_function(rig.stream, calls_back, &rig), WEIR_OK);
    rig_close(&rig, "fill: overlaps with another call");
}

/* ---- positions ---- */

Test(mock, positions_kind_is_done_at_once_and_counts)
{
    struct rig rig = rig_open(&(struct weir__mock_options){.positions = true});
    atomic_int count = 0;
    uint64_t position;
    void *other;
    cr_assert_eq(rig.ops->stream_create(rig.device, &told, 0, &other), WEIR_OK);
    cr_assert_eq(rig.ops->host_function(rig.stream, increment, &count), WEIR_OK);
    cr_expect_eq(atomic_load(&count), 1);
    cr_assert_eq(rig.ops->record(rig.stream, &position), WEIR_OK);
    cr_expect_eq(position, 1);
    cr_expect_eq(rig.ops->completed(rig.stream, NULL), 1);
    cr_assert_eq(rig.ops->position_wait(other, &rig.stream, &position, 1), WEIR_OK);
    position = 2;
    cr_expect_eq(rig.ops->position_wait(other, &rig.stream, &position, 1), WEIR_E_INVALID);
    cr_assert_eq(rig.ops->notify(rig.stream, 1), WEIR_OK);
    cr_expect_eq(atomic_load(&told), 1);
    cr_expect_eq(rig.ops->sync(rig.stream, 1), WEIR_OK);
    rig.ops->stream_destroy(other);
    cr_expect_eq(weir__mock_calls(rig.mock, "position_wait"), 1);
    cr_expect_eq(weir__mock_calls(rig.mock, "record"), 1);
    cr_expect_eq(weir__mock_calls(rig.mock, "host_function"), 1);
    rig_close(&rig, NULL);
}

static int fails(void *arg)
{
    (void)arg;
    return 5;
}

Test(mock, positions_kind_keeps_the_newest_failure)
{
    struct rig rig = rig_open(&(struct weir__mock_options){.positions = true});
    uint64_t position;
    cr_assert_eq(rig.ops->record(rig.stream, &position), WEIR_OK);
    cr_assert_eq(rig.ops->host_function(rig.stream, fails, NULL), WEIR_OK);
    cr_assert_eq(rig.ops->record(rig.stream, &position), WEIR_OK);
    cr_expect_eq(rig.ops->status(rig.stream, 1), WEIR_OK);
    cr_expect_eq(rig.ops->status(rig.stream, 2), WEIR_E_TASK);
    cr_expect_eq(atomic_load(rig.info.failures), 1);
    rig_close(&rig, NULL);
}

Test(mock, positions_kind_may_only_count)
{
    struct rig rig = rig_open(&(struct weir__mock_options){.positions = true, .count_only = true});
    atomic_int count = 0;
    cr_assert_eq(rig.ops->host_function(rig.stream, increment, &count), WEIR_OK);
    cr_expect_eq(atomic_load(&count), 0);
    cr_expect_eq(weir__mock_calls(rig.mock, "host_function"), 1);
    rig_close(&rig, NULL);
}

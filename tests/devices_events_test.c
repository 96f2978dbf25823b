/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <criterion/criterion.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <devices/mock/mock.h>

/* A mock behind the adapter, one or two devices open. */
struct rig {
    struct weir__mock *mock;
    const struct weir__device_ops *ops;
    void *backend;
    void *device[2];
    struct weir__device_info info[2];
    uint32_t devices;
};

/* What stream_create() gets as owner. */
struct owner {
    atomic_int notices;
    _Atomic uint64_t reached;
};

static void note(void *arg, uint64_t reached)
{
    struct owner *owner = arg;
    atomic_store(&owner->reached, reached);
    atomic_fetch_add(&owner->notices, 1);
}

static const struct weir__device_notice notice = {.reached = note};

static void rig_open(struct rig *rig, const struct weir__mock_options *options)
{
    *rig = (struct rig){.devices = options && options->devices == 2 ? 2 : 1};
    cr_assert_eq(weir__mock_create(options, &rig->mock), WEIR_OK);
    cr_assert_eq(weir__device_adapt(weir__mock_ops(rig->mock), rig->mock, &rig->ops, &rig->backend), WEIR_OK);
    cr_assert_eq(weir__device_ops_check(rig->ops, NULL), WEIR_OK);
    for (uint32_t i = 0; i < rig->devices; i++)
        cr_assert_eq(rig->ops->device_open(rig->backend, i, &notice, &rig->info[i], &rig->device[i]), WEIR_OK);
}

static void rig_close(struct rig *rig)
{
    for (uint32_t i = 0; i < rig->devices; i++) rig->ops->device_close(rig->device[i]);
    weir__device_unadapt(rig->ops, rig->backend);
    cr_expect_str_eq(weir__mock_violations(rig->mock), "");
    cr_expect_eq(weir__mock_objects(rig->mock), 0);
    weir__mock_destroy(rig->mock);
}

static void *stream_new(struct rig *rig, uint32_t device, struct owner *owner)
{
    void *stream;
    cr_assert_eq(rig->ops->stream_create(rig->device[device], owner, 0, &stream), WEIR_OK);
    return stream;
}

static int increment(void *arg)
{
    atomic_fetch_add((atomic_int *)arg, 1);
    return 0;
}

static int fail(void *arg)
{
    (void)arg;
    return WEIR_E_IMAGE;
}

static uint64_t work_and_record(struct rig *rig, void *stream, atomic_int *counter)
{
    uint64_t position = 0;
    cr_assert_eq(rig->ops->host_function(stream, increment, counter), WEIR_OK);
    cr_assert_eq(rig->ops->record(stream, &position), WEIR_OK);
    return position;
}

Test(events, table_with_positions_comes_back_unchanged)
{
    struct weir__mock *mock;
    const struct weir__device_ops *ops;
    void *backend;
    cr_assert_eq(weir__mock_create(&(struct weir__mock_options){.positions = true}, &mock), WEIR_OK);
    cr_assert_eq(weir__device_adapt(weir__mock_ops(mock), mock, &ops, &backend), WEIR_OK);
    cr_expect_eq(ops, weir__mock_ops(mock));
    cr_expect_eq(backend, mock);
    weir__device_unadapt(ops, backend);
    weir__mock_destroy(mock);
}

Test(events, positions_count_and_are_reached_in_order)
{
    struct rig rig;
    struct owner owner = {0};
    atomic_int counter = 0;
    rig_open(&rig, NULL);
    void *stream = stream_new(&rig, 0, &owner);
    for (uint64_t i = 1; i <= 5; i++) cr_assert_eq(work_and_record(&rig, stream, &counter), i);
    for (uint64_t i = 0; i <= 5; i++) {
        int status = 1;
        cr_expect_eq(rig.ops->completed(stream, &status), i);
        cr_expect_eq(status, WEIR_OK);
        cr_expect_eq(atomic_load(&counter), (int)i);
        weir__mock_advance(rig.mock, 1);
    }
    rig.ops->stream_destroy(stream);
    rig_close(&rig);
}

Test(events, events_are_used_again_only_after_completion)
{
    struct rig rig;
    struct owner owner = {0};
    atomic_int counter = 0;
    rig_open(&rig, NULL);
    void *stream = stream_new(&rig, 0, &owner);
    for (int i = 0; i < 1000; i++) {
        work_and_record(&rig, stream, &counter);
        if (i % 10 == 9) weir__mock_run(rig.mock); /* nobody asks: the record itself looks */
    }
    cr_expect_leq(weir__mock_calls(rig.mock, "event_create"), 64);
    cr_expect_eq(rig.ops->completed(stream, NULL), 1000);
    for (int i = 0; i < 500; i++) work_and_record(&rig, stream, &counter); /* all pending: the ring grows */
    cr_expect_eq(rig.ops->completed(stream, NULL), 1000);
    weir__mock_advance(rig.mock, 250);
    cr_expect_eq(rig.ops->completed(stream, NULL), 1250);
    weir__mock_run(rig.mock);
    cr_expect_eq(rig.ops->completed(stream, NULL), 1500);
    rig.ops->stream_destroy(stream);
    rig_close(&rig);
}

Test(events, stream_waits_for_a_position_of_another)
{
    struct rig rig;
    struct owner owner = {0};
    atomic_int first = 0, second = 0;
    rig_open(&rig, &(struct weir__mock_options){.devices = 2});
    cr_expect(rig.info[0].features & WEIR__DEVICE_CROSS_WAIT);
    void *a = stream_new(&rig, 0, &owner), *b = stream_new(&rig, 1, &owner);
    work_and_record(&rig, a, &first);
    uint64_t position = work_and_record(&rig, a, &first);
    cr_assert_eq(rig.ops->position_wait(b, &a, &position, 1), WEIR_OK);
    work_and_record(&rig, b, &second);
    weir__mock_advance(rig.mock, 2);
    cr_expect_eq(atomic_load(&first), 2);
    cr_expect_eq(atomic_load(&second), 0);
    weir__mock_advance(rig.mock, 1);
    cr_expect_eq(atomic_load(&second), 1);
    rig.ops->stream_destroy(a);
    rig.ops->stream_destroy(b);
    rig_close(&rig);
}

Test(events, wait_for_what_is_reached_costs_no_call)
{
    struct rig rig;
    struct owner owner = {0};
    atomic_int counter = 0;
    rig_open(&rig, NULL);
    void *a = stream_new(&rig, 0, &owner), *b = stream_new(&rig, 0, &owner);
    uint64_t position = work_and_record(&rig, a, &counter);
    weir__mock_run(rig.mock);
    cr_expect_eq(rig.ops->completed(a, NULL), 1);
    cr_assert_eq(rig.ops->position_wait(b, &a, &position, 1), WEIR_OK);
    cr_expect_eq(weir__mock_calls(rig.mock, "event_wait"), 0);
    rig.ops->stream_destroy(a);
    rig.ops->stream_destroy(b);
    rig_close(&rig);
}

Test(events, many_positions_are_waited_for_in_one_call)
{
    enum { PRODUCERS = 40 };
    struct rig rig;
    struct owner owner = {0};
    atomic_int counter = 0, last = 0;
    void *streams[PRODUCERS];
    uint64_t positions[PRODUCERS];
    rig_open(&rig, &(struct weir__mock_options){.duration = 50, .random_seed = 7});
    void *consumer = stream_new(&rig, 0, &owner);
    for (int i = 0; i < PRODUCERS; i++) {
        streams[i] = stream_new(&rig, 0, &owner);
        positions[i] = work_and_record(&rig, streams[i], &counter);
    }
    cr_assert_eq(rig.ops->position_wait(consumer, streams, positions, PRODUCERS), WEIR_OK);
    cr_expect_eq(weir__mock_calls(rig.mock, "event_wait"), 1);
    work_and_record(&rig, consumer, &last);
    while (!atomic_load(&last)) weir__mock_advance(rig.mock, 1);
    cr_expect_eq(atomic_load(&counter), PRODUCERS);
    weir__mock_run(rig.mock);
    for (int i = 0; i < PRODUCERS; i++) rig.ops->stream_destroy(streams[i]);
    rig.ops->stream_destroy(consumer);
    rig_close(&rig);
}

Test(events, failure_of_a_host_function_belongs_to_its_stretch)
{
    struct rig rig;
    struct owner owner = {0};
    atomic_int counter = 0;
    uint64_t position;
    rig_open(&rig, NULL);
    void *stream = stream_new(&rig, 0, &owner);
    work_and_record(&rig, stream, &counter);
    cr_assert_eq(rig.ops->host_function(stream, fail, NULL), WEIR_OK);
    cr_assert_eq(rig.ops->record(stream, &position), WEIR_OK);
    work_and_record(&rig, stream, &counter);
    weir__mock_run(rig.mock);
    cr_expect_eq(rig.ops->completed(stream, NULL), 3);
    cr_expect_eq(atomic_load(rig.info[0].failures), 1);
    cr_expect_eq(rig.ops->status(stream, 1), WEIR_OK);
    cr_expect_eq(rig.ops->status(stream, 2), WEIR_E_IMAGE);
    cr_expect_eq(rig.ops->status(stream, 3), WEIR_OK);
    rig.ops->forget(stream, 1);
    cr_expect_eq(rig.ops->status(stream, 2), WEIR_E_IMAGE);
    rig.ops->forget(stream, 2);
    cr_expect_eq(rig.ops->status(stream, 2), WEIR_OK);
    rig.ops->stream_destroy(stream);
    rig_close(&rig);
}

Test(events, failure_of_queued_work_belongs_to_its_stretch)
{
    struct rig rig;
    struct owner owner = {0};
    atomic_int counter = 0;
    rig_open(&rig, NULL);
    void *stream = stream_new(&rig, 0, &owner);
    weir__mock_fail_item(rig.mock, 2, WEIR_E_SYSTEM);
    for (int i = 0; i < 3; i++) work_and_record(&rig, stream, &counter);
    weir__mock_run(rig.mock);
    cr_expect_eq(rig.ops->completed(stream, NULL), 3);
    cr_expect_eq(atomic_load(rig.info[0].failures), 1);
    cr_expect_eq(atomic_load(&counter), 2);
    cr_expect_eq(rig.ops->status(stream, 1), WEIR_OK);
    cr_expect_eq(rig.ops->status(stream, 2), WEIR_E_SYSTEM);
    cr_expect_eq(rig.ops->status(stream, 3), WEIR_OK);
    rig.ops->forget(stream, 3);
    cr_expect_eq(rig.ops->status(stream, 2), WEIR_OK);
    rig.ops->stream_destroy(stream);
    rig_close(&rig);
}

Test(events, sync_returns_when_the_position_is_reached)
{
    struct rig rig;
    struct owner owner = {0};
    atomic_int counter = 0;
    rig_open(&rig, &(struct weir__mock_options){.clock = WEIR__MOCK_AUTO_ADVANCE});
    void *stream = stream_new(&rig, 0, &owner);
    for (int i = 0; i < 3; i++) work_and_record(&rig, stream, &counter);
    cr_expect_eq(rig.ops->sync(stream, 2), WEIR_OK);
    cr_expect_eq(atomic_load(&counter), 2);
    cr_expect_eq(rig.ops->completed(stream, NULL), 2);
    cr_expect_eq(rig.ops->sync(stream, 3), WEIR_OK);
    rig.ops->stream_destroy(stream);
    rig_close(&rig);
}

/* Each of the four ways a notice can come about. */
static const struct weir__mock_options notice_ways[] = {
    {.clock = WEIR__MOCK_TICKER},
    {.clock = WEIR__MOCK_TICKER, .no_event_notify = true},
    {.clock = WEIR__MOCK_TICKER, .no_events = true},
    {.clock = WEIR__MOCK_AUTOMATIC},
};
enum { NOTICE_WAYS = sizeof notice_ways / sizeof notice_ways[0] };

static void wait_for_notices(struct owner *owner, int n)
{
    while (atomic_load(&owner->notices) < n) sched_yield();
}

Test(events, each_notify_is_answered_once_whatever_the_backend_can)
{
    for (size_t way = 0; way < NOTICE_WAYS; way++) {
        struct rig rig;
        struct owner owners[3] = {0};
        void *streams[3];
        atomic_int counter = 0;
        rig_open(&rig, &notice_ways[way]);
        for (int s = 0; s < 3; s++) streams[s] = stream_new(&rig, 0, &owners[s]);
        for (int i = 1; i <= 50; i++)
            for (int s = 0; s < 3; s++)
                cr_assert_eq(rig.ops->notify(streams[s], work_and_record(&rig, streams[s], &counter)), WEIR_OK);
        for (int s = 0; s < 3; s++) {
            wait_for_notices(&owners[s], 50);
            cr_expect_eq(rig.ops->completed(streams[s], NULL), 50, "way %zu", way);
        }
        cr_expect_eq(atomic_load(&counter), 150);
        for (int s = 0; s < 3; s++) rig.ops->stream_destroy(streams[s]);
        for (int s = 0; s < 3; s++) cr_expect_eq(atomic_load(&owners[s].notices), 50, "way %zu", way);
        rig_close(&rig);
    }
}

Test(events, notify_of_a_reached_position_is_answered_at_once)
{
    struct rig rig;
    struct owner owner = {0};
    atomic_int counter = 0;
    rig_open(&rig, NULL);
    void *stream = stream_new(&rig, 0, &owner);
    uint64_t position = work_and_record(&rig, stream, &counter);
    weir__mock_run(rig.mock);
    cr_assert_eq(rig.ops->notify(stream, position), WEIR_OK);
    cr_expect_eq(atomic_load(&owner.notices), 1);
    cr_expect_eq(atomic_load(&owner.reached), 1);
    rig.ops->stream_destroy(stream);
    rig_close(&rig);
}

Test(events, backend_without_events_waits_through_the_host)
{
    struct rig rig;
    struct owner owner = {0};
    atomic_int counter = 0;
    rig_open(&rig, &(struct weir__mock_options){.no_events = true, .clock = WEIR__MOCK_AUTO_ADVANCE});
    cr_expect_eq(rig.info[0].features & (WEIR__DEVICE_WAIT | WEIR__DEVICE_CROSS_WAIT | WEIR__DEVICE_FOREIGN), 0);
    cr_expect_null(rig.ops->position_wait);
    cr_expect_null(rig.ops->foreign_wait);
    void *stream = stream_new(&rig, 0, &owner);
    work_and_record(&rig, stream, &counter);
    weir__mock_fail_item(rig.mock, 1, WEIR_E_SYSTEM);
    work_and_record(&rig, stream, &counter);
    cr_expect_eq(rig.ops->completed(stream, NULL), 0);
    cr_expect_eq(rig.ops->sync(stream, 2), WEIR_OK);
    cr_expect_eq(rig.ops->completed(stream, NULL), 2);
    cr_expect_eq(atomic_load(rig.info[0].failures), 1);
    cr_expect_eq(rig.ops->status(stream, 2), WEIR_E_SYSTEM);
    rig.ops->forget(stream, 2);
    work_and_record(&rig, stream, &counter);
    cr_expect_eq(rig.ops->sync(stream, 3), WEIR_OK);
    cr_expect_eq(rig.ops->status(stream, 3), WEIR_OK);
    cr_expect_eq(atomic_load(&counter), 2);
    rig.ops->stream_destroy(stream);
    rig_close(&rig);
}

Test(events, lost_device_reaches_everything_and_tells)
{
    static const struct weir__mock_options ways[] = {{0}, {.no_event_notify = true, .devices = 2}, {.no_events = true}};
    for (size_t way = 0; way < 3; way++) {
        struct rig rig;
        struct owner owners[2] = {0};
        atomic_int counter = 0;
        uint64_t position = 0;
        int status = 0;
        rig_open(&rig, &ways[way]);
        void *a = stream_new(&rig, 0, &owners[0]), *b = stream_new(&rig, 0, &owners[1]);
        for (int i = 0; i < 4; i++) {
            cr_assert_eq(rig.ops->notify(a, work_and_record(&rig, a, &counter)), WEIR_OK);
            cr_assert_eq(rig.ops->notify(b, work_and_record(&rig, b, &counter)), WEIR_OK);
        }
        weir__mock_lose_device(rig.mock, 0);
        wait_for_notices(&owners[0], 4);
        wait_for_notices(&owners[1], 4);
        cr_expect_eq(atomic_load(&counter), 0);
        cr_expect_eq(rig.ops->completed(a, &status), 4);
        cr_expect_geq(atomic_load(rig.info[0].failures), 1);
        cr_expect_eq(status, WEIR_E_DEVICE);
        cr_expect_eq(rig.ops->status(a, 4), WEIR_E_DEVICE);
        cr_expect_eq(rig.ops->sync(b, 4), WEIR_E_DEVICE);
        cr_expect_eq(rig.ops->record(a, &position), WEIR_E_DEVICE);
        cr_expect_eq(position, 0);
        cr_expect(rig.ops->last_error(rig.device[0])[0]);
        cr_assert_eq(rig.ops->notify(a, 4), WEIR_OK);
        wait_for_notices(&owners[0], 5);
        rig.ops->stream_destroy(a);
        rig.ops->stream_destroy(b);
        rig_close(&rig);
    }
}

Test(events, what_was_reached_before_the_loss_stays_good)
{
    struct rig rig;
    struct owner owner = {0};
    atomic_int counter = 0;
    rig_open(&rig, NULL);
    void *stream = stream_new(&rig, 0, &owner);
    work_and_record(&rig, stream, &counter);
    weir__mock_run(rig.mock);
    cr_expect_eq(rig.ops->completed(stream, NULL), 1);
    weir__mock_fail_item(rig.mock, 1, WEIR_E_DEVICE);
    work_and_record(&rig, stream, &counter);
    weir__mock_run(rig.mock);
    int status = 0;
    cr_expect_eq(rig.ops->completed(stream, &status), 2);
    cr_expect_eq(status, WEIR_E_DEVICE);
    cr_expect_eq(rig.ops->status(stream, 1), WEIR_OK);
    cr_expect_eq(rig.ops->status(stream, 2), WEIR_E_DEVICE);
    rig.ops->stream_destroy(stream);
    rig_close(&rig);
}

Test(events, failed_calls_change_nothing)
{
    struct rig rig;
    struct owner owner = {0};
    atomic_int counter = 0;
    uint64_t position = 77;
    rig_open(&rig, NULL);
    void *a = stream_new(&rig, 0, &owner), *b = stream_new(&rig, 0, &owner), *none = NULL;

    cr_assert(weir__mock_fail(rig.mock, "stream_create", 1, WEIR_E_NO_MEMORY));
    cr_expect_eq(rig.ops->stream_create(rig.device[0], &owner, 0, &none), WEIR_E_NO_MEMORY);
    cr_expect_null(none);
    cr_expect_str_eq(rig.ops->last_error(rig.device[0]), "mock: planned failure of stream_create");

    cr_assert(weir__mock_fail(rig.mock, "event_create", 1, WEIR_E_NO_MEMORY));
    cr_expect_eq(rig.ops->record(a, &position), WEIR_E_NO_MEMORY);
    cr_assert(weir__mock_fail(rig.mock, "event_record", 1, WEIR_E_SYSTEM));
    cr_expect_eq(rig.ops->record(a, &position), WEIR_E_SYSTEM);
    cr_expect_eq(position, 77);
    cr_expect_eq(rig.ops->completed(a, NULL), 0);
    cr_expect_eq(work_and_record(&rig, a, &counter), 1);

    position = 1;
    cr_assert(weir__mock_fail(rig.mock, "event_wait", 1, WEIR_E_NO_MEMORY));
    cr_expect_eq(rig.ops->position_wait(b, &a, &position, 1), WEIR_E_NO_MEMORY);
    cr_assert(weir__mock_fail(rig.mock, "event_notify", 1, WEIR_E_NO_MEMORY));
    cr_expect_eq(rig.ops->notify(a, 1), WEIR_E_NO_MEMORY);
    cr_assert(weir__mock_fail(rig.mock, "host_function", 1, WEIR_E_NO_MEMORY));
    cr_expect_eq(rig.ops->host_function(a, increment, &counter), WEIR_E_NO_MEMORY);

    weir__mock_run(rig.mock);
    cr_expect_eq(rig.ops->completed(a, NULL), 1);
    cr_expect_eq(rig.ops->status(a, 1), WEIR_OK);
    cr_expect_eq(atomic_load(&counter), 1);
    cr_expect_eq(atomic_load(&owner.notices), 0);
    rig.ops->stream_destroy(a);
    rig.ops->stream_destroy(b);
    rig_close(&rig);
}

Test(events, part_of_a_batch_of_events_is_enough)
{
    struct rig rig;
    struct owner owner = {0};
    atomic_int counter = 0;
    rig_open(&rig, NULL);
    void *stream = stream_new(&rig, 0, &owner);
    cr_assert(weir__mock_fail(rig.mock, "event_create", 3, WEIR_E_NO_MEMORY));
    cr_expect_eq(work_and_record(&rig, stream, &counter), 1);
    cr_expect_eq(work_and_record(&rig, stream, &counter), 2);
    cr_expect_eq(work_and_record(&rig, stream, &counter), 3);
    weir__mock_run(rig.mock);
    rig.ops->stream_destroy(stream);
    rig_close(&rig);
}

Test(events, reserved_record_needs_no_event)
{
    struct rig rig;
    struct owner owner = {0};
    uint64_t position;
    rig_open(&rig, NULL);
    void *stream = stream_new(&rig, 0, &owner);
    cr_assert_eq(rig.ops->reserve(stream), WEIR_OK);
    cr_assert(weir__mock_fail(rig.mock, "event_create", 1, WEIR_E_NO_MEMORY));
    cr_expect_eq(rig.ops->record(stream, &position), WEIR_OK);
    weir__mock_run(rig.mock);
    rig.ops->stream_destroy(stream);
    rig_close(&rig);
}

Test(events, foreign_work_is_ordered_both_ways)
{
    struct rig rig;
    struct owner owner = {0};
    atomic_int counter = 0, foreign_counter = 0, after = 0;
    void *foreign, *event;
    rig_open(&rig, NULL);
    cr_expect(rig.info[0].features & WEIR__DEVICE_FOREIGN);
    void *stream = stream_new(&rig, 0, &owner);
    cr_assert_eq(weir__mock_stream_create(rig.mock, 0, &foreign), WEIR_OK);
    cr_assert_eq(weir__mock_event_create(rig.mock, 0, &event), WEIR_OK);
    cr_assert_eq(weir__mock_stream_function(foreign, increment, &foreign_counter), WEIR_OK);
    cr_assert_eq(weir__mock_event_record(foreign, event), WEIR_OK);
    cr_assert_eq(rig.ops->foreign_wait(stream, event), WEIR_OK);
    uint64_t position = work_and_record(&rig, stream, &counter);
    cr_assert_eq(rig.ops->foreign_signal(stream, position, foreign), WEIR_OK);
    cr_assert_eq(weir__mock_stream_function(foreign, increment, &after), WEIR_OK);
    weir__mock_advance(rig.mock, 1);
    cr_expect_eq(atomic_load(&foreign_counter) * 100 + atomic_load(&counter) * 10 + atomic_load(&after), 100);
    weir__mock_advance(rig.mock, 1);
    cr_expect_eq(atomic_load(&foreign_counter) * 100 + atomic_load(&counter) * 10 + atomic_load(&after), 110);
    weir__mock_advance(rig.mock, 1);
    cr_expect_eq(atomic_load(&after), 1);
    weir__mock_event_destroy(event);
    weir__mock_stream_destroy(foreign);
    rig.ops->stream_destroy(stream);
    rig_close(&rig);
}

Test(events, peer_copies_and_modules_pass_through)
{
    struct rig rig;
    struct owner owner = {0};
    void *from, *to, *module, *kernel = NULL;
    char back[8] = {0};
    rig_open(&rig, &(struct weir__mock_options){.devices = 2, .clock = WEIR__MOCK_AUTOMATIC});
    void *stream = stream_new(&rig, 0, &owner);
    cr_assert_eq(rig.ops->alloc(rig.device[0], 8, &to), WEIR_OK);
    cr_assert_eq(rig.ops->alloc(rig.device[1], 8, &from), WEIR_OK);
    cr_assert_eq(rig.ops->fill(stream, from, 7, 8), WEIR_OK);
    struct weir__copy copy = {.kind = WEIR__COPY_PEER, .to = to, .from = from, .bytes = 8, .peer = rig.device[1]};
    cr_assert_eq(rig.ops->copy(stream, &copy), WEIR_OK);
    copy = (struct weir__copy){.kind = WEIR__COPY_TO_HOST, .to = back, .from = to, .bytes = 8};
    cr_assert_eq(rig.ops->copy(stream, &copy), WEIR_OK);
    cr_expect_eq(back[7], 7);
    cr_assert_eq(rig.ops->module_load(rig.device[0], "", 0, &module), WEIR_OK);
    cr_expect_eq(rig.ops->module_symbol(module, "nothing", &kernel, NULL), WEIR_E_NOT_FOUND);
    cr_expect_null(kernel);
    rig.ops->module_unload(module);
    cr_assert_eq(rig.ops->free_on_stream(stream, to), WEIR_OK);
    cr_assert_eq(rig.ops->free(rig.device[1], from), WEIR_OK);
    rig.ops->stream_destroy(stream);
    rig_close(&rig);
}

/* ---- races: several threads submit, wait for each other's newest position, and ask ---- */

enum { RACERS = 3, ROUNDS = 1500 };

struct race {
    struct rig rig;
    void *streams[RACERS];
    struct owner owners[RACERS];
    _Atomic uint64_t newest[RACERS];
    _Atomic uint64_t done[RACERS]; /* by the work itself */
    atomic_int wrong, asked[RACERS];
    atomic_bool stop;
};

struct job {
    struct race *race;
    int stream;
    uint64_t position, behind[RACERS];
};

static int job_run(void *arg)
{
    struct job *job = arg;
    for (int s = 0; s < RACERS; s++)
        if (atomic_load(&job->race->done[s]) < job->behind[s]) atomic_fetch_add(&job->race->wrong, 1);
    atomic_store(&job->race->done[job->stream], job->position);
    free(job);
    return 0;
}

struct racer {
    struct race *race;
    int self;
};

static void *submit(void *arg)
{
    struct racer *racer = arg;
    struct race *race = racer->race;
    int self = racer->self;
    void *stream = race->streams[self];
    bool waits = race->rig.ops->position_wait != NULL;
    for (uint64_t i = 1; i <= ROUNDS; i++) {
        struct job *job = calloc(1, sizeof *job);
        job->race = race;
        job->stream = self;
        job->position = i;
        job->behind[self] = i - 1;
        int other = (self + 1 + (int)(i % (RACERS - 1))) % RACERS;
        uint64_t position = atomic_load(&race->newest[other]);
        if (position && waits) {
            job->behind[other] = position;
            if (race->rig.ops->position_wait(stream, &race->streams[other], &position, 1))
                atomic_fetch_add(&race->wrong, 1);
        }
        if (race->rig.ops->host_function(stream, job_run, job)) atomic_fetch_add(&race->wrong, 1);
        if (race->rig.ops->record(stream, &position) || position != i) atomic_fetch_add(&race->wrong, 1);
        atomic_store(&race->newest[self], i);
        if (i % 7 == 0) {
            atomic_fetch_add(&race->asked[self], 1);
            if (race->rig.ops->notify(stream, i)) atomic_fetch_add(&race->wrong, 1);
        }
        if (i % 64 == 0 && race->rig.ops->sync(stream, i - 32)) atomic_fetch_add(&race->wrong, 1);
        if (i % 16 == 0) race->rig.ops->forget(stream, race->rig.ops->completed(stream, NULL));
    }
    return NULL;
}

static void *ask(void *arg)
{
    struct race *race = arg;
    while (!atomic_load(&race->stop)) {
        for (int s = 0; s < RACERS; s++) {
            uint64_t reached = race->rig.ops->completed(race->streams[s], NULL);
            if (atomic_load(&race->done[s]) < reached) atomic_fetch_add(&race->wrong, 1);
            if (reached && race->rig.ops->status(race->streams[s], reached)) atomic_fetch_add(&race->wrong, 1);
        }
        sched_yield();
    }
    return NULL;
}

Test(events, submitters_waiters_and_askers_race)
{
    for (size_t way = 0; way < NOTICE_WAYS; way++) {
        static struct race race;
        struct racer racers[RACERS];
        pthread_t threads[RACERS], asker;
        race = (struct race){0};
        rig_open(&race.rig, &notice_ways[way]);
        for (int s = 0; s < RACERS; s++) race.streams[s] = stream_new(&race.rig, 0, &race.owners[s]);
        for (int s = 0; s < RACERS; s++) {
            racers[s] = (struct racer){&race, s};
            cr_assert_eq(pthread_create(&threads[s], NULL, submit, &racers[s]), 0);
        }
        cr_assert_eq(pthread_create(&asker, NULL, ask, &race), 0);
        for (int s = 0; s < RACERS; s++) pthread_join(threads[s], NULL);
        for (int s = 0; s < RACERS; s++) {
            cr_expect_eq(race.rig.ops->sync(race.streams[s], ROUNDS), WEIR_OK);
            wait_for_notices(&race.owners[s], atomic_load(&race.asked[s]));
        }
        atomic_store(&race.stop, true);
        pthread_join(asker, NULL);
        cr_expect_eq(atomic_load(&race.wrong), 0, "way %zu", way);
        for (int s = 0; s < RACERS; s++) {
            race.rig.ops->stream_destroy(race.streams[s]);
            cr_expect_eq(atomic_load(&race.owners[s].notices), atomic_load(&race.asked[s]));
        }
        rig_close(&race.rig);
    }
}

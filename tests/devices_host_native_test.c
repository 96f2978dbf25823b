/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <weir/host.h>

#include "devices_host_rig.h"

TestSuite(host_native, .timeout = 60);

static void *own_stream(struct rig *rig, uint32_t device)
{
    void *stream = NULL;
    must(weir__host_stream_open(rig->devices[device], &stream));
    return stream;
}

static int fail_with(void *arg)
{
    return (int)(intptr_t)arg;
}

Test(host_native, own_stream_starts_without_flush)
{
    struct rig rig;
    rig_open(&rig, 1);
    _Atomic int count = 0;
    void *stream = own_stream(&rig, 0);
    must(weir_host_enqueue(stream, count_up, &count));
    until(&count, 1);
    must(weir_host_stream_wait(stream));
    weir_host_stream_destroy(stream);
    weir_host_stream_destroy(NULL);
    rig_close(&rig);
}

Test(host_native, wrong_handles_are_refused)
{
    struct rig rig;
    rig_open(&rig, 1);
    _Alignas(64) uint64_t nothing[64] = {0};
    void *stream = own_stream(&rig, 0), *out = NULL;
    cr_assert_eq(weir_host_enqueue(NULL, count_up, NULL), WEIR_E_INVALID);
    cr_assert_eq(weir_host_enqueue(nothing, count_up, NULL), WEIR_E_INVALID);
    cr_assert_eq(weir_host_enqueue(nothing + 1, count_up, NULL), WEIR_E_INVALID);
    cr_assert_eq(weir_host_enqueue(stream, NULL, NULL), WEIR_E_INVALID);
    cr_assert_eq(weir_host_event_record(NULL, &out), WEIR_E_INVALID);
    cr_assert_eq(weir_host_event_record(stream, NULL), WEIR_E_INVALID);
    cr_assert_eq(weir_host_stream_wait(NULL), WEIR_E_INVALID);
    cr_assert_eq(weir__host_stream_open(NULL, &out), WEIR_E_INVALID);
    cr_assert_eq(OPS->foreign_wait(stream, NULL), WEIR_E_INVALID);
    cr_assert_eq(OPS->foreign_wait(stream, nothing), WEIR_E_INVALID);
    cr_assert_neq(*OPS->last_error(rig.devices[0]), 0);
    weir_host_stream_destroy(stream);
    rig_close(&rig);
}

Test(host_native, wait_returns_the_first_failure_since_the_last_one)
{
    struct rig rig;
    rig_open(&rig, 1);
    void *stream = own_stream(&rig, 0), *event = NULL;
    must(weir_host_enqueue(stream, fail_with, NULL));
    must(weir_host_enqueue(stream, fail_with, (void *)(intptr_t)-70));
    must(weir_host_event_record(stream, &event));
    must(weir_host_enqueue(stream, fail_with, (void *)(intptr_t)-71));
    cr_assert_eq(weir_host_stream_wait(stream), -70);
    cr_assert_eq(weir_host_stream_wait(stream), 0);
    must(weir_host_enqueue(stream, fail_with, (void *)(intptr_t)-72));
    cr_assert_eq(weir_host_stream_wait(stream), -72);
    weir_host_event_destroy(event);
    weir_host_stream_destroy(stream);
    rig_close(&rig);
}

Test(host_native, event_inside_a_stretch_keeps_its_failure)
{
    struct rig rig;
    rig_open(&rig, 1);
    void *stream = rig_stream(&rig, 0), *event = NULL, *native = OPS->stream_native(stream);
    must(weir_host_enqueue(native, fail_with, (void *)(intptr_t)-70));
    must(weir_host_event_record(native, &event));
    cr_assert_eq(weir_host_stream_wait(native), -70);
    uint64_t position = rig_record(stream);
    must(OPS->sync(stream, position));
    cr_assert_eq(OPS->status(stream, position), -70);
    position = rig_record(stream);
    must(OPS->sync(stream, position));
    cr_assert_eq(OPS->status(stream, position), 0);
    weir_host_event_destroy(event);
    OPS->stream_destroy(stream);
    rig_close(&rig);
}

Test(host_native, stream_waits_for_an_event_that_was_destroyed)
{
    struct rig rig;
    rig_open(&rig, 2);
    struct gate gate = {0};
    _Atomic int count = 0;
    void *own = own_stream(&rig, 0), *stream = rig_stream(&rig, 1), *event = NULL;
    must(weir_host_enqueue(own, gate_pass, &gate));
    must(weir_host_event_record(own, &event));
    must(OPS->foreign_wait(stream, event));
    weir_host_event_destroy(event);
    must(OPS->host_function(stream, count_up, &count));
    uint64_t position = rig_record(stream);
    until(&gate.arrived, 1);
    cr_assert_eq(atomic_load(&count), 0);
    cr_assert(OPS->completed(stream, NULL) < position);
    atomic_store(&gate.open, 1);
    must(OPS->sync(stream, position));
    cr_assert_eq(atomic_load(&count), 1);
    OPS->stream_destroy(stream);
    weir_host_stream_destroy(own);
    rig_close(&rig);
}

Test(host_native, event_outlives_its_stream_and_device)
{
    struct rig rig, second;
    rig_open(&rig, 1);
    void *own = own_stream(&rig, 0), *event = NULL;
    _Atomic int count = 0;
    must(weir_host_enqueue(own, count_up, &count));
    must(weir_host_event_record(own, &event));
    weir_host_stream_destroy(own);
    cr_assert_eq(atomic_load(&count), 1, "destroy runs what is queued");
    /* The memory of the stream may serve again; the event counts as reached all the same. */
    struct gate gate = {0};
    void *again = own_stream(&rig, 0), *stream = rig_stream(&rig, 0);
    must(weir_host_enqueue(again, gate_pass, &gate));
    must(OPS->foreign_wait(stream, event));
    uint64_t position = rig_record(stream);
    must(OPS->sync(stream, position));
    OPS->stream_destroy(stream);
    atomic_store(&gate.open, 1);
    weir_host_stream_destroy(again);
    rig_close(&rig);
    rig_open(&second, 1);
    stream = rig_stream(&second, 0);
    must(OPS->foreign_wait(stream, event));
    position = rig_record(stream);
    must(OPS->sync(stream, position));
    OPS->stream_destroy(stream);
    weir_host_event_destroy(event);
    weir_host_event_destroy(NULL);
    rig_close(&second);
}

Test(host_native, foreign_stream_waits_for_ours)
{
    struct rig rig;
    rig_open(&rig, 2);
    struct gate gate = {0};
    _Atomic int count = 0;
    void *stream = rig_stream(&rig, 0), *own = own_stream(&rig, 1);
    uint64_t position = 0;
    must(OPS->host_function(stream, gate_pass, &gate));
    must(OPS->record(stream, &position)); /* not flushed: the waiter starts it */
    must(OPS->foreign_signal(stream, position, own));
    must(weir_host_enqueue(own, count_up, &count));
    until(&gate.arrived, 1);
    cr_assert_eq(atomic_load(&count), 0);
    atomic_store(&gate.open, 1);
    must(weir_host_stream_wait(own));
    cr_assert_eq(atomic_load(&count), 1);
    weir_host_stream_destroy(own);
    OPS->stream_destroy(stream);
    rig_close(&rig);
}

static int nested_launch(void *arg)
{
    void **pair = arg;
    return weir_host_enqueue(pair[0], count_up, pair[1]) ? -1 : weir_host_stream_wait(pair[0]);
}

Test(host_native, kernel_queues_on_another_stream_and_waits)
{
    struct rig rig;
    rig_open(&rig, 2);
    _Atomic int count = 0;
    void *inner = own_stream(&rig, 1), *outer = own_stream(&rig, 0);
    void *pair[2] = {inner, (void *)&count};
    for (int i = 0; i < 100; i++) must(weir_host_enqueue(outer, nested_launch, pair));
    must(weir_host_stream_wait(outer));
    cr_assert_eq(atomic_load(&count), 100);
    weir_host_stream_destroy(outer);
    weir_host_stream_destroy(inner);
    rig_close(&rig);
}

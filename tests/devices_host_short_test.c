/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Kernels that are shorter than handing them over run where they are queued, and no others. */
#include <string.h>

#include "devices_host_rig.h"

TestSuite(host_short, .timeout = 60);

/* No run of a kernel that does nothing takes so long, whatever else the machine does; one that sleeps takes longer. */
#define LONG_LIMIT 50000000

enum { SURE = 20000, LEAST = 8 }; /* launches after which a short kernel was measured often enough; so many are needed */

static _Thread_local char here; /* its address names the thread */
static _Atomic(void *) ran_on;
static _Atomic int calls, slow;

static void note(void)
{
    atomic_store(&ran_on, &here);
    if (atomic_load(&slow)) usleep(100000);
    atomic_fetch_add(&calls, 1);
}

static void other(void)
{
    note();
}

static void *address_of(void (*kernel)(void))
{
    void *address;
    memcpy(&address, &kernel, sizeof address);
    return address;
}

static void open_with(struct rig *rig, uint32_t short_ns)
{
    rig_options.short_ns = short_ns;
    rig_open(rig, 1);
}

static void queue(void *stream, void (*kernel)(void))
{
    const struct weir__launch launch = {.kernel = address_of(kernel)};
    must(OPS->launch(stream, &launch));
}

/* One launch and its record. True: it ran in here. */
static bool launch_here(void *stream, void (*kernel)(void))
{
    uint64_t position = 0;
    queue(stream, kernel);
    must(OPS->record(stream, &position));
    bool all = OPS->flush_here(stream);
    if (all) cr_assert_eq(OPS->completed(stream, NULL), position);
    must(OPS->sync(stream, position));
    return all;
}

/* Launches until it runs in here; the number of launches. */
static int launches_until_here(void *stream, void (*kernel)(void))
{
    for (int i = 1; i <= SURE; i++)
        if (launch_here(stream, kernel)) return i;
    return SURE + 1;
}

Test(host_short, short_kernel_runs_on_the_submitting_thread)
{
    struct rig rig;
    open_with(&rig, LONG_LIMIT);
    void *stream = rig_stream(&rig, 0);
    int launches = launches_until_here(stream, note);
    cr_assert_gt(launches, LEAST, "it was not measured first");
    cr_assert_leq(launches, SURE);
    cr_assert_eq(atomic_load(&ran_on), &here);
    cr_assert_eq(atomic_load(&calls), launches);
    rig_sync_and_destroy(stream);
    rig_close(&rig);
}

static void never_here(uint32_t short_ns)
{
    struct rig rig;
    open_with(&rig, short_ns);
    void *stream = rig_stream(&rig, 0);
    for (int i = 0; i < 200; i++) cr_assert_not(launch_here(stream, note));
    cr_assert_eq(atomic_load(&calls), 200);
    rig_sync_and_destroy(stream);
    rig_close(&rig);
}

Test(host_short, kernel_longer_than_the_limit_stays_with_the_threads)
{
    never_here(1);
}

Test(host_short, limit_of_zero_turns_it_off)
{
    never_here(0);
}

Test(host_short, random_delays_turn_it_off)
{
    rig_options.delay_us = 1;
    never_here(LONG_LIMIT);
}

Test(host_short, kernel_that_becomes_long_goes_back_to_the_threads)
{
    struct rig rig;
    open_with(&rig, LONG_LIMIT);
    void *stream = rig_stream(&rig, 0);
    cr_assert_leq(launches_until_here(stream, note), SURE);
    atomic_store(&slow, 1);
    int stops = 0;
    while (launch_here(stream, note)) stops++;
    cr_assert_leq(stops, 4, "every fourth run is measured");
    cr_assert_not(launch_here(stream, note));
    atomic_store(&slow, 0);
    cr_assert_gt(launches_until_here(stream, note), 2 * LEAST, "it has to prove itself for longer");
    rig_sync_and_destroy(stream);
    rig_close(&rig);
}

Test(host_short, what_has_to_wait_is_left_to_the_threads)
{
    struct rig rig;
    open_with(&rig, LONG_LIMIT);
    void *stream = rig_stream(&rig, 0), *producer = rig_stream(&rig, 0);
    struct gate gate = {0};
    cr_assert_leq(launches_until_here(stream, note), SURE);
    must(OPS->host_function(producer, gate_pass, &gate));
    uint64_t behind = rig_record(producer), position = 0;
    int before = atomic_load(&calls);
    must(OPS->position_wait(stream, &producer, &behind, 1));
    queue(stream, note);
    must(OPS->record(stream, &position));
    cr_assert_not(OPS->flush_here(stream));
    cr_assert_eq(atomic_load(&calls), before);
    atomic_store(&gate.open, 1);
    until(&calls, before + 1); /* without a sync */
    rig_sync_and_destroy(stream);
    rig_sync_and_destroy(producer);
    rig_close(&rig);
}

Test(host_short, work_that_may_take_long_is_left_to_the_threads)
{
    struct rig rig;
    open_with(&rig, LONG_LIMIT);
    void *stream = rig_stream(&rig, 0);
    static char from[65536], to[65536];
    struct weir__copy copy = {.kind = WEIR__COPY_TO_DEVICE, .to = to, .from = from, .bytes = 64};
    _Atomic int count = 0;
    uint64_t position = 0;
    cr_assert_leq(launches_until_here(stream, note), SURE);

    must(OPS->copy(stream, &copy));
    cr_assert(launch_here(stream, note), "a small copy is short");
    copy.bytes = sizeof to;
    must(OPS->copy(stream, &copy));
    cr_assert_not(launch_here(stream, note));
    must(OPS->fill(stream, to, 1, sizeof to));
    cr_assert_not(launch_here(stream, note));
    must(OPS->host_function(stream, count_up, &count));
    cr_assert_not(launch_here(stream, note), "a function may do anything");
    queue(stream, other);
    cr_assert_not(launch_here(stream, note), "nothing is known of the other kernel");
    copy.bytes = 64;
    must(OPS->copy(stream, &copy));
    must(OPS->record(stream, &position));
    cr_assert(OPS->flush_here(stream));
    cr_assert_eq(OPS->completed(stream, NULL), position);
    rig_sync_and_destroy(stream);
    rig_close(&rig);
}

Test(host_short, what_is_queued_before_keeps_its_place)
{
    struct rig rig;
    open_with(&rig, LONG_LIMIT);
    void *stream = rig_stream(&rig, 0);
    struct gate gate = {0};
    uint64_t position = 0;
    cr_assert_leq(launches_until_here(stream, note), SURE);
    int before = atomic_load(&calls);
    must(OPS->host_function(stream, gate_pass, &gate));
    rig_record(stream);
    queue(stream, note);
    must(OPS->record(stream, &position));
    cr_assert_not(OPS->flush_here(stream));
    cr_assert_eq(atomic_load(&calls), before);
    atomic_store(&gate.open, 1);
    until(&calls, before + 1);
    rig_sync_and_destroy(stream);
    rig_close(&rig);
}

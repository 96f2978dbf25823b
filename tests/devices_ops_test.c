/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <criterion/criterion.h>

#include <string.h>

#include <devices/mock/mock.h>

static struct weir__device_ops table_of(const struct weir__mock_options *options)
{
    struct weir__mock *mock;
    cr_assert_eq(weir__mock_create(options, &mock), WEIR_OK);
    struct weir__device_ops ops = *weir__mock_ops(mock);
    weir__mock_destroy(mock);
    return ops;
}

static const struct weir__mock_options with_positions = {.positions = true};
static const struct weir__mock_options without_events = {.no_events = true};

static void expect_missing(const struct weir__device_ops *ops, const char *name)
{
    const char *missing = NULL;
    cr_expect_eq(weir__device_ops_check(ops, &missing), WEIR_E_INVALID, "without %s", name);
    cr_expect(missing && !strcmp(missing, name), "said %s, not %s", missing ? missing : "nothing", name);
    cr_expect_eq(weir__device_ops_check(ops, NULL), WEIR_E_INVALID);
}

#define EXPECT_MISSING(options, slot)                                                                                  \
    do {                                                                                                               \
        struct weir__device_ops ops = table_of(options);                                                               \
        ops.slot = NULL;                                                                                               \
        expect_missing(&ops, #slot);                                                                                   \
    } while (0)

Test(ops, complete_tables_of_each_kind_pass)
{
    const struct weir__mock_options *kinds[] = {NULL, &with_positions, &without_events,
                                                &(struct weir__mock_options){.no_event_notify = true}};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        struct weir__device_ops ops = table_of(kinds[i]);
        const char *missing = "untouched";
        cr_expect_eq(weir__device_ops_check(&ops, &missing), WEIR_OK, "kind %zu", i);
        cr_expect_str_eq(missing, "untouched");
    }
}

Test(ops, other_size_or_version_is_refused)
{
    struct weir__device_ops ops = table_of(NULL);
    const char *missing = NULL;
    ops.size -= 8;
    cr_expect_eq(weir__device_ops_check(&ops, &missing), WEIR_E_VERSION);
    cr_expect_str_eq(missing, "size");
    ops = table_of(NULL);
    ops.version++;
    cr_expect_eq(weir__device_ops_check(&ops, &missing), WEIR_E_VERSION);
    cr_expect_str_eq(missing, "version");
}

Test(ops, each_mandatory_slot_is_named_when_missing)
{
    EXPECT_MISSING(NULL, name);
    EXPECT_MISSING(NULL, device_count);
    EXPECT_MISSING(NULL, device_open);
    EXPECT_MISSING(NULL, device_close);
    EXPECT_MISSING(NULL, last_error);
    EXPECT_MISSING(NULL, alloc);
    EXPECT_MISSING(NULL, free);
    EXPECT_MISSING(NULL, stream_create);
    EXPECT_MISSING(NULL, stream_destroy);
    EXPECT_MISSING(NULL, stream_native);
    EXPECT_MISSING(NULL, copy);
    EXPECT_MISSING(NULL, fill);
    EXPECT_MISSING(NULL, launch);
    EXPECT_MISSING(NULL, module_load);
    EXPECT_MISSING(NULL, module_unload);
    EXPECT_MISSING(NULL, module_symbol);
}

Test(ops, part_of_the_positions_is_refused)
{
    EXPECT_MISSING(&with_positions, record);
    EXPECT_MISSING(&with_positions, completed);
    EXPECT_MISSING(&with_positions, status);
    EXPECT_MISSING(&with_positions, forget);
    EXPECT_MISSING(&with_positions, notify);
    EXPECT_MISSING(&with_positions, sync);
}

Test(ops, part_of_the_events_is_refused)
{
    EXPECT_MISSING(NULL, event_create);
    EXPECT_MISSING(NULL, event_record);
    EXPECT_MISSING(NULL, event_wait);
    EXPECT_MISSING(NULL, event_query);
    EXPECT_MISSING(NULL, event_sync);
    EXPECT_MISSING(NULL, event_destroy);
    EXPECT_MISSING(NULL, stream_sync);
}

Test(ops, no_way_to_wait_is_refused)
{
    EXPECT_MISSING(&without_events, stream_sync);
}

Test(ops, half_of_foreign_is_refused)
{
    EXPECT_MISSING(NULL, foreign_wait);
    EXPECT_MISSING(NULL, event_signal);
}

Test(ops, optional_slots_may_be_missing)
{
    struct weir__device_ops ops = table_of(NULL);
    ops.free_on_stream = NULL;
    ops.flush = NULL;
    ops.event_notify = NULL;
    ops.host_function = NULL;
    ops.foreign_wait = NULL;
    ops.event_signal = NULL;
    cr_expect_eq(weir__device_ops_check(&ops, NULL), WEIR_OK);
    ops = table_of(&with_positions);
    ops.position_wait = NULL;
    ops.reserve = NULL;
    cr_expect_eq(weir__device_ops_check(&ops, NULL), WEIR_OK);
}

/* ---- gates and lending ---- */

static int made, opened, lent;
static void *waiting, *waited_for;

static int gate_create(void *device, void **gate_out)
{
    if (!device || made) return WEIR_E_NO_MEMORY;
    made++;
    *gate_out = &made;
    return WEIR_OK;
}

static int gate_wait(void *stream, void *gate)
{
    waiting = stream;
    waited_for = gate;
    return WEIR_OK;
}

static void gate_open(void *gate)
{
    opened += gate == (void *)&made;
}

static void lend(void *stream, bool on)
{
    waiting = stream;
    lent += on ? 1 : 10;
}

static struct weir__device_ops table_with_gates(void)
{
    struct weir__device_ops ops = table_of(NULL);
    ops.gate_create = gate_create;
    ops.gate_wait = gate_wait;
    ops.gate_open = gate_open;
    ops.lend = lend;
    return ops;
}

#define EXPECT_MISSING_WITH_GATES(slot)                                                                                \
    do {                                                                                                               \
        struct weir__device_ops ops = table_with_gates();                                                              \
        ops.slot = NULL;                                                                                               \
        expect_missing(&ops, #slot);                                                                                   \
    } while (0)

Test(ops, part_of_the_gates_is_refused)
{
    struct weir__device_ops complete = table_with_gates();
    cr_expect_eq(weir__device_ops_check(&complete, NULL), WEIR_OK);
    EXPECT_MISSING_WITH_GATES(gate_create);
    EXPECT_MISSING_WITH_GATES(gate_wait);
    EXPECT_MISSING_WITH_GATES(gate_open);
    EXPECT_MISSING_WITH_GATES(host_function);
}

Test(ops, an_adapted_table_passes_gates_and_lending_on)
{
    static const struct weir__device_notice notice;
    const struct weir__device_ops *adapted;
    struct weir__device_info info;
    struct weir__mock *mock;
    void *backend, *device, *stream, *gate = NULL;
    cr_assert_eq(weir__mock_create(NULL, &mock), WEIR_OK);
    struct weir__device_ops ops = *weir__mock_ops(mock);
    cr_assert_eq(weir__device_adapt(&ops, mock, &adapted, &backend), WEIR_OK);
    cr_expect(!adapted->gate_create && !adapted->gate_wait && !adapted->gate_open && !adapted->lend);
    weir__device_unadapt(adapted, backend);
    ops.gate_create = gate_create;
    ops.gate_wait = gate_wait;
    ops.gate_open = gate_open;
    ops.lend = lend;
    cr_assert_eq(weir__device_adapt(&ops, mock, &adapted, &backend), WEIR_OK);
    cr_assert_eq(adapted->device_open(backend, 0, &notice, &info, &device), WEIR_OK);
    cr_assert_eq(adapted->stream_create(device, NULL, 0, &stream), WEIR_OK);
    cr_expect_eq(adapted->gate_create(device, &gate), WEIR_OK);
    cr_expect_eq(adapted->gate_create(device, &gate), WEIR_E_NO_MEMORY);
    cr_expect_eq(adapted->gate_wait(stream, gate), WEIR_OK);
    cr_expect(waiting == adapted->stream_native(stream) && waited_for == &made);
    adapted->lend(stream, true);
    adapted->lend(stream, false);
    adapted->gate_open(gate);
    cr_expect(opened == 1 && lent == 11);
    adapted->stream_destroy(stream);
    adapted->device_close(device);
    weir__device_unadapt(adapted, backend);
    weir__mock_destroy(mock);
}

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* What devices/device.h says about which slots are there, as a check. */

#include <devices/device.h>

#include <stdbool.h>

/* One slot: is it there, and what is it called. */
struct slot {
    const char *name;
    bool present;
};

#define SLOT(name_)  {#name_, ops->name_ != NULL}
#define COUNT(slots) (sizeof(slots) / sizeof(slots)[0])

static const char *first_missing(const struct slot *slots, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!slots[i].present) return slots[i].name;
    return NULL;
}

static bool any_present(const struct slot *slots, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (slots[i].present) return true;
    return false;
}

static const char *mandatory_missing(const struct weir__device_ops *ops)
{
    const struct slot slots[] = {
        SLOT(name),   SLOT(device_count),  SLOT(device_open),    SLOT(device_close),  SLOT(last_error), SLOT(alloc),
        SLOT(free),   SLOT(stream_create), SLOT(stream_destroy), SLOT(stream_native), SLOT(copy),       SLOT(fill),
        SLOT(launch), SLOT(module_load),   SLOT(module_unload),  SLOT(module_symbol),
    };
    return first_missing(slots, COUNT(slots));
}

/* Complete positions, or a complete event group, or nothing of both and stream_sync. */
static const char *order_missing(const struct weir__device_ops *ops)
{
    const struct slot positions[] = {SLOT(record), SLOT(completed), SLOT(status),
                                     SLOT(forget), SLOT(notify),    SLOT(sync)};
    const struct slot events[] = {SLOT(event_create), SLOT(event_record), SLOT(event_wait),
                                  SLOT(event_query),  SLOT(event_sync),   SLOT(event_destroy)};
    bool has_positions = any_present(positions, COUNT(positions)) || ops->reserve || ops->position_wait || ops->counter;
    bool has_events = any_present(events, COUNT(events)) || ops->event_notify || ops->event_signal;
    const char *missing = has_positions ? first_missing(positions, COUNT(positions)) : NULL;
    if (!missing && has_events) missing = first_missing(events, COUNT(events));
    if (!missing && !has_positions && !ops->stream_sync) missing = "stream_sync";
    return missing;
}

static const char *foreign_missing(const struct weir__device_ops *ops)
{
    bool signal = ops->record ? ops->foreign_signal != NULL : ops->event_signal != NULL;
    if (ops->foreign_wait && !signal) return ops->record ? "foreign_signal" : "event_signal";
    if (!ops->foreign_wait && (ops->foreign_signal || ops->event_signal)) return "foreign_wait";
    return NULL;
}

static const char *gate_missing(const struct weir__device_ops *ops)
{
    const struct slot gates[] = {SLOT(gate_create), SLOT(gate_wait), SLOT(gate_open), SLOT(host_function)};
    return any_present(gates, COUNT(gates) - 1) ? first_missing(gates, COUNT(gates)) : NULL;
}

int weir__device_ops_check(const struct weir__device_ops *ops, const char **missing_out)
{
    const char *missing = NULL;
    int r = WEIR_OK;
    if (ops->size != sizeof *ops) {
        missing = "size";
        r = WEIR_E_VERSION;
    } else if (ops->version != WEIR__DEVICE_OPS_VERSION) {
        missing = "version";
        r = WEIR_E_VERSION;
    } else {
        missing = mandatory_missing(ops);
        if (!missing) missing = order_missing(ops);
        if (!missing) missing = foreign_missing(ops);
        if (!missing) missing = gate_missing(ops);
        if (missing) r = WEIR_E_INVALID;
    }
    if (r && missing_out) *missing_out = missing;
    return r;
}

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_DEVICES_MOCK_H
#define WEIR_DEVICES_MOCK_H

/*
 * A backend for tests and benchmarks: devices whose clock the test moves, whose calls and work can be made to fail, and
 * which notes every breach of the rules of devices/device.h.
 *
 * Pass weir__mock_ops(mock) with the mock itself as the backend pointer. The events kind (the default) goes through
 * weir__device_adapt(); its native streams and events are the objects of weir__mock_stream_create() and
 * weir__mock_event_create(). Device memory is malloc'ed; copies, fills, kernels and host functions take effect at the
 * moment when their item ends, in stream order. Streams run side by side without limit.
 *
 * Threads: everything is safe from any thread unless said otherwise. Functions that run work (kernels, host functions,
 * notices) call it without a lock of the mock, on the thread that moves the clock.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <devices/device.h>

struct weir__mock;

enum weir__mock_clock {
    WEIR__MOCK_MANUAL = 0,   /* weir__mock_advance() and weir__mock_run() move it; a blocking call waits for that */
    WEIR__MOCK_AUTO_ADVANCE, /* blocking calls move it as well: they always return */
    WEIR__MOCK_TICKER,       /* a thread of the mock moves it whenever there is work */
    WEIR__MOCK_AUTOMATIC,    /* no clock: work is done as soon as its waits allow, on the thread that queues it */
};

enum weir__mock_item { WEIR__MOCK_LAUNCH = 1, WEIR__MOCK_COPY, WEIR__MOCK_FILL, WEIR__MOCK_HOST_FUNCTION };

/* All zero is the default. */
struct weir__mock_options {
    uint32_t devices;         /* 0: 1 */
    uint32_t clock;           /* enum weir__mock_clock */
    uint32_t advised_streams; /* 0: 4 */
    bool no_events;           /* no event group and no WAIT feature, only stream_sync */
    bool no_cross_wait;       /* a stream cannot wait for one of another device */
    bool no_event_notify;     /* event_notify is NULL */
    bool late_answers;        /* event_query says once more that an event is pending after it is done */
    /*
     * The other kind of table: positions, always automatic, no clock, no checks and next to no cost, for measuring what
     * is above the backend. A record is reached at once, functions run at once. Of the functions below only
     * _register_kernel, _calls (of record, position_wait, launch, host_function, copy, fill), _ops and _destroy matter.
     */
    bool positions;
    bool count_only;      /* positions kind: launches and host functions are counted, not run */
    uint64_t duration;    /* ticks of one item; 0: 1 */
    uint64_t random_seed; /* not 0: each item takes 1 … duration ticks at random */
    /* Not NULL: decides instead. @number counts the mock's items from 1. Called with a lock held: no call back. */
    uint64_t (*item_duration)(void *arg, enum weir__mock_item kind, uint32_t device, uint64_t number);
    void *item_duration_arg;
};

/* @options NULL: defaults. Returns WEIR_OK, WEIR_E_NO_MEMORY, WEIR_E_SYSTEM (no thread), WEIR_E_INVALID. */
WEIR_MUST_CHECK int weir__mock_create(const struct weir__mock_options *options, struct weir__mock **mock_out);
/* Every device is closed. Handles stay recognisable until here: that is how use after destroy is noticed. */
void weir__mock_destroy(struct weir__mock *mock);
/* Borrowed from the mock. */
const struct weir__device_ops *weir__mock_ops(struct weir__mock *mock);

/* ---- work ---- */

/* module_symbol() of any module finds @name; launches call @function at the end of their item. Name is borrowed. */
WEIR_MUST_CHECK int weir__mock_register_kernel(struct weir__mock *mock, const char *name,
                                               void (*function)(const uint64_t *args));
/* Move the clock; ends what ends until then, in order of time. */
void weir__mock_advance(struct weir__mock *mock, uint64_t ticks);
/* Move the clock until nothing is queued or nothing can go on. Returns the number of items left. */
size_t weir__mock_run(struct weir__mock *mock);
uint64_t weir__mock_now(struct weir__mock *mock);
/* Work items (launch, copy, fill, host function) that were queued and that have ended. */
uint64_t weir__mock_items_queued(struct weir__mock *mock);
uint64_t weir__mock_items_ended(struct weir__mock *mock);

/* ---- failures ---- */

/* The @n-th call from now (1: the next) of the slot with this name returns @code and does nothing. False: no such slot.
 */
bool weir__mock_fail(struct weir__mock *mock, const char *slot, uint64_t n, int code);
/*
 * The @n-th call from now of any slot that can fail for want of something returns @code. Calls that report on work
 * (event_query, event_sync, stream_sync) and those that give something back (free) are not counted.
 */
void weir__mock_fail_nth_call(struct weir__mock *mock, uint64_t n, int code);
/* The @n-th work item queued from now fails with @code instead of taking effect; WEIR_E_DEVICE: its device is lost. */
void weir__mock_fail_item(struct weir__mock *mock, uint64_t n, int code);
/* Planned failures of the three functions above that have not happened yet; _clear forgets them. */
size_t weir__mock_failures_planned(struct weir__mock *mock);
void weir__mock_failures_clear(struct weir__mock *mock);
/* From now on every call for the device fails; what was queued counts as reached and never takes effect. */
void weir__mock_lose_device(struct weir__mock *mock, uint32_t number);

/* ---- what was seen ---- */

/* Calls of a slot by name, failed ones included. */
uint64_t weir__mock_calls(struct weir__mock *mock, const char *slot);
/*
 * Breaches so far, a line each ("" if none; at most some kilobytes are kept): overlapping stream calls, wait for an
 * event never recorded, record of a pending event, use after destroy, double destroy, unknown memory, a stream
 * destroyed with work queued, leaks at close. Owned by the mock; read it while nobody calls.
 */
const char *weir__mock_violations(struct weir__mock *mock);
/* Events, streams, modules and pieces of memory that are alive. */
size_t weir__mock_objects(struct weir__mock *mock);

/* ---- foreign work: streams and events that weir has not made, as a user of the native API would ---- */

WEIR_MUST_CHECK int weir__mock_stream_create(struct weir__mock *mock, uint32_t device, void **native_stream_out);
void weir__mock_stream_destroy(void *native_stream);
/* On any native stream, also on one of weir's. The rule about overlapping calls holds. */
WEIR_MUST_CHECK int weir__mock_stream_function(void *native_stream, int (*function)(void *arg), void *arg);
WEIR_MUST_CHECK int weir__mock_event_create(struct weir__mock *mock, uint32_t device, void **native_event_out);
WEIR_MUST_CHECK int weir__mock_event_record(void *native_stream, void *native_event);
void weir__mock_event_destroy(void *native_event);

#endif

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_DEVICES_MOCK_PRIVATE_H
#define WEIR_DEVICES_MOCK_PRIVATE_H

/*
 * What the files of the mock share. One mutex per mock guards everything below but the fields marked otherwise.
 * Functions with _locked need it; those that run work give it up meanwhile and have it again when they return.
 */

#include <pthread.h>
#include <stdatomic.h>

#include <devices/mock/mock.h>

/* Slots that can fail for want of something; those that report on work or give back; those that cannot fail. */
#define WEIR__MOCK_FALLIBLE(X)                                                                                         \
    X(device_count)                                                                                                    \
    X(device_open) X(alloc) X(free_on_stream) X(stream_create) X(event_create) X(event_record) X(event_wait)           \
        X(event_notify) X(event_signal) X(foreign_wait) X(copy) X(fill) X(launch) X(host_function) X(module_load)      \
            X(module_symbol) X(record) X(position_wait)
#define WEIR__MOCK_REPORTING(X) X(event_query) X(event_sync) X(stream_sync) X(free)
#define WEIR__MOCK_SILENT(X)    X(device_close) X(stream_destroy) X(stream_native) X(event_destroy) X(module_unload)

enum weir__mock_slot {
#define WEIR__X(name) WEIR__MOCK_SLOT_##name,
    WEIR__MOCK_FALLIBLE(WEIR__X) WEIR__MOCK_REPORTING(WEIR__X) WEIR__MOCK_SILENT(WEIR__X)
#undef WEIR__X
        WEIR__MOCK_SLOT_COUNT
};

enum weir__mock_object_kind { WEIR__MOCK_STREAM = 0x5712, WEIR__MOCK_EVENT, WEIR__MOCK_MODULE };

/* Starts every handle. Destroyed ones stay in the mock's list, not alive, so that a use of them is seen. */
struct weir__mock_object {
    struct weir__mock *mock;
    struct weir__mock_device *device;
    struct weir__mock_object *next; /* of the mock */
    uint32_t kind;
    bool alive;
    bool foreign; /* not weir's: no leak at close */
};

struct weir__mock_notify {
    struct weir__mock_notify *next;
    uint64_t generation;
    void (*done)(void *arg, int status);
    void *arg;
    int status;
};

struct weir__mock_work;

struct weir__mock_event {
    struct weir__mock_object object;
    uint64_t recorded, done; /* number of the newest record, and of the newest one that was reached */
    uint64_t denied;         /* newest one that event_query called pending though it was done */
    int status;              /* of the newest one that was reached */
    struct weir__mock_notify *notifies;
    struct weir__mock_work *record; /* the item of a record: a record needs no memory */
};

/* What was recorded when the wait was queued: a later record of the same event does not matter. */
struct weir__mock_wait {
    struct weir__mock_event *event;
    uint64_t generation;
};

enum {
    WEIR__MOCK_RECORD = 100,
    WEIR__MOCK_WAIT,
    WEIR__MOCK_FREE
}; /* items without a duration, behind the public ones */

struct weir__mock_work {
    bool kept; /* its event's: not freed with the queue */
    struct weir__mock_work *next;
    uint32_t kind;
    bool started;
    int fail; /* planned failure */
    uint64_t number, duration, finish;
    union {
        struct weir__copy copy;
        struct weir__mock_wait point; /* RECORD */
        struct {
            void *to;
            uint8_t value;
            size_t bytes;
        } fill;
        struct {
            void (*function)(const uint64_t *args);
        } launch;
        struct {
            int (*function)(void *arg);
            void *arg;
        } host;
        void *address; /* FREE */
    };
    size_t count; /* of what follows: arguments of a launch, waits of a wait */
    union {
        uint64_t argument;
        struct weir__mock_wait wait;
    } more[];
};

struct weir__mock_stream {
    struct weir__mock_object object;
    struct weir__mock_stream *next; /* all streams of the mock */
    atomic_bool in_call;            /* without the lock */
    uint64_t touched; /* without the lock and not atomic: a thread sanitizer sees unordered stream calls */
    struct weir__mock_work *head, **tail;
    uint64_t queued, ended; /* items */
    bool busy;              /* somebody runs the head without the lock */
    int stretch;            /* first failure since the newest record */
    int unreported;         /* first failure since the newest stream_sync */
};

struct weir__mock_module {
    struct weir__mock_object object;
};

struct weir__mock_device {
    struct weir__mock *mock;
    uint32_t number;
    bool open, lost;
};

struct weir__mock_kernel {
    struct weir__mock_kernel *next;
    const char *name;
    void (*function)(const uint64_t *args);
};

struct weir__mock_plan {
    struct weir__mock_plan *next;
    uint32_t slot; /* WEIR__MOCK_SLOT_COUNT: any fallible one */
    uint64_t left;
    int code;
};

struct weir__mock {
    struct weir__mock_options options;
    struct weir__device_ops ops;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* something ended, or was queued for the ticker */
    pthread_t ticker;
    bool ticker_runs, stopping;
    uint64_t now, random;
    uint64_t work_queued, work_ended;              /* work items, as the public functions count */
    uint64_t items_left;                           /* all items */
    uint32_t running;                              /* threads that run work or notices without the lock */
    struct weir__mock_notify *ready, **ready_tail; /* notices to deliver */
    struct weir__mock_stream *streams;
    struct weir__mock_object *objects;
    struct weir__mock_kernel *kernels;
    struct weir__mock_plan *call_plans, *item_plans;
    uint64_t calls[WEIR__MOCK_SLOT_COUNT];
    void *memory; /* search tree of the live pieces */
    size_t pieces;
    char violations[4096];
    size_t violations_length;
    struct weir__mock_device devices[];
};

/* mock.c */
void weir__mock_violation_locked(struct weir__mock *mock, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Sets the thread's text and returns @code. */
int weir__mock_error(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char *weir__mock_error_text(void);
/* Count a call and lock. Not 0: the call is to fail with that code, and nothing is locked. @device may be NULL. */
WEIR_MUST_CHECK int weir__mock_enter(struct weir__mock *mock, struct weir__mock_device *device,
                                     enum weir__mock_slot slot);
int weir__mock_item_plan_locked(struct weir__mock *mock);
/* module_symbol() of both tables. Takes the lock. */
int weir__mock_find_kernel(struct weir__mock *mock, const char *name, void **address_out, size_t *bytes_out);

/* objects.c */
void weir__mock_object_add_locked(struct weir__mock_object *object, struct weir__mock_device *device, uint32_t kind);
/* Is it an object of that kind, alive? Notes a breach if not. */
bool weir__mock_object_check_locked(struct weir__mock_object *object, uint32_t kind, const char *doing);
void weir__mock_leaks_locked(struct weir__mock_device *device);
bool weir__mock_memory_add_locked(struct weir__mock_device *device, void *address);
/* False and a breach noted if it is not a live piece of the device. */
bool weir__mock_memory_remove_locked(struct weir__mock_device *device, void *address);
void weir__mock_memory_clear(struct weir__mock *mock);

/* engine.c */
void weir__mock_queue_locked(struct weir__mock_stream *stream, struct weir__mock_work *work);
/* Everything that can end at the present time ends; notices are delivered. False: nothing to do, the lock was kept. */
bool weir__mock_pump_locked(struct weir__mock *mock);
/* Do what can be done now, or else move the clock to the next end. False: nothing has one, the lock was kept. */
bool weir__mock_step_locked(struct weir__mock *mock);
void weir__mock_notify_locked(struct weir__mock *mock, struct weir__mock_notify *notify, int status);
/* One round of waiting for something to change, as the kind of clock asks for it. */
void weir__mock_block_locked(struct weir__mock *mock);
void *weir__mock_ticker(void *mock);
/* Without the lock. */
void weir__mock_copy_now(const struct weir__copy *copy);

/* slots.c, positions.c */
extern const struct weir__device_ops weir__mock_events_ops;
extern const struct weir__device_ops weir__mock_positions_ops;
uint64_t weir__mock_positions_calls(struct weir__mock *mock, const char *slot);

#endif

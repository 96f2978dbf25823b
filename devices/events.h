/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_DEVICES_EVENTS_H
#define WEIR_DEVICES_EVENTS_H

/*
 * Positions made of events: private to events.c (streams and positions) and adapt.c (the table and the devices).
 *
 * Locks, outermost first: requests_lock of a device (never held during a call), lock of a stream, pool_lock of a
 * device. With a stream's lock held the only call into the backend is event_query().
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <devices/device.h>

/*
 * A node with an event stands for a record and goes: spare → ring → spare, from the ring by way of the stream's
 * failures if its stretch failed. One without is a host function or a notice under way, or a failure.
 *
 * A host function runs on a thread of the backend that may hold a lock of the backend's, and a stream's lock is held around
 * event_query(): so a function takes no lock. It leaves its status in its node, and whoever has the lock collects it.
 */
struct weir__event_node {
    struct weir__event_node *next;
    struct weir__event_node *made;     /* without event: all of the stream */
    struct weir__event_stream *stream; /* function, notice */
    struct weir__event_node *point;    /* notice: the pinned record, NULL without events */
    void *event;
    uint64_t first, last; /* positions meant */
    int status;
    uint32_t pins; /* calls that use the event now; guarded by the lock of the stream */
    bool retired;  /* out of the ring and of the failures: the last pin frees it */
    int (*function)(void *arg);
    void *arg;
    _Atomic bool ran; /* function: release by function_run(), acquire by harvest_locked() */
};

struct weir__event_device {
    const struct weir__device_ops *base;
    void *handle;
    struct weir__device_notice notice;
    bool has_events;
    atomic_bool lost;          /* sticky */
    _Atomic uint64_t failures; /* weir__device_info.failures */
    pthread_mutex_t pool_lock;
    struct weir__event_node *pool; /* events that no stream holds */
    pthread_mutex_t requests_lock;
    pthread_cond_t requested;
    struct weir__event_node *requests, **requests_tail; /* notices for the waiter thread */
    pthread_t waiter;
    bool waiter_runs, closing;
};

struct weir__event_stream {
    struct weir__event_device *device;
    void *handle;
    void *owner;
    pthread_mutex_t lock;
    pthread_cond_t settled;         /* notices is 0 */
    struct weir__event_node **ring; /* of the positions reached + 1 … recorded; NULL without events */
    uint64_t capacity;
    _Atomic uint64_t recorded;      /* written by stream calls with the lock */
    _Atomic uint64_t reached;       /* written with the lock */
    uint64_t sound;                 /* positions beyond were never seen done: the device was lost */
    struct weir__event_node *spare; /* with events, free for a record */
    uint32_t spares;
    struct weir__event_node *plain; /* without, free */
    struct weir__event_node *made;  /* all without, by .made; freed with the stream */
    struct weir__event_node *functions, **functions_tail; /* queued, oldest first */
    struct weir__event_node *failures;
    uint64_t notices; /* asked for and not delivered */
};

/* As the slots of devices/device.h say; failures of the adapter itself leave a text for weir__event_text(). */
WEIR_MUST_CHECK int weir__event_stream_create(struct weir__event_device *device, void *owner, int32_t priority,
                                              struct weir__event_stream **stream_out);
void weir__event_stream_destroy(struct weir__event_stream *stream);
int weir__event_stream_reserve(void *stream);
int weir__event_stream_record(void *stream, uint64_t *position_out);
int weir__event_stream_wait(void *stream, void *const *streams, const uint64_t *positions, size_t n);
uint64_t weir__event_stream_completed(void *stream, int *status_out);
int weir__event_stream_status(void *stream, uint64_t position);
void weir__event_stream_forget(void *stream, uint64_t position);
int weir__event_stream_notify(void *stream, uint64_t position);
int weir__event_stream_sync(void *stream, uint64_t position);
int weir__event_stream_signal(void *stream, uint64_t position, void *native_stream);
int weir__event_stream_function(void *stream, int (*function)(void *arg), void *arg);

/* Hand a notice to the device's waiter thread, which is started if need be. */
WEIR_MUST_CHECK int weir__event_request(struct weir__event_device *device, struct weir__event_node *notice);
/* The position of @notice is reached: tell, and give the node back. Without locks. */
void weir__event_deliver(struct weir__event_node *notice);

/* The thread's newest failure was the adapter's own (text) or came from the backend (NULL). Returns @code. */
int weir__event_error(int code, const char *text);
const char *weir__event_text(void);

#endif

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Inside of the emulator. One lock guards all state; entry points hold it, and it is given up while they wait, while
 * an operation runs and while the dynamic loader works. Unless said otherwise functions are called with it held.
 */
#ifndef WEIR_EMULATOR_INTERNAL_H
#define WEIR_EMULATOR_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "types.h"

#define MAX_DEVICES 16

/* ---- settings: name, default ---- */

#define EMULATOR_SETTINGS(X)                                                                                           \
    X(devices, 1)                                                                                                      \
    X(memory, 1024)                                                                                                    \
    X(version, EMULATOR_DRIVER_VERSION)                                                                                \
    X(pools, 1)                                                                                                        \
    X(memory_operations_64, 1)                                                                                         \
    X(wait_nor, 1)                                                                                                     \
    X(peer, 1)                                                                                                         \
    X(priorities, 6)                                                                                                   \
    X(queues, -1)                                                                                                      \
    X(launch_queue, 1024)                                                                                              \
    X(workers, 16)                                                                                                     \
    X(host_workers, 1)                                                                                                 \
    X(host_limit_ms, 0)                                                                                                \
    X(seed, 0)                                                                                                         \
    X(delay_us, 0)                                                                                                     \
    X(stopped, 0)                                                                                                      \
    X(pageable_blocks, 1)                                                                                              \
    X(report_hidden_sync, 0)                                                                                           \
    X(report_legacy, 0)                                                                                                \
    X(report_rerecord, 0)                                                                                              \
    X(free_blocks, 1)                                                                                                  \
    X(lazy, 0)                                                                                                         \
    X(protect, 1)                                                                                                      \
    X(reuse_handles, 0)                                                                                                \
    X(strict, 0)

struct settings {
#define X(name, value) int64_t name;
    EMULATOR_SETTINGS(X)
#undef X
};

/* ---- objects ---- */

enum kind { FREE_SLOT, CONTEXT, STREAM, EVENT, MODULE, FUNCTION, POOL, LIBRARY, KERNEL, GRAPH, GRAPH_EXEC, GRAPH_NODE };

/* What a handle names. @context is NULL for what belongs to a device or to the process. */
struct object {
    enum kind kind;
    uint32_t slot;
    struct context *context;
};

struct clock {
    unsigned count;
    struct clock_entry {
        uint64_t id, position;
    } *entries;
};

/* Positions on an in-order line of operations. Kept by its stream and by every point on it. */
struct timeline {
    unsigned references;
    uint64_t id, submitted, completed;
    struct clock known;        /* what its later work comes after */
    struct operation *blocked; /* heads of queues that wait for it, by .blocked_next */
};

struct point {
    struct timeline *timeline; /* NULL: no work at all */
    uint64_t position;
};

struct operation {
    struct operation *next, *blocked_next;
    struct timeline *blocked_on;
    struct queue *queue;
    struct context *context;
    struct point at;
    struct point *after; /* what must be complete before it runs, beside the order of its queue */
    unsigned after_count;
    bool is_host;        /* for a thread of host functions */
    uint32_t opens;      /* devices whose memory must be accessible at its own addresses, a bit each */
    struct range **held; /* [held_count] ranges that it names */
    unsigned held_count;
    bool runs_in_error;                          /* a callback */
    size_t bytes;                                /* of the whole operation, if it can be a node of a graph */
    void (*copied)(struct operation *operation); /* a node was copied to be run */
    /* Without the lock. NULL: takes no time. Returns a sticky error or 0. */
    int (*run)(struct operation *operation);
    /* With the lock, when it is over or was dropped with the error of its context. Frees the operation. */
    void (*over)(struct operation *operation, int status);
};

/* A hardware queue: operations of one or more streams, strictly in order of submission. */
struct queue {
    struct device *device;
    struct operation *head, **tail;
    uint64_t length;
    bool is_running, is_listed, is_dirty;
    struct queue *ready_next, *dirty_next, *device_next;
};

struct stream {
    struct object object;
    struct timeline *timeline;
    struct queue *queue;
    unsigned flags;
    int priority;
    uint64_t id;
    bool is_destroyed, is_blocking;
    uint64_t thread;         /* the owner's number for a per-thread stream */
    struct capture *capture; /* that it is part of, and the nodes that it is at */
    struct node_set *captured_at;
    struct stream *context_next; /* destroyed ones included: legacy work waits for them */
};

struct context {
    struct object object;
    struct device *device;
    void *handle;
    unsigned flags;
    int error; /* sticky */
    bool is_destroyed, is_primary;
    uint64_t id;
    uint32_t peers;  /* devices whose memory kernels may use */
    uint64_t loader; /* number of the thread that loads a kernel lazily: calls of others wait; 0: none */
    struct stream *legacy, *streams;
    struct context *all_next;
};

struct device {
    int ordinal;
    struct context *primary;
    unsigned retained, primary_flags;
    uint32_t denied; /* devices that it cannot access, a bit each */
    bool is_stopped;
    uint64_t steps;    /* operations that may run while it is stopped */
    uint64_t fault_in; /* the operation that faults, counted down; 0: none */
    int fault_code;
    struct queue *queues;
    struct queue **hardware;
    unsigned hardware_count, streams_created;
    unsigned char *base, *alias; /* the same memory at its device addresses and always accessible */
    int file;
    size_t memory_bytes, used_bytes, next_offset;
    unsigned opened; /* kernels that use the memory now */
    struct pool *pool;
    struct module *modules;
};

enum range_kind { DEVICE_RANGE, PINNED_RANGE, REGISTERED_RANGE, MODULE_RANGE };

struct range {
    enum range_kind kind;
    uint64_t base, id;
    size_t bytes;
    struct device *device;
    struct context *context;
    struct module *module;
    bool is_async, is_freed; /* freed: cuMemFreeAsync was called, the operation is still to come */
    unsigned references;
    unsigned pending;   /* operations in flight that name it */
    struct point ready; /* allocated or, if freed, given back */
    struct point *uses; /* [use_count] of stream-ordered memory, the last one of each timeline */
    unsigned use_count;
};

struct state {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* something completed, or a context failed */
    unsigned sleepers;
    bool is_initialised, is_shut_down;
    _Atomic int process; /* that called cuInit */
    struct settings settings;
    struct device devices[MAX_DEVICES];
    struct context *contexts;
    uint64_t next_id;
    uint64_t rerecords;      /* see emulator_rerecords() */
    unsigned host_functions; /* queued or running */
};

extern struct state emulator__state;

/* The entry point that this thread is in. */
struct call {
    unsigned entry;
    struct context *context; /* current, if any */
    bool is_per_thread;      /* stream 0 is the thread's */
};

extern _Thread_local struct call emulator__call __attribute__((tls_model("initial-exec")));
extern _Thread_local bool emulator__in_host_function __attribute__((tls_model("initial-exec")));

/* ---- settings.c ---- */

/* In a child of the process that called cuInit: there the lock may be held for ever. Without the lock. */
bool emulator__is_forked(void);
/* The pseudo-random number that follows; below @limit. */
uint64_t emulator__random(uint64_t limit);
void emulator__report(const char *format, ...) __attribute__((format(printf, 1, 2)));
void emulator__shut_down_locked(void);

/* ---- calls.c ---- */

const char *emulator__entry_name(unsigned entry);
void emulator__count_blocked(uint64_t ns);
void emulator__count_switch(void);
void *emulator__entry_find(const char *base, int version, bool is_per_thread, int *status);
#define CALL(name, since, kind, parameters, arguments) int emulator__##name parameters;
#define CALL_PTSZ                                      CALL
#define CALL_PTDS                                      CALL
#define OLD(name)
#include "calls.h"
#undef CALL
#undef CALL_PTSZ
#undef CALL_PTDS
#undef OLD

/* ---- handle.c ---- */

/* NULL without memory. */
void *emulator__handle_create(struct object *object);
/* NULL, and a report, if @handle is none of @kind that lives. */
void *emulator__handle_find(const void *handle, enum kind kind);
/* The same without a report. */
void *emulator__handle_peek(const void *handle, enum kind kind);
void *emulator__handle_of(const struct object *object);
void emulator__handle_destroy(struct object *object);
/* The next object of a context, or of all if NULL; start with *slot = 0. */
struct object *emulator__handle_next(const struct context *context, uint32_t *slot);
const char *emulator__kind_name(enum kind kind);

/* ---- context.c ---- */

struct device *emulator__device(int ordinal);
/* 0, or 709 and others, for work in a context: of a handle that was found. */
int emulator__context_status(const struct context *context);
struct context *emulator__context_create(struct device *device, unsigned flags);
void emulator__context_destroy(struct context *context);

/* ---- current.c ---- */

/* NULL: none. One that was destroyed is recognised by that. */
struct context *emulator__current(void);
/* Off the calling thread's stack, if it is its top. */
void emulator__current_drop(void *handle);
/* Threads that end from now on are looked at. */
void emulator__current_watch(void);
/* Reports what the calling thread pushed and did not pop. */
void emulator__current_check(void);

/* ---- engine.c ---- */

struct timeline *emulator__timeline_create(void);
void emulator__timeline_release(struct timeline *timeline);
/* Returns @point. */
struct point emulator__point_retain(struct point point);
bool emulator__point_is_complete(struct point point);
/* Blocks until it is complete, or the context failed; returns the context's error. */
int emulator__point_wait(struct point point, struct context *context);
struct queue *emulator__queue_assign(struct device *device);
/**
 * Queue @operation on @stream; it belongs to the engine then. Blocks while the launch queue is full. The point of the
 * operation is returned without a reference.
 */
struct point emulator__submit(struct stream *stream, struct operation *operation);
/* A dependence of an operation that is not submitted yet. */
void emulator__operation_after(struct operation *operation, struct point point);
void emulator__operation_hold(struct operation *operation, struct range *range);
void emulator__operation_free(struct operation *operation);
void emulator__context_fail_locked(struct context *context, int code);
void emulator__clock_changed(struct device *device);
void emulator__wake(void);
void emulator__host_wait(void);
/* With a seed: let other threads in, in the middle of a call on an object that only one may use at a time. */
void emulator__let_others_in(void);
uint64_t emulator__now_ns(void);
/* Something of it runs or is about to. */
bool emulator__device_is_busy(const struct device *device);
/* Zeroed; ends the process if there is none: the emulator's own memory is not what is tested. */
void *emulator__allocate(size_t bytes);

/* ---- order.c ---- */

void emulator__clock_join(struct clock *clock, const struct clock *other);
/* All that @timeline's next operation would come after; the entries of @clock are used again. */
void emulator__clock_snapshot(struct clock *clock, const struct timeline *timeline);
/* Later work of @timeline comes after all that was submitted to @other. */
void emulator__clock_follow(struct timeline *timeline, const struct timeline *other);
/* Reports what is not ordered. */
void emulator__order_use(struct range *range, struct point at);
void emulator__order_free(struct range *range, struct timeline *timeline);
void emulator__order_forget(struct range *range);

/* ---- worker.c ---- */

/* A queue whose head can run is ready. */
void emulator__worker_wake(struct queue *queue);
/* Called by a worker: the head of @queue has run. */
void emulator__queue_ran(struct queue *queue, int status);

/* ---- capture.c, graph.c ---- */

/* Instead of a submission; the operation becomes a node. */
struct point emulator__capture_add(struct stream *stream, struct operation *operation);
/*
 * What a capture does not allow invalidates it; these return the error, or 0 if nothing captures: for a use of @stream
 * itself, of all of a context, of the legacy stream, and for calls that are unsafe beside a capture.
 */
int emulator__capture_forbid(struct stream *stream);
int emulator__capture_forbid_context(struct context *context);
int emulator__capture_forbid_legacy(struct context *context);
int emulator__capture_forbid_unsafe(void);
/* Whether the stream's capture is invalidated. */
int emulator__capture_status(const struct stream *stream);
/* A new handle. */
struct graph_body;
void *emulator__graph_of(struct graph_body *body);

/* ---- launch.c, stream.c: operations for nodes ---- */

int emulator__kernel_operation(const struct cuda_kernel_node *kernel, struct operation **operation_out);
struct operation *emulator__host_operation(void (*function)(void *arg), void *arg);

/* ---- stream.c ---- */

uint64_t emulator__thread_number(void);

/* The stream that a handle means, 0, 1 and 2 included; NULL with *code set. */
struct stream *emulator__stream_find(const void *handle, int *code);
struct stream *emulator__stream_create(struct context *context, unsigned flags, int priority);
/* What was submitted to it last, without a reference. */
struct point emulator__stream_tail(const struct stream *stream);
/* Where the synchronous calls go. */
struct stream *emulator__stream_default(struct context *context);
/* Complete when all that was submitted so far to @context is. */
int emulator__context_drain(struct context *context);
int emulator__stream_drain(struct stream *stream);

/* ---- event.c ---- */

void emulator__event_free(struct object *object);

/* ---- value.c ---- */

/* Names the waits for values that are not over. */
void emulator__values_report(void);

/* ---- guard.c ---- */

bool emulator__arena_create(struct device *device);
/* A bit per device; they nest. */
void emulator__memory_open(uint32_t devices);
void emulator__memory_close(uint32_t devices);
/* The device whose memory @address would be, allocated or not; or NULL. */
struct device *emulator__arena_of(uint64_t address);
/* Where an operation that is no kernel reaches @address; for a module's variables only while memory is open. */
void *emulator__view(uint64_t address);
void emulator__guard_install(void);
/* Run a kernel's code; returns 0 or the sticky error that it ended with. Without the lock. */
int emulator__guard_run(void (*body)(void *arg), void *arg);
void emulator__guard_open_all(void);
void emulator__guard_module(const struct module *module, bool is_open);

/* ---- memory.c ---- */

struct range *emulator__range_find(uint64_t address);
struct range *emulator__range_add(enum range_kind kind, uint64_t base, size_t bytes, struct context *context);
/* Takes it out of the table and gives the memory back. */
void emulator__range_remove(struct range *range);
void emulator__range_release(struct range *range);
/* First range of a context at or behind *index; NULL at the end. */
struct range *emulator__range_next(const struct context *context, size_t *index);
/* 0 or an error code and, in *range_out, the range that holds [address, address + bytes) entirely. */
int emulator__range_check(uint64_t address, size_t bytes, struct range **range_out);
uint64_t emulator__arena_take(struct device *device, size_t bytes);
void emulator__arena_return(struct device *device, uint64_t address, size_t bytes);

/* ---- pool.c ---- */

struct pool {
    struct object object;
    struct device *device;
    int follow_event, opportunistic, internal_dependencies;
    uint64_t threshold, reserved_high, used, used_high;
};

struct pool *emulator__pool_create(struct device *device);

#endif

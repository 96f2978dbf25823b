/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_CONTEXT_H
#define WEIR_CONTEXT_H

#include <stddef.h>
#include <stdint.h>

#include <weir/error.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

#define WEIR_VERSION_MAJOR 0
#define WEIR_VERSION_MINOR 1
#define WEIR_VERSION_PATCH 0

/** Version of the library at run time, major * 10000 + minor * 100 + patch. Any thread. Never blocks. */
int weir_version(void);

/** Owns devices, workers and scopes. Several contexts may live in one process; they share nothing. */
struct weir_context;
/** One device of a context; owned by the context, valid until weir_context_destroy(). */
struct weir_device;

/** All zero is the default; set .size to sizeof(struct weir_context_options). */
struct weir_context_options {
    size_t   size;
    uint32_t workers;            /* threads for host tasks, up to 256; 0: WEIR_WORKERS, else one per core, at least 2 */
    uint32_t host_devices;       /* embedded CPU devices, up to 254; 0: WEIR_HOST_DEVICES, else 1 */
    uint32_t window;             /* tasks in flight per scope before back-pressure, up to 2^24; 0: WEIR_WINDOW, or 4096 */
    uint32_t streams_per_device; /* streams that weir opens on its own, up to 512; 0: WEIR_STREAMS, or the backend's advice */
};

/**
 * Make a context with the embedded CPU devices (and whatever other backends find).
 * @options  borrowed for the call; NULL: all defaults.
 * @context_out  set on success only; destroy with weir_context_destroy().
 * Returns  WEIR_OK; WEIR_E_VERSION (options->size unknown); WEIR_E_INVALID (a number is beyond its limit);
 *          WEIR_E_NO_MEMORY; WEIR_E_SYSTEM.
 * Threads  any thread. Starts no thread before the first task that needs one.
 */
WEIR_MUST_CHECK int weir_context_create(const struct weir_context_options *options, struct weir_context **context_out);

/**
 * Finish all pending work, stop the workers, close the devices. Every scope must have been destroyed and
 * every task handle released.
 * Returns  WEIR_OK; WEIR_E_BUSY (a scope is alive, or a task handle was not released: nothing was done);
 *          WEIR_E_FORKED (called in the child of a fork: the memory is left alone).
 * Threads  any one thread; no other call may use the context. Blocks until the work is finished.
 */
WEIR_MUST_CHECK int weir_context_destroy(struct weir_context *context);

/** Number of devices of all backends. Any thread. Never blocks. */
int weir_device_count(const struct weir_context *context);

/**
 * The device with that number, 0 .. weir_device_count() - 1.
 * Returns  borrowed from the context; NULL for a bad number (text in weir_error_text()).
 */
struct weir_device *weir_device_get(struct weir_context *context, int number);

/** Name such as "host:0", owned by the device. Any thread. Never blocks. */
const char *weir_device_name(const struct weir_device *device);
/** Number of the device in its context. Any thread. Never blocks. */
int weir_device_number(const struct weir_device *device);

/**
 * Memory on a device. On the CPU device it is ordinary memory of its own.
 * @bytes  0 is WEIR_E_INVALID.
 * @address_out  set on success only; free with weir_device_free().
 * Returns  WEIR_OK; WEIR_E_NO_MEMORY; WEIR_E_DEVICE.
 * Threads  any thread. May block in the device's driver.
 */
WEIR_MUST_CHECK int weir_device_alloc(struct weir_device *device, size_t bytes, void **address_out);
/** Give memory of weir_device_alloc() back; no pending task may use it. NULL is allowed. Any thread. */
WEIR_MUST_CHECK int weir_device_free(struct weir_device *device, void *address);

/** What was done with tasks and edges; a snapshot, each number only grows. */
struct weir_counters {
    uint64_t tasks;            /* submitted */
    uint64_t tasks_device;     /* of these for a device */
    uint64_t inner;            /* of these no task of the program: what weir_scope_wait_for() makes, parts of OpenMP's tasks */
    uint64_t completed;        /* finished, failed and cancelled ones included */
    uint64_t failed;           /* whose own work failed */
    uint64_t cancelled;        /* a predecessor failed: not run, except on a device if issued before that was known */
    uint64_t edges;            /* dependences found, the next six lines add up to it */
    uint64_t edges_done;       /* predecessor had completed: nothing to do */
    uint64_t edges_stream;     /* same stream: nothing to do */
    uint64_t edges_implied;    /* the consumer's stream already waits for it: nothing to do */
    uint64_t edges_event;      /* wait queued on the consumer's stream */
    uint64_t edges_host;       /* host task or external event on one side: the task waited for completion */
    uint64_t edges_host_only;  /* two devices that cannot wait for each other, or no events: through the host */
    uint64_t event_waits;      /* waits queued on streams */
    uint64_t fences;           /* join nodes made for large groups of readers or inoutset tasks */
    uint64_t run_here;         /* device tasks so short that the thread that submitted them ran them (OpenMP, CPU device) */
    uint64_t issued_late;      /* device tasks issued after the call that made them, when what they were behind had come so far */
    uint64_t window_waits;     /* submissions that waited or helped because the window was full */
    uint64_t window_exceeded;  /* submissions past the window because nothing in flight was sure to finish */
    uint64_t copies_direct;    /* copies of device tasks that the device made by itself, and their bytes */
    uint64_t bytes_direct;
    uint64_t copies_staged;    /* through pinned memory, in it at the call or out of it when completion was seen (CUDA) */
    uint64_t bytes_staged;
    uint64_t copies_bounced;   /* through pinned memory, by functions of the host in stream order (CUDA) */
    uint64_t bytes_bounced;
    uint64_t peak_in_flight;   /* most tasks of one scope in flight at once */
};

/** Sum over all scopes of the context, past and present. NULL is allowed. Any thread. Takes a short lock. */
void weir_context_counters(struct weir_context *context, struct weir_counters *counters_out);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_HOST_H
#define WEIR_HOST_H

#include <weir/context.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/*
 * The embedded CPU device seen by those who bring their own work: its native stream is an in-order queue of
 * functions, its native event a point on such a queue.
 */

/** The foreign-runtime id of OpenMP interoperability objects of a CPU device: property omp_ipr_fr_id. Their device,
 *  device_context and targetsync are a struct weir_device *, a struct weir_context * and a native stream. */
#define WEIR_INTEROP_RUNTIME 0x77656972

/**
 * Queue a function on a native stream of the CPU device: it runs on a thread of the device, after everything
 * queued before on that stream. It may block; that holds a thread of the device, not one of the host.
 * @native_stream  what weir_task_stream(), an issue function or weir_host_stream_create() gave.
 * @function  returns 0, or a negative status that makes the task fail to which the work belongs.
 * Returns  WEIR_OK; WEIR_E_INVALID; WEIR_E_NO_MEMORY (nothing queued).
 * Threads  calls on one stream must not overlap. Never blocks.
 */
WEIR_MUST_CHECK int weir_host_enqueue(void *native_stream, int (*function)(void *arg), void *arg);

/**
 * A stream of the caller's own on a CPU device, unknown to weir's scheduling until an event of it is imported.
 * Returns  WEIR_OK; WEIR_E_INVALID (not a CPU device); WEIR_E_NO_MEMORY. Destroy with weir_host_stream_destroy().
 * Threads  any thread. Never blocks.
 */
WEIR_MUST_CHECK int weir_host_stream_create(struct weir_device *device, void **native_stream_out);
/** Wait until everything queued on the stream has run. Returns the first negative status since the last call. Blocks. */
WEIR_MUST_CHECK int weir_host_stream_wait(void *native_stream);
/** Destroy an own stream after its queued work has run. NULL is allowed. Blocks for that work. */
void weir_host_stream_destroy(void *native_stream);

/**
 * An event that stands for everything queued on the stream so far.
 * @native_event_out  set on success only; destroy with weir_host_event_destroy(), also while pending.
 * Returns  WEIR_OK; WEIR_E_INVALID; WEIR_E_NO_MEMORY. Threads: as weir_host_enqueue(). Never blocks.
 */
WEIR_MUST_CHECK int weir_host_event_record(void *native_stream, void **native_event_out);
/** Destroy an event; work that waits for it still does. NULL is allowed. Any thread. Never blocks. */
void weir_host_event_destroy(void *native_event);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif

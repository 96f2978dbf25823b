/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_DEVICES_HOST_HOST_H
#define WEIR_DEVICES_HOST_HOST_H

/*
 * What the embedded CPU backend offers beyond its ops table (devices/device.h) and beyond include/weir/host.h, whose
 * functions it defines except weir_host_stream_create(): that one takes a device of a context, so exec/ defines it with
 * weir__host_stream_open() on the backend's device handle.
 *
 * Positions of an exec/ stream may have gaps: weir_host_event_record() on its native handle uses one up, but does not
 * end a stretch of work, so status() still reports a failure under the position that record() returns next.
 *
 * A thread inside sync() is a thread of the device meanwhile: it runs kernels, and may call notice->reached().
 */

#include <stdint.h>

#include <weir/error.h>

/*
 * Open a stream of the user's own. @device is what device_open() gave. Closed by weir_host_stream_destroy().
 * Returns  WEIR_OK; WEIR_E_INVALID; WEIR_E_NO_MEMORY; WEIR_E_FORKED. Any thread. Never blocks.
 */
WEIR_MUST_CHECK int weir__host_stream_open(void *device, void **native_stream_out);

/* Number of the CPU device whose kernel or function the calling thread runs (also inline in sync()); -1 elsewhere. */
int weir__host_current_device(void);

/* What the threads of a device did; a snapshot. */
struct weir__host_threads {
    uint32_t started; /* threads that exist */
    uint32_t parked;  /* of these asleep without work */
    uint64_t wakes;   /* threads woken or started since the device was opened */
};
void weir__host_device_threads(void *device, struct weir__host_threads *threads_out);

#endif

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_DEVICES_CUDA_CUDA_H
#define WEIR_DEVICES_CUDA_CUDA_H

/* What the CUDA backend offers beyond its ops table (devices/device.h). How it works: docs/cuda.md. */

#include <devices/device.h>

/* How copies between host and device were made, and what had to be asked of the driver; of one device, since it was opened.
 * X: field, what it counts. */
#define WEIR__CUDA_COUNTERS(X)                                                                                         \
    X(copies_direct, "copies of pinned memory")                                                                        \
    X(copies_staged, "copies to the device that left the host's memory at the call")                                   \
    X(copies_late, "copies to the host whose last step was done when completion was seen")                             \
    X(copies_ordered, "copies with a step of the host in stream order")                                                \
    X(settle_calls, "steps of the host in stream order for others that wait for a copy to the host")                   \
    X(pinned_blocks, "blocks of pinned memory allocated")                                                              \
    X(memory_blocks, "blocks of device memory allocated")                                                              \
    X(memory_reused, "blocks of device memory used again")                                                             \
    X(streams_created, "streams created")                                                                              \
    X(events_created, "events created")                                                                                \
    X(waiters_started, "threads started that sleep for events")                                                                                \
    X(context_switches, "calls on threads that had another context")

struct weir__cuda_counters {
#define WEIR_X(field, text) uint64_t field;
    WEIR__CUDA_COUNTERS(WEIR_X)
#undef WEIR_X
};

/* @device: of weir__cuda_ops (not of the adapter). A snapshot. Any thread. */
void weir__cuda_device_counters(void *device, struct weir__cuda_counters *counters_out);

#endif

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_INTEROP_LEARNED_H
#define WEIR_INTEROP_LEARNED_H

/*
 * What the entry of a target task was seen to do. Nothing in the program tells whether an entry hands work to a device
 * or is the host's version of a region (an if clause makes one of each), and host code must not run before its
 * predecessors are complete. So the first run of each entry waits, and what it did is remembered.
 */

#include <stdint.h>

enum weir__learned {
    WEIR__LEARNED_NOTHING,
    WEIR__LEARNED_OFFLOADS, /* it only queued work on the device: it may run as soon as that can be queued */
    WEIR__LEARNED_MAPPER,   /* …but a mapper reads the host's data while it does so */
    WEIR__LEARNED_HOST,     /* it ran on the host */
};

typedef int32_t (*weir__task_routine)(int32_t gtid, void *task);

/* Any thread. Never blocks. */
enum weir__learned weir__learned_get(weir__task_routine entry, int64_t device);
/* The last one wins. Without room nothing is remembered. Any thread. */
void weir__learned_set(weir__task_routine entry, int64_t device, enum weir__learned what);
/* A library is gone: other code may come to the addresses of its entries. */
void weir__learned_forget(void);

#endif

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_INTEROP_FRAME_H
#define WEIR_INTEROP_FRAME_H

/*
 * The tasks of libomp whose code runs on a thread, as far as weir stands around it and notices their end: implicit
 * tasks of parallel regions, explicit tasks, and the implicit task of a thread outside of any region, which ends with
 * the thread.
 */

#include <stdbool.h>
#include <stdint.h>

struct weir__siblings;

struct weir__frame {
    const void *slot; /* of the task, as in siblings.h */
    struct weir__frame *outer;
    bool is_implicit; /* of a parallel region */
};

/* A task's code begins on the calling thread; @frame stays until it ends. */
void weir__frame_enter(struct weir__frame *frame, int32_t gtid, bool is_implicit);
/* It has ended. An implicit task waits: its tasks must be complete before the barrier at the end of the region. */
void weir__frame_leave(struct weir__frame *frame, int32_t gtid);

/* Will the end of the task that the calling thread executes, which has these siblings, be noticed? */
bool weir__frame_covers(const struct weir__siblings *siblings);

#endif

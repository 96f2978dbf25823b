/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_INTEROP_ANCHOR_H
#define WEIR_INTEROP_ANCHOR_H

/*
 * What libomp knows of target tasks that are in flight here: one proxy task, a child of the generating task and member
 * of its taskgroup, for as many of them as there are. libomp's taskwait, taskgroup and barriers wait for it as for any
 * child; it completes when the last target task does, and the next one begins another.
 */

#include <stdbool.h>
#include <stdint.h>

struct weir__abi_ident;
struct weir__anchor;
struct weir__siblings;

/* One more target task of the generating task that the calling thread executes. NULL: libomp gives no task. Never
 * blocks. */
struct weir__anchor *weir__anchor_add(struct weir__siblings *siblings, struct weir__abi_ident *where, int32_t gtid);
/* It is complete. Any thread. Never blocks. Afterwards the anchor is the caller's no more. */
void weir__anchor_drop(struct weir__anchor *anchor);
/* Are all of them complete? The generating thread. */
bool weir__anchor_is_idle(const struct weir__anchor *anchor);

/* A taskgroup begins or has ended. The generating thread. */
void weir__anchor_push(struct weir__siblings *siblings);
void weir__anchor_pop(struct weir__siblings *siblings);
/* The siblings are given to another generating task; nothing is in flight. */
void weir__anchor_reset(struct weir__siblings *siblings);

#endif

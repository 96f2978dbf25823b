/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_INTEROP_ANCHOR_H
#define WEIR_INTEROP_ANCHOR_H

/*
 * What libomp knows of target tasks that are in flight here: one proxy task, a child of the generating task and member
 * of its taskgroup, for as many of them as there are. libomp's taskwait, taskgroup and barriers wait for it as for any
 * child.
 *
 * Where weir stands around the generating task (frame.h) the anchor is held: the proxy stays open until that task waits
 * or ends, and is then completed on its own thread, which leaves nothing behind in libomp. Otherwise whoever takes the
 * last target task away completes it, and the next one begins another.
 */

#include <stdbool.h>
#include <stdint.h>

struct weir__abi_ident;
struct weir__anchor;
struct weir__siblings;

/* One more target task of the generating task that the calling thread executes. NULL: no memory. Never blocks. */
struct weir__anchor *weir__anchor_add(struct weir__siblings *siblings, struct weir__abi_ident *where, int32_t gtid);
/* It is complete. Any thread. Never blocks. Afterwards the anchor is the caller's no more. */
void weir__anchor_drop(struct weir__anchor *anchor);
/* Are all of them complete? The generating thread. */
bool weir__anchor_is_idle(const struct weir__anchor *anchor);
/* Are those of all its taskgroups? The generating thread. */
bool weir__anchor_all_idle(const struct weir__siblings *siblings);

/* The generating task is about to wait in libomp for the tasks of its innermost taskgroup, or of @all, or ends: nothing
 * is held. The generating thread. */
void weir__anchor_release(struct weir__siblings *siblings, int32_t gtid, bool all);
/* Is something held? Nobody uses the siblings. */
bool weir__anchor_is_held(const struct weir__siblings *siblings);

/* A taskgroup begins or has ended. The generating thread. */
void weir__anchor_push(struct weir__siblings *siblings);
void weir__anchor_pop(struct weir__siblings *siblings);
/* The siblings are given to another generating task; nothing is in flight. */
void weir__anchor_reset(struct weir__siblings *siblings);

#endif

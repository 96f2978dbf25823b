/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_INTEROP_INTEROP_ORDER_H
#define WEIR_INTEROP_INTEROP_ORDER_H

/*
 * What an interop construct orders (OpenMP 5.2 section 14.1): it generates an empty task with the depend clauses of the
 * construct. Foreign work that was queued on the object's stream before comes before that task, and what is queued
 * later comes behind it. Without nowait the task is an included one: the host waits for it.
 */

#include <stdbool.h>
#include <stdint.h>

struct weir__abi_depend;
struct weir__abi_ident;
struct weir__interop;

enum weir__interop_action { WEIR__INTEROP_INIT, WEIR__INTEROP_USE, WEIR__INTEROP_DESTROY };

/*
 * The task of one construct.
 * @action  after DESTROY nothing more is queued: the stream goes back behind what it has.
 * @depends  depends[n], read before return and left as it is.
 * @nowait   never blocks, where weir stands in front of libomp, and the device can hold foreign work that waits for a
 * task of the host. Elsewhere the host waits. Returns  WEIR_OK; what weir__interop_need_stream() returns: nothing has
 * happened. If foreign work fails the program ends with a message. Threads  the one that executes the construct; one at
 * a time for one object. BLOCKS without @nowait; runs tasks then.
 */
int weir__interop_order(struct weir__interop *object, enum weir__interop_action action, struct weir__abi_ident *where,
                        int32_t gtid, int32_t n, const struct weir__abi_depend *depends, bool nowait);

#endif

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_INTEROP_INTEROP_IMPLICIT_H
#define WEIR_INTEROP_INTEROP_IMPLICIT_H

/*
 * Interoperability objects that the runtime keeps for a thread of libomp: those of dispatch constructs with append_args
 * (OpenMP 6.0 section 9.6.3). A thread gets the same object again for the same device, type and foreign runtime, and
 * waits for the foreign work on it where it waits for its tasks.
 */

#include <stdint.h>

#include "interop/interop_object.h"

struct weir__abi_ident;

/* As weir__interop_create(); the object stays the runtime's. Any thread. */
WEIR_MUST_CHECK int weir__interop_implicit_get(int32_t gtid, int64_t device, enum weir__interop_type type,
                                               int32_t nprefers, const struct weir__abi_interop_prefer *prefers,
                                               struct weir__interop **object_out);
/* Wait for the foreign work on those that the thread was given since it last did. The thread. BLOCKS. */
void weir__interop_implicit_sync(struct weir__abi_ident *where, int32_t gtid);

#endif

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_INTEROP_REDUCTION_H
#define WEIR_INTEROP_REDUCTION_H

/*
 * Reductions over the teams of a kernel for a GPU. Each team leaves its part in a buffer, and the last one adds them up;
 * where the buffer is, and how many teams are done, the kernel finds behind its leading pointer. A launch has memory of its
 * own for that, since several may run at once.
 */

#include <stdbool.h>

#include <weir/error.h>

#include "interop/data.h"
#include "interop/shape.h"

/* Does the kernel find memory behind its leading pointer? */
static inline bool weir__reduction_is_any(const struct weir__shape *shape)
{
    return shape->known && shape->reduction_bytes > 0 && shape->reduction_records > 0;
}

/*
 * Before the launch: memory is taken and what the kernel expects there is queued.
 * @region   open.
 * @memory_out   on the device, for weir__reduction_end(); NULL: the kernel reduces nothing over teams, or a failure.
 * @pointer_out  for the kernel; 0 if it has no use for it.
 * Returns  WEIR_OK; WEIR_E_NO_MEMORY and others, with a text. Threads: that of the region.
 */
WEIR_MUST_CHECK int weir__reduction_begin(struct weir__region *region, const struct weir__shape *shape,
                                          void **memory_out, uint64_t *pointer_out);
/* Behind the launch: the memory is free when the stream comes to this place. */
void weir__reduction_end(struct weir__region *region, void *memory);

#endif

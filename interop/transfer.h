/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_INTEROP_TRANSFER_H
#define WEIR_INTEROP_TRANSFER_H

/* Copies of blocks between any two places, for the copy routines of omp.h. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/error.h>

struct weir__target;

/*
 * A block of @ndims dimensions, the last one contiguous, out of one array into another. A plain copy is a block of one
 * dimension of bytes, without *_dims.
 */
struct weir__transfer {
    void *to;
    const void *from;
    struct weir__target *to_target, *from_target; /* NULL: the host */
    size_t element_bytes;
    uint32_t ndims;
    const size_t *volume;                    /* volume[ndims], in elements */
    const size_t *to_offsets, *from_offsets; /* of the block's first element, per dimension */
    const size_t *to_dims, *from_dims;       /* lengths of the whole arrays; [0] is not needed, NULL if ndims is 1 */
};

/* The vectors and sizes of omp_target_memcpy_rect() and its asynchronous twin. The targets are left NULL. False: an
 * argument is missing or 0. */
bool weir__transfer_rect(struct weir__transfer *transfer, void *to, const void *from, size_t element_bytes, int ndims,
                         const size_t *volume, const size_t *to_offsets, const size_t *from_offsets,
                         const size_t *to_dims, const size_t *from_dims);

/* WEIR_OK; WEIR_E_INVALID if the block does not fit into one of the arrays or sizes overflow. Reads the vectors only.
 */
WEIR_MUST_CHECK int weir__transfer_check(const struct weir__transfer *transfer);

/*
 * Do it. The vectors are read before return; the memory belongs to the copy until it is complete.
 * @nowait  as in weir__construct_open().
 * Returns  WEIR_OK: complete, or left behind as a handle; or a code, and nothing was done. A copy that fails later ends
 *          the program.
 * Threads  any. Blocks unless it is left behind.
 */
WEIR_MUST_CHECK int weir__transfer_run(const struct weir__transfer *transfer, bool nowait);

/* The same for setting @bytes bytes. @target NULL: the host. */
WEIR_MUST_CHECK int weir__transfer_fill(struct weir__target *target, void *to, uint8_t value, size_t bytes,
                                        bool nowait);

#endif

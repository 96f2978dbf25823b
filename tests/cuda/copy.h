/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* A copy of a box of bytes, to which all calls that copy are brought. */
#ifndef WEIR_EMULATOR_COPY_H
#define WEIR_EMULATOR_COPY_H

#include "internal.h"

struct copy_side {
    uint64_t address; /* of the first byte that is copied */
    int expected;     /* CUDA_MEMORY_HOST, CUDA_MEMORY_DEVICE, or 0 if the address tells */
    size_t pitch;     /* bytes from row to row */
    size_t rows;      /* from plane to plane */
    /* Found out by the two functions below. */
    bool is_device;
    struct range *range; /* NULL: pageable */
};

struct copy {
    struct copy_side to, from;
    size_t width, height, depth; /* bytes, rows, planes */
};

/* Bytes from the first to the last one of a side. */
size_t emulator__copy_extent(const struct copy *copy, const struct copy_side *side);
int emulator__copy_async(struct copy *copy, void *stream);
int emulator__copy_sync(struct copy *copy);

#endif

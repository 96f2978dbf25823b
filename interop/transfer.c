/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "interop/transfer.h"

#include <stdlib.h>
#include <string.h>

#include <exec/work.h>

#include "interop/construct.h"
#include "interop/runtime.h"

/* ---- geometry ---- */

static int array_check(const struct weir__transfer *transfer, const size_t *offsets, const size_t *dims)
{
    size_t bytes = transfer->element_bytes;
    for (uint32_t d = transfer->ndims; d-- > 0;) {
        size_t end;
        if (__builtin_add_overflow(offsets[d], transfer->volume[d], &end)) return WEIR_E_INVALID;
        if (dims && end > dims[d]) return WEIR_E_INVALID;
        if (__builtin_mul_overflow(bytes, dims ? dims[d] : end, &bytes)) return WEIR_E_INVALID;
    }
    return WEIR_OK;
}

bool weir__transfer_rect(struct weir__transfer *transfer, void *to, const void *from, size_t element_bytes, int ndims,
                         const size_t *volume, const size_t *to_offsets, const size_t *from_offsets,
                         const size_t *to_dims, const size_t *from_dims)
{
    if (!to || !from || ndims < 1 || !element_bytes || !volume || !to_offsets || !from_offsets || !to_dims ||
        !from_dims)
        return false;
    *transfer = (struct weir__transfer){
        .to = to,
        .from = from,
        .element_bytes = element_bytes,
        .ndims = (uint32_t)ndims,
        .volume = volume,
        .to_offsets = to_offsets,
        .from_offsets = from_offsets,
        .to_dims = to_dims,
        .from_dims = from_dims,
    };
    return true;
}

int weir__transfer_check(const struct weir__transfer *transfer)
{
    if (!transfer->ndims || (transfer->ndims > 1 && (!transfer->to_dims || !transfer->from_dims)))
        return WEIR_E_INVALID;
    int rc = array_check(transfer, transfer->to_offsets, transfer->to_dims);
    return rc ? rc : array_check(transfer, transfer->from_offsets, transfer->from_dims);
}

static bool is_empty(const struct weir__transfer *transfer)
{
    for (uint32_t d = 0; d < transfer->ndims; d++)
        if (!transfer->volume[d]) return true;
    return !transfer->element_bytes;
}

/* Bytes from one index of dimension @d to the next. */
static size_t stride_of(const struct weir__transfer *transfer, const size_t *dims, uint32_t d)
{
    size_t stride = transfer->element_bytes;
    for (uint32_t i = d + 1; i < transfer->ndims; i++) stride *= dims[i];
    return stride;
}

static size_t offset_of(const struct weir__transfer *transfer, const size_t *offsets, const size_t *dims)
{
    size_t offset = 0;
    for (uint32_t d = 0; d < transfer->ndims; d++) offset += offsets[d] * stride_of(transfer, dims, d);
    return offset;
}

/* How many pieces of three dimensions there are. */
static size_t piece_count(const struct weir__transfer *transfer)
{
    size_t n = 1;
    for (uint32_t d = 0; d + 3 < transfer->ndims; d++) n *= transfer->volume[d];
    return n;
}

/* Piece @number: the outer dimensions are its digits, the last three are what a device copies at once. */
static void piece_get(const struct weir__transfer *transfer, size_t number, struct weir__copy *copy)
{
    size_t to = offset_of(transfer, transfer->to_offsets, transfer->to_dims);
    size_t from = offset_of(transfer, transfer->from_offsets, transfer->from_dims);
    uint32_t outer = transfer->ndims > 3 ? transfer->ndims - 3 : 0;
    for (uint32_t d = outer; d-- > 0; number /= transfer->volume[d]) {
        size_t index = number % transfer->volume[d];
        to += index * stride_of(transfer, transfer->to_dims, d);
        from += index * stride_of(transfer, transfer->from_dims, d);
    }
    copy->to = (char *)transfer->to + to;
    copy->from = (const char *)transfer->from + from;
    uint32_t last = transfer->ndims - 1;
    copy->bytes = transfer->volume[last] * transfer->element_bytes;
    for (uint32_t i = 0; i < 2 && i < last; i++) {
        uint32_t d = last - 1 - i;
        copy->count[i] = transfer->volume[d];
        copy->to_pitch[i] = stride_of(transfer, transfer->to_dims, d);
        copy->from_pitch[i] = stride_of(transfer, transfer->from_dims, d);
    }
}

/* ---- doing it ---- */

static void copy_on_host(const struct weir__copy *copy)
{
    size_t rows = copy->count[0] ? copy->count[0] : 1, planes = copy->count[1] ? copy->count[1] : 1;
    for (size_t plane = 0; plane < planes; plane++)
        for (size_t row = 0; row < rows; row++)
            memmove((char *)copy->to + plane * copy->to_pitch[1] + row * copy->to_pitch[0],
                    (const char *)copy->from + plane * copy->from_pitch[1] + row * copy->from_pitch[0], copy->bytes);
}

static int run_on_host(const struct weir__transfer *transfer)
{
    size_t n = piece_count(transfer);
    for (size_t i = 0; i < n; i++) {
        struct weir__copy copy = {.kind = 0};
        piece_get(transfer, i, &copy);
        copy_on_host(&copy);
    }
    return WEIR_OK;
}

static int run_on_device(const struct weir__transfer *transfer, struct weir__target *target, uint32_t kind, void *peer,
                         bool nowait)
{
    struct weir__construct *construct;
    int rc = weir__construct_open(target, "copy", nowait, &construct);
    if (rc) return rc;
    size_t n = piece_count(transfer);
    for (size_t i = 0; i < n && !rc; i++) {
        struct weir__copy copy = {.kind = kind, .peer = peer};
        piece_get(transfer, i, &copy);
        rc = weir__task_copy(construct->task, &copy);
    }
    weir__construct_close(construct, rc);
    return WEIR_OK;
}

/* Devices of two backends: the block is packed into memory of the host between them. */
static int run_through_host(const struct weir__transfer *transfer)
{
    size_t bytes = transfer->element_bytes;
    for (uint32_t d = 0; d < transfer->ndims; d++) bytes *= transfer->volume[d];
    size_t *zeros = calloc(transfer->ndims, sizeof *zeros);
    void *packed = malloc(bytes);
    int rc = zeros && packed ? WEIR_OK : WEIR_E_NO_MEMORY;
    struct weir__transfer half = *transfer;
    half.to = packed;
    half.to_target = NULL;
    half.to_offsets = zeros;
    half.to_dims = transfer->volume;
    if (!rc) rc = weir__transfer_run(&half, false);
    half = *transfer;
    half.from = packed;
    half.from_target = NULL;
    half.from_offsets = zeros;
    half.from_dims = transfer->volume;
    if (!rc) rc = weir__transfer_run(&half, false);
    free(packed);
    free(zeros);
    return rc;
}

int weir__transfer_run(const struct weir__transfer *transfer, bool nowait)
{
    struct weir__target *to = transfer->to_target, *from = transfer->from_target;
    if (is_empty(transfer)) return WEIR_OK;
    if (!to && !from) return run_on_host(transfer);
    if (!from) return run_on_device(transfer, to, WEIR__COPY_TO_DEVICE, NULL, nowait);
    if (!to) return run_on_device(transfer, from, WEIR__COPY_TO_HOST, NULL, nowait);
    if (to == from) return run_on_device(transfer, to, WEIR__COPY_ON_DEVICE, NULL, nowait);
    if (weir__device_ops_of(to->device) != weir__device_ops_of(from->device)) return run_through_host(transfer);
    return run_on_device(transfer, to, WEIR__COPY_PEER, weir__device_handle_of(from->device), nowait);
}

int weir__transfer_fill(struct weir__target *target, void *to, uint8_t value, size_t bytes, bool nowait)
{
    if (!bytes) return WEIR_OK;
    if (!target) {
        memset(to, value, bytes);
        return WEIR_OK;
    }
    struct weir__construct *construct;
    int rc = weir__construct_open(target, "memset", nowait, &construct);
    if (rc) return rc;
    weir__construct_close(construct, weir__task_fill(construct->task, to, value, bytes));
    return WEIR_OK;
}

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "interop/shape.h"

#include <string.h>

#include "interop/decode.h"

enum { USUAL_THREADS = 128, TEAMS_PER_PROCESSOR = 8 };

/* { u8 generic state machine, u8 nested parallelism, u8 mode, i32 least and most threads, i32 least and most teams,
 *   i32 reduction bytes, i32 reduction records, … } */
enum { AT_MODE = 2, AT_THREADS_MOST = 8, AT_TEAMS_LEAST = 12, AT_TEAMS_MOST = 16, AT_REDUCTION = 20, AT_RECORDS = 24 };

static int32_t number_at(const unsigned char *bytes, size_t at)
{
    int32_t value;
    memcpy(&value, bytes + at, sizeof value);
    return value;
}

bool weir__shape_of_mode(const void *bytes, struct weir__shape *out)
{
    uint8_t mode = *(const uint8_t *)bytes;
    *out = (struct weir__shape){.known = mode <= WEIR__SHAPE_GENERIC_SPMD, .mode = mode};
    return out->known;
}

bool weir__shape_of_environment(const void *bytes, struct weir__shape *out)
{
    const unsigned char *at = bytes;
    if (!weir__shape_of_mode(at + AT_MODE, out)) return false;
    out->threads_most = number_at(at, AT_THREADS_MOST);
    out->teams_least = number_at(at, AT_TEAMS_LEAST);
    out->teams_most = number_at(at, AT_TEAMS_MOST);
    out->reduction_bytes = number_at(at, AT_REDUCTION);
    out->reduction_records = number_at(at, AT_RECORDS);
    return true;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint32_t threads_of(const struct weir__shape *shape, const struct weir__kernel_args *args,
                           const struct weir__shape_limits *limits)
{
    uint64_t threads = args->threads[0] > 0 ? (uint64_t)args->threads[0] : USUAL_THREADS;
    if (shape->mode == WEIR__SHAPE_GENERIC) threads += limits->warp;
    /* The compiler has fitted the kernel for so many: with more it cannot be launched. */
    if (shape->threads_most > 0) threads = smaller(threads, (uint64_t)shape->threads_most);
    return (uint32_t)smaller(threads, limits->threads_most);
}

static uint32_t teams_of(const struct weir__shape *shape, const struct weir__kernel_args *args,
                         const struct weir__shape_limits *limits, uint32_t threads)
{
    uint64_t teams = (uint64_t)limits->processors * TEAMS_PER_PROCESSOR;
    if (args->teams[0] < 0) return 1; /* no teams construct */
    if (args->teams[0] > 0) return (uint32_t)smaller((uint64_t)args->teams[0], limits->teams_most);
    if (args->tripcount && shape->mode == WEIR__SHAPE_SPMD)
        teams = smaller(teams, (args->tripcount - 1) / threads + 1);
    else if (args->tripcount)
        teams = smaller(teams, args->tripcount);
    if (shape->teams_most > 0) teams = smaller(teams, (uint64_t)shape->teams_most);
    return (uint32_t)smaller(teams ? teams : 1, limits->teams_most);
}

void weir__shape_choose(const struct weir__shape *shape, const struct weir__kernel_args *args,
                        const struct weir__shape_limits *limits, uint32_t *teams_out, uint32_t *threads_out)
{
    *threads_out = threads_of(shape, args, limits);
    *teams_out = teams_of(shape, args, limits, *threads_out);
}

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_TRACE_READ_H
#define WEIR_TRACE_READ_H

/* A recording as it lies in its file, put in order: for records.c. */

#include <trace/record.h>

/* Records of one slot, one behind the other. */
struct weir__piece {
    uint64_t *words;
    uint64_t used;
    uint64_t slot, sequence;
    bool own; /* words is to be freed; the slot itself */
    uint64_t running;
};

struct weir__records {
    const struct weir__arena *map; /* the whole file, to read */
    size_t bytes;
    const struct weir__arena *live; /* what this process writes to, NULL: another's */
    struct weir__piece *pieces;     /* by slot and sequence */
    size_t npieces, room_pieces;
    struct weir__moment begin, newest;
    double rate; /* nanoseconds a tick */
};

/* Did it happen before the recording began? */
static inline bool weir__records_is_past(const struct weir__records *records, uint64_t ticks)
{
    return ticks < records->begin.ticks;
}

/* Nanoseconds since the recording began; what is before that is 0. */
static inline uint64_t weir__records_ns(const struct weir__records *records, uint64_t ticks)
{
    return ticks > records->begin.ticks ? (uint64_t)((double)(ticks - records->begin.ticks) * records->rate) : 0;
}

#endif

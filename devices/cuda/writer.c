/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/*
 * Which memory of the host work may still write that a stream's next work is ordered behind. A copy to the device from
 * pageable memory may read it at the call only if nothing of that is there; else it reads in stream order. A stream
 * knows the ranges of its own copies to the host; of what other streams or functions do it only knows that there is
 * something (.opaque). All of it is forgotten when the position is seen done. Stream calls alone use this.
 */
#include "internal.h"

/* Acquire: S2, what was written up to there is in place. */
static uint64_t done_of(const struct cuda_stream *stream)
{
    return atomic_load_explicit(&stream->done, memory_order_acquire);
}

void weir__cuda_writes_anything(struct cuda_stream *stream)
{
    stream->opaque = weir__cuda_next_position(stream);
}

void weir__cuda_writes(struct cuda_stream *stream, const void *begin, size_t bytes)
{
    uint64_t done = done_of(stream);
    for (int i = 0; i < WRITERS; i++) {
        if (stream->writers[i].position > done) continue;
        stream->writers[i] =
            (struct cuda_writer){(uintptr_t)begin, (uintptr_t)begin + bytes, weir__cuda_next_position(stream)};
        return;
    }
    weir__cuda_writes_anything(stream);
}

bool weir__cuda_is_written(const struct cuda_stream *stream, const void *begin, size_t bytes)
{
    uint64_t done = done_of(stream);
    uintptr_t first = (uintptr_t)begin, last = first + bytes;
    if (stream->lent || stream->opaque > done) return true;
    for (int i = 0; i < WRITERS; i++) {
        const struct cuda_writer *writer = &stream->writers[i];
        if (writer->position > done && writer->begin < last && first < writer->end) return true;
    }
    return false;
}

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Waiting for a position on the calling thread. A stream that nobody runs is claimed and run here; where it has to wait
 * for another stream the claim is held and the producer comes next, down a list of held streams instead of the stack.
 * When somebody else runs what is needed, the thread looks for work among the producers, spins shortly, and sleeps.
 */
#include "internal.h"

/* A parked stream cannot be claimed: run the first one of those it waits for that can be. true: something was run. */
static bool help_blocked(struct host_stream *stream)
{
    for (;;) {
        /* Acquire: the hints; pairs with the release in park(). They may be stale; what they name exists for ever. */
        if (atomic_load_explicit(&stream->state, memory_order_acquire) != HOST_BLOCKED) return false;
        struct host_stream *producer = atomic_load_explicit(&stream->blocked_on, memory_order_relaxed);
        uint64_t position = atomic_load_explicit(&stream->blocked_position, memory_order_relaxed);
        if (weir__host_stream_reached(producer, position)) return false;
        if (weir__host_stream_claim(producer)) {
            if (weir__host_stream_run(producer, position, 0) != HOST_RUN_BLOCKED)
                weir__host_stream_leave(producer, HOST_RUNNING, producer->reader.done);
            return true;
        }
        stream = producer;
    }
}

static void sleep_for(struct host_stream *stream, uint64_t position)
{
    struct host_waiter waiter = {.position = position};
    if (!weir__host_stream_add_waiter(stream, &waiter)) return;
    weir__host_stream_kick(stream);
    /* Acquire, both: what was done before the position; pair with the release in resume_waiters(). */
    for (unsigned i = 0; i < HOST_SPINS && !atomic_load_explicit(&waiter.word, memory_order_acquire); i++)
        weir__host_relax();
    while (!atomic_load_explicit(&waiter.word, memory_order_acquire)) weir__host_futex_wait(&waiter.word, 0);
}

void weir__host_sync(struct host_stream *stream, uint64_t position)
{
    struct host_stream *held = NULL; /* waits for `stream`; claimed by this thread, as all below it */
    bool claimed = false;
    for (;;) {
        if (claimed || (!weir__host_stream_reached(stream, position) && weir__host_stream_claim(stream))) {
            claimed = false;
            struct host_reader *reader = &stream->reader;
            if (weir__host_stream_run(stream, position, HOST_HOLD) == HOST_RUN_WAITING) {
                reader->held_below = held;
                reader->held_until = position;
                held = stream;
                position = reader->wanted.position;
                stream = reader->wanted.stream;
                continue;
            }
            weir__host_stream_leave(stream, HOST_RUNNING, reader->done);
        } else if (!weir__host_stream_reached(stream, position) && !help_blocked(stream)) {
            sleep_for(stream, position);
        }
        if (!weir__host_stream_reached(stream, position)) continue;
        if (!held) return;
        stream = held;
        held = stream->reader.held_below;
        position = stream->reader.held_until;
        claimed = true;
    }
}

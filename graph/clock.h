/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_GRAPH_CLOCK_H
#define WEIR_GRAPH_CLOCK_H

/*
 * Vector clocks over streams: what a stream is ordered behind, and which waits a consumer therefore needs.
 *
 * Identity of a point in time is (stream id, position). Ids are small, dense and not reused; positions only grow. A
 * stream's knowledge changes only when a wait is queued on it, so a point's snapshot is found in a log of these changes
 * and costs nothing per task. Log entries older than what the stream has completed are never asked for and are dropped.
 *
 * Threads: no function here locks. All calls on one clock are serialised by the caller (exec/ has a short lock per stream).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weir__clock {
    uint32_t  stream;    /* own id */
    uint32_t  width;     /* entries of known[]; ids beyond read as 0 */
    uint64_t *known;     /* known[s]: newest position of stream s that the stream's next work is ordered behind */
    struct weir__clock_change *log; /* ring of changes, oldest first; private to clock.c */
    uint32_t  log_first, log_count, log_capacity;
    uint64_t  forgotten; /* snapshots at positions <= this are answered with nothing known */
    uint64_t  dropped;   /* changes lost because the log was full and no memory was left: waits may be needless */
};

/* What became of one predecessor point when a consumer was issued. */
enum weir__clock_verdict {
    WEIR__CLOCK_NEEDED = 1,    /* a wait must be queued */
    WEIR__CLOCK_KNOWN = 2,     /* the consumer's stream is already ordered behind it */
    WEIR__CLOCK_IMPLIED = 3,   /* implied by the wait for candidate .by */
};

struct weir__clock_candidate {
    uint32_t stream;
    uint32_t verdict;  /* out */
    uint64_t position;
    uint32_t by;       /* out: index of the implying candidate (which is NEEDED); the own index if not IMPLIED */
    uint32_t edges;    /* the caller's: how many edges lead to this point */
};

void weir__clock_init(struct weir__clock *clock, uint32_t stream);
void weir__clock_fini(struct weir__clock *clock);

/* Is the stream's next work ordered behind (stream, position)? The own stream always is. */
static inline bool weir__clock_covers(const struct weir__clock *clock, uint32_t stream, uint64_t position)
{
    return stream == clock->stream || (stream < clock->width && clock->known[stream] >= position);
}

/*
 * What the point (clock's stream, @position) is ordered behind.
 * @vector  vector[width], overwritten; entries the clock does not know are 0; the own entry is @position.
 */
void weir__clock_snapshot(const struct weir__clock *clock, uint64_t position, uint64_t *vector, uint32_t width);

/*
 * Decide for each candidate (other streams' recorded points, not complete) whether @consumer must wait for it: only the
 * maximal points that the consumer does not know yet and that no other needed candidate's snapshot covers.
 * @vectors  vectors[i * width]: snapshot of candidate i, width entries (only read for candidates the consumer does not know).
 * Returns the number of NEEDED candidates. Of two equal points the first is NEEDED, the other IMPLIED by it.
 */
size_t weir__clock_select(const struct weir__clock *consumer, struct weir__clock_candidate *candidates, size_t n,
                          const uint64_t *vectors, uint32_t width);

/*
 * Note that the work from @position on (the consumer's next one) waits for a point with snapshot @vector.
 * Returns 0, or WEIR_E_NO_MEMORY: nothing noted, which is safe (a later wait may be needless). weir__clock_reserve()
 * before makes it succeed.
 */
int weir__clock_wait(struct weir__clock *consumer, uint64_t position, const uint64_t *vector, uint32_t width);
/* vector[s] becomes the larger one of both: a wait for both points. */
void weir__clock_merge(uint64_t *vector, const uint64_t *other, uint32_t width);
int weir__clock_reserve(struct weir__clock *clock, uint32_t width, size_t changes);

/* Would weir__clock_reserve() have nothing to do? */
static inline bool weir__clock_has_room(const struct weir__clock *clock, uint32_t width, size_t changes)
{
    return width <= clock->width && changes <= clock->log_capacity - clock->log_count;
}

/* Positions up to @completed are done: their snapshots will not be asked for again. */
void weir__clock_forget(struct weir__clock *clock, uint64_t completed);

/* Keep the newest @changes, > 0, only. Points before the oldest of them are then known to be ordered behind nothing but
 * their own stream, which is safe: a wait for one implies less. */
void weir__clock_shorten(struct weir__clock *clock, uint32_t changes);

#endif

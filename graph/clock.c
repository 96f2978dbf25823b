/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/*
 * What a stream is ordered behind only grows, and only when a wait is queued on it. So the answer for a position is the
 * newest change at or before it: one log per stream, sorted by position, one full vector per change. The last vector
 * equals known[]. The log is a ring of fixed-size entries in one block; forget() frees its oldest end for reuse, so a
 * clock that is pruned regularly stops allocating once the ring holds the changes of the work in flight.
 */

#include <graph/clock.h>

#include <assert.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif
#include <stdlib.h>
#include <string.h>

#include <weir/error.h>

/* The header is followed by width entries of the vector: entry i of the ring starts at i * (1 + width) words. */
struct weir__clock_change {
    uint64_t position; /* the first record whose work is behind the vector */
    uint64_t vector[];
};

enum { FIRST_CAPACITY = 16, WIDTH_STEP = 8, NONE = UINT32_MAX };

static struct weir__clock_change *entry_at(struct weir__clock_change *log, uint32_t slot, uint32_t width)
{
    return (struct weir__clock_change *)((uint64_t *)log + (size_t)slot * (1 + (size_t)width));
}

/* The i-th oldest change. The capacity is a power of two. */
static struct weir__clock_change *change(const struct weir__clock *clock, uint32_t i)
{
    return entry_at(clock->log, (clock->log_first + i) & (clock->log_capacity - 1), clock->width);
}

void weir__clock_init(struct weir__clock *clock, uint32_t stream)
{
    *clock = (struct weir__clock){.stream = stream};
}

void weir__clock_fini(struct weir__clock *clock)
{
    free(clock->known);
    free(clock->log);
    weir__clock_init(clock, clock->stream);
}

/* Move to a ring of @capacity entries with vectors of @width. Nothing has changed on failure. */
static int resize(struct weir__clock *clock, uint32_t width, uint32_t capacity)
{
    uint64_t *known = clock->known;
    if (width > clock->width) {
        known = calloc(width, sizeof *known);
        if (!known) return WEIR_E_NO_MEMORY;
        if (clock->width) memcpy(known, clock->known, clock->width * sizeof *known);
    }
    struct weir__clock_change *log = calloc(capacity, (1 + (size_t)width) * sizeof(uint64_t));
    if (!log) {
        if (known != clock->known) free(known);
        return WEIR_E_NO_MEMORY;
    }
    for (uint32_t i = 0; i < clock->log_count; i++)
        memcpy(entry_at(log, i, width), change(clock, i), (1 + (size_t)clock->width) * sizeof(uint64_t));
    if (known != clock->known) free(clock->known);
    free(clock->log);
    clock->known = known;
    clock->width = width;
    clock->log = log;
    clock->log_first = 0;
    clock->log_capacity = capacity;
    return WEIR_OK;
}

int weir__clock_reserve(struct weir__clock *clock, uint32_t width, size_t changes)
{
    if (weir__clock_has_room(clock, width, changes)) return WEIR_OK;
    if (changes > UINT32_MAX / 4 - clock->log_count) return WEIR_E_NO_MEMORY;
    uint32_t wide = clock->width;
    if (width > wide) {
        if (width > UINT32_MAX - WIDTH_STEP) return WEIR_E_NO_MEMORY;
        wide = (width + WIDTH_STEP - 1) / WIDTH_STEP * WIDTH_STEP;
    }
    uint32_t capacity = clock->log_capacity ? clock->log_capacity : FIRST_CAPACITY;
    while (capacity - clock->log_count < changes) capacity *= 2;
    return resize(clock, wide, capacity);
}

/* The newest change at or before @position, NULL if nothing was known then. Most questions are about the newest. */
static const struct weir__clock_change *find(const struct weir__clock *clock, uint64_t position)
{
    uint32_t low = 0, high = clock->log_count; /* changes below low are at or before, those from high on are later */
    if (high && change(clock, high - 1)->position <= position) low = high;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (change(clock, middle)->position <= position)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? change(clock, low - 1) : NULL;
}

void weir__clock_snapshot(const struct weir__clock *clock, uint64_t position, uint64_t *vector, uint32_t width)
{
    const struct weir__clock_change *found = position > clock->forgotten ? find(clock, position) : NULL;
    uint32_t common = 0;
    if (found) {
        common = width < clock->width ? width : clock->width;
        memcpy(vector, found->vector, common * sizeof *vector);
    }
    if (common < width) memset(vector + common, 0, (width - common) * sizeof *vector);
    if (clock->stream < width) vector[clock->stream] = position;
}

static bool vector_covers(const uint64_t *vector, uint32_t width, const struct weir__clock_candidate *point)
{
    return point->stream < width && vector[point->stream] >= point->position;
}

/*
 * Keeps the maximal candidates seen so far in a list threaded through .by. A new one either falls to a member of the
 * list, or joins it and throws out the members that it covers. Coverage is transitive, so those thrown out need not be
 * looked at again; whatever implies them is found at the end by following .by to a candidate that stayed.
 */
size_t weir__clock_select(const struct weir__clock *consumer, struct weir__clock_candidate *candidates, size_t n,
                          const uint64_t *vectors, uint32_t width)
{
    uint32_t first = NONE;
    size_t needed = 0;
    assert(n < NONE);
    for (uint32_t i = 0; i < n; i++) {
        struct weir__clock_candidate *one = &candidates[i];
        one->by = i;
        one->verdict = WEIR__CLOCK_KNOWN;
        if (weir__clock_covers(consumer, one->stream, one->position)) continue;
        one->verdict = WEIR__CLOCK_NEEDED;
        for (uint32_t *link = &first; *link != NONE;) {
            uint32_t j = *link;
            struct weir__clock_candidate *other = &candidates[j];
            if (vector_covers(vectors + (size_t)j * width, width, one)) {
                one->verdict = WEIR__CLOCK_IMPLIED;
                one->by = j;
                break;
            }
            if (vector_covers(vectors + (size_t)i * width, width, other)) {
                *link = other->by;
                other->verdict = WEIR__CLOCK_IMPLIED;
                other->by = i;
                needed--;
            } else {
                link = &other->by;
            }
        }
        if (one->verdict == WEIR__CLOCK_IMPLIED) continue;
        one->by = first;
        first = i;
        needed++;
    }
    while (first != NONE) {
        uint32_t next = candidates[first].by;
        candidates[first].by = first;
        first = next;
    }
    for (uint32_t i = 0; i < n; i++)
        while (candidates[candidates[i].by].verdict == WEIR__CLOCK_IMPLIED)
            candidates[i].by = candidates[candidates[i].by].by;
    return needed;
}

/* The first entry of @vector that the clock does not know; @width: none. */
static uint32_t first_news(const struct weir__clock *clock, const uint64_t *vector, uint32_t width)
{
    uint32_t common = width < clock->width ? width : clock->width, s = 0;
    for (; s < common; s++)
        if (vector[s] > clock->known[s] && s != clock->stream) return s;
    for (; s < width; s++)
        if (vector[s] && s != clock->stream) return s;
    return width;
}

/*
 * known[s] becomes the larger one of both. Returns whether one grew. A task with predecessors on other streams spends a
 * tenth of its time here, so this is the one place that asks what the processor can do. Positions are below 2^63.
 */
static bool raise_plainly(uint64_t *known, const uint64_t *vector, uint32_t from, uint32_t width)
{
    bool grew = false;
    for (uint32_t s = from; s < width; s++) {
        if (vector[s] <= known[s]) continue;
        known[s] = vector[s];
        grew = true;
    }
    return grew;
}

#ifdef __x86_64__
__attribute__((target("avx2"))) static bool raise_four(uint64_t *known, const uint64_t *vector, uint32_t width)
{
    __m256i grew = _mm256_setzero_si256();
    uint32_t s = 0;
    for (; s + 4 <= width; s += 4) {
        __m256i mine = _mm256_loadu_si256((const __m256i *)(const void *)(known + s));
        __m256i other = _mm256_loadu_si256((const __m256i *)(const void *)(vector + s));
        __m256i larger = _mm256_cmpgt_epi64(other, mine);
        grew = _mm256_or_si256(grew, larger);
        _mm256_storeu_si256((__m256i *)(void *)(known + s), _mm256_blendv_epi8(mine, other, larger));
    }
    bool rest = raise_plainly(known, vector, s, width);
    return rest || !_mm256_testz_si256(grew, grew);
}
#endif

static bool raise_all(uint64_t *known, const uint64_t *vector, uint32_t width)
{
#ifdef __x86_64__
    if (width >= 8 && __builtin_cpu_supports("avx2")) return raise_four(known, vector, width);
#endif
    return raise_plainly(known, vector, 0, width);
}

void weir__clock_merge(uint64_t *vector, const uint64_t *other, uint32_t width)
{
    (void)raise_all(vector, other, width);
}

int weir__clock_wait(struct weir__clock *consumer, uint64_t position, const uint64_t *vector, uint32_t width)
{
    /* Where nothing is new nothing is needed. */
    if (!weir__clock_has_room(consumer, width, 1)) {
        if (first_news(consumer, vector, width) == width) return WEIR_OK;
        if (weir__clock_reserve(consumer, width, 1)) {
            consumer->dropped++;
            return WEIR_E_NO_MEMORY;
        }
    }
    /* The own entry does not grow. */
    uint64_t none = 0, *own = consumer->stream < width ? &consumer->known[consumer->stream] : &none, kept = *own;
    *own = INT64_MAX;
    bool grew = raise_all(consumer->known, vector, width);
    *own = kept;
    if (!grew) return WEIR_OK;
    const struct weir__clock_change *newest = consumer->log_count ? change(consumer, consumer->log_count - 1) : NULL;
    assert(!newest || newest->position <= position);
    /* Several waits of one task are one change. */
    if (!newest || newest->position != position) consumer->log_count++;
    struct weir__clock_change *entry = change(consumer, consumer->log_count - 1);
    entry->position = position;
    memcpy(entry->vector, consumer->known, consumer->width * sizeof *consumer->known);
    return WEIR_OK;
}

static void drop_oldest(struct weir__clock *clock)
{
    clock->log_first = (clock->log_first + 1) & (clock->log_capacity - 1);
    clock->log_count--;
}

void weir__clock_forget(struct weir__clock *clock, uint64_t completed)
{
    if (completed <= clock->forgotten) return;
    clock->forgotten = completed;
    /* The next question is about completed + 1 at the earliest: the newest change at or before it must stay. */
    while (clock->log_count > 1 && change(clock, 1)->position - 1 <= completed) drop_oldest(clock);
}

void weir__clock_shorten(struct weir__clock *clock, uint32_t changes)
{
    if (clock->log_count <= changes) return;
    while (clock->log_count > changes) drop_oldest(clock);
    uint64_t before = change(clock, 0)->position - 1;
    if (before > clock->forgotten) clock->forgotten = before;
}

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <graph/depend.h>

#include <stdlib.h>
#include <string.h>

/*
 * Disjoint intervals in a sorted array of pointers: found by bisection, inserted by moving pointers. The number of
 * intervals is bounded by the accesses of tasks in flight (stale ones are dropped whenever the array has doubled), so a
 * move is a few kilobytes at most and a balanced tree would be slower.
 */

struct interval {
    struct weir__entry entry; /* .key is the begin */
    uintptr_t          end;   /* exclusive */
};

struct weir__ranges {
    struct interval **sorted;
    size_t            count, capacity;
    size_t            purge_at;
};

#define FIRST_PURGE 64

struct weir__ranges *weir__ranges_create(void)
{
    struct weir__ranges *ranges = calloc(1, sizeof *ranges);

    if (ranges != NULL) ranges->purge_at = FIRST_PURGE;
    return ranges;
}

static void drop(struct interval *interval)
{
    weir__entry_fini(&interval->entry);
    free(interval);
}

void weir__ranges_clear(struct weir__ranges *ranges)
{
    for (size_t i = 0; i < ranges->count; i++) drop(ranges->sorted[i]);
    ranges->count = 0;
    ranges->purge_at = FIRST_PURGE;
}

void weir__ranges_destroy(struct weir__ranges *ranges)
{
    weir__ranges_clear(ranges);
    free(ranges->sorted);
    free(ranges);
}

size_t weir__ranges_bytes(const struct weir__ranges *ranges)
{
    return ranges->capacity * sizeof ranges->sorted[0] + ranges->count * sizeof *ranges->sorted[0];
}

void weir__ranges_each(struct weir__ranges *ranges, void (*visit)(struct weir__entry *entry, void *arg), void *arg)
{
    for (size_t i = 0; i < ranges->count; i++) visit(&ranges->sorted[i]->entry, arg);
}

/* Index of the first interval that ends after @address. */
static size_t lower(const struct weir__ranges *ranges, uintptr_t address)
{
    size_t low = 0, high = ranges->count;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (ranges->sorted[middle]->end <= address) low = middle + 1;
        else high = middle;
    }
    return low;
}

static void purge(struct weir__ranges *ranges)
{
    size_t kept = 0;

    for (size_t i = 0; i < ranges->count; i++) {
        if (weir__entry_is_stale(&ranges->sorted[i]->entry)) drop(ranges->sorted[i]);
        else ranges->sorted[kept++] = ranges->sorted[i];
    }
    ranges->count = kept;
    ranges->purge_at = 2 * kept > FIRST_PURGE ? 2 * kept : FIRST_PURGE;
}

static int insert(struct weir__ranges *ranges, size_t at, struct interval *interval)
{
    if (ranges->count == ranges->capacity) {
        size_t            capacity = ranges->capacity != 0 ? 2 * ranges->capacity : 16;
        struct interval **sorted = realloc(ranges->sorted, capacity * sizeof sorted[0]);

        if (sorted == NULL) return WEIR_E_NO_MEMORY;
        ranges->sorted = sorted;
        ranges->capacity = capacity;
    }
    memmove(&ranges->sorted[at + 1], &ranges->sorted[at], (ranges->count - at) * sizeof ranges->sorted[0]);
    ranges->sorted[at] = interval;
    ranges->count++;
    return WEIR_OK;
}

/* Cut the interval at index @at in two; nothing a user could see changes. */
static int split(struct weir__ranges *ranges, size_t at, uintptr_t address)
{
    struct interval *left = ranges->sorted[at], *right = malloc(sizeof *right);

    if (right == NULL) return WEIR_E_NO_MEMORY;
    if (weir__entry_copy(&right->entry, &left->entry) != WEIR_OK) {
        free(right);
        return WEIR_E_NO_MEMORY;
    }
    right->entry.key = address;
    right->end = left->end;
    if (insert(ranges, at + 1, right) != WEIR_OK) {
        drop(right);
        return WEIR_E_NO_MEMORY;
    }
    left->end = address;
    return WEIR_OK;
}

static int fill(struct weir__ranges *ranges, size_t at, uintptr_t begin, uintptr_t end, const struct weir__ref *base)
{
    struct interval *interval = calloc(1, sizeof *interval);

    if (interval == NULL) return WEIR_E_NO_MEMORY;
    interval->entry.key = begin;
    interval->entry.now.first = *base;
    interval->entry.lock_kind = WEIR_ACCESS_OUT;
    interval->end = end;
    if (insert(ranges, at, interval) == WEIR_OK) return WEIR_OK;
    free(interval);
    return WEIR_E_NO_MEMORY;
}

void weir__ranges_purge(struct weir__ranges *ranges)
{
    if (ranges->count >= ranges->purge_at) purge(ranges);
}

int weir__ranges_cut(struct weir__ranges *ranges, const struct weir__ref *base, uintptr_t begin, size_t bytes)
{
    uintptr_t end = begin + bytes, at = begin;
    int       rc;

    for (size_t i = lower(ranges, begin); at < end; i++) {
        struct interval *interval = i < ranges->count ? ranges->sorted[i] : NULL;

        if (interval == NULL || interval->entry.key > at) {
            uintptr_t until = interval == NULL || interval->entry.key > end ? end : interval->entry.key;

            if ((rc = fill(ranges, i, at, until, base)) != WEIR_OK) return rc;
        } else if (interval->entry.key < at) {
            if ((rc = split(ranges, i, at)) != WEIR_OK) return rc;
            continue;
        } else if (interval->end > end && (rc = split(ranges, i, end)) != WEIR_OK) {
            return rc;
        }
        at = ranges->sorted[i]->end;
    }
    return WEIR_OK;
}

int weir__ranges_reserve(struct weir__ranges *ranges, uintptr_t begin, size_t bytes, unsigned kind, size_t *edges)
{
    if (bytes == 0) return WEIR_OK; /* overlaps nothing */
    for (size_t i = lower(ranges, begin); i < ranges->count && ranges->sorted[i]->entry.key < begin + bytes; i++) {
        if (weir__entry_reserve(&ranges->sorted[i]->entry, kind, edges) != WEIR_OK) return WEIR_E_NO_MEMORY;
    }
    return WEIR_OK;
}

void weir__ranges_access(struct weir__ranges *ranges, uintptr_t begin, size_t bytes, unsigned kind,
                         struct weir__linking *linking, struct weir__fencer *fencer)
{
    uintptr_t end = begin + bytes;
    size_t    first = lower(ranges, begin), last = first;

    if (bytes == 0) return;
    while (last < ranges->count && ranges->sorted[last]->entry.key < end) {
        weir__entry_access(&ranges->sorted[last]->entry, kind, linking, fencer);
        last++;
    }
    if (last - first < 2 || (kind != WEIR_ACCESS_OUT && kind != WEIR_ACCESS_INOUT)) return;
    /* One writer over all of them: one interval again. */
    /* The last may end later: an access of the same task before has merged it already. */
    end = ranges->sorted[last - 1]->end;
    for (size_t i = first + 1; i < last; i++) {
        struct weir__entry *entry = &ranges->sorted[i]->entry, *kept = &ranges->sorted[first]->entry;

        /* The same task may have reserved a lock for a part of them. */
        if (weir__entry_lock(kept) == NULL) {
            kept->lock_kind |= (uintptr_t)weir__entry_lock(entry);
            entry->lock_kind &= 7;
        }
        drop(ranges->sorted[i]);
    }
    ranges->sorted[first]->end = end;
    memmove(&ranges->sorted[first + 1], &ranges->sorted[last], (ranges->count - last) * sizeof ranges->sorted[0]);
    ranges->count -= last - first - 1;
}

void weir__ranges_peek(struct weir__ranges *ranges, uintptr_t begin, size_t bytes, unsigned kind, struct weir__linking *linking)
{
    if (bytes == 0) return;
    for (size_t i = lower(ranges, begin); i < ranges->count && ranges->sorted[i]->entry.key < begin + bytes; i++) {
        weir__entry_peek(&ranges->sorted[i]->entry, kind, linking);
    }
}

int weir__ranges_probe(struct weir__ranges *ranges, const struct weir__ref *base, uintptr_t begin, size_t bytes,
                       unsigned kind, uint8_t domain)
{
    uintptr_t end = begin + bytes, covered = begin;
    int       rc, worst = WEIR_OK;

    for (size_t i = lower(ranges, begin); covered < end && worst != WEIR_E_PREDECESSOR; i++) {
        const struct interval *interval = i < ranges->count ? ranges->sorted[i] : NULL;

        if (interval == NULL || interval->entry.key > covered) {
            rc = weir__ref_probe(base, domain);
            if (rc == WEIR_E_PREDECESSOR || worst == WEIR_OK) worst = rc;
        }
        if (interval == NULL || interval->entry.key >= end) break;
        rc = weir__entry_probe(&interval->entry, kind, domain);
        if (rc == WEIR_E_PREDECESSOR || worst == WEIR_OK) worst = rc;
        covered = interval->end;
    }
    return worst;
}

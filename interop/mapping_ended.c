/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "interop/mapping_internal.h"

/*
 * Ranges that are not mapped any more while the work that copies them back may still be on its way. Somebody who maps
 * such a range again without being ordered behind that work must not read the host's memory before it, nor write it
 * before it. Each range is a tombstone with the point behind the copies; whoever inserts an entry that overlaps it
 * follows the point before everything else.
 *
 * Tombstones do not overlap: the work of a newer one followed those that it overlaps, so it replaces them there, and
 * only there. They are the buried entries themselves. Those whose points are reached are swept away when there are
 * twice as many as the last sweep left.
 */
enum { SWEEP_LEAST = 32 };

/* Table is locked. */
static void tombstone_remove(struct weir__table *table, struct weir__mapped *stone)
{
    weir__tree_remove(&table->ended, stone);
    weir__entry_unuse(table, stone);
    table->nended--;
}

/* Table is locked. What of the stone is outside of the range remains. */
static int tombstone_cut(struct weir__table *table, struct weir__mapped *stone, uintptr_t begin, uintptr_t end)
{
    struct weir__mapped *behind = NULL;
    uintptr_t stone_end = GET(stone->end);
    if (GET(stone->begin) >= begin && stone_end <= end) {
        tombstone_remove(table, stone);
        return WEIR_OK;
    }
    if (GET(stone->begin) >= begin) {
        behind = stone;
        weir__tree_remove(&table->ended, stone);
    } else if (stone_end > end) {
        behind = weir__entry_get(table);
        if (!behind) return weir__fail(WEIR_E_NO_MEMORY, "no memory to note what was mapped");
        behind->point = stone->point;
        table->nended++;
    }
    if (stone != behind) SET(stone->end, begin);
    if (!behind) return WEIR_OK;
    SET(behind->begin, end);
    SET(behind->end, stone_end);
    weir__tree_insert(&table->ended, behind);
    return WEIR_OK;
}

/* Table is locked. The entry is in no tree; after a failure it still is not. */
static int tombstone_add(struct weir__table *table, struct weir__mapped *entry, uint64_t point)
{
    uintptr_t begin = GET(entry->begin), end = GET(entry->end);
    struct weir__mapped *other;
    while ((other = weir__tree_overlap(&table->ended, begin, end))) {
        int rc = tombstone_cut(table, other, begin, end);
        if (rc) return rc;
    }
    entry->point = point;
    weir__tree_insert(&table->ended, entry);
    table->nended++;
    return WEIR_OK;
}

/* Table is locked. */
static void sweep(struct weir__table *table)
{
    uintptr_t host = 0;
    struct weir__mapped *at, *next;
    (void)weir__tree_walk(&table->ended, host, &at, &next);
    for (at = at ? at : next; at; at = next) {
        host = GET(at->begin);
        if (!weir__point_test(table->context, (struct weir__point){at->point})) tombstone_remove(table, at);
        (void)weir__tree_walk(&table->ended, host, &at, &next);
    }
    table->sweep_at = 2 * table->nended;
}

int weir__table_bury(struct weir__table *table, struct weir__mapped *entry, uint64_t point)
{
    int rc = WEIR_OK;
    weir__entry_clear(entry);
    pthread_mutex_lock(&table->lock);
    weir__version_step(table);
    weir__table_unlink(table, entry);
    weir__version_step(table);
    if (point) rc = tombstone_add(table, entry, point);
    if (!point || rc) weir__entry_unuse(table, entry);
    if (table->nended > table->sweep_at + SWEEP_LEAST) sweep(table);
    bool wake = table->nblocked;
    pthread_mutex_unlock(&table->lock);
    if (wake) pthread_cond_broadcast(&table->buried);
    return rc;
}

uint64_t weir__table_ended(struct weir__table *table, uintptr_t *cursor, uintptr_t end)
{
    uint64_t point = 0;
    pthread_mutex_lock(&table->lock);
    struct weir__mapped *stone = *cursor < end ? weir__tree_overlap(&table->ended, *cursor, end) : NULL;
    if (stone) {
        point = stone->point;
        *cursor = GET(stone->end);
    }
    pthread_mutex_unlock(&table->lock);
    return point;
}

size_t weir__table_tombstones(struct weir__table *table)
{
    pthread_mutex_lock(&table->lock);
    size_t n = table->nended;
    pthread_mutex_unlock(&table->lock);
    return n;
}

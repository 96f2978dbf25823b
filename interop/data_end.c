/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "interop/data_internal.h"

/*
 * The end of a construct, all at once for all its entries, so that what belongs to one struct is decided together:
 *  1. look up; `always` copies, which other constructs' use of the entry has to follow;
 *  2. take the references away. An entry that keeps others gets the point behind this construct's work noted first;
 *     one that loses its last is not found any more and this construct's alone;
 *  3. for these follow everybody who used them, copy back, give the memory back behind that, and bury them with the
 *     point behind all of it.
 * Other threads are waited for only in 1, when nothing has been taken from them yet: from 2 to the end of 3 others may
 * wait for us.
 */

/* The pointer of an item with PTR_AND_OBJ, mapped by the same entry. */
static struct weir__mapped *pointer_of(struct weir__region *region, const struct weir__item *item,
                                       struct weir__found *pointer)
{
    weir__table_find(region->table, item->base, sizeof(void *), pointer);
    return pointer->relation == WEIR__FOUND_CONTAINED ? pointer->entry : NULL;
}

static bool has_pointer(const struct weir__item *item)
{
    return item->type & WEIR__MAP_PTR_AND_OBJ && item->counts;
}

static int look_up(struct weir__region *region, struct weir__item *item)
{
    struct weir__found pointer;
    if (item->type & WEIR__MAP_ATTACH) return WEIR_OK;
    if (has_pointer(item) && pointer_of(region, item, &pointer))
        (void)weir__table_transfer(region->table, pointer.entry);
    weir__table_find(region->table, item->begin, item->bytes, &item->found);
    if (!weir__item_matches(item->type, &item->found)) {
        item->found.entry = NULL;
        if (!(item->type & WEIR__MAP_PRESENT) || weir__table_is_unified(region->table)) return WEIR_OK;
        char name[104];
        weir__item_name(item, name, sizeof name);
        return weir__fail(WEIR_E_NOT_FOUND, "%s: %zu bytes at %p are not present", name, item->bytes,
                          (void *)item->begin);
    }
    (void)weir__table_transfer(region->table, item->found.entry);
    return WEIR_OK;
}

static int copy_back(struct weir__region *region, struct weir__item *item)
{
    uintptr_t begin;
    size_t bytes;
    item->done = true;
    return weir__item_clamp(item, &begin, &bytes) ? weir__region_copy_from(region, &item->found, begin, bytes)
                                                  : WEIR_OK;
}

static int copy_always(struct weir__region *region, struct weir__items *items)
{
    int first = WEIR_OK;
    for (uint32_t i = items->n; i-- > 0;) {
        struct weir__item *item = &items->at[i];
        if (!item->found.entry || !(item->type & WEIR__MAP_ALWAYS) || !(item->type & WEIR__MAP_FROM)) continue;
        int rc = weir__region_wait(region, item->found.entry);
        if (!rc) rc = copy_back(region, item);
        if (!first) first = rc;
    }
    return first;
}

/* Takes the item's references away; what ends is put in front of *ended. */
static int references_drop(struct weir__region *region, const struct weir__item *item, struct weir__mapped **ended)
{
    bool hold = item->type & WEIR__MAP_HOLD, all = item->type & WEIR__MAP_DELETE;
    bool object = item->type & WEIR__MAP_PTR_AND_OBJ;
    int rc = WEIR_OK;
    if (item->type & WEIR__MAP_ATTACH) return WEIR_OK;
    if (item->found.entry && (item->counts || object) && weir__region_drop(region, &item->found, hold, all, &rc)) {
        item->found.entry->next = *ended;
        *ended = item->found.entry;
    }
    struct weir__found pointer;
    if (has_pointer(item) && pointer_of(region, item, &pointer) &&
        weir__region_drop(region, &pointer, hold, false, &rc)) {
        pointer.entry->next = *ended;
        *ended = pointer.entry;
    }
    return rc;
}

/* Did this construct end the item's entry? */
static bool is_ended(struct weir__region *region, const struct weir__item *item)
{
    if (!weir__region_owns(region, &item->found)) return false;
    uint64_t state = atomic_load_explicit(&item->found.entry->state, memory_order_relaxed); /* ours alone */
    return weir__state_serial(state) == weir__state_serial(item->found.state) && !weir__state_alive(state);
}

static int copy_ended(struct weir__region *region, struct weir__items *items)
{
    int first = WEIR_OK;
    for (uint32_t i = items->n; i-- > 0;) {
        struct weir__item *item = &items->at[i];
        if (item->done || !(item->type & WEIR__MAP_FROM) || !is_ended(region, item)) continue;
        int rc = copy_back(region, item);
        if (!first) first = rc;
    }
    return first;
}

int weir__data_end(struct weir__region *region, const struct weir__map_args *args)
{
    struct weir__items items;
    struct weir__mapped *ended = NULL;
    region->marked = false;
    int rc = weir__data_expand(region, args, &items);
    for (uint32_t i = 0; i < items.n && !rc; i++) rc = look_up(region, &items.at[i]);
    if (rc) return rc;
    /* From here on everything is ended, whatever fails; the first failure is told. */
    int first = copy_always(region, &items);
    for (uint32_t i = items.n; i-- > 0;) {
        rc = references_drop(region, &items.at[i], &ended);
        if (!first) first = rc;
    }
    for (struct weir__mapped *entry = ended; entry; entry = entry->next) {
        rc = weir__region_wait(region, entry);
        if (!first) first = rc;
        rc = weir__region_follow(region, entry);
        if (!first) first = rc;
    }
    if (ended) {
        rc = copy_ended(region, &items);
        if (!first) first = rc;
    }
    rc = weir__region_bury(region, ended);
    if (!first) first = rc;
    weir__region_free(region, region->privates);
    region->privates = NULL;
    return first;
}

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <stdlib.h>
#include <string.h>

#include "interop/data_internal.h"

/*
 * Pointers between mapped data. The device's copy of a pointer gets the device address of what it points to; the entry
 * that has the pointer keeps a shadow with both values, so that later copies in either direction leave each side its
 * own. A pointer in another construct's data is written behind that data's transfer, and its shadow is entered only
 * when the point behind the write is known: who sees the shadow follows that point.
 */

int weir__attach_add(struct weir__region *region, const struct weir__region_attach *attach)
{
    struct weir__region_attach *kept = weir__region_scratch(region, sizeof *kept);
    if (!kept) return WEIR_E_NO_MEMORY;
    *kept = *attach;
    kept->next = NULL;
    *region->attaches_tail = kept;
    region->attaches_tail = &kept->next;
    return WEIR_OK;
}

static uint64_t pointer_value(uintptr_t pointer)
{
    uint64_t value;
    memcpy(&value, (const void *)pointer, sizeof value);
    return value;
}

/* Where the shadow of the pointer is or belongs. The entry is locked. */
static uint32_t shadow_index_locked(const struct weir__mapped *entry, uintptr_t host)
{
    uint32_t low = 0, high = entry->nshadows;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (entry->shadows[middle].host < host)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool has_shadow(struct weir__mapped *entry, const struct weir__region_attach *attach, uint64_t host_value,
                       uint64_t device_value)
{
    pthread_mutex_lock(&entry->lock);
    uint32_t i = shadow_index_locked(entry, attach->pointer);
    bool has = false;
    if (i < entry->nshadows) {
        const struct weir__shadow *shadow = &entry->shadows[i];
        has = shadow->host == attach->pointer && shadow->bytes == attach->bytes && shadow->host_value == host_value &&
              shadow->device_value == device_value;
    }
    pthread_mutex_unlock(&entry->lock);
    return has;
}

static int shadow_room_locked(struct weir__mapped *entry)
{
    if (entry->nshadows < entry->cshadows) return WEIR_OK;
    uint32_t capacity = entry->cshadows ? 2 * entry->cshadows : 4;
    struct weir__shadow *shadows = realloc(entry->shadows, capacity * sizeof *shadows);
    if (!shadows) return WEIR_E_NO_MEMORY;
    entry->shadows = shadows;
    entry->cshadows = capacity;
    return WEIR_OK;
}

/* @content: what the device gets; @point: where it has it, 0 if nobody else can see the entry complete yet. */
static int shadow_enter(struct weir__mapped *entry, const struct weir__region_attach *attach, uint64_t host_value,
                        const char *content, uint64_t point)
{
    struct weir__shadow shadow = {.host = attach->pointer, .host_value = host_value, .bytes = attach->bytes};
    int rc = WEIR_OK;
    memcpy(&shadow.device_value, content, 8);
    if (attach->bytes > 8 && !(shadow.rest = malloc(attach->bytes - 8)))
        return weir__fail(WEIR_E_NO_MEMORY, "no memory to note an attached descriptor");
    if (shadow.rest) memcpy(shadow.rest, content + 8, attach->bytes - 8);
    pthread_mutex_lock(&entry->lock);
    uint32_t i = shadow_index_locked(entry, attach->pointer);
    if (i < entry->nshadows && entry->shadows[i].host == attach->pointer) {
        free(entry->shadows[i].rest);
        entry->shadows[i] = shadow;
    } else if (!(rc = shadow_room_locked(entry))) {
        memmove(&entry->shadows[i + 1], &entry->shadows[i], (entry->nshadows - i) * sizeof shadow);
        entry->shadows[i] = shadow;
        entry->nshadows++;
    }
    /* Release: pairs with the acquire in weir__table_transfer(). */
    if (!rc && point) atomic_store_explicit(&entry->transfer, point, memory_order_release);
    pthread_mutex_unlock(&entry->lock);
    if (!rc) return WEIR_OK;
    free(shadow.rest);
    return weir__fail(rc, "no memory to note an attached pointer");
}

static int attach_write(struct weir__region *region, const struct weir__region_attach *attach, bool own)
{
    struct weir__mapped *entry = attach->target.entry;
    uint64_t host_value = pointer_value(attach->pointer), point = 0;
    uint64_t device_value = attach->device - (attach->pointee - host_value);
    bool has = has_shadow(entry, attach, host_value, device_value);
    if (!own) {
        /* Now: the shadow may be newer than a point that was followed before. */
        int rc = weir__region_wait(region, entry);
        if (rc) return rc;
    }
    if (has && !attach->always && attach->bytes == 8) return WEIR_OK;
    char *content = weir__region_keep(region, attach->bytes);
    if (!content) return WEIR_E_NO_MEMORY;
    memcpy(content, (const void *)attach->pointer, attach->bytes);
    memcpy(content, &device_value, 8);
    int rc = weir__region_write(region, weir__found_address(&attach->target, attach->pointer), content, attach->bytes);
    if (!rc && !own) rc = weir__region_mark(region, &point);
    return rc ? rc : shadow_enter(entry, attach, host_value, content, point);
}

/* A separate entry: both sides must be there, and one of them new. False: nothing to do. */
static bool is_wanted(struct weir__region *region, struct weir__region_attach *attach)
{
    struct weir__found pointee;
    weir__table_find(region->table, attach->pointer, attach->bytes, &attach->target);
    weir__table_find(region->table, attach->pointee, 0, &pointee);
    if (attach->target.relation != WEIR__FOUND_CONTAINED || pointee.relation != WEIR__FOUND_CONTAINED) return false;
    attach->device = weir__found_address(&pointee, attach->pointee);
    return attach->always || weir__region_owns(region, &attach->target) || weir__region_owns(region, &pointee);
}

int weir__attach_own(struct weir__region *region)
{
    struct weir__region_attach *attach, **link = &region->attaches;
    while ((attach = *link)) {
        bool wanted = attach->separate ? is_wanted(region, attach) : attach->target.entry != NULL;
        if (wanted && !weir__region_owns(region, &attach->target)) {
            link = &attach->next;
            continue;
        }
        *link = attach->next;
        int rc = wanted ? attach_write(region, attach, true) : WEIR_OK;
        if (rc) return rc;
    }
    region->attaches_tail = link;
    return WEIR_OK;
}

int weir__attach_others(struct weir__region *region)
{
    for (struct weir__region_attach *attach = region->attaches; attach; attach = attach->next) {
        int rc = attach_write(region, attach, false);
        if (rc) return rc;
    }
    region->attaches = NULL;
    region->attaches_tail = &region->attaches;
    return WEIR_OK;
}

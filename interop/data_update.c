/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "interop/data_internal.h"

/* target update: copies of what is present, no reference counts. */

/* One dimension of a section with gaps, as the compiler writes it: outermost first, the last one is the element. */
struct dimension {
    uint64_t offset, count, stride; /* stride in bytes */
};

enum { DIMENSIONS_MOST = 32 };

/* Equal pieces at regular distances. */
struct section {
    uintptr_t begin;
    size_t bytes; /* of one piece */
    uint32_t n;   /* levels of repetition, innermost first */
    struct {
        size_t count, stride;
    } level[DIMENSIONS_MOST];
    size_t extent; /* from the begin to the end of the last piece; 0: empty */
};

static int section_read(const struct weir__item *item, struct section *section)
{
    const struct dimension *dims = (const struct dimension *)item->begin;
    size_t n = item->bytes;
    if (!n || n > DIMENSIONS_MOST) return weir__fail(WEIR_E_INVALID, "update of a section of %zu dimensions", n);
    section->begin = item->base;
    section->bytes = dims[n - 1].count * dims[n - 1].stride;
    section->n = 0;
    section->extent = 0;
    if (!section->bytes) return WEIR_OK;
    section->begin += dims[n - 1].offset * dims[n - 1].stride;
    section->extent = section->bytes;
    for (size_t d = n - 1; d-- > 0;) {
        if (!dims[d].count) {
            section->extent = 0;
            return WEIR_OK;
        }
        /* Offsets count what the array is made of, strides may skip some of it: in the innermost dimension that is the
         * element, further out only the stride is known. */
        section->begin += dims[d].offset * (d == n - 2 ? section->bytes : dims[d].stride);
        section->extent += (dims[d].count - 1) * dims[d].stride;
    }
    for (size_t d = n - 1; d-- > 0;) {
        if (dims[d].count == 1) continue;
        if (!section->n && dims[d].stride == section->bytes) {
            section->bytes *= dims[d].count;
            continue;
        }
        section->level[section->n].count = dims[d].count;
        section->level[section->n++].stride = dims[d].stride;
    }
    return WEIR_OK;
}

/* Two levels at a time are one copy of the device; further ones are a loop. */
static int section_copy(struct weir__region *region, const struct weir__found *found, const struct section *section,
                        bool to_device)
{
    size_t rounds = 1;
    for (uint32_t i = 2; i < section->n; i++) rounds *= section->level[i].count;
    region->marked = false;
    if (!to_device) weir__region_note_home(found);
    for (size_t round = 0; round < rounds; round++) {
        uintptr_t host = section->begin;
        size_t rest = round;
        for (uint32_t i = 2; i < section->n; i++) {
            host += rest % section->level[i].count * section->level[i].stride;
            rest /= section->level[i].count;
        }
        void *here = (void *)host, *there = (void *)weir__found_address(found, host);
        struct weir__copy copy = {.kind = to_device ? WEIR__COPY_TO_DEVICE : WEIR__COPY_TO_HOST,
                                  .to = to_device ? there : here,
                                  .from = to_device ? here : there,
                                  .bytes = section->bytes};
        for (uint32_t i = 0; i < section->n && i < 2; i++) {
            copy.count[i] = section->level[i].count;
            copy.to_pitch[i] = copy.from_pitch[i] = section->level[i].stride;
        }
        int rc = weir__task_copy(region->task, &copy);
        if (rc) return rc;
    }
    return to_device ? weir__region_shadows_to(region, found, section->begin, section->extent)
                     : weir__region_shadows_from(region, found, section->begin, section->extent);
}

/* Finds the range; found.entry is NULL if there is nothing to do. */
static int look_up(struct weir__region *region, struct weir__item *item, uintptr_t begin, size_t bytes)
{
    weir__table_find(region->table, begin, bytes, &item->found);
    if (item->found.relation == WEIR__FOUND_CONTAINED) return weir__region_wait(region, item->found.entry);
    item->found.entry = NULL;
    if (!(item->type & WEIR__MAP_PRESENT) || weir__table_is_unified(region->table)) return WEIR_OK;
    char name[104];
    weir__item_name(item, name, sizeof name);
    return weir__fail(WEIR_E_NOT_FOUND, "%s: %zu bytes at %p are not present", name, bytes, (void *)begin);
}

static int item_update(struct weir__region *region, struct weir__item *item)
{
    struct section section = {.n = 0};
    bool gaps = item->type & WEIR__MAP_NON_CONTIGUOUS;
    if (item->type & WEIR__MAP_ATTACH) return WEIR_OK;
    int rc = gaps ? section_read(item, &section) : WEIR_OK;
    size_t bytes = gaps ? section.extent : item->bytes;
    if (!rc) rc = look_up(region, item, gaps ? section.begin : item->begin, bytes);
    if (rc || !item->found.entry) return rc;
    if (!bytes) {
        item->found.entry = NULL;
        return WEIR_OK;
    }
    if (item->type & WEIR__MAP_FROM) {
        rc = gaps ? section_copy(region, &item->found, &section, false)
                  : weir__region_copy_from(region, &item->found, item->begin, bytes);
        if (rc) return rc;
    }
    if (!(item->type & WEIR__MAP_TO)) return WEIR_OK;
    return gaps ? section_copy(region, &item->found, &section, true)
                : weir__region_copy_to(region, &item->found, item->begin, bytes);
}

/* Later constructs follow what was written, the end of an entry follows all of it. */
static int note(struct weir__region *region, const struct weir__item *item, uint64_t point)
{
    struct weir__mapped *entry = item->found.entry;
    if (item->type & WEIR__MAP_TO) /* Release: pairs with the acquire in weir__table_transfer(). */
        atomic_store_explicit(&entry->transfer, point, memory_order_release);
    if (weir__state_dynamic(item->found.state) == WEIR__COUNT_INFINITE) return WEIR_OK;
    return weir__region_use(region, entry);
}

int weir__data_update(struct weir__region *region, const struct weir__map_args *args)
{
    struct weir__items items;
    region->marked = false;
    int rc = weir__data_expand(region, args, &items);
    bool any = false;
    for (uint32_t i = 0; i < items.n && !rc; i++) {
        rc = item_update(region, &items.at[i]);
        any = any || items.at[i].found.entry;
    }
    if (!any) return rc;
    /* Also after a failure: what was queued before it is under way. */
    uint64_t point;
    int first = rc;
    rc = weir__region_mark(region, &point);
    for (uint32_t i = 0; i < items.n && !rc; i++)
        if (items.at[i].found.entry) rc = note(region, &items.at[i], point);
    return first ? first : rc;
}

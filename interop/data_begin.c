/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <stdlib.h>

#include "interop/data_internal.h"

/*
 * The begin of a construct:
 *  1. look up, count or create every range; queue the first transfer of what was created, behind the copies to the host
 *     of what was mapped there before;
 *  2. write the pointers that lie in what was created, then publish it with the point behind all of that;
 *  3. follow the transfers of what others created, waiting for those that are not published yet;
 *  4. write to what others created: `always` copies and pointers.
 * In 1 it waits at most for threads that end something, which wait for nobody; in 3 for threads in 1 and 2, after it
 * has published everything itself. So the waiting has no cycles.
 */

/* A range that is to be mapped: an item's, or the pointer of an item with PTR_AND_OBJ. */
struct request {
    const struct weir__item *item;
    uintptr_t begin, base;
    size_t bytes;
    uint64_t type;
    uint32_t padding;
    bool counts;
};

static struct weir__region_step *step_room(struct weir__region *region)
{
    if (region->nsteps == region->csteps) {
        uint32_t capacity = region->csteps ? 2 * region->csteps : 16;
        struct weir__region_step *steps = realloc(region->steps, capacity * sizeof *steps);
        if (!steps) {
            (void)weir__fail(WEIR_E_NO_MEMORY, "no memory for the steps of a construct");
            return NULL;
        }
        region->steps = steps;
        region->csteps = capacity;
    }
    return &region->steps[region->nsteps];
}

static void step_add(struct weir__region *region, enum weir__step_kind kind, const struct weir__found *found, bool hold)
{
    region->steps[region->nsteps++] = (struct weir__region_step){found->entry, found->state, (uint8_t)kind, hold};
}

static int refuse(int code, const struct request *request, const char *what, const struct weir__found *found)
{
    char name[104];
    weir__item_name(request->item, name, sizeof name);
    if (!found)
        return weir__fail(code, "%s: %zu bytes at %p are %s", name, request->bytes, (void *)request->begin, what);
    return weir__fail(code, "%s: %zu bytes at %p are %s (mapped: %zu bytes at %p)", name, request->bytes,
                      (void *)request->begin, what, (size_t)(found->end - found->begin), (void *)found->begin);
}

/* WEIR_E_BUSY: somebody else was faster, look again. */
static int create(struct weir__region *region, const struct request *request, struct weir__found *found)
{
    const struct weir__device_ops *ops = weir__device_ops_of(region->device);
    void *handle = weir__device_handle_of(region->device), *memory;
    bool hold = request->type & WEIR__MAP_HOLD;
    if (request->bytes > (size_t)PTRDIFF_MAX - request->padding || request->begin + request->bytes < request->begin)
        return weir__fail(WEIR_E_NO_MEMORY, "%zu bytes at %#zx are more than a program can have", request->bytes,
                          (size_t)request->begin);
    int rc = ops->alloc(handle, request->bytes + request->padding, &memory);
    if (rc)
        return weir__fail(rc, "%zu bytes of device memory: %s", request->bytes + request->padding,
                          ops->last_error(handle));
    struct weir__found new = {.relation = WEIR__FOUND_CONTAINED, .begin = request->begin, .base = request->base};
    new.end = request->begin + request->bytes;
    new.device = (uintptr_t)memory + request->padding;
    new.entry = weir__table_take(region->table, new.begin, request->bytes, new.base, new.device);
    if (!new.entry) {
        rc = WEIR_E_NO_MEMORY;
        goto free_memory;
    }
    new.entry->memory = memory;
    atomic_store_explicit(&new.entry->owner, region, memory_order_relaxed); /* published by the insert */
    atomic_store_explicit(&new.entry->transfer, WEIR__TRANSFER_PENDING, memory_order_relaxed); /* the same */
    rc = weir__table_insert(region->table, new.entry, !hold, hold, &new.state);
    if (rc) {
        new.entry->memory = NULL;
        weir__table_put(region->table, new.entry);
        goto free_memory;
    }
    *found = new;
    step_add(region, WEIR__STEP_CREATED, found, hold);
    return new.entry->follows ? weir__region_follow_ended(region, new.entry) : WEIR_OK;
free_memory:
    if (ops->free(handle, memory)) weir__log(1, "device memory at %p is lost: %s", memory, weir_error_text());
    return rc;
}

/* Map one range; found->entry is NULL where the host's memory or nothing is used. */
static int range_begin(struct weir__region *region, const struct request *request, struct weir__found *found)
{
    bool hold = request->type & WEIR__MAP_HOLD;
    for (;;) {
        if (!step_room(region)) return WEIR_E_NO_MEMORY;
        weir__table_find(region->table, request->begin, request->bytes, found);
        int rc;
        if (weir__item_matches(request->type, found)) {
            rc = request->counts ? weir__mapped_retain(found, hold) : WEIR_OK;
            if (rc == WEIR_E_STATE) continue;
            if (!rc && !weir__region_owns(region, found))
                step_add(region, request->counts ? WEIR__STEP_COUNTED : WEIR__STEP_SEEN, found, hold);
            else if (!rc && request->counts)
                step_add(region, WEIR__STEP_COUNTED, found, hold);
            return rc;
        }
        if (found->relation != WEIR__FOUND_NONE)
            return refuse(WEIR_E_BUSY, request, "an extension of what is mapped", found);
        if (weir__table_is_unified(region->table) && !(request->type & WEIR__MAP_CLOSE)) return WEIR_OK;
        if (request->type & WEIR__MAP_PRESENT) return refuse(WEIR_E_NOT_FOUND, request, "not present", NULL);
        if (!request->bytes) return WEIR_OK;
        rc = create(region, request, found);
        if (rc != WEIR_E_BUSY) return rc;
    }
}

/* The pointer of an item with PTR_AND_OBJ, and the note to write it later. */
static int pointer_begin(struct weir__region *region, struct weir__item *item, struct weir__region_attach *attach)
{
    struct request request = {.item = item,
                              .begin = item->base,
                              .base = item->base,
                              .bytes = sizeof(void *),
                              .type = item->type & ~(uint64_t)(WEIR__MAP_TO | WEIR__MAP_ALWAYS),
                              .counts = item->counts};
    int rc = range_begin(region, &request, &attach->target);
    if (rc) return rc;
    attach->pointer = item->base;
    attach->pointee = item->begin;
    attach->bytes = sizeof(void *);
    attach->always = item->type & WEIR__MAP_ALWAYS;
    item->base = *(const uintptr_t *)attach->pointer;
    item->counts = true;
    return WEIR_OK;
}

static int item_begin(struct weir__region *region, struct weir__item *item)
{
    struct weir__region_attach attach = {.pointer = item->base};
    if (item->type & WEIR__MAP_ATTACH) {
        attach.pointee = item->begin;
        attach.bytes = item->bytes > 8 ? (uint32_t)item->bytes : 8;
        attach.separate = true;
        attach.always = item->type & WEIR__MAP_ALWAYS || weir__table_attaches_always(region->table);
        item->type = 0; /* nothing else is done for it */
        return weir__attach_add(region, &attach);
    }
    int rc = item->type & WEIR__MAP_PTR_AND_OBJ ? pointer_begin(region, item, &attach) : WEIR_OK;
    if (rc) return rc;
    struct request request = {.item = item,
                              .begin = item->begin,
                              .base = item->base,
                              .bytes = item->bytes,
                              .type = item->type,
                              .padding = item->padding,
                              .counts = item->counts};
    rc = range_begin(region, &request, &item->found);
    if (rc) return rc;
    uintptr_t begin;
    size_t bytes;
    if (item->type & WEIR__MAP_TO && weir__region_owns(region, &item->found) &&
        weir__item_clamp(item, &begin, &bytes)) {
        item->done = true;
        rc = weir__region_copy_to(region, &item->found, begin, bytes);
        if (rc) return rc;
    }
    if (!attach.target.entry) return WEIR_OK;
    /* With unified memory the host's pointer is good where its target is not mapped. */
    if (!item->found.entry && weir__table_is_unified(region->table)) return WEIR_OK;
    attach.device = item->found.entry ? weir__found_address(&item->found, item->begin) : 0;
    return weir__attach_add(region, &attach);
}

static int publish(struct weir__region *region)
{
    uint64_t point = 0;
    bool created = false;
    for (uint32_t i = 0; i < region->nsteps && !created; i++) created = region->steps[i].kind == WEIR__STEP_CREATED;
    if (!created) return WEIR_OK;
    int rc = weir__region_mark(region, &point);
    if (rc) return rc;
    for (uint32_t i = 0; i < region->nsteps; i++)
        if (region->steps[i].kind == WEIR__STEP_CREATED)
            weir__table_publish(region->table, region->steps[i].entry, region->wrote ? point : 0, point);
    return WEIR_OK;
}

static int follow(struct weir__region *region)
{
    int rc = WEIR_OK;
    for (uint32_t i = 0; i < region->nsteps && !rc; i++)
        if (region->steps[i].kind != WEIR__STEP_CREATED) rc = weir__region_wait(region, region->steps[i].entry);
    return rc;
}

/* Is it an `always` copy into what others created? */
static bool is_late(const struct weir__item *item)
{
    const uint64_t always = WEIR__MAP_TO | WEIR__MAP_ALWAYS;
    return (item->type & always) == always && !item->done && item->found.entry && item->bytes;
}

static int copy_always(struct weir__region *region, struct weir__items *items)
{
    uintptr_t begin;
    size_t bytes;
    uint64_t point;
    bool any = false;
    int rc = WEIR_OK;
    for (uint32_t i = 0; i < items->n && !rc; i++) {
        struct weir__item *item = &items->at[i];
        if (!is_late(item) || !weir__item_clamp(item, &begin, &bytes)) continue;
        any = true;
        rc = weir__region_wait(region, item->found.entry);
        if (!rc) rc = weir__region_copy_to(region, &item->found, begin, bytes);
    }
    if (!rc && any) rc = weir__region_mark(region, &point);
    for (uint32_t i = 0; i < items->n && any && !rc; i++)
        if (is_late(&items->at[i])) /* Release: pairs with the acquire in weir__table_transfer(). */
            atomic_store_explicit(&items->at[i].found.entry->transfer, point, memory_order_release);
    return rc;
}

/* What is written to entries that others created. */
static int write_to_others(struct weir__region *region, struct weir__items *items)
{
    bool any = region->attaches != NULL;
    for (uint32_t i = 0; i < items->n && !any; i++) any = is_late(&items->at[i]);
    if (!any) return WEIR_OK;
    weir__table_lock_writes(region->table);
    int rc = copy_always(region, items);
    if (!rc) rc = weir__attach_others(region);
    weir__table_unlock_writes(region->table);
    return rc;
}

/* The device addresses that the program asked for. */
static void addresses_return(struct weir__region *region, const struct weir__map_args *args)
{
    for (uint32_t i = 0; i < args->n; i++) {
        uint64_t type = args->types[i];
        if (!(type & WEIR__MAP_RETURN_PARAM) || type & (WEIR__MAP_LITERAL | WEIR__MAP_PRIVATE | WEIR__MAP_ATTACH))
            continue;
        struct weir__found found;
        uintptr_t begin = (uintptr_t)args->begins[i], base = (uintptr_t)args->bases[i];
        if (type & WEIR__MAP_PTR_AND_OBJ) base = *(const uintptr_t *)base;
        weir__table_find(region->table, begin, args->sizes[i] > 0 ? (size_t)args->sizes[i] : 0, &found);
        if (weir__item_matches(type, &found))
            args->bases[i] = (void *)(weir__found_address(&found, begin) - (begin - base));
        else if (type & WEIR__MAP_NULLIFY && !weir__table_is_unified(region->table))
            args->bases[i] = (void *)(0 - (begin - base));
        else if (type & WEIR__MAP_PTR_AND_OBJ)
            args->bases[i] = (void *)base;
    }
}

/* Take back what the steps did; work that was queued for it only touches memory that is given back behind it. */
static void undo(struct weir__region *region)
{
    for (uint32_t i = 0; i < region->nsteps; i++) {
        struct weir__region_step *step = &region->steps[i];
        struct weir__found found = {.entry = step->entry, .state = step->state};
        if (step->kind == WEIR__STEP_CREATED && weir__region_owns(region, &found))
            weir__table_publish(region->table, step->entry, WEIR__TRANSFER_FAILED, 0);
    }
    while (region->nsteps) {
        struct weir__region_step *step = &region->steps[--region->nsteps];
        struct weir__found found = {.entry = step->entry, .state = step->state};
        int rc = WEIR_OK;
        if (step->kind == WEIR__STEP_SEEN || !weir__region_drop(region, &found, step->hold, false, &rc)) continue;
        rc = weir__region_follow(region, step->entry);
        step->entry->next = NULL;
        int buried = weir__region_bury(region, step->entry);
        if (rc || buried)
            weir__log(2, "data of a failed construct may be in use: %s", weir_error_string(rc ? rc : buried));
    }
    region->attaches = NULL;
    region->attaches_tail = &region->attaches;
}

int weir__data_begin(struct weir__region *region, const struct weir__map_args *args)
{
    struct weir__items items;
    region->nsteps = 0;
    region->marked = region->wrote = false;
    int rc = weir__data_expand(region, args, &items);
    for (uint32_t i = 0; i < items.n && !rc; i++) rc = item_begin(region, &items.at[i]);
    if (!rc && region->attaches) rc = weir__attach_own(region);
    if (!rc) rc = publish(region);
    if (!rc) rc = follow(region);
    if (!rc) rc = write_to_others(region, &items);
    if (rc) {
        undo(region);
        return rc;
    }
    addresses_return(region, args);
    return WEIR_OK;
}

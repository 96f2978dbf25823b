/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "interop/data_internal.h"

/* What the operations of a region share: points, copies with attached pointers, and the end of entries. */

bool weir__region_owns(const struct weir__region *region, const struct weir__found *found)
{
    /* Relaxed: only this thread stores the region's own address there, and takes it away again. */
    return found->entry && atomic_load_explicit(&found->entry->owner, memory_order_relaxed) == region;
}

int weir__region_mark(struct weir__region *region, uint64_t *point_out)
{
    if (!region->marked) {
        struct weir__point point;
        int rc = weir__task_mark(region->task, &point);
        if (rc) return rc;
        region->mark = point.value;
        region->marked = true;
    }
    *point_out = region->mark;
    return WEIR_OK;
}

int weir__region_wait(struct weir__region *region, struct weir__mapped *entry)
{
    uint64_t point = weir__table_transfer(region->table, entry);
    if (!point) return WEIR_OK;
    if (point == WEIR__TRANSFER_FAILED)
        return weir__fail(WEIR_E_DEVICE, "the data was to be copied by another construct, which failed");
    return weir__task_wait_point(region->task, (struct weir__point){point});
}

/* ---- copies ---- */

int weir__region_write(struct weir__region *region, uintptr_t device, const void *bytes, size_t n)
{
    void *kept = weir__region_keep(region, n);
    if (!kept) return WEIR_E_NO_MEMORY;
    memcpy(kept, bytes, n);
    struct weir__copy copy = {.kind = WEIR__COPY_TO_DEVICE, .to = (void *)device, .from = kept, .bytes = n};
    region->marked = false;
    region->wrote = true;
    return weir__task_copy(region->task, &copy);
}

/* The shadows that overlap the range. The entry is locked. */
static uint32_t shadows_locked(const struct weir__mapped *entry, uintptr_t host, size_t bytes, uint32_t *first_out)
{
    uint32_t first = 0, behind;
    while (first < entry->nshadows && entry->shadows[first].host + entry->shadows[first].bytes <= host) first++;
    for (behind = first; behind < entry->nshadows && entry->shadows[behind].host < host + bytes;) behind++;
    *first_out = first;
    return behind - first;
}

/* A copy of them that the region keeps, with whole contents as @on_host or the device have them. */
struct pointers {
    uint32_t n;
    struct pointer {
        uintptr_t host;
        uint32_t bytes;
        char *content;
    } at[];
};

static int pointers_take(struct weir__region *region, struct weir__mapped *entry, uintptr_t host, size_t bytes,
                         bool on_host, struct pointers **pointers_out)
{
    struct pointers *pointers = NULL;
    int rc = WEIR_OK;
    uint32_t first;
    pthread_mutex_lock(&entry->lock);
    uint32_t n = shadows_locked(entry, host, bytes, &first);
    if (!n) goto unlock;
    pointers = weir__region_keep(region, sizeof *pointers + n * sizeof pointers->at[0]);
    if (!pointers) rc = WEIR_E_NO_MEMORY;
    for (uint32_t i = 0; i < n && !rc; i++) {
        const struct weir__shadow *shadow = &entry->shadows[first + i];
        char *content = weir__region_keep(region, shadow->bytes);
        if (!content) {
            rc = WEIR_E_NO_MEMORY;
            break;
        }
        memcpy(content, on_host ? &shadow->host_value : &shadow->device_value, 8);
        if (shadow->bytes > 8) memcpy(content + 8, shadow->rest, shadow->bytes - 8);
        pointers->at[i] = (struct pointer){shadow->host, shadow->bytes, content};
        pointers->n = i + 1;
    }
unlock:
    pthread_mutex_unlock(&entry->lock);
    *pointers_out = pointers;
    return rc;
}

int weir__region_shadows_to(struct weir__region *region, const struct weir__found *found, uintptr_t host, size_t bytes)
{
    struct pointers *pointers;
    int rc = pointers_take(region, found->entry, host, bytes, false, &pointers);
    for (uint32_t i = 0; pointers && i < pointers->n && !rc; i++) {
        struct weir__copy copy = {.kind = WEIR__COPY_TO_DEVICE,
                                  .to = (void *)weir__found_address(found, pointers->at[i].host),
                                  .from = pointers->at[i].content,
                                  .bytes = pointers->at[i].bytes};
        rc = weir__task_copy(region->task, &copy);
    }
    return rc;
}

/* In stream order, so that a successor's copy reads the host's own values. */
static int restore(void *arg)
{
    const struct pointers *pointers = arg;
    for (uint32_t i = 0; i < pointers->n; i++)
        memcpy((void *)pointers->at[i].host, pointers->at[i].content, pointers->at[i].bytes);
    return 0;
}

int weir__region_shadows_from(struct weir__region *region, const struct weir__found *found, uintptr_t host,
                              size_t bytes)
{
    struct pointers *pointers;
    int rc = pointers_take(region, found->entry, host, bytes, true, &pointers);
    return rc || !pointers ? rc : weir__task_host_function(region->task, restore, pointers);
}

int weir__region_copy_to(struct weir__region *region, const struct weir__found *found, uintptr_t host, size_t bytes)
{
    struct weir__copy copy = {.kind = WEIR__COPY_TO_DEVICE,
                              .to = (void *)weir__found_address(found, host),
                              .from = (const void *)host,
                              .bytes = bytes};
    region->marked = false;
    region->wrote = true;
    int rc = weir__task_copy(region->task, &copy);
    return rc ? rc : weir__region_shadows_to(region, found, host, bytes);
}

int weir__region_copy_from(struct weir__region *region, const struct weir__found *found, uintptr_t host, size_t bytes)
{
    struct weir__copy copy = {.kind = WEIR__COPY_TO_HOST,
                              .to = (void *)host,
                              .from = (const void *)weir__found_address(found, host),
                              .bytes = bytes};
    region->marked = false;
    weir__region_note_home(found);
    int rc = weir__task_copy(region->task, &copy);
    return rc ? rc : weir__region_shadows_from(region, found, host, bytes);
}

/* ---- the end of entries ---- */

int weir__region_follow(struct weir__region *region, struct weir__mapped *entry)
{
    int first = WEIR_OK;
    for (uint32_t i = 0;; i++) {
        /* One at a time: waiting may block where devices cannot wait for each other. */
        pthread_mutex_lock(&entry->lock);
        bool more = i < entry->nusers;
        struct weir__point point = {more ? entry->users[i] : 0};
        pthread_mutex_unlock(&entry->lock);
        if (!more) return first;
        int rc = weir__task_wait_point(region->task, point);
        if (!first) first = rc;
    }
}

int weir__region_use(struct weir__region *region, struct weir__mapped *entry)
{
    uint64_t point;
    int rc = weir__region_mark(region, &point);
    if (rc || !weir__mapped_add_user(entry, point)) return rc;
    /* No memory for one more: one point behind all of them, in the place of the first. */
    rc = weir__region_follow(region, entry);
    region->marked = false;
    int marked = weir__region_mark(region, &point);
    if (marked) return marked;
    pthread_mutex_lock(&entry->lock);
    if (entry->nusers) {
        entry->users[0] = point;
        entry->nusers = 1;
    } else {
        /* Not even the first: the newest transfer is something that everybody follows. */
        atomic_store_explicit(&entry->transfer, point, memory_order_release);
    }
    pthread_mutex_unlock(&entry->lock);
    return rc;
}

bool weir__region_drop(struct weir__region *region, const struct weir__found *found, bool hold, bool all, int *rc)
{
    struct weir__mapped *entry = found->entry;
    uint64_t state = atomic_load_explicit(&entry->state, memory_order_acquire);
    bool noted = false;
    for (;;) {
        if (weir__state_serial(state) != weir__state_serial(found->state) || !weir__state_alive(state)) return false;
        uint64_t dropped = weir__state_dropped(state, hold, all);
        if (dropped == state) return false;
        bool last = !weir__state_alive(dropped);
        if (!last && !noted) {
            int added = weir__region_use(region, entry);
            if (added && !*rc) *rc = added;
            noted = true;
        }
        if (!weir__mapped_try_drop(entry, &state, dropped)) continue;
        if (!last) return false;
        atomic_store_explicit(&entry->owner, region, memory_order_relaxed); /* ours alone from here on */
        return true;
    }
}

int weir__region_follow_ended(struct weir__region *region, const struct weir__mapped *entry)
{
    uintptr_t cursor = entry->followed;
    uintptr_t end = atomic_load_explicit(&entry->end, memory_order_relaxed); /* the entry is this region's */
    uint64_t point = entry->follows;
    while (point) {
        int rc = weir__task_wait_point(region->task, (struct weir__point){point});
        if (rc) return rc;
        region->marked = false;
        region->wrote = true; /* so that whoever uses what is created follows it as well */
        point = cursor < end ? weir__table_ended(region->table, &cursor, end) : 0;
    }
    return WEIR_OK;
}

int weir__region_bury(struct weir__region *region, struct weir__mapped *ended)
{
    int first = WEIR_OK;
    for (struct weir__mapped *entry = ended, *next; entry; entry = next) {
        next = entry->next;
        weir__region_free(region, entry->memory);
        entry->memory = NULL;
        /* Relaxed: behind the last drop. The record that comes next is one behind the copies, which are queued. */
        bool home = atomic_load_explicit(&entry->home, memory_order_relaxed);
        int rc = weir__table_bury(region->table, entry, home ? weir__task_next_mark(region->task).value : 0);
        if (!first) first = rc;
    }
    return first;
}

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_INTEROP_DATA_INTERNAL_H
#define WEIR_INTEROP_DATA_INTERNAL_H

/* What the files data*.c share. */

#include "interop/data.h"
#include "interop/mapping.h"

/* One entry of the arrays, or one component that a mapper pushed. */
struct weir__item {
    uintptr_t base, begin;
    size_t bytes;
    uint64_t type;
    const char *name; /* as the compiler writes it, or NULL */
    uint32_t padding; /* a combined struct entry: bytes before the begin that keep its alignment */
    bool member;      /* belongs to a parent entry, which counts for it */
    bool counts;      /* changes the reference count */
    bool done;        /* end: copied back already */
    struct weir__found found;
};

struct weir__items {
    struct weir__item *at;
    uint32_t n, capacity;
};

/* A pointer to be written on the device after everything else is mapped. */
struct weir__region_attach {
    struct weir__region_attach *next;
    uintptr_t pointer; /* host address */
    uintptr_t pointee; /* host address of the mapped part */
    uint32_t bytes;    /* 8, or more: a descriptor */
    bool separate;     /* an entry of its own, with conditions; else part of the pointee's entry */
    bool always;
    uintptr_t device;          /* of pointee; 0: not mapped */
    struct weir__found target; /* of pointer */
};

enum weir__step_kind {
    WEIR__STEP_SEEN,    /* found, its transfer must be waited for */
    WEIR__STEP_COUNTED, /* …and counted once more */
    WEIR__STEP_CREATED, /* made by this region, one count */
};

/* The entries that are mapped, in order, mappers expanded. They live until finish. */
WEIR_MUST_CHECK int weir__data_expand(struct weir__region *region, const struct weir__map_args *args,
                                      struct weir__items *items_out);

/* Is it the region's own new entry, not seen complete by anybody yet? */
bool weir__region_owns(const struct weir__region *region, const struct weir__found *found);
/* Record a point behind everything queued so far, unless nothing was queued since the last one. */
WEIR_MUST_CHECK int weir__region_mark(struct weir__region *region, uint64_t *point_out);
/* The task's later work follows the entry's newest transfer. May wait for another thread (weir__table_transfer()). */
WEIR_MUST_CHECK int weir__region_wait(struct weir__region *region, struct weir__mapped *entry);
/* Whoever ends the entry has to follow this region's work so far. */
WEIR_MUST_CHECK int weir__region_use(struct weir__region *region, struct weir__mapped *entry);
/* Device memory is not used behind this place of the stream. */
void weir__region_free(struct weir__region *region, void *memory);

/* Copies of @bytes between @host and the found entry; pointers in it that are attached keep each side's values. */
WEIR_MUST_CHECK int weir__region_copy_to(struct weir__region *region, const struct weir__found *found, uintptr_t host,
                                         size_t bytes);
WEIR_MUST_CHECK int weir__region_copy_from(struct weir__region *region, const struct weir__found *found, uintptr_t host,
                                           size_t bytes);
/* The same for shadows alone, after a copy of another form. */
WEIR_MUST_CHECK int weir__region_shadows_to(struct weir__region *region, const struct weir__found *found,
                                            uintptr_t host, size_t bytes);
WEIR_MUST_CHECK int weir__region_shadows_from(struct weir__region *region, const struct weir__found *found,
                                              uintptr_t host, size_t bytes);
/* Queue a copy of a few bytes that the region keeps until then. */
WEIR_MUST_CHECK int weir__region_write(struct weir__region *region, uintptr_t device, const void *bytes, size_t n);

/*
 * One reference less; if others remain, whoever ends the entry follows this region's work. True: it was the last, the
 * entry is this region's alone, which gives it back with weir__region_bury() and waits for no other thread until then.
 */
bool weir__region_drop(struct weir__region *region, const struct weir__found *found, bool hold, bool all, int *rc);
/* Follow every user of an entry that this region ended. */
WEIR_MUST_CHECK int weir__region_follow(struct weir__region *region, struct weir__mapped *entry);
/* Give entries and their memory back, a list by .next. What is mapped in their place follows the copies to the host. */
WEIR_MUST_CHECK int weir__region_bury(struct weir__region *region, struct weir__mapped *ended);
/* Follow the copies to the host of what was mapped before in the place of a new entry. */
WEIR_MUST_CHECK int weir__region_follow_ended(struct weir__region *region, const struct weir__mapped *entry);

/* A copy to the host is about to be queued. Relaxed: the drop of the reference publishes it. */
static inline void weir__region_note_home(const struct weir__found *found)
{
    atomic_store_explicit(&found->entry->home, true, memory_order_relaxed);
}

/* data_attach.c: remember a pointer. */
WEIR_MUST_CHECK int weir__attach_add(struct weir__region *region, const struct weir__region_attach *attach);
/* Write the pointers that lie in own new entries, leave the others. */
WEIR_MUST_CHECK int weir__attach_own(struct weir__region *region);
/* …the others, after their entries' transfers. */
WEIR_MUST_CHECK int weir__attach_others(struct weir__region *region);

/* The part of an item that lies in the entry: an implicit one may go beyond it. False: nothing. */
static inline bool weir__item_clamp(const struct weir__item *item, uintptr_t *begin, size_t *bytes)
{
    uintptr_t from = item->begin, to = item->begin + item->bytes;
    if (from < item->found.begin) from = item->found.begin;
    if (to > item->found.end) to = item->found.end;
    *begin = from;
    *bytes = to - from;
    return item->found.entry && from < to;
}

/* Is what was looked up usable for the item? */
static inline bool weir__item_matches(uint64_t type, const struct weir__found *found)
{
    return found->relation == WEIR__FOUND_CONTAINED ||
           (found->relation != WEIR__FOUND_NONE && type & WEIR__MAP_IMPLICIT);
}

/* Text for messages: the name up to the first ';' behind its beginning. */
void weir__item_name(const struct weir__item *item, char *text, size_t bytes);

#endif

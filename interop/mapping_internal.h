/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_INTEROP_MAPPING_INTERNAL_H
#define WEIR_INTEROP_MAPPING_INTERNAL_H

/* What the files mapping*.c share. Their argument is in mapping.c. */

#include "interop/mapping.h"

#define GET(field)        atomic_load_explicit(&(field), memory_order_acquire)
#define SET(field, value) atomic_store_explicit(&(field), (value), memory_order_release)

typedef _Atomic(struct weir__mapped *) weir__link;

enum { WEIR__WALK_MOST = 256 };

struct weir__table {
    struct weir_context *context;
    struct weir_device *device;
    uint64_t id; /* never used again, for the threads' caches */
    _Atomic bool unified;
    bool attach_always;

    _Atomic uint64_t version;
    weir__link root;

    pthread_mutex_t lock;
    struct weir__mapped *unused, *all;
    uint64_t random;
    size_t count;
    /* mapping_ended.c */
    weir__link ended;
    size_t nended, sweep_at;
    pthread_cond_t buried;
    uint32_t nblocked; /* inserts that wait for it */

    pthread_mutex_t write_lock, publish_lock;
    pthread_cond_t published;
    _Atomic uint32_t waiters;
};

/* ---- treaps, by the begin of entries that do not overlap ---- */

static inline void weir__tree_insert(weir__link *root, struct weir__mapped *entry)
{
    uintptr_t key = GET(entry->begin);
    weir__link *link = root, *left = &entry->left, *right = &entry->right;
    struct weir__mapped *at = GET(*link);
    while (at && at->priority >= entry->priority) {
        link = key < GET(at->begin) ? &at->left : &at->right;
        at = GET(*link);
    }
    /* Split what is below. */
    while (at) {
        if (GET(at->begin) < key) {
            SET(*left, at);
            left = &at->right;
            at = GET(*left);
        } else {
            SET(*right, at);
            right = &at->left;
            at = GET(*right);
        }
    }
    SET(*left, NULL);
    SET(*right, NULL);
    SET(*link, entry);
}

static inline void weir__tree_remove(weir__link *root, struct weir__mapped *entry)
{
    uintptr_t key = GET(entry->begin);
    weir__link *link = root;
    struct weir__mapped *at = GET(*link);
    while (at != entry) {
        link = key < GET(at->begin) ? &at->left : &at->right;
        at = GET(*link);
    }
    /* Merge what is below. */
    struct weir__mapped *left = GET(entry->left), *right = GET(entry->right);
    while (left && right) {
        if (left->priority >= right->priority) {
            SET(*link, left);
            link = &left->right;
            left = GET(*link);
        } else {
            SET(*link, right);
            link = &right->left;
            right = GET(*link);
        }
    }
    SET(*link, left ? left : right);
}

/* The last entry that begins at or before @host, and the first one behind. Returns the steps, 0 if there were too many.
 */
static inline size_t weir__tree_walk(weir__link *root, uintptr_t host, struct weir__mapped **before,
                                     struct weir__mapped **behind)
{
    size_t steps = 1;
    *before = *behind = NULL;
    for (struct weir__mapped *at = GET(*root); at; steps++) {
        if (steps == WEIR__WALK_MOST) return 0;
        if (GET(at->begin) <= host) {
            *before = at;
            at = GET(at->right);
        } else {
            *behind = at;
            at = GET(at->left);
        }
    }
    return steps;
}

/* Table is locked. An entry of the tree that overlaps the range, or NULL. */
static inline struct weir__mapped *weir__tree_overlap(weir__link *root, uintptr_t begin, uintptr_t end)
{
    struct weir__mapped *before, *behind;
    (void)weir__tree_walk(root, begin, &before, &behind);
    if (before && GET(before->end) > begin) return before;
    return behind && GET(behind->begin) < end ? behind : NULL;
}

/* Table is locked. */
static inline void weir__entry_unuse(struct weir__table *table, struct weir__mapped *entry)
{
    entry->next = table->unused;
    table->unused = entry;
}

/* Table is locked. One that is in use nowhere, or NULL. */
struct weir__mapped *weir__entry_get(struct weir__table *table);
/* Drop its content; its serial changes before its fields do, so a stale look-up that reads new fields sees that. */
void weir__entry_clear(struct weir__mapped *entry);
/* Table is locked, .version odd. */
void weir__table_unlink(struct weir__table *table, struct weir__mapped *entry);
/* Table is locked. Make .version odd, or even again. */
void weir__version_step(struct weir__table *table);

#endif

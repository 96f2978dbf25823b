/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_GRAPH_DEPEND_H
#define WEIR_GRAPH_DEPEND_H

/*
 * The access table of a scope: from accesses to edges. One thread at a time; no function here locks.
 *
 * An open-addressing hash by address, one cache line an entry. Nothing is ever deleted: when the table is half full it is
 * rebuilt without the entries whose tasks are complete, and grown only if enough are left. So its size follows the
 * addresses that tasks in flight use, and an address costs nothing lasting.
 */

#include <graph/group.h>
#include <weir/task.h>

#define WEIR__DEPEND_FOUND 8
#define WEIR__DEPEND_SPARE 2 /* extras that are left for the caller after weir__depend_reserve() */

struct weir__ranges;

struct weir__depend {
    struct weir__entry  *entries;
    struct weir__ranges *ranges; /* the table of a scope whose accesses conflict by overlap; then .entries is unused */
    unsigned             bits;   /* 0: no table yet */
    uint32_t             used;
    struct weir__ref     base;   /* the newest all-memory task: what an address without an entry depends on */
    struct weir__fencer *fencer;
    /* Where weir__depend_reserve() found the first accesses, for weir__depend_enter(). */
    struct weir__entry  *found[WEIR__DEPEND_FOUND];
    bool                 plain; /* all were found, none is special */
};

/* @fencer is borrowed. Allocates nothing before the first access; @ranges: WEIR_E_NO_MEMORY is possible. */
int weir__depend_init(struct weir__depend *depend, bool ranges, struct weir__fencer *fencer);
void weir__depend_fini(struct weir__depend *depend);

/*
 * Check the accesses and make room, so that weir__depend_enter() with the same accesses cannot fail. Nothing that a user
 * could see changes.
 * Returns WEIR_OK; WEIR_E_INVALID (text); WEIR_E_NO_MEMORY.
 */
int weir__depend_reserve_any(struct weir__depend *depend, const struct weir_access *accesses, size_t n);
/* Enter the accesses of linking->node and make its edges. */
void weir__depend_enter_any(struct weir__depend *depend, const struct weir_access *accesses, size_t n, struct weir__linking *linking);

/* The entry of @key, or the free one where it belongs. */
static inline struct weir__entry *weir__entry_locate(struct weir__entry *entries, unsigned bits, uintptr_t key)
{
    size_t mask = ((size_t)1 << bits) - 1, i = (key * 0x9E3779B97F4A7C15ull) >> (64 - bits);

    while (entries[i].key != key && entries[i].key != 0) i = (i + 1) & mask;
    return &entries[i];
}

/* Edges of one plain access at most: a group that is not due for a purge, or the few before a group that it joins. */
#define WEIR__PLAIN_EDGES (WEIR__PURGE_MEMBERS + 2)

/* A few plain accesses to addresses that the table has? Then there is room for them; else go the general way. */
static inline bool weir__depend_reserve_plain(struct weir__depend *depend, const struct weir_access *accesses, size_t n)
{
    depend->plain = false;
    if (depend->bits == 0 || n > WEIR__DEPEND_FOUND || depend->fencer->extras->count < n * WEIR__PLAIN_EDGES + WEIR__DEPEND_SPARE) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        uintptr_t           key = (uintptr_t)accesses[i].address;
        struct weir__entry *entry = weir__entry_locate(depend->entries, depend->bits, key);
        unsigned            kind = accesses[i].kind;

        if (kind - WEIR__KIND_IN > 2 || entry->key == 0 || key + accesses[i].bytes < key) return false;
        if (kind == WEIR__KIND_IN && weir__entry_kind(entry) == WEIR__KIND_IN) {
            if (!weir__entry_is_open(entry)) return false;
        } else if (weir__group_more(&entry->now) >= WEIR__PURGE_MEMBERS) {
            return false;
        }
        depend->found[i] = entry;
    }
    depend->plain = true;
    return true;
}

static inline int weir__depend_reserve(struct weir__depend *depend, const struct weir_access *accesses, size_t n)
{
    return weir__depend_reserve_plain(depend, accesses, n) ? WEIR_OK : weir__depend_reserve_any(depend, accesses, n);
}

/* After a successful weir__depend_reserve_plain(). */
void weir__depend_enter_plain(struct weir__depend *depend, const struct weir_access *accesses, size_t n, struct weir__linking *linking);

static inline void weir__depend_enter(struct weir__depend *depend, const struct weir_access *accesses, size_t n, struct weir__linking *linking)
{
    if (depend->plain) weir__depend_enter_plain(depend, accesses, n, linking);
    else weir__depend_enter_any(depend, accesses, n, linking);
}

/* The edges of linking->node without entering it: nobody will depend on it. After weir__depend_reserve(). */
void weir__depend_peek(struct weir__depend *depend, const struct weir_access *accesses, size_t n, struct weir__linking *linking);

/*
 * Could a task of @domain with these accesses be issued at once?
 * Returns WEIR_OK; WEIR_E_PREDECESSOR (one has failed); WEIR_E_NOT_ISSUED.
 */
int weir__depend_probe(struct weir__depend *depend, const struct weir_access *accesses, size_t n, uint8_t domain);

/* Set node->poison = WEIR__POISON_NAMED of every failed node that the table still names. */
void weir__depend_mark_failed(struct weir__depend *depend);
/* Forget everything; every task is complete. */
void weir__depend_clear(struct weir__depend *depend);
/* Bytes the table holds, for tests. */
size_t weir__depend_bytes(const struct weir__depend *depend);

/* graph/ranges.c: the same for byte ranges. Entries are disjoint intervals; an access splits those it overlaps in part. */
struct weir__ranges *weir__ranges_create(void);
void weir__ranges_destroy(struct weir__ranges *ranges);
/* Before the accesses of a task: drop stale intervals if there are many; then cut along every access; then reserve each. */
void weir__ranges_purge(struct weir__ranges *ranges);
int weir__ranges_cut(struct weir__ranges *ranges, const struct weir__ref *base, uintptr_t begin, size_t bytes);
int weir__ranges_reserve(struct weir__ranges *ranges, uintptr_t begin, size_t bytes, unsigned kind, size_t *edges);
void weir__ranges_access(struct weir__ranges *ranges, uintptr_t begin, size_t bytes, unsigned kind,
                         struct weir__linking *linking, struct weir__fencer *fencer);
void weir__ranges_peek(struct weir__ranges *ranges, uintptr_t begin, size_t bytes, unsigned kind, struct weir__linking *linking);
int weir__ranges_probe(struct weir__ranges *ranges, const struct weir__ref *base, uintptr_t begin, size_t bytes,
                       unsigned kind, uint8_t domain);
/* Call @visit for every entry. */
void weir__ranges_each(struct weir__ranges *ranges, void (*visit)(struct weir__entry *entry, void *arg), void *arg);
void weir__ranges_clear(struct weir__ranges *ranges);
size_t weir__ranges_bytes(const struct weir__ranges *ranges);

#endif

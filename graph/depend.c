/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <graph/depend.h>

#include <stdlib.h>
#include <string.h>

#include <graph/error.h>

#define MIN_BITS 4

int weir__depend_init(struct weir__depend *depend, bool ranges, struct weir__fencer *fencer)
{
    memset(depend, 0, sizeof *depend);
    depend->fencer = fencer;
    if (!ranges) return WEIR_OK;
    depend->ranges = weir__ranges_create();
    return depend->ranges != NULL ? WEIR_OK : WEIR_E_NO_MEMORY;
}

static size_t capacity_of(const struct weir__depend *depend)
{
    return depend->bits != 0 ? (size_t)1 << depend->bits : 0;
}

static void each(struct weir__depend *depend, void (*visit)(struct weir__entry *entry, void *arg), void *arg)
{
    if (depend->ranges != NULL) {
        weir__ranges_each(depend->ranges, visit, arg);
        return;
    }
    for (size_t i = 0; depend->used != 0 && i < capacity_of(depend); i++) {
        if (depend->entries[i].key != 0) visit(&depend->entries[i], arg);
    }
}

static void fini_entry(struct weir__entry *entry, void *arg)
{
    (void)arg;
    weir__entry_fini(entry);
}

void weir__depend_clear(struct weir__depend *depend)
{
    if (depend->ranges != NULL) weir__ranges_clear(depend->ranges);
    else each(depend, fini_entry, NULL);
    depend->used = 0;
    depend->base.node = NULL;
}

void weir__depend_fini(struct weir__depend *depend)
{
    weir__depend_clear(depend);
    free(depend->entries);
    depend->entries = NULL;
    depend->bits = 0;
    if (depend->ranges != NULL) weir__ranges_destroy(depend->ranges);
    depend->ranges = NULL;
}

size_t weir__depend_bytes(const struct weir__depend *depend)
{
    if (depend->ranges != NULL) return weir__ranges_bytes(depend->ranges);
    return capacity_of(depend) * sizeof depend->entries[0];
}

/* Rebuild without stale entries, with room for @n more at half load. */
static int rebuild(struct weir__depend *depend, size_t n)
{
    size_t              live = 0, capacity = capacity_of(depend);
    unsigned            bits = MIN_BITS;
    struct weir__entry *entries;

    for (size_t i = 0; i < capacity; i++) {
        struct weir__entry *entry = &depend->entries[i];

        if (entry->key == 0) continue;
        if (weir__entry_is_stale(entry)) entry->lock_kind |= 7; /* a kind that does not exist: drop it below */
        else live++;
    }
    while (((size_t)1 << bits) < 4 * (live + n)) bits++;
    entries = aligned_alloc(64, sizeof entries[0] << bits);
    if (entries != NULL) memset(entries, 0, sizeof entries[0] << bits);
    for (size_t i = 0; i < capacity; i++) {
        struct weir__entry *entry = &depend->entries[i];

        if (entry->key == 0) continue;
        if ((entry->lock_kind & 7) != 7) {
            if (entries != NULL) *weir__entry_locate(entries, bits, entry->key) = *entry;
        } else if (entries != NULL) {
            weir__entry_fini(entry);
        } else {
            entry->lock_kind = (entry->lock_kind & ~(uintptr_t)7) | WEIR_ACCESS_OUT; /* stale: any kind will do */
        }
    }
    if (entries == NULL) return WEIR_E_NO_MEMORY;
    free(depend->entries);
    depend->entries = entries;
    depend->bits = bits;
    depend->used = (uint32_t)live;
    return WEIR_OK;
}

static int check(const struct weir_access *access)
{
    if (access->kind < WEIR_ACCESS_IN || access->kind > WEIR_ACCESS_AFTER) {
        return weir__fail(WEIR_E_INVALID, "access kind %u does not exist", access->kind);
    }
    if (access->kind != WEIR_ACCESS_ALL_MEMORY && access->address == NULL) {
        return weir__fail(WEIR_E_INVALID, "the address of an access is NULL");
    }
    if (access->kind < WEIR_ACCESS_ALL_MEMORY && access->bytes > UINTPTR_MAX - (uintptr_t)access->address) {
        return weir__fail(WEIR_E_INVALID, "an access of %zu bytes goes past the end of memory", access->bytes);
    }
    return WEIR_OK;
}

static void entry_init(struct weir__depend *depend, struct weir__entry *entry, uintptr_t key)
{
    entry->key = key;
    entry->now.first = depend->base;
    entry->lock_kind = WEIR_ACCESS_OUT;
    depend->used++;
}

static int reserve_entries(struct weir__depend *depend, const struct weir_access *accesses, size_t n, size_t *edges)
{
    int rc = __builtin_expect(2 * (depend->used + n) > capacity_of(depend), 0) ? rebuild(depend, n) : WEIR_OK;

    for (size_t i = 0; i < n && rc == WEIR_OK; i++) {
        uintptr_t           key = (uintptr_t)accesses[i].address;
        struct weir__entry *entry;

        if (accesses[i].kind == WEIR_ACCESS_AFTER) continue;
        entry = weir__entry_locate(depend->entries, depend->bits, key);
        if (entry->key == 0) entry_init(depend, entry, key);
        rc = weir__entry_reserve(entry, accesses[i].kind, edges);
    }
    return rc;
}

static int reserve_ranges(struct weir__depend *depend, const struct weir_access *accesses, size_t n, size_t *edges)
{
    int rc = WEIR_OK;

    weir__ranges_purge(depend->ranges);
    for (size_t i = 0; i < n && rc == WEIR_OK; i++) {
        if (accesses[i].kind == WEIR_ACCESS_AFTER) continue;
        rc = weir__ranges_cut(depend->ranges, &depend->base, (uintptr_t)accesses[i].address, accesses[i].bytes);
    }
    for (size_t i = 0; i < n && rc == WEIR_OK; i++) {
        if (accesses[i].kind == WEIR_ACCESS_AFTER) continue;
        rc = weir__ranges_reserve(depend->ranges, (uintptr_t)accesses[i].address, accesses[i].bytes, accesses[i].kind, edges);
    }
    return rc;
}

static void count_group(struct weir__entry *entry, void *arg)
{
    size_t *edges = arg;

    *edges += (entry->now.first.node != NULL) + (entry->now.more != NULL ? entry->now.more->count : 0);
}

int weir__depend_reserve_any(struct weir__depend *depend, const struct weir_access *accesses, size_t n)
{
    size_t edges = 0;
    bool   all = false;
    int    rc;

    for (size_t i = 0; i < n; i++) {
        const struct weir_access *access = &accesses[i];

        if (__builtin_expect(access->kind - 1u >= WEIR_ACCESS_ALL_MEMORY - 1 || access->address == NULL ||
                                 access->bytes > UINTPTR_MAX - (uintptr_t)access->address, 0)) {
            if ((rc = check(access)) != WEIR_OK) return rc;
            all |= access->kind == WEIR_ACCESS_ALL_MEMORY;
            edges += access->kind == WEIR_ACCESS_AFTER;
        }
    }
    if (__builtin_expect(all, 0)) {
        edges++;
        each(depend, count_group, &edges);
    } else {
        rc = depend->ranges != NULL ? reserve_ranges(depend, accesses, n, &edges) : reserve_entries(depend, accesses, n, &edges);
        if (rc != WEIR_OK) return weir__fail(rc, "no memory for the access table");
    }
    edges += WEIR__DEPEND_SPARE;
    if (edges > depend->fencer->extras->count) {
        rc = weir__extras_reserve(depend->fencer->extras, edges);
        if (rc != WEIR_OK) return weir__fail(rc, "no memory for %zu edges", edges);
    }
    return WEIR_OK;
}

static void link_group(struct weir__entry *entry, void *arg)
{
    weir__group_link(&entry->now, arg);
}

static void link_base(const struct weir__depend *depend, struct weir__linking *linking)
{
    if (depend->base.node != NULL) weir__node_link(linking, depend->base.node, depend->base.id);
}

static void enter_all_memory(struct weir__depend *depend, struct weir__linking *linking)
{
    link_base(depend, linking);
    each(depend, link_group, linking);
    weir__depend_clear(depend);
    depend->base.node = linking->node;
    depend->base.id = linking->node->id;
}

/* Explicit edges first; true if there is an all-memory access. */
static bool enter_special(const struct weir_access *accesses, size_t n, struct weir__linking *linking)
{
    bool all = false;

    for (size_t i = 0; i < n; i++) {
        struct weir__node *pred = (struct weir__node *)(uintptr_t)accesses[i].address;

        if (accesses[i].kind == WEIR_ACCESS_AFTER) weir__node_link(linking, pred, pred->id);
        all |= accesses[i].kind == WEIR_ACCESS_ALL_MEMORY;
    }
    return all;
}

void weir__depend_enter_any(struct weir__depend *depend, const struct weir_access *accesses, size_t n, struct weir__linking *linking)
{
    unsigned special = 0;

    for (size_t i = 0; i < n; i++) special |= accesses[i].kind >= WEIR_ACCESS_ALL_MEMORY;
    if (__builtin_expect(special, 0) && enter_special(accesses, n, linking)) {
        enter_all_memory(depend, linking);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        uintptr_t           key = (uintptr_t)accesses[i].address;
        struct weir__entry *entry;

        if (accesses[i].kind == WEIR_ACCESS_AFTER) continue;
        if (__builtin_expect(depend->ranges != NULL, 0)) {
            weir__ranges_access(depend->ranges, key, accesses[i].bytes, accesses[i].kind, linking, depend->fencer);
            continue;
        }
        entry = weir__entry_locate(depend->entries, depend->bits, key);
        weir__entry_access(entry, accesses[i].kind, linking, depend->fencer);
    }
}

void weir__depend_enter_plain(struct weir__depend *depend, const struct weir_access *accesses, size_t n, struct weir__linking *linking)
{
    for (size_t i = 0; i < n; i++) {
        if (accesses[i].kind == WEIR__KIND_IN) weir__entry_read(depend->found[i], linking);
        else weir__entry_write(depend->found[i], accesses[i].kind, linking);
    }
}

void weir__depend_peek(struct weir__depend *depend, const struct weir_access *accesses, size_t n, struct weir__linking *linking)
{
    for (size_t i = 0; i < n; i++) {
        uintptr_t key = (uintptr_t)accesses[i].address;

        if (accesses[i].kind == WEIR_ACCESS_AFTER) {
            weir__node_link(linking, (struct weir__node *)key, ((struct weir__node *)key)->id);
        } else if (accesses[i].kind == WEIR_ACCESS_ALL_MEMORY) {
            link_base(depend, linking);
            each(depend, link_group, linking);
        } else if (depend->ranges != NULL) {
            weir__ranges_peek(depend->ranges, key, accesses[i].bytes, accesses[i].kind, linking);
        } else {
            struct weir__entry *entry = depend->bits != 0 ? weir__entry_locate(depend->entries, depend->bits, key) : NULL;

            if (entry != NULL && entry->key != 0) weir__entry_peek(entry, accesses[i].kind, linking);
            else link_base(depend, linking);
        }
    }
}

struct probe {
    uint8_t domain;
    int     worst;
};

static void probe_note(struct probe *probe, int rc)
{
    if (rc == WEIR_E_PREDECESSOR || probe->worst == WEIR_OK) probe->worst = rc;
}

static void probe_entry(struct weir__entry *entry, void *arg)
{
    struct probe *probe = arg;

    if (probe->worst != WEIR_E_PREDECESSOR) probe_note(probe, weir__entry_probe(entry, WEIR_ACCESS_OUT, probe->domain));
}

static void probe_one(struct weir__depend *depend, const struct weir_access *access, struct probe *probe)
{
    uintptr_t           key = (uintptr_t)access->address;
    struct weir__entry *entry;

    if (access->kind == WEIR_ACCESS_ALL_MEMORY) {
        probe_note(probe, weir__ref_probe(&depend->base, probe->domain));
        each(depend, probe_entry, probe);
    } else if (access->kind == WEIR_ACCESS_AFTER) {
        struct weir__node *node = (struct weir__node *)key;
        struct weir__ref   ref = {node, node->id};

        probe_note(probe, weir__ref_probe(&ref, probe->domain));
    } else if (depend->ranges != NULL) {
        probe_note(probe, weir__ranges_probe(depend->ranges, &depend->base, key, access->bytes, access->kind, probe->domain));
    } else {
        entry = depend->bits != 0 ? weir__entry_locate(depend->entries, depend->bits, key) : NULL;
        if (entry == NULL || entry->key == 0) probe_note(probe, weir__ref_probe(&depend->base, probe->domain));
        else probe_note(probe, weir__entry_probe(entry, access->kind, probe->domain));
    }
}

int weir__depend_probe(struct weir__depend *depend, const struct weir_access *accesses, size_t n, uint8_t domain)
{
    struct probe probe = {domain, WEIR_OK};

    for (size_t i = 0; i < n; i++) probe_one(depend, &accesses[i], &probe);
    return probe.worst;
}

static void mark_failed(struct weir__entry *entry, void *arg)
{
    (void)arg;
    weir__entry_mark_failed(entry);
}

void weir__depend_mark_failed(struct weir__depend *depend)
{
    each(depend, mark_failed, NULL);
    /* Acquire: pairs with weir__node_take(), .status is read after. */
    if (depend->base.node != NULL && depend->base.node->id == depend->base.id &&
        atomic_load_explicit(&depend->base.node->completed, memory_order_acquire) == WEIR__REF_CLOSED) {
        atomic_store_explicit(&depend->base.node->poison, WEIR__POISON_NAMED, memory_order_relaxed); /* as in group.c */
    }
}

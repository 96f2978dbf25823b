/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "interop/kernels.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "interop/registry.h"

/*
 * Open addressing. Why a reader needs no lock:
 *  - A slot's key goes from NULL to an address and never back to NULL, so a probe that finds NULL has seen every slot
 *    where its key can be. Removal clears the value only.
 *  - The value is written before the key (W1 release, pairs with V1): who reads the key reads the value or a later one.
 *  - A slot without value may get another key. Who reads the old key and then the new value finds that the kernel has
 *    another address and goes on; the one who could miss something by that looks for a key that was removed.
 *  - A table that became too small is replaced (T1 release, pairs with T2) and kept: a reader may still be in it. At
 * most a quarter of a new table is in use, so the old ones together are smaller than what was inserted over time; a
 *    library that is loaded and unloaded again and again comes back to the same slots.
 */
struct slot {
    _Atomic(const void *) key;
    _Atomic(struct weir__kernel *) value;
};

struct table {
    struct table *older;
    size_t mask; /* slots - 1, a power of two less one */
    size_t used; /* slots with a key; writer only */
    struct slot slots[];
};

static _Atomic(struct table *) current;

static size_t hash_of(const void *key)
{
    return (size_t)(((uint64_t)(uintptr_t)key * UINT64_C(0x9e3779b97f4a7c15)) >> 32);
}

struct weir__kernel *weir__kernels_find(const void *host)
{
    struct table *table = atomic_load_explicit(&current, memory_order_acquire); /* T2 */
    if (!table) return NULL;
    for (size_t i = hash_of(host) & table->mask;; i = (i + 1) & table->mask) {
        const void *key = atomic_load_explicit(&table->slots[i].key, memory_order_acquire); /* V1 */
        if (!key) return NULL;
        if (key != host) continue;
        struct weir__kernel *kernel = atomic_load_explicit(&table->slots[i].value, memory_order_acquire); /* W1 */
        if (kernel && kernel->host == host) return kernel;
    }
}

static void put(struct table *table, struct weir__kernel *kernel)
{
    struct slot *slot = NULL;
    for (size_t i = hash_of(kernel->host) & table->mask;; i = (i + 1) & table->mask) {
        /* Relaxed: only the writer writes. */
        const void *key = atomic_load_explicit(&table->slots[i].key, memory_order_relaxed);
        struct weir__kernel *value = atomic_load_explicit(&table->slots[i].value, memory_order_relaxed);
        if (!value && !slot) slot = &table->slots[i];
        if (key == kernel->host && !value) slot = &table->slots[i];
        if (!key || key == kernel->host) break;
    }
    if (!atomic_load_explicit(&slot->key, memory_order_relaxed)) table->used++;
    atomic_store_explicit(&slot->value, kernel, memory_order_release);     /* W1 */
    atomic_store_explicit(&slot->key, kernel->host, memory_order_release); /* V1 */
}

static struct table *grown(struct table *old)
{
    size_t live = 0;
    for (size_t i = 0; old && i <= old->mask; i++)
        live += atomic_load_explicit(&old->slots[i].value, memory_order_relaxed) != NULL;
    size_t n = 64;
    while (n < 4 * (live + 1)) n *= 2;
    struct table *table = calloc(1, sizeof *table + n * sizeof table->slots[0]);
    if (!table) return NULL;
    table->mask = n - 1;
    table->older = old;
    for (size_t i = 0; old && i <= old->mask; i++) {
        struct weir__kernel *kernel = atomic_load_explicit(&old->slots[i].value, memory_order_relaxed);
        if (kernel) put(table, kernel);
    }
    return table;
}

int weir__kernels_insert(struct weir__kernel *kernel)
{
    struct table *table = atomic_load_explicit(&current, memory_order_relaxed);
    if (!table || 2 * (table->used + 1) > table->mask + 1) {
        table = grown(table);
        if (!table) return WEIR_E_NO_MEMORY;
        put(table, kernel);
        atomic_store_explicit(&current, table, memory_order_release); /* T1 */
        return WEIR_OK;
    }
    put(table, kernel);
    return WEIR_OK;
}

void weir__kernels_remove(const struct weir__kernel *kernel)
{
    struct table *table = atomic_load_explicit(&current, memory_order_relaxed);
    if (!table) return;
    for (size_t i = hash_of(kernel->host) & table->mask;; i = (i + 1) & table->mask) {
        const void *key = atomic_load_explicit(&table->slots[i].key, memory_order_relaxed);
        if (!key) return;
        if (atomic_load_explicit(&table->slots[i].value, memory_order_relaxed) != kernel) continue;
        atomic_store_explicit(&table->slots[i].value, NULL, memory_order_release);
        return;
    }
}

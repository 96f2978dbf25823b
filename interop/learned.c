/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "interop/learned.h"

#include <stdatomic.h>
#include <stddef.h>

/*
 * A table of words, each with all there is to know about one (entry, device): the key's hash without its low bits, what
 * was learned, and the generation in which it was. Words are written and read whole, so no order among them matters:
 * relaxed throughout. Two keys with equal hashes would share a word; the hash is 48 bits wide.
 */
enum { WORDS = 4096, PROBES = 16 };

#define KIND       UINT64_C(0x3)
#define GENERATION UINT64_C(0xfffc)

static _Atomic uint64_t words[WORDS];
static _Atomic uint64_t generation = KIND + 1; /* in steps of KIND + 1 */

static uint64_t hash(weir__task_routine entry, int64_t device)
{
    uint64_t key = (uint64_t)(uintptr_t)entry ^ (uint64_t)device << 48;
    key = (key ^ key >> 31) * UINT64_C(0x7fb5d329728ea185);
    key = (key ^ key >> 27) * UINT64_C(0x81dadef4bc2dd44d);
    return (key ^ key >> 33) & ~(KIND | GENERATION);
}

enum weir__learned weir__learned_get(weir__task_routine entry, int64_t device)
{
    uint64_t key = hash(entry, device) | (atomic_load_explicit(&generation, memory_order_relaxed) & GENERATION);
    for (size_t i = 0; i < PROBES; i++) {
        uint64_t word = atomic_load_explicit(&words[((key >> 16) + i) % WORDS], memory_order_relaxed);
        if ((word & ~KIND) == key) return (enum weir__learned)(word & KIND);
        if (!word) break;
    }
    return WEIR__LEARNED_NOTHING;
}

void weir__learned_set(weir__task_routine entry, int64_t device, enum weir__learned what)
{
    uint64_t now = atomic_load_explicit(&generation, memory_order_relaxed) & GENERATION;
    uint64_t key = hash(entry, device) | now;
    for (size_t i = 0; i < PROBES; i++) {
        _Atomic uint64_t *at = &words[((key >> 16) + i) % WORDS];
        uint64_t word = atomic_load_explicit(at, memory_order_relaxed);
        /* A word of an earlier generation is free. */
        while (!word || (word & ~KIND) == key || (word & GENERATION) != now)
            if (atomic_compare_exchange_weak_explicit(at, &word, key | what, memory_order_relaxed,
                                                      memory_order_relaxed))
                return;
    }
}

void weir__learned_forget(void)
{
    uint64_t now = atomic_fetch_add_explicit(&generation, KIND + 1, memory_order_relaxed) + KIND + 1;
    if (now & GENERATION) return;
    /* Round: words of long ago must not become valid again. */
    for (size_t i = 0; i < WORDS; i++) atomic_store_explicit(&words[i], 0, memory_order_relaxed);
}

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_TRACE_INDEX_H
#define WEIR_TRACE_INDEX_H

/* From a 64-bit key to an index: open addressing, nothing is removed. One thread. */

#include <stdint.h>
#include <stdlib.h>

#include <weir/error.h>

struct weir__map {
    struct weir__map_slot {
        uint64_t key; /* not 0 */
        uint32_t value;
    } *slots;
    size_t used, room; /* room: 0 or a power of two */
};

static inline struct weir__map_slot *weir__map_slot(const struct weir__map *map, uint64_t key)
{
    size_t i = (size_t)(key * UINT64_C(0x9E3779B97F4A7C15) >> 20) & (map->room - 1);
    while (map->slots[i].key && map->slots[i].key != key) i = (i + 1) & (map->room - 1);
    return &map->slots[i];
}

static inline uint32_t weir__map_get(const struct weir__map *map, uint64_t key, uint32_t otherwise)
{
    if (!map->room || !key) return otherwise;
    const struct weir__map_slot *slot = weir__map_slot(map, key);
    return slot->key ? slot->value : otherwise;
}

/* The key's slot, new ones with @value; NULL: no memory. */
static inline struct weir__map_slot *weir__map_put(struct weir__map *map, uint64_t key, uint32_t value)
{
    if (2 * (map->used + 1) > map->room) {
        struct weir__map larger = {calloc(map->room ? 2 * map->room : 64, sizeof *map->slots), map->used,
                                   map->room ? 2 * map->room : 64};
        if (!larger.slots) return NULL;
        for (size_t i = 0; i < map->room; i++)
            if (map->slots[i].key) *weir__map_slot(&larger, map->slots[i].key) = map->slots[i];
        free(map->slots);
        *map = larger;
    }
    struct weir__map_slot *slot = weir__map_slot(map, key);
    if (!slot->key) {
        *slot = (struct weir__map_slot){key, value};
        map->used++;
    }
    return slot;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_TESTS_DATA_RIG_H
#define WEIR_TESTS_DATA_RIG_H

/* Constructs written down as a compiler would: what the tests of the map rules share. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fake_work.h"
#include "interop/data.h"
#include "interop/mapping.h"

enum { RIG_ENTRIES = 16 };

#define RIG_MEMBER(n) ((uint64_t)(n) << WEIR__MAP_MEMBER_SHIFT)

struct rig_map {
    void *base, *begin;
    int64_t bytes;
    uint64_t type;
    void *mapper;
};

/* The compiler's arrays of one construct. */
struct rig_args {
    struct weir__map_args args;
    void *bases[RIG_ENTRIES], *begins[RIG_ENTRIES], *mappers[RIG_ENTRIES];
    int64_t sizes[RIG_ENTRIES];
    uint64_t types[RIG_ENTRIES];
};

static inline struct weir__map_args *rig_fill(struct rig_args *args, const struct rig_map *maps, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        args->bases[i] = maps[i].base;
        args->begins[i] = maps[i].begin;
        args->sizes[i] = maps[i].bytes;
        args->types[i] = maps[i].type;
        args->mappers[i] = maps[i].mapper;
    }
    args->args = (struct weir__map_args){n, args->bases, args->begins, args->sizes, args->types, NULL, args->mappers};
    return &args->args;
}

/* One data construct on a task of its own. */
static inline int rig_data(struct weir__table *table, struct weir__region *region,
                           int (*operation)(struct weir__region *, const struct weir__map_args *),
                           const struct rig_map *maps, uint32_t n)
{
    struct rig_args args;
    weir__region_open(region, fake_task(), fake_device(), table);
    return operation(region, rig_fill(&args, maps, n));
}

#define RIG_MAPS(...)                                                                                                  \
    (const struct rig_map[]){__VA_ARGS__}, sizeof((const struct rig_map[]){__VA_ARGS__}) / sizeof(struct rig_map)

#endif

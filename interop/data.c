/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <stdlib.h>
#include <string.h>

#include "interop/data_internal.h"

/* ---- memory of a region ---- */

struct weir__region_block {
    struct weir__region_block *next;
    size_t used, bytes;
    _Alignas(16) char data[];
};

enum { BLOCK_LEAST = 4096 };

void weir__region_init(struct weir__region *region)
{
    memset(region, 0, sizeof *region);
}

void weir__region_open(struct weir__region *region, struct weir_task *task, struct weir_device *device,
                       struct weir__table *table)
{
    region->task = task;
    region->device = device;
    region->table = table;
    region->nsteps = 0;
    region->attaches = NULL;
    region->attaches_tail = &region->attaches;
    region->privates = NULL;
    region->leftovers = NULL;
    region->marked = region->wrote = region->needed = false;
}

void *weir__region_scratch(struct weir__region *region, size_t bytes)
{
    struct weir__region_block *block = region->blocks;
    if (bytes > SIZE_MAX / 2) return NULL;
    bytes = (bytes + 15) & ~(size_t)15;
    if (!block || block->bytes - block->used < bytes) {
        size_t room = bytes > BLOCK_LEAST ? bytes : BLOCK_LEAST;
        block = malloc(sizeof *block + room);
        if (!block) {
            (void)weir__fail(WEIR_E_NO_MEMORY, "no memory for what a construct maps");
            return NULL;
        }
        *block = (struct weir__region_block){.next = region->blocks, .bytes = room};
        region->blocks = block;
    }
    void *memory = block->data + block->used;
    block->used += bytes;
    return memory;
}

void *weir__region_keep(struct weir__region *region, size_t bytes)
{
    region->needed = true;
    return weir__region_scratch(region, bytes);
}

static void free_now(struct weir__region *region, void *memory)
{
    if (weir__device_ops_of(region->device)->free(weir__device_handle_of(region->device), memory))
        weir__log(1, "device memory at %p is lost: %s", memory, weir_error_text());
}

void weir__region_free(struct weir__region *region, void *memory)
{
    if (!memory || !weir__task_free(region->task, memory)) return;
    /* Not in stream order, then when the task is complete. */
    void **leftover = weir__region_keep(region, 2 * sizeof(void *));
    if (!leftover) {
        weir__log(1, "device memory at %p is lost: no memory to note it", memory);
        return;
    }
    leftover[0] = memory;
    leftover[1] = region->leftovers;
    region->leftovers = leftover;
}

void weir__region_finish(struct weir__region *region)
{
    if (region->privates) free_now(region, region->privates);
    region->privates = NULL;
    for (void **leftover = region->leftovers; leftover; leftover = leftover[1]) free_now(region, leftover[0]);
    region->leftovers = NULL;
    /* The next construct gets a first block of the usual size. */
    struct weir__region_block *keep = NULL;
    for (struct weir__region_block *block = region->blocks, *next; block; block = next) {
        next = block->next;
        if (!keep && block->bytes == BLOCK_LEAST) {
            keep = block;
            continue;
        }
        free(block);
    }
    if (keep) {
        keep->next = NULL;
        keep->used = 0;
    }
    region->blocks = keep;
}

void weir__region_fini(struct weir__region *region)
{
    weir__region_finish(region);
    free(region->blocks);
    free(region->steps);
    region->blocks = NULL;
    region->steps = NULL;
}

/* ---- from the compiler's arrays to items ---- */

struct component {
    void *base, *begin, *name;
    int64_t bytes;
    uint64_t type;
};

/* What a mapper's handle points to. */
struct mapper {
    struct component *components;
    uint32_t n, capacity;
    bool failed;
};

int64_t weir__mapper_count(void *handle)
{
    return ((struct mapper *)handle)->n;
}

void weir__mapper_push(void *handle, void *base, void *begin, int64_t bytes, uint64_t type, void *name)
{
    struct mapper *mapper = handle;
    if (mapper->n == mapper->capacity) {
        uint32_t capacity = mapper->capacity ? 2 * mapper->capacity : 16;
        struct component *components = realloc(mapper->components, capacity * sizeof *components);
        if (!components) {
            mapper->failed = true;
            return;
        }
        mapper->components = components;
        mapper->capacity = capacity;
    }
    mapper->components[mapper->n++] =
        (struct component){.base = base, .begin = begin, .name = name, .bytes = bytes, .type = type};
}

static struct weir__item *item_add(struct weir__region *region, struct weir__items *items)
{
    if (items->n == items->capacity) {
        uint32_t capacity = items->capacity ? 2 * items->capacity : 8;
        struct weir__item *at = weir__region_scratch(region, capacity * sizeof *at);
        if (!at) return NULL;
        if (items->n) memcpy(at, items->at, items->n * sizeof *at);
        items->at = at;
        items->capacity = capacity;
    }
    return &items->at[items->n++];
}

/* The entry @next follows entry @i: is it a part of it? */
static bool is_parent(uint64_t next, uint32_t i)
{
    return next >> WEIR__MAP_MEMBER_SHIFT == (uint64_t)i + 1;
}

/* So that the members keep the alignment that they have from the struct's base on. */
static uint32_t padding_of(uintptr_t base, uintptr_t begin)
{
    uintptr_t align = base & -base;
    return (uint32_t)(begin % (align && align < 16 ? align : 16));
}

static void item_set(struct weir__item *item, const struct component *component)
{
    uint64_t type = component->type;
    item->base = (uintptr_t)component->base;
    item->begin = (uintptr_t)component->begin;
    item->bytes = component->bytes > 0 ? (size_t)component->bytes : 0;
    item->type = type;
    item->name = component->name;
    item->padding = 0;
    item->member = type >> WEIR__MAP_MEMBER_SHIFT != 0;
    item->counts = !item->member;
    item->done = false;
    item->found = (struct weir__found){.relation = WEIR__FOUND_NONE};
}

static int expand_mapper(struct weir__region *region, const struct component *entry, void *function,
                         struct mapper *mapper, struct weir__items *items)
{
    void (*run)(void *, void *, void *, int64_t, int64_t, void *);
    memcpy(&run, &function, sizeof run);
    mapper->n = 0;
    run(mapper, entry->base, entry->begin, entry->bytes, (int64_t)entry->type, entry->name);
    if (mapper->failed) return weir__fail(WEIR_E_NO_MEMORY, "no memory for the components of a mapper");
    for (uint32_t i = 0; i < mapper->n; i++) {
        const struct component *component = &mapper->components[i];
        if (component->type & (WEIR__MAP_LITERAL | WEIR__MAP_PRIVATE)) continue;
        struct weir__item *item = item_add(region, items);
        if (!item) return WEIR_E_NO_MEMORY;
        item_set(item, component);
        /* The first component is the whole object: a part of the parent's, which counts for it, if there is one. */
        if (i == 0 && entry->type >> WEIR__MAP_MEMBER_SHIFT) {
            item->member = true;
            item->counts = false;
        }
        if (!item->member && i + 1 < mapper->n && is_parent(mapper->components[i + 1].type, i))
            item->padding = padding_of(item->base, item->begin);
    }
    return WEIR_OK;
}

int weir__data_expand(struct weir__region *region, const struct weir__map_args *args, struct weir__items *items_out)
{
    struct weir__items items = {.capacity = args->n};
    struct mapper mapper = {.n = 0};
    int rc = WEIR_OK;
    if (args->n && !(items.at = weir__region_scratch(region, args->n * sizeof *items.at))) return WEIR_E_NO_MEMORY;
    for (uint32_t i = 0; i < args->n && !rc; i++) {
        struct component entry = {args->bases[i], args->begins[i], args->names ? args->names[i] : NULL, args->sizes[i],
                                  args->types[i]};
        if (entry.type & (WEIR__MAP_LITERAL | WEIR__MAP_PRIVATE)) continue;
        if (args->mappers && args->mappers[i]) {
            rc = expand_mapper(region, &entry, args->mappers[i], &mapper, &items);
            continue;
        }
        struct weir__item *item = item_add(region, &items);
        if (!item) {
            rc = WEIR_E_NO_MEMORY;
            break;
        }
        item_set(item, &entry);
        if (!item->member && i + 1 < args->n && is_parent(args->types[i + 1], i))
            item->padding = padding_of(item->base, item->begin);
    }
    free(mapper.components);
    *items_out = items;
    return rc;
}

void weir__item_name(const struct weir__item *item, char *text, size_t bytes)
{
    const char *name = item->name ? item->name : "";
    if (*name == ';') name++;
    size_t n = strcspn(name, ";");
    snprintf(text, bytes, "%.*s", (int)(n < 100 ? n : 100), n ? name : "(unnamed)");
    if (!n) snprintf(text, bytes, "(unnamed)");
}

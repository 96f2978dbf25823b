/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "interop/data_internal.h"

/*
 * Kernel parameters. The private copies of a construct lie in one piece of device memory, filled by one copy from a
 * piece of the region's memory: what they are made of may be gone when the kernel runs.
 */
enum { PRIVATE_ALIGN = 64 };

struct privates {
    size_t *offsets; /* per entry, in both pieces; only of private ones */
    size_t bytes;
    char *kept;       /* the region's piece */
    uintptr_t device; /* aligned */
    bool any;
};

static bool is_private(uint64_t type)
{
    return type & WEIR__MAP_PRIVATE && !(type & WEIR__MAP_LITERAL);
}

static size_t private_bytes(const struct weir__map_args *args, uint32_t i)
{
    if (args->types[i] & WEIR__MAP_ATTACH) return sizeof(void *);
    return args->sizes[i] > 0 ? (size_t)args->sizes[i] : 0;
}

/* The private copy keeps the original's place relative to a cache line, and with it any alignment of its type. */
static int privates_lay_out(struct weir__region *region, const struct weir__map_args *args, struct privates *privates)
{
    for (uint32_t i = 0; i < args->n; i++) {
        if (!is_private(args->types[i])) continue;
        if (!privates->offsets && !(privates->offsets = weir__region_scratch(region, args->n * sizeof(size_t))))
            return WEIR_E_NO_MEMORY;
        uintptr_t original = args->types[i] & WEIR__MAP_ATTACH ? 0 : (uintptr_t)args->begins[i];
        size_t shift = (original - privates->bytes) & (PRIVATE_ALIGN - 1);
        privates->offsets[i] = privates->bytes + shift;
        privates->bytes += shift + private_bytes(args, i);
    }
    return WEIR_OK;
}

static int privates_make(struct weir__region *region, const struct weir__map_args *args, struct privates *privates)
{
    int rc = privates_lay_out(region, args, privates);
    if (rc || !privates->offsets) return rc;
    const struct weir__device_ops *ops = weir__device_ops_of(region->device);
    void *handle = weir__device_handle_of(region->device);
    rc = ops->alloc(handle, privates->bytes + PRIVATE_ALIGN, &region->privates);
    if (rc) {
        region->privates = NULL;
        return weir__fail(rc, "%zu bytes of device memory for private data: %s", privates->bytes,
                          ops->last_error(handle));
    }
    privates->device = ((uintptr_t)region->privates + PRIVATE_ALIGN - 1) & ~(uintptr_t)(PRIVATE_ALIGN - 1);
    privates->kept = weir__region_keep(region, privates->bytes ? privates->bytes : 1);
    return privates->kept ? WEIR_OK : WEIR_E_NO_MEMORY;
}

/* Where a pointee's base is on the device, or the host's where it is not mapped. */
static uint64_t pointee_base(struct weir__region *region, uintptr_t base, uintptr_t begin)
{
    struct weir__found found;
    weir__table_find(region->table, begin, 0, &found);
    if (found.relation != WEIR__FOUND_CONTAINED) return base;
    return weir__found_address(&found, begin) - (begin - base);
}

static void private_fill(struct weir__region *region, const struct weir__map_args *args, uint32_t i,
                         struct privates *privates)
{
    char *kept = privates->kept + privates->offsets[i];
    size_t bytes = private_bytes(args, i);
    if (args->types[i] & WEIR__MAP_ATTACH) {
        uint64_t value = pointee_base(region, *(const uintptr_t *)args->bases[i], (uintptr_t)args->begins[i]);
        memcpy(kept, &value, sizeof value);
    } else if (args->types[i] & WEIR__MAP_TO && bytes) {
        memcpy(kept, args->begins[i], bytes);
    } else {
        return;
    }
    privates->any = true;
}

/* A lambda's capture: the closure, entry @parent, holds a pointer to something that is mapped. */
static int capture(struct weir__region *region, const struct weir__map_args *args, uint32_t i,
                   struct privates *privates)
{
    uint64_t parent = args->types[i] >> WEIR__MAP_MEMBER_SHIFT;
    if (!parent || parent > args->n) return WEIR_OK;
    uint32_t p = (uint32_t)parent - 1;
    struct weir__found found;
    size_t bytes = args->sizes[i] > 0 ? (size_t)args->sizes[i] : 0;
    weir__table_find(region->table, (uintptr_t)args->begins[i], bytes, &found);
    if (!weir__item_matches(args->types[i], &found)) return WEIR_OK;
    uint64_t value = weir__found_address(&found, (uintptr_t)args->begins[i]);
    uintptr_t offset = (uintptr_t)args->bases[i] - (uintptr_t)args->begins[p];
    if (is_private(args->types[p])) {
        if (offset + sizeof value > private_bytes(args, p))
            return weir__fail(WEIR_E_INVALID, "a captured pointer lies outside of its closure");
        memcpy(privates->kept + privates->offsets[p] + offset, &value, sizeof value);
        privates->any = true;
        return WEIR_OK;
    }
    weir__table_find(region->table, (uintptr_t)args->bases[i], sizeof value, &found);
    if (found.relation != WEIR__FOUND_CONTAINED) return WEIR_OK;
    return weir__region_write(region, weir__found_address(&found, (uintptr_t)args->bases[i]), &value, sizeof value);
}

static uint64_t parameter(struct weir__region *region, const struct weir__map_args *args, uint32_t i,
                          const struct privates *privates)
{
    uint64_t type = args->types[i];
    uintptr_t base = (uintptr_t)args->bases[i], begin = (uintptr_t)args->begins[i];
    if (type & WEIR__MAP_LITERAL) return base;
    if (type & WEIR__MAP_PRIVATE) {
        uintptr_t device = privates->device + privates->offsets[i];
        return type & WEIR__MAP_ATTACH ? device : device + (base - begin);
    }
    if (type & WEIR__MAP_PTR_AND_OBJ) base = *(const uintptr_t *)base;
    struct weir__found found;
    weir__table_find(region->table, begin, args->sizes[i] > 0 ? (size_t)args->sizes[i] : 0, &found);
    if (!weir__item_matches(type, &found)) return base;
    return weir__found_address(&found, begin) + (base - begin);
}

int weir__data_arguments(struct weir__region *region, const struct weir__map_args *args, uint64_t *values,
                         uint32_t *count_out)
{
    struct privates privates = {.bytes = 0};
    uint32_t n = 0;
    int rc = privates_make(region, args, &privates);
    if (rc) return rc;
    for (uint32_t i = 0; i < args->n; i++) {
        uint64_t type = args->types[i];
        if (is_private(type)) private_fill(region, args, i, &privates);
        if (type & WEIR__MAP_TARGET_PARAM) values[n++] = parameter(region, args, i, &privates);
    }
    for (uint32_t i = 0; i < args->n; i++) {
        uint64_t type = args->types[i];
        if (!(type & WEIR__MAP_LITERAL) || !(type & WEIR__MAP_PTR_AND_OBJ) || type & WEIR__MAP_TARGET_PARAM) continue;
        rc = capture(region, args, i, &privates);
        if (rc) return rc;
    }
    if (privates.any) {
        struct weir__copy copy = {.kind = WEIR__COPY_TO_DEVICE,
                                  .to = (void *)privates.device,
                                  .from = privates.kept,
                                  .bytes = privates.bytes};
        region->marked = false;
        rc = weir__task_copy(region->task, &copy);
        if (rc) return rc;
    }
    *count_out = n;
    return WEIR_OK;
}

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* What addresses are: a sorted table of device allocations, pinned host memory and module variables. */
#include "internal.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "emulator.h"

#define ALIGNMENT    256
#define POISON_BYTES 65536 /* at the beginning of an allocation */
#define POISON       0xc9

static struct range **ranges;
static size_t range_count, range_room;

/* ---- the table ---- */

/* Index of the first range that begins behind @address. */
static size_t index_behind(uint64_t address)
{
    size_t low = 0, high = range_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (ranges[middle]->base <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct range *emulator__range_find(uint64_t address)
{
    size_t i = index_behind(address);
    return i && address - ranges[i - 1]->base < ranges[i - 1]->bytes ? ranges[i - 1] : NULL;
}

struct range *emulator__range_add(enum range_kind kind, uint64_t base, size_t bytes, struct context *context)
{
    if (range_count == range_room) {
        range_room = range_room ? 2 * range_room : 256;
        struct range **larger = realloc(ranges, range_room * sizeof *ranges);
        if (!larger) abort();
        ranges = larger;
    }
    struct range *range = emulator__allocate(sizeof *range);
    *range = (struct range){.kind = kind, .base = base, .bytes = bytes, .context = context, .references = 1};
    range->device = context->device;
    range->id = ++emulator__state.next_id;
    size_t i = index_behind(base);
    memmove(ranges + i + 1, ranges + i, (range_count - i) * sizeof *ranges);
    ranges[i] = range;
    range_count++;
    return range;
}

void emulator__range_release(struct range *range)
{
    if (--range->references) return;
    emulator__timeline_release(range->ready.timeline);
    emulator__order_forget(range);
    if (range->kind == PINNED_RANGE) free((void *)(uintptr_t)range->base); /* not earlier: it may be in use */
    free(range);
}

void emulator__range_remove(struct range *range)
{
    size_t i = index_behind(range->base) - 1;
    memmove(ranges + i, ranges + i + 1, (range_count - i - 1) * sizeof *ranges);
    range_count--;
    if (range->kind == DEVICE_RANGE) emulator__arena_return(range->device, range->base, range->bytes);
    if (range->is_async) range->device->pool->used -= range->bytes;
    emulator__range_release(range);
}

struct range *emulator__range_next(const struct context *context, size_t *index)
{
    while (*index < range_count) {
        struct range *range = ranges[(*index)++];
        if (!context || range->context == context) return range;
    }
    return NULL;
}

int emulator__range_check(uint64_t address, size_t bytes, struct range **range_out)
{
    struct range *range = emulator__range_find(address);
    if (!range) {
        emulator__report("%#llx is no device address", (unsigned long long)address);
        return CUDA_INVALID_VALUE;
    }
    if (bytes > range->bytes - (address - range->base)) {
        emulator__report("%zu bytes at %#llx reach past the end of an allocation", bytes, (unsigned long long)address);
        return CUDA_INVALID_VALUE;
    }
    if (range->is_freed) {
        emulator__report("%#llx is used after cuMemFreeAsync", (unsigned long long)address);
        return CUDA_INVALID_VALUE;
    }
    *range_out = range;
    return 0;
}

size_t emulator_live_objects(void)
{
    size_t count = 0;
    struct object *object;
    pthread_mutex_lock(&emulator__state.lock);
    for (size_t i = 0; i < range_count; i++) count += ranges[i]->kind != MODULE_RANGE;
    for (uint32_t slot = 0; (object = emulator__handle_next(NULL, &slot));)
        if (object->kind == EVENT || object->kind == MODULE ||
            (object->kind == STREAM && object->context && object->context->legacy != (struct stream *)object))
            count++;
    pthread_mutex_unlock(&emulator__state.lock);
    return count;
}

/* ---- the memory of a device ---- */

static size_t rounded(size_t bytes)
{
    return (bytes + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
}

/* First gap of @bytes at or behind @from and before @limit; 0 if there is none. */
static uint64_t find_gap(uint64_t from, uint64_t limit, size_t bytes)
{
    for (size_t i = index_behind(from); from + bytes <= limit; i++) {
        if (i && ranges[i - 1]->base + ranges[i - 1]->bytes > from)
            from = ranges[i - 1]->base + rounded(ranges[i - 1]->bytes);
        uint64_t end = i < range_count && ranges[i]->base < limit ? ranges[i]->base : limit;
        if (end >= from && end - from >= bytes) return from;
        if (end == limit) return 0;
    }
    return 0;
}

uint64_t emulator__arena_take(struct device *device, size_t bytes)
{
    size_t taken = rounded(bytes);
    uint64_t base = (uintptr_t)device->base, limit = base + device->memory_bytes;
    if (bytes > device->memory_bytes || taken > device->memory_bytes - device->used_bytes) return 0;
    /* Not at once where something was just freed, so that stale addresses are noticed. */
    uint64_t from = emulator__state.settings.reuse_handles ? base : base + device->next_offset;
    uint64_t address = find_gap(from, limit, taken);
    if (!address) address = find_gap(base, limit, taken);
    if (!address) return 0;
    device->used_bytes += taken;
    device->next_offset = address + taken - base;
    memset(emulator__view(address), POISON, bytes < POISON_BYTES ? bytes : POISON_BYTES);
    return address;
}

void emulator__arena_return(struct device *device, uint64_t address, size_t bytes)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), offset = address - (uintptr_t)device->base;
    uint64_t start = (offset + page - 1) & ~(page - 1), end = (offset + bytes) & ~(page - 1);
    device->used_bytes -= rounded(bytes);
    if (end > start + POISON_BYTES)
        fallocate(device->file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)start, (off_t)(end - start));
}

/* ---- calls ---- */

int emulator__cuMemAlloc_v2(uint64_t *address, size_t bytes)
{
    struct context *context = emulator__call.context;
    if (!address || !bytes) return CUDA_INVALID_VALUE;
    uint64_t taken = emulator__arena_take(context->device, bytes);
    if (!taken) return CUDA_OUT_OF_MEMORY;
    emulator__range_add(DEVICE_RANGE, taken, bytes, context);
    *address = taken;
    return 0;
}

static struct range *find_base(uint64_t address, enum range_kind kind)
{
    struct range *range = emulator__range_find(address);
    if (range && range->base == address && range->kind == kind && !range->is_freed) return range;
    emulator__report("%#llx is no base of an allocation that lives", (unsigned long long)address);
    return NULL;
}

/* The operations in flight that name it are a mistake of the program; and the call may wait for all that is queued. */
static int free_range(struct range *range, const char *what)
{
    uint64_t base = range->base;
    enum range_kind kind = range->kind;
    if (range->pending) emulator__report("%s at %#llx is in use by queued work", what, (unsigned long long)base);
    int code = emulator__state.settings.free_blocks ? emulator__context_drain(range->context) : 0;
    if (code) return code;
    range = find_base(base, kind); /* the lock was given up */
    if (!range) return CUDA_INVALID_VALUE;
    emulator__range_remove(range);
    return 0;
}

int emulator__cuMemFree_v2(uint64_t address)
{
    if (!address) return 0;
    struct range *range = find_base(address, DEVICE_RANGE);
    return range ? free_range(range, "device memory") : CUDA_INVALID_VALUE;
}

int emulator__cuMemGetInfo_v2(size_t *unused, size_t *total)
{
    struct device *device = emulator__call.context->device;
    if (!unused || !total) return CUDA_INVALID_VALUE;
    *unused = device->memory_bytes - device->used_bytes;
    *total = device->memory_bytes;
    return 0;
}

int emulator__cuMemGetAddressRange_v2(uint64_t *base, size_t *bytes, uint64_t address)
{
    struct range *range = emulator__range_find(address);
    if (!range || range->kind == REGISTERED_RANGE) return CUDA_NOT_FOUND;
    if (base) *base = range->base;
    if (bytes) *bytes = range->bytes;
    return 0;
}

int emulator__cuMemHostAlloc(void **address, size_t bytes, unsigned flags)
{
    if (!address || !bytes || flags & ~7u) return CUDA_INVALID_VALUE;
    void *memory = NULL;
    if (posix_memalign(&memory, (size_t)sysconf(_SC_PAGESIZE), bytes)) return CUDA_OUT_OF_MEMORY;
    emulator__range_add(PINNED_RANGE, (uintptr_t)memory, bytes, emulator__call.context);
    *address = memory;
    return 0;
}

int emulator__cuMemFreeHost(void *address)
{
    if (!address) return CUDA_INVALID_VALUE;
    struct range *range = find_base((uintptr_t)address, PINNED_RANGE);
    return range ? free_range(range, "pinned memory") : CUDA_INVALID_VALUE;
}

int emulator__cuMemHostRegister_v2(void *address, size_t bytes, unsigned flags)
{
    uint64_t base = (uintptr_t)address;
    if (!address || !bytes || flags & ~0xfu) return CUDA_INVALID_VALUE;
    if (emulator__arena_of(base)) {
        emulator__report("%p is device memory", address);
        return CUDA_INVALID_VALUE;
    }
    size_t i = index_behind(base);
    if (emulator__range_find(base) || (i < range_count && ranges[i]->base < base + bytes))
        return CUDA_HOST_MEMORY_ALREADY_REGISTERED;
    emulator__range_add(REGISTERED_RANGE, base, bytes, emulator__call.context);
    return 0;
}

int emulator__cuMemHostUnregister(void *address)
{
    struct range *range = emulator__range_find((uintptr_t)address);
    if (!range || range->kind != REGISTERED_RANGE || range->base != (uintptr_t)address)
        return CUDA_HOST_MEMORY_NOT_REGISTERED;
    return free_range(range, "registered memory");
}

int emulator__cuMemHostGetDevicePointer_v2(uint64_t *device, void *host, unsigned flags)
{
    struct range *range = emulator__range_find((uintptr_t)host);
    if (!device || flags) return CUDA_INVALID_VALUE;
    if (!range || (range->kind != PINNED_RANGE && range->kind != REGISTERED_RANGE)) return CUDA_INVALID_VALUE;
    *device = (uintptr_t)host;
    return 0;
}

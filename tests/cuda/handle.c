/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Handles are numbers: slot, kind, and how often the slot has been used, so that a stale one is recognised. With the
 * setting reuse_handles the count is left out and the slot that was freed last is taken first: then a program that
 * tells objects apart by their handles goes wrong, as it would with the real driver.
 */
#include "internal.h"

#include <stdlib.h>

#define SLOT_BITS 20
#define SLOTS     (1u << SLOT_BITS)
#define NO_SLOT   UINT32_MAX

struct slot {
    struct object *object;
    uint32_t generation, next_free;
};

static struct slot *slots;
static uint32_t slot_count, slot_room;
static uint32_t free_first = NO_SLOT, free_last = NO_SLOT;

static const char *const names[] = {"nothing", "context", "stream", "event", "module",          "function",
                                    "pool",    "library", "kernel", "graph", "executable graph", "node of a graph"};

const char *emulator__kind_name(enum kind kind)
{
    return names[kind];
}

static void *encode(const struct object *object)
{
    uint64_t generation = emulator__state.settings.reuse_handles ? 0 : slots[object->slot].generation;
    uint64_t number = (uint64_t)0xcd << 56 | (generation & 0xffffff) << 32 | (uint64_t)object->slot << 8 |
                      (uint64_t)object->kind << 4;
    return (void *)(uintptr_t)number;
}

static bool add_slot(void)
{
    if (slot_count == SLOTS) return false;
    if (slot_count == slot_room) {
        uint32_t room = slot_room ? 2 * slot_room : 256;
        struct slot *larger = realloc(slots, room * sizeof *slots);
        if (!larger) return false;
        slots = larger;
        slot_room = room;
    }
    slots[slot_count] = (struct slot){.next_free = NO_SLOT};
    free_first = free_last = slot_count++;
    return true;
}

void *emulator__handle_create(struct object *object)
{
    if (free_first == NO_SLOT && !add_slot()) return NULL;
    object->slot = free_first;
    free_first = slots[free_first].next_free;
    if (free_first == NO_SLOT) free_last = NO_SLOT;
    slots[object->slot].object = object;
    return encode(object);
}

void emulator__handle_destroy(struct object *object)
{
    struct slot *slot = &slots[object->slot];
    slot->object = NULL;
    slot->generation++;
    /* Youngest first if handles are to come back, oldest first if not. */
    bool in_front = emulator__state.settings.reuse_handles || free_first == NO_SLOT;
    slot->next_free = in_front ? free_first : NO_SLOT;
    if (!in_front) slots[free_last].next_free = object->slot;
    if (free_first == NO_SLOT || !in_front) free_last = object->slot;
    if (in_front) free_first = object->slot;
}

void *emulator__handle_peek(const void *handle, enum kind kind)
{
    uint32_t slot = (uint32_t)((uintptr_t)handle >> 8) & 0xffffff;
    if (slot >= slot_count || !slots[slot].object || slots[slot].object->kind != kind) return NULL;
    return encode(slots[slot].object) == handle ? slots[slot].object : NULL;
}

void *emulator__handle_find(const void *handle, enum kind kind)
{
    void *object = emulator__handle_peek(handle, kind);
    if (object) return object;
    uint64_t number = (uintptr_t)handle;
    unsigned other = (unsigned)(number >> 4) & 0xf;
    if (number >> 56 != 0xcd || other > GRAPH_NODE)
        emulator__report("%p is no handle of a %s", handle, names[kind]);
    else if (other != kind)
        emulator__report("%p is a %s, not a %s", handle, names[other], names[kind]);
    else
        emulator__report("%s %p was destroyed", names[kind], handle);
    return NULL;
}

void *emulator__handle_of(const struct object *object)
{
    return encode(object);
}

struct object *emulator__handle_next(const struct context *context, uint32_t *slot)
{
    while (*slot < slot_count) {
        struct object *object = slots[(*slot)++].object;
        if (object && (!context || object->context == context)) return object;
    }
    return NULL;
}

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What is ordered behind what. Each timeline knows, for other timelines, up to which position its later work comes
 * after them; an event takes that knowledge along. Only stream-ordered memory needs it: its allocation must be ordered
 * before every use, and every use before it is given back. What is complete at the call counts as ordered, since a host
 * that waited for it is not seen.
 */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

static uint64_t *place_of(struct clock *clock, uint64_t id)
{
    for (unsigned i = 0; i < clock->count; i++)
        if (clock->entries[i].id == id) return &clock->entries[i].position;
    return NULL;
}

static void raise_to(struct clock *clock, uint64_t id, uint64_t position)
{
    uint64_t *known = place_of(clock, id);
    if (known) {
        if (*known < position) *known = position;
        return;
    }
    struct clock_entry *entries = realloc(clock->entries, (clock->count + 1) * sizeof *entries);
    if (!entries) abort();
    entries[clock->count++] = (struct clock_entry){id, position};
    clock->entries = entries;
}

void emulator__clock_join(struct clock *clock, const struct clock *other)
{
    for (unsigned i = 0; i < other->count; i++) raise_to(clock, other->entries[i].id, other->entries[i].position);
}

void emulator__clock_snapshot(struct clock *clock, const struct timeline *timeline)
{
    clock->count = 0;
    emulator__clock_join(clock, &timeline->known);
    raise_to(clock, timeline->id, timeline->submitted);
}

void emulator__clock_follow(struct timeline *timeline, const struct timeline *other)
{
    emulator__clock_join(&timeline->known, &other->known);
    raise_to(&timeline->known, other->id, other->submitted);
}

static bool is_behind(struct timeline *timeline, struct point point)
{
    if (emulator__point_is_complete(point) || point.timeline == timeline) return true;
    const uint64_t *known = place_of(&timeline->known, point.timeline->id);
    return known && *known >= point.position;
}

static void add_use(struct range *range, struct point at)
{
    for (unsigned i = 0; i < range->use_count; i++) {
        if (range->uses[i].timeline != at.timeline) continue;
        range->uses[i].position = at.position;
        return;
    }
    struct point *uses = realloc(range->uses, (range->use_count + 1) * sizeof *uses);
    if (!uses) abort();
    uses[range->use_count++] = emulator__point_retain(at);
    range->uses = uses;
}

void emulator__order_use(struct range *range, struct point at)
{
    if (!range->is_async) return;
    if (!is_behind(at.timeline, range->ready))
        emulator__report("%#llx is used without an order behind its allocation in another stream",
                         (unsigned long long)range->base);
    add_use(range, at);
}

void emulator__order_free(struct range *range, struct timeline *timeline)
{
    bool is_ordered = is_behind(timeline, range->ready);
    for (unsigned i = 0; i < range->use_count; i++) is_ordered = is_ordered && is_behind(timeline, range->uses[i]);
    if (!is_ordered)
        emulator__report("%#llx is freed without an order behind its use in another stream",
                         (unsigned long long)range->base);
}

void emulator__order_forget(struct range *range)
{
    for (unsigned i = 0; i < range->use_count; i++) emulator__timeline_release(range->uses[i].timeline);
    free(range->uses);
}

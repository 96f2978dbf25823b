/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "interop/mapping_internal.h"

#include <inttypes.h>
#include <stdlib.h>

#include <devices/thread.h>
#include <exec/stream.h>

/*
 * The entries are nodes of a treap by their begin. Who changes the tree holds .lock and makes .version odd meanwhile.
 * Look-ups walk without the lock and are right if .version was even and the same before and after (V1, V2). What makes
 * that sound:
 *  - Nodes are not freed while the table lives, so every pointer that a walk meets is a node. A walk through a tree
 * that changes may go in circles: it gives up after WEIR__WALK_MOST steps.
 *  - Writers store with release, look-ups load with acquire. A look-up that has seen one store of a change has thereby
 *    seen the odd .version before it, and V2 differs from V1.
 *  - What is found may end at once after that. Hence a reference is taken by compare and exchange on the state that was
 *    seen: it succeeds only if the entry has neither died nor become another one since. The serial (28 bits) grows
 *    before a put entry gets new fields.
 *
 * An entry whose counts are both 0 is dead: nobody finds or revives it. It stays in the tree until who brought it there
 * buries it, with the point behind the last copy back if there was one; an insert that overlaps it waits for that. From
 * then on a tombstone in another tree keeps range and point for later inserts (mapping_ended.c). A look-up never gets
 * there: a walk that began before the entry left the tree of the living fails at V2, a later one does not meet it.
 *
 * Lock order: table.write_lock before any of table.lock, table.publish_lock, entry.lock; each of these alone.
 */
enum { TRIES_MOST = 8, LINES = 32 };

/* What this thread found last, by address. */
struct line {
    uint64_t table;
    uint64_t state; /* its serial counts */
    struct weir__mapped *entry;
};
static _Thread_local void *lines __attribute__((tls_model("initial-exec")));

/* @spare: where there is no memory. */
static struct line *line_of(uintptr_t host, struct line *spare)
{
    struct line *all = lines ? lines : weir__thread_memory(&lines, LINES * sizeof *all);
    return all ? &all[(host >> 4 ^ host >> 11) % LINES] : spare;
}

/* ---- look-up ---- */

/* Reads an entry that may be changing. False: it is dead. */
static bool entry_read(struct weir__mapped *entry, struct weir__found *found)
{
    found->state = GET(entry->state);
    if (!weir__state_alive(found->state)) return false;
    found->entry = entry;
    found->begin = GET(entry->begin);
    found->end = GET(entry->end);
    found->base = GET(entry->base);
    found->device = GET(entry->device);
    return true;
}

static bool is_inside(const struct weir__found *found, uintptr_t host, size_t bytes)
{
    return host >= found->begin && host < found->end && bytes <= found->end - host;
}

static enum weir__relation relation_of(const struct weir__found *found, uintptr_t host, size_t bytes)
{
    if (is_inside(found, host, bytes)) return WEIR__FOUND_CONTAINED;
    if (!bytes) {
        bool below = host < found->begin && host >= found->base, above = host >= found->begin && host < found->base;
        return below || above ? WEIR__FOUND_CONTAINED : WEIR__FOUND_NONE;
    }
    if (host >= found->begin) return host < found->end ? WEIR__FOUND_AFTER : WEIR__FOUND_NONE;
    return bytes > found->begin - host ? WEIR__FOUND_BEFORE : WEIR__FOUND_NONE;
}

static void find_none(struct weir__found *found)
{
    *found = (struct weir__found){.relation = WEIR__FOUND_NONE};
}

/* Returns false if the walk went wrong, which only happens without the lock. */
static bool find_walking(struct weir__table *table, uintptr_t host, size_t bytes, struct weir__found *found)
{
    struct weir__mapped *candidates[2];
    if (!weir__tree_walk(&table->root, host, &candidates[0], &candidates[1])) return false;
    for (int i = 0; i < 2; i++) {
        if (!candidates[i] || !entry_read(candidates[i], found)) continue;
        found->relation = relation_of(found, host, bytes);
        if (found->relation != WEIR__FOUND_NONE) return true;
    }
    find_none(found);
    return true;
}

__attribute__((noinline)) static void find_slowly(struct weir__table *table, uintptr_t host, size_t bytes,
                                                  struct weir__found *found, struct line *line)
{
    for (int i = 0; i < TRIES_MOST; i++) {
        uint64_t version = GET(table->version); /* V1 */
        if (version % 2 || !find_walking(table, host, bytes, found)) continue;
        /* V2 relaxed: the acquire loads before it keep it behind them. */
        if (atomic_load_explicit(&table->version, memory_order_relaxed) != version) continue;
        if (found->relation == WEIR__FOUND_CONTAINED) *line = (struct line){table->id, found->state, found->entry};
        return;
    }
    pthread_mutex_lock(&table->lock);
    bool walked = find_walking(table, host, bytes, found);
    pthread_mutex_unlock(&table->lock);
    /* A treap of all the memory there is has fewer levels, but for a chance that nobody will see. */
    if (!walked) find_none(found);
}

/*
 * What the thread remembers. The serial only grows and was the line's when the line was written, so if it still is
 * after the fields were read, the fields and the counts before them belong together.
 */
static inline bool find_remembered(const struct line *line, uintptr_t host, size_t bytes, struct weir__found *found)
{
    struct weir__mapped *entry = line->entry;
    uint64_t state = GET(entry->state);
    uintptr_t begin = GET(entry->begin), end = GET(entry->end);
    if (host < begin || host >= end || bytes > end - host || !weir__state_alive(state)) return false;
    found->entry = entry;
    found->state = state;
    found->begin = begin;
    found->end = end;
    found->base = GET(entry->base);
    found->device = GET(entry->device);
    found->relation = WEIR__FOUND_CONTAINED;
    /* Relaxed: behind the acquire loads. */
    return (atomic_load_explicit(&entry->state, memory_order_relaxed) ^ line->state) >> 36 == 0;
}

void weir__table_find(struct weir__table *table, uintptr_t host, size_t bytes, struct weir__found *found)
{
    struct line spare = {0}, *line = line_of(host, &spare);
    if (line->table == table->id && find_remembered(line, host, bytes, found)) return;
    find_slowly(table, host, bytes, found, line);
}

/* ---- counts ---- */

int weir__mapped_retain(struct weir__found *found, bool hold)
{
    uint64_t one = hold ? (uint64_t)1 << 26 : 1;
    uint64_t state = found->state;
    for (;;) {
        if (weir__state_serial(state) != weir__state_serial(found->state) || !weir__state_alive(state))
            return WEIR_E_STATE;
        if (!hold && weir__state_dynamic(state) == WEIR__COUNT_INFINITE) return WEIR_OK;
        uint32_t room =
            hold ? WEIR__HOLD_MOST - weir__state_hold(state) : WEIR__COUNT_INFINITE - 1 - weir__state_dynamic(state);
        if (!room) return weir__fail(WEIR_E_INVALID, "the reference count of mapped data is at its limit");
        /* Acquire: behind the insert that made the entry. */
        if (atomic_compare_exchange_weak_explicit(&found->entry->state, &state, state + one, memory_order_acq_rel,
                                                  memory_order_acquire)) {
            found->state = state + one;
            return WEIR_OK;
        }
    }
}

uint64_t weir__state_dropped(uint64_t state, bool hold, bool all)
{
    uint64_t dynamic = weir__state_dynamic(state), holds = weir__state_hold(state);
    uint64_t *count = hold ? &holds : &dynamic;
    if (hold || dynamic != WEIR__COUNT_INFINITE) *count = all || !*count ? 0 : *count - 1;
    return weir__state_serial(state) << 36 | holds << 26 | dynamic;
}

bool weir__mapped_try_drop(struct weir__mapped *entry, uint64_t *state, uint64_t dropped)
{
    /* Release: what this thread noted in the entry is seen by who takes the last reference. Acquire: the other side. */
    return atomic_compare_exchange_strong_explicit(&entry->state, state, dropped, memory_order_acq_rel,
                                                   memory_order_acquire);
}

/* ---- entries ---- */

struct weir__mapped *weir__entry_get(struct weir__table *table)
{
    struct weir__mapped *entry = table->unused;
    if (entry) {
        table->unused = entry->next;
        return entry;
    }
    entry = calloc(1, sizeof *entry);
    if (!entry) return NULL;
    pthread_mutex_init(&entry->lock, NULL);
    /* xorshift: any spread will do. */
    table->random ^= table->random << 13;
    table->random ^= table->random >> 7;
    table->random ^= table->random << 17;
    entry->priority = (uint32_t)(table->random >> 16);
    entry->next_all = table->all;
    table->all = entry;
    return entry;
}

struct weir__mapped *weir__table_take(struct weir__table *table, uintptr_t begin, size_t bytes, uintptr_t base,
                                      uintptr_t device)
{
    pthread_mutex_lock(&table->lock);
    struct weir__mapped *entry = weir__entry_get(table);
    pthread_mutex_unlock(&table->lock);
    if (!entry) {
        (void)weir__fail(WEIR_E_NO_MEMORY, "no memory to note what is mapped");
        return NULL;
    }
    SET(entry->begin, begin);
    SET(entry->end, begin + bytes);
    SET(entry->base, base);
    SET(entry->device, device);
    SET(entry->owner, NULL);
    SET(entry->transfer, 0);
    SET(entry->since, 0);
    atomic_store_explicit(&entry->home, false, memory_order_relaxed); /* published by the insert */
    entry->memory = NULL;
    return entry;
}

void weir__entry_clear(struct weir__mapped *entry)
{
    pthread_mutex_lock(&entry->lock);
    for (uint32_t i = 0; i < entry->nshadows; i++) free(entry->shadows[i].rest);
    entry->nshadows = entry->nusers = 0;
    SET(entry->state, (weir__state_serial(GET(entry->state)) + 1) << 36);
    pthread_mutex_unlock(&entry->lock);
}

void weir__table_put(struct weir__table *table, struct weir__mapped *entry)
{
    weir__entry_clear(entry);
    pthread_mutex_lock(&table->lock);
    weir__entry_unuse(table, entry);
    pthread_mutex_unlock(&table->lock);
}

void weir__version_step(struct weir__table *table)
{
    uint64_t version = atomic_load_explicit(&table->version, memory_order_relaxed); /* only we write it */
    SET(table->version, version + 1);                                               /* pairs with V1 */
}

void weir__table_unlink(struct weir__table *table, struct weir__mapped *entry)
{
    weir__tree_remove(&table->root, entry);
    entry->linked = false;
    table->count--;
}

int weir__table_insert(struct weir__table *table, struct weir__mapped *entry, uint32_t dynamic, uint32_t hold,
                       uint64_t *state_out)
{
    uintptr_t begin = GET(entry->begin), end = GET(entry->end);
    struct weir__mapped *other;
    pthread_mutex_lock(&table->lock);
    while ((other = weir__tree_overlap(&table->root, begin, end)) && !weir__state_alive(GET(other->state))) {
        table->nblocked++;
        pthread_cond_wait(&table->buried, &table->lock);
        table->nblocked--;
    }
    if (!other) {
        weir__version_step(table);
        *state_out = weir__state_serial(GET(entry->state)) << 36 | (uint64_t)hold << 26 | dynamic;
        SET(entry->state, *state_out);
        weir__tree_insert(&table->root, entry);
        entry->linked = true;
        table->count++;
        const struct weir__mapped *ended = weir__tree_overlap(&table->ended, begin, end);
        entry->follows = ended ? ended->point : 0;
        entry->followed = ended ? GET(ended->end) : end;
        weir__version_step(table);
    }
    pthread_mutex_unlock(&table->lock);
    return other ? WEIR_E_BUSY : WEIR_OK;
}

/* ---- transfers ---- */

/* Sequentially consistent against weir__table_transfer(): either it sees the point, or we see that it waits. */
void weir__table_publish(struct weir__table *table, struct weir__mapped *entry, uint64_t point, uint64_t since)
{
    SET(entry->owner, NULL);
    SET(entry->since, since);
    atomic_store(&entry->transfer, point);
    if (!atomic_load(&table->waiters)) return;
    pthread_mutex_lock(&table->publish_lock);
    pthread_cond_broadcast(&table->published);
    pthread_mutex_unlock(&table->publish_lock);
}

uint64_t weir__table_transfer(struct weir__table *table, struct weir__mapped *entry)
{
    uint64_t point = GET(entry->transfer);
    if (point != WEIR__TRANSFER_PENDING) return point;
    pthread_mutex_lock(&table->publish_lock);
    atomic_fetch_add(&table->waiters, 1);
    while ((point = atomic_load(&entry->transfer)) == WEIR__TRANSFER_PENDING)
        pthread_cond_wait(&table->published, &table->publish_lock);
    atomic_fetch_sub(&table->waiters, 1);
    pthread_mutex_unlock(&table->publish_lock);
    return point;
}

void weir__table_lock_writes(struct weir__table *table)
{
    pthread_mutex_lock(&table->write_lock);
}

void weir__table_unlock_writes(struct weir__table *table)
{
    pthread_mutex_unlock(&table->write_lock);
}

int weir__mapped_add_user(struct weir__mapped *entry, uint64_t point)
{
    int rc = WEIR_OK;
    pthread_mutex_lock(&entry->lock);
    for (uint32_t i = 0; i < entry->nusers; i++) {
        uint64_t *user = &entry->users[i];
        if (weir__point_stream(*user) != weir__point_stream(point)) continue;
        if (*user < point) *user = point;
        goto unlock;
    }
    if (entry->nusers == entry->cusers) {
        uint32_t capacity = entry->cusers ? 2 * entry->cusers : 4;
        uint64_t *users = realloc(entry->users, capacity * sizeof *users);
        if (!users) {
            rc = weir__fail(WEIR_E_NO_MEMORY, "no memory to note who uses mapped data");
            goto unlock;
        }
        entry->users = users;
        entry->cusers = capacity;
    }
    entry->users[entry->nusers++] = point;
unlock:
    pthread_mutex_unlock(&entry->lock);
    return rc;
}

/* ---- table ---- */

int weir__table_create(struct weir_context *context, struct weir_device *device, struct weir__table **table_out)
{
    static _Atomic uint64_t last_id;
    struct weir__table *table = calloc(1, sizeof *table);
    if (!table) return weir__fail(WEIR_E_NO_MEMORY, "no memory for a table of mapped data");
    const char *always = getenv("LIBOMPTARGET_TREAT_ATTACH_AUTO_AS_ALWAYS");
    table->context = context;
    table->device = device;
    table->id = atomic_fetch_add_explicit(&last_id, 1, memory_order_relaxed) + 1; /* only distinct */
    table->attach_always = always && atoi(always) > 0;
    table->random = 0x9e3779b97f4a7c15u;
    pthread_mutex_init(&table->lock, NULL);
    pthread_mutex_init(&table->write_lock, NULL);
    pthread_mutex_init(&table->publish_lock, NULL);
    pthread_cond_init(&table->published, NULL);
    pthread_cond_init(&table->buried, NULL);
    *table_out = table;
    return WEIR_OK;
}

void weir__table_destroy(struct weir__table *table)
{
    if (!table) return;
    for (struct weir__mapped *entry = table->all, *next; entry; entry = next) {
        next = entry->next_all;
        if (entry->linked && entry->memory &&
            weir__device_ops_of(table->device)->free(weir__device_handle_of(table->device), entry->memory))
            weir__log(1, "device memory of mapped data is lost: %s", weir_error_text());
        weir__entry_clear(entry);
        free(entry->users);
        free(entry->shadows);
        pthread_mutex_destroy(&entry->lock);
        free(entry);
    }
    pthread_mutex_destroy(&table->lock);
    pthread_mutex_destroy(&table->write_lock);
    pthread_mutex_destroy(&table->publish_lock);
    pthread_cond_destroy(&table->published);
    pthread_cond_destroy(&table->buried);
    free(table);
}

void weir__table_set_unified(struct weir__table *table)
{
    atomic_store_explicit(&table->unified, true, memory_order_relaxed); /* nothing hangs on it */
}

bool weir__table_is_unified(const struct weir__table *table)
{
    return atomic_load_explicit(&table->unified, memory_order_relaxed);
}

bool weir__table_attaches_always(const struct weir__table *table)
{
    return table->attach_always;
}

size_t weir__table_count(struct weir__table *table)
{
    pthread_mutex_lock(&table->lock);
    size_t count = table->count;
    pthread_mutex_unlock(&table->lock);
    return count;
}

size_t weir__table_steps(struct weir__table *table, uintptr_t host)
{
    struct weir__mapped *before, *behind;
    pthread_mutex_lock(&table->lock);
    size_t steps = weir__tree_walk(&table->root, host, &before, &behind);
    pthread_mutex_unlock(&table->lock);
    return steps;
}

/* ---- what others ask and say ---- */

int weir__table_associate(struct weir__table *table, const void *host, void *memory, size_t bytes, size_t offset)
{
    uintptr_t begin = (uintptr_t)host, device = (uintptr_t)memory + offset;
    if (!bytes || begin + bytes < begin) return weir__fail(WEIR_E_INVALID, "no range to associate at %p", host);
    struct weir__mapped *entry = weir__table_take(table, begin, bytes, begin, device);
    if (!entry) return WEIR_E_NO_MEMORY;
    uint64_t state;
    if (!weir__table_insert(table, entry, WEIR__COUNT_INFINITE, 0, &state)) return WEIR_OK;
    weir__table_put(table, entry);
    struct weir__found found;
    weir__table_find(table, begin, bytes, &found);
    if (found.relation == WEIR__FOUND_CONTAINED && weir__state_dynamic(found.state) == WEIR__COUNT_INFINITE &&
        weir__found_address(&found, begin) == device)
        return WEIR_OK;
    return weir__fail(WEIR_E_BUSY, "part of the %zu bytes at %p is mapped already", bytes, host);
}

int weir__table_disassociate(struct weir__table *table, const void *host)
{
    struct weir__found found;
    weir__table_find(table, (uintptr_t)host, 1, &found);
    if (found.relation != WEIR__FOUND_CONTAINED) return weir__fail(WEIR_E_NOT_FOUND, "%p is not mapped", host);
    uint64_t state = found.state;
    while (weir__state_serial(state) == weir__state_serial(found.state) &&
           weir__state_dynamic(state) == WEIR__COUNT_INFINITE && !weir__state_hold(state)) {
        if (!weir__mapped_try_drop(found.entry, &state, weir__state_serial(state) << 36)) continue;
        return weir__table_bury(table, found.entry, 0);
    }
    return weir__fail(WEIR_E_BUSY, "%p is mapped by a map clause", host);
}

void *weir__table_lookup(struct weir__table *table, const void *host)
{
    struct weir__found found;
    weir__table_find(table, (uintptr_t)host, 1, &found);
    return found.relation == WEIR__FOUND_CONTAINED ? (void *)weir__found_address(&found, (uintptr_t)host) : NULL;
}

bool weir__table_is_accessible(struct weir__table *table, const void *host, size_t bytes)
{
    struct weir__found found;
    if (weir__table_is_unified(table)) return true;
    weir__table_find(table, (uintptr_t)host, bytes, &found);
    return found.relation == WEIR__FOUND_CONTAINED;
}

static void dump_entry(const struct weir__mapped *entry, FILE *file)
{
    uint64_t state = GET(entry->state);
    char dynamic[16] = "inf";
    if (weir__state_dynamic(state) != WEIR__COUNT_INFINITE)
        snprintf(dynamic, sizeof dynamic, "%" PRIu32, weir__state_dynamic(state));
    fprintf(file, "0x%016" PRIxPTR " 0x%016" PRIxPTR " %12zu %8s %6" PRIu32 "\n", GET(entry->begin), GET(entry->device),
            (size_t)(GET(entry->end) - GET(entry->begin)), dynamic, weir__state_hold(state));
}

void weir__table_dump(struct weir__table *table, FILE *file)
{
    pthread_mutex_lock(&table->lock);
    fprintf(file, "mapped on %s: %zu ranges\n", weir_device_name(table->device), table->count);
    if (table->count) fprintf(file, "%-18s %-18s %12s %8s %6s\n", "host", "device", "bytes", "count", "hold");
    /* In the order of addresses, each found from the one before. */
    struct weir__mapped *at, *next;
    uintptr_t host = 0;
    (void)weir__tree_walk(&table->root, host, &at, &next);
    for (at = at ? at : next; at; at = next) {
        if (weir__state_alive(GET(at->state))) dump_entry(at, file);
        host = GET(at->begin);
        (void)weir__tree_walk(&table->root, host, &at, &next);
    }
    pthread_mutex_unlock(&table->lock);
}

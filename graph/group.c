/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <graph/group.h>

#include <stdlib.h>
#include <string.h>

#include <weir/task.h>

static bool ref_is_done(const struct weir__ref *ref)
{
    return ref->node == NULL || ref->node->id != ref->id || weir__node_is_done(ref->node);
}

static uint32_t group_count(const struct weir__group *group)
{
    return (group->first.node != NULL) + (group->more != NULL ? group->more->count : 0);
}

/* Drop the names of completed tasks; keeps the order of the others. */
static void group_purge(struct weir__group *group)
{
    struct weir__refs *more = group->more;
    uint32_t           kept = 0;

    if (more == NULL) return;
    for (uint32_t i = 0; i < more->count; i++) {
        if (!ref_is_done(&more->ref[i])) more->ref[kept++] = more->ref[i];
    }
    more->count = kept;
}

/* Room for one more name in the list. */
static int group_reserve(struct weir__group *group)
{
    struct weir__refs *more = group->more;
    size_t             count = more != NULL ? more->count : 0, capacity;

    if (more != NULL && more->capacity > count) return WEIR_OK;
    if (count >= WEIR__PURGE_MEMBERS) {
        group_purge(group);
        count = more->count;
        if (count <= more->capacity / 2) return WEIR_OK;
    }
    capacity = 2 * count + 4;
    more = realloc(more, sizeof *more + capacity * sizeof more->ref[0]);
    if (more == NULL) return WEIR_E_NO_MEMORY;
    more->count = (uint32_t)count;
    more->capacity = (uint32_t)capacity;
    group->more = more;
    return WEIR_OK;
}

static void group_clear(struct weir__group *group)
{
    group->first.node = NULL;
    if (group->more != NULL) group->more->count = 0;
}

/* A node that names an address twice is in the group already: as its first or its newest member. */
static bool group_has(const struct weir__group *group, const struct weir__node *node)
{
    const struct weir__refs *more = group->more;

    /* The id as well: the newest name may be that of the memory's former node. */
    return (group->first.node == node && group->first.id == node->id) ||
           (more != NULL && more->count != 0 && more->ref[more->count - 1].node == node &&
            more->ref[more->count - 1].id == node->id);
}

static void group_add(struct weir__group *group, struct weir__node *node)
{
    struct weir__ref ref = {node, node->id};

    if (group->first.node == NULL) group->first = ref;
    if (!group_has(group, node)) group->more->ref[group->more->count++] = ref;
}

/* Replace a large group by a fence behind it. Without memory the group stays: more edges, the same order. */
static void group_fence(struct weir__group *group, struct weir__fencer *fencer)
{
    struct weir__linking linking = {.extras = fencer->extras, .want = fencer->want};
    struct weir__node   *like = NULL, *fence;
    uint8_t              domain = 0;
    bool                 first = true;

    group_purge(group);
    if (group_count(group) < WEIR__FENCE_MEMBERS) return;
    for (uint32_t i = 0; i <= group->more->count; i++) {
        const struct weir__ref *ref = i == 0 ? &group->first : &group->more->ref[i - 1];

        if (ref_is_done(ref)) continue;
        if (first) domain = ref->node->domain, like = ref->node;
        else if (domain != ref->node->domain) domain = 0;
        first = false;
    }
    fence = fencer->create(fencer, domain, domain != 0 ? like : NULL);
    if (fence == NULL) return;
    linking.node = fence;
    weir__group_link(group, &linking);
    fencer->submit(fencer, &linking);
    group_clear(group);
    group_add(group, fence);
}

static bool joins(const struct weir__entry *entry, unsigned kind)
{
    return kind == weir__entry_kind(entry) && (kind == WEIR_ACCESS_IN || kind >= WEIR_ACCESS_MUTEXINOUTSET);
}

int weir__entry_reserve(struct weir__entry *entry, unsigned kind, size_t *edges)
{
    if (joins(entry, kind)) {
        if (group_reserve(&entry->now) != WEIR_OK) return WEIR_E_NO_MEMORY;
        *edges += 2 * group_count(&entry->before); /* a fence and the task */
    } else {
        if (group_count(&entry->now) >= WEIR__PURGE_MEMBERS) group_purge(&entry->now);
        *edges += group_count(&entry->now);
    }
    ++*edges; /* of a fence, or of the task to a neighbour in this task that joins */
    if (kind != WEIR_ACCESS_MUTEXINOUTSET) return WEIR_OK;
    *edges += 2;
    if (weir__entry_lock(entry) == NULL) {
        struct weir__lock *lock = calloc(1, sizeof *lock);

        if (lock == NULL) return WEIR_E_NO_MEMORY;
        lock->references = 1;
        entry->lock_kind |= (uintptr_t)lock;
    }
    return WEIR_OK;
}

/* Keep an edge for the lock: made when the task is otherwise ready. */
static void take_lock(struct weir__entry *entry, struct weir__linking *linking)
{
    struct weir__extra *edge = weir__extra_take(linking->extras), *extra = weir__extra_take(linking->extras);
    struct weir__lock  *lock = weir__entry_lock(entry);

    edge->value = (uintptr_t)linking->node + 1;
    edge->link = 0;
    weir__node_attach(linking->node, edge, WEIR__EXTRA_ORDER);
    extra->value = (uintptr_t)lock;
    extra->link = (uintptr_t)edge;
    weir__node_attach(linking->node, extra, WEIR__EXTRA_LOCK);
    /* Relaxed: the entry holds a reference. */
    atomic_fetch_add_explicit(&lock->references, 1, memory_order_relaxed);
}

void weir__entry_access_slow(struct weir__entry *entry, unsigned kind, struct weir__linking *linking, struct weir__fencer *fencer)
{
    if (joins(entry, kind)) {
        /* Named twice. Not only for speed: a fence made now would wait for the node, and the node for the fence. */
        if (group_has(&entry->now, linking->node)) return;
        if (weir__group_more(&entry->before) >= WEIR__FENCE_MEMBERS) group_fence(&entry->before, fencer);
        weir__group_link(&entry->before, linking);
        group_add(&entry->now, linking->node);
    } else {
        weir__entry_start(entry, kind, linking);
    }
    if (kind == WEIR_ACCESS_MUTEXINOUTSET) take_lock(entry, linking);
}

void weir__entry_peek(const struct weir__entry *entry, unsigned kind, struct weir__linking *linking)
{
    weir__group_link(joins(entry, kind) ? &entry->before : &entry->now, linking);
}

int weir__ref_probe(const struct weir__ref *ref, uint8_t domain)
{
    const struct weir__node *node = ref->node;

    if (node == NULL || node->id != ref->id) return WEIR_OK;
    /* Acquire: pairs with weir__node_take(), .status is read after. */
    if (atomic_load_explicit(&node->completed, memory_order_acquire) == WEIR__REF_CLOSED) {
        return node->status != 0 ? WEIR_E_PREDECESSOR : WEIR_OK;
    }
    if (domain == 0 || node->domain != domain) return WEIR_E_NOT_ISSUED;
    /* Acquire: pairs with weir__node_take(): the caller will queue behind the node's point. */
    return atomic_load_explicit(&node->issued, memory_order_acquire) == WEIR__REF_CLOSED ? WEIR_OK : WEIR_E_NOT_ISSUED;
}

int weir__entry_probe(const struct weir__entry *entry, unsigned kind, uint8_t domain)
{
    const struct weir__group *group = joins(entry, kind) ? &entry->before : &entry->now;
    int                       rc = weir__ref_probe(&group->first, domain), worst = rc;

    for (uint32_t i = 0; group->more != NULL && i < group->more->count; i++) {
        rc = weir__ref_probe(&group->more->ref[i], domain);
        if (rc == WEIR_E_PREDECESSOR || worst == WEIR_OK) worst = rc;
        if (worst == WEIR_E_PREDECESSOR) break;
    }
    return worst;
}

static bool group_is_stale(const struct weir__group *group)
{
    if (!ref_is_done(&group->first)) return false;
    for (uint32_t i = 0; group->more != NULL && i < group->more->count; i++) {
        if (!ref_is_done(&group->more->ref[i])) return false;
    }
    return true;
}

bool weir__entry_is_stale(const struct weir__entry *entry)
{
    return group_is_stale(&entry->now) && (weir__kind_is_out(weir__entry_kind(entry)) || group_is_stale(&entry->before));
}

static void group_mark_failed(const struct weir__group *group)
{
    for (uint32_t i = 0; i < 1 + (group->more != NULL ? group->more->count : 0); i++) {
        const struct weir__ref *ref = i == 0 ? &group->first : &group->more->ref[i - 1];

        if (ref->node == NULL || ref->node->id != ref->id) continue;
        /* Acquire: pairs with weir__node_take(), .status is read after. */
        if (atomic_load_explicit(&ref->node->completed, memory_order_acquire) == WEIR__REF_CLOSED && ref->node->status != 0) {
            /* Relaxed: the node is complete, one thread owns the table. */
            atomic_store_explicit(&ref->node->poison, WEIR__POISON_NAMED, memory_order_relaxed);
        }
    }
}

void weir__entry_mark_failed(const struct weir__entry *entry)
{
    group_mark_failed(&entry->now);
    if (!weir__kind_is_out(weir__entry_kind(entry))) group_mark_failed(&entry->before);
}

void weir__entry_fini(struct weir__entry *entry)
{
    free(entry->now.more);
    free(entry->before.more);
    if (weir__entry_lock(entry) != NULL) weir__lock_release(weir__entry_lock(entry));
    memset(entry, 0, sizeof *entry);
}

static int refs_copy(struct weir__refs **to, const struct weir__refs *from)
{
    size_t bytes;

    *to = NULL;
    if (from == NULL || from->count == 0) return WEIR_OK;
    bytes = sizeof *from + from->capacity * sizeof from->ref[0];
    *to = malloc(bytes);
    if (*to == NULL) return WEIR_E_NO_MEMORY;
    memcpy(*to, from, sizeof *from + from->count * sizeof from->ref[0]);
    return WEIR_OK;
}

int weir__entry_copy(struct weir__entry *to, const struct weir__entry *from)
{
    struct weir__refs *now, *before;

    if (refs_copy(&now, from->now.more) != WEIR_OK) return WEIR_E_NO_MEMORY;
    if (refs_copy(&before, from->before.more) != WEIR_OK) {
        free(now);
        return WEIR_E_NO_MEMORY;
    }
    *to = *from;
    to->now.more = now;
    to->before.more = before;
    /* Relaxed: the original holds a reference. */
    if (weir__entry_lock(to) != NULL) atomic_fetch_add_explicit(&weir__entry_lock(to)->references, 1, memory_order_relaxed);
    return WEIR_OK;
}

void weir__lock_release(struct weir__lock *lock)
{
    /* Acquire/release: the last one frees what all others are done with. */
    if (atomic_fetch_sub_explicit(&lock->references, 1, memory_order_acq_rel) == 1) free(lock);
}

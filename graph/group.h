/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_GRAPH_GROUP_H
#define WEIR_GRAPH_GROUP_H

/*
 * What is known of one address: the group of its newest accesses (one writer, or any number of readers, inoutset or
 * mutexinoutset tasks) and the group before, on which each member of the newest one depends. An access that fits into
 * the newest group joins it and depends on the group before; any other starts a group and depends on the newest one.
 *
 * A group is a first name and, rarely, a list. Names of completed tasks stay until somebody needs the room: they are
 * recognised as stale and cost nothing else. When a second task is to depend on the same large group, the group is
 * replaced by a fence that depends on all of it, so that R readers followed by S inoutset tasks cost R + S edges.
 */

#include <graph/node.h>
#include <weir/task.h>

/* As unsigned, next to the kinds in the low bits of an entry. */
#define WEIR__KIND_IN  ((unsigned)WEIR_ACCESS_IN)
#define WEIR__KIND_OUT ((unsigned)WEIR_ACCESS_OUT)

struct weir__ref {
    struct weir__node *node; /* NULL: none */
    uint64_t           id;
};

struct weir__refs {
    uint32_t         count, capacity;
    struct weir__ref ref[];
};

struct weir__group {
    struct weir__ref   first;
    struct weir__refs *more; /* may be allocated and empty */
};

/* Orders the members of a mutexinoutset group in the order in which they become ready. */
struct weir__lock {
    _Atomic uint32_t references; /* entries and members */
    struct weir__ref tail;       /* newest member that took it; under exec's lock of locks */
};

struct weir__entry {
    uintptr_t          key; /* 0: free */
    struct weir__group now, before;
    uintptr_t          lock_kind; /* enum weir_access_kind of .now in the low three bits, its lock above */
};

/* How graph/ gets a fence node made and submitted by the owner of the nodes. */
struct weir__fencer {
    /* An open node of @domain; @like is a member (NULL if @domain is 0), to take the device from. NULL: no memory. */
    struct weir__node *(*create)(struct weir__fencer *fencer, uint8_t domain, const struct weir__node *like);
    /* All edges of the fence are made. */
    void (*submit)(struct weir__fencer *fencer, struct weir__linking *linking);
    void (*want)(struct weir__node *pred); /* of struct weir__linking */
    struct weir__extras *extras;
};

static inline unsigned weir__entry_kind(const struct weir__entry *entry)
{
    return entry->lock_kind & 7;
}

static inline struct weir__lock *weir__entry_lock(const struct weir__entry *entry)
{
    return (struct weir__lock *)(entry->lock_kind & ~(uintptr_t)7);
}

#define WEIR__FENCE_MEMBERS 4  /* a group of fewer is linked directly every time */
/* A list of as many names is purged before it is linked, and before it grows: a name that stays is looked at once more for
 * each time that the list doubles, so that an access to a long list costs what one to a short one does. */
#define WEIR__PURGE_MEMBERS 16

/* Make room for one access and add the edges that it may cost at most to *edges. 0 or WEIR_E_NO_MEMORY. The common case
 * is decided without it in weir__depend_reserve(). */
int  weir__entry_reserve(struct weir__entry *entry, unsigned kind, size_t *edges);
void weir__entry_access_slow(struct weir__entry *entry, unsigned kind, struct weir__linking *linking, struct weir__fencer *fencer);

static inline uint32_t weir__group_more(const struct weir__group *group)
{
    return group->more != NULL ? group->more->count : 0;
}

static inline bool weir__kind_is_out(unsigned kind)
{
    return kind - WEIR__KIND_OUT <= 1; /* OUT or INOUT */
}

/* Edges from every member of a group. */
static inline __attribute__((always_inline)) void weir__group_link(const struct weir__group *group, struct weir__linking *linking)
{
    struct weir__node       *node = linking->node; /* read once: it does not change, but the compiler cannot know */
    const struct weir__refs *more = group->more;

    if (group->first.node != NULL) weir__node_link_to(linking, node, group->first.node, group->first.id);
    if (more == NULL) return;
    for (const struct weir__ref *ref = more->ref, *end = ref + more->count; ref != end; ref++) {
        weir__node_link_to(linking, node, ref->node, ref->id);
    }
}

/* The entry keeps its lock: a later group depends on all who ever took it. */
static inline void weir__entry_set_kind(struct weir__entry *entry, unsigned kind)
{
    entry->lock_kind = (entry->lock_kind & ~(uintptr_t)7) | kind;
}

/* A writer: the newest group now. Nobody joins it, so that .before means nothing until another group is started. */
static inline __attribute__((always_inline)) void weir__entry_write(struct weir__entry *entry, unsigned kind, struct weir__linking *linking)
{
    struct weir__node *node = linking->node;

    weir__group_link(&entry->now, linking);
    entry->now.first = (struct weir__ref){node, node->id};
    if (entry->now.more != NULL) entry->now.more->count = 0;
    weir__entry_set_kind(entry, kind);
}

/* The access itself; cannot fail after weir__entry_reserve(). */
static inline void weir__entry_access(struct weir__entry *entry, unsigned kind, struct weir__linking *linking, struct weir__fencer *fencer)
{
    if (weir__kind_is_out(kind)) weir__entry_write(entry, kind, linking);
    else weir__entry_access_slow(entry, kind, linking, fencer);
}

/* Start a group that is not of one writer; it depends on the newest group. */
static inline __attribute__((always_inline)) void weir__entry_start(struct weir__entry *entry, unsigned kind, struct weir__linking *linking)
{
    struct weir__node *node = linking->node;
    struct weir__refs *more = entry->before.more;

    weir__group_link(&entry->now, linking);
    entry->before = entry->now;
    if (more != NULL) more->count = 0;
    entry->now = (struct weir__group){{node, node->id}, more};
    weir__entry_set_kind(entry, kind);
}

/* Is there room in the list of readers for one that joins them, and no need of a fence behind the group before? */
static inline bool weir__entry_is_open(const struct weir__entry *entry)
{
    const struct weir__refs *more = entry->now.more;

    return more != NULL && more->count < more->capacity && weir__group_more(&entry->before) < WEIR__FENCE_MEMBERS;
}

/* An in access that starts a group, or joins one that was open before the node's first access. */
static inline __attribute__((always_inline)) void weir__entry_read(struct weir__entry *entry, struct weir__linking *linking)
{
    struct weir__node *node = linking->node;
    struct weir__refs *more = entry->now.more;

    if (weir__entry_kind(entry) != WEIR__KIND_IN) {
        weir__entry_start(entry, WEIR__KIND_IN, linking);
        return;
    }
    /* No room: then the node itself took it, or started the group: it is in it. Where there is room a node that names the
     * address twice is in it twice, which its successors find out. */
    if (more == NULL || more->count == more->capacity) return;
    weir__group_link(&entry->before, linking);
    more->ref[more->count++] = (struct weir__ref){node, node->id};
}

/* The edges of an access that is not made. */
void weir__entry_peek(const struct weir__entry *entry, unsigned kind, struct weir__linking *linking);
/* WEIR_OK, WEIR_E_NOT_ISSUED or WEIR_E_PREDECESSOR for a task of @domain with that access. */
int weir__entry_probe(const struct weir__entry *entry, unsigned kind, uint8_t domain);
int weir__ref_probe(const struct weir__ref *ref, uint8_t domain);
/* No task of the entry is outstanding or failed. */
bool weir__entry_is_stale(const struct weir__entry *entry);
/* Mark the failed nodes that the entry names: node->poison = WEIR__POISON_NAMED. */
void weir__entry_mark_failed(const struct weir__entry *entry);
void weir__entry_fini(struct weir__entry *entry);
/* Copy with lists and lock reference of its own (ranges split entries). 0 or WEIR_E_NO_MEMORY. */
int weir__entry_copy(struct weir__entry *to, const struct weir__entry *from);

void weir__lock_release(struct weir__lock *lock);

#endif

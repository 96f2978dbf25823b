/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_GRAPH_NODE_H
#define WEIR_GRAPH_NODE_H

/*
 * A node of the graph and its edges.
 *
 * An edge costs eight bytes: it lives in a *slot* of the successor. While the predecessor is outstanding the slot links
 * the successor into one of the predecessor's two lists; when the predecessor lets it go, the slot holds the
 * predecessor's point (stream, position), or 0 if there is nothing to wait for on a device.
 *
 *   .issued     successors that only need the predecessor's work to be queued and recorded (same wait domain)
 *   .completed  successors that need it to be finished, and waiters
 *
 * Argument. Only the successor's submitter pushes on a list (CAS); the predecessor takes the whole list once (exchange
 * with CLOSED). A push that meets CLOSED knows that the predecessor is issued or complete and reads its point or status
 * instead. So each edge is either taken by the exchange or seen as closed by its submitter, never both, never neither.
 * .pending starts at BIAS, so that no predecessor can make the node ready before all its edges are made; the submitter
 * then takes off BIAS minus the number of edges on lists. Whoever brings it to 0 owns the node from then on.
 *
 * A node is named by (pointer, id): ids are unique in a process and change when the memory is used again, so a stale name
 * is recognised. Only the owner of the memory (the scope's submitter) changes an id.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEIR__NODE_SLOTS 5
#define WEIR__LINKING_POINTS 4
#define WEIR__PENDING_BIAS (1 << 30)
#define WEIR__NODE_NOTICE  0x80u
/* The domain of tasks that another runtime orders among themselves. Such a task counts as issued from the beginning, so
 * that edges within the domain cost nothing and hold nothing back. */
#define WEIR__DOMAIN_FOREIGN 255
#define WEIR__POISON_NAMED 2 /* a failed node that an access table still names */

/* Low three bits of a list reference. */
enum weir__ref_tag {
    WEIR__REF_EXTRA = 5,  /* struct weir__extra of kind EDGE or ORDER */
    WEIR__REF_WAITER = 6, /* struct weir__waiter */
    WEIR__REF_CLOSED = 7, /* the whole word is 7 */
};

enum weir__extra_kind { WEIR__EXTRA_EDGE = 0, WEIR__EXTRA_LOCK = 1, WEIR__EXTRA_NAME = 2, WEIR__EXTRA_CALLBACK = 3,
                        WEIR__EXTRA_ORDER = 4 };

/* What does not fit into the node: further edges, edges that only order (no failure passes along them), locks, names, callbacks. The kind is in the low bits of .next. */
struct weir__extra {
    uintptr_t value; /* EDGE: the successor; ORDER: it + 1; LOCK: struct weir__lock; NAME: name; CALLBACK: function */
    uint64_t  link;  /* EDGE, ORDER: as a slot; LOCK: its ORDER extra; NAME: file; CALLBACK: argument */
    uintptr_t next;
};

struct weir__waiter {
    uintptr_t next;
    void (*wake)(struct weir__waiter *waiter);
};

struct weir__node {
    _Atomic uintptr_t   completed;
    _Atomic uintptr_t   issued;
    uint64_t            id;
    uintptr_t           next; /* for exec/: lists of ready, finished and free nodes */
    _Atomic int32_t     pending;
    /* Nodes of one domain > 0 can wait for each other's points on the device. Predecessors of a domain have a notice. */
    uint8_t             domain;
    uint8_t             nslots;
    uint8_t             kind;   /* for exec/; WEIR__NODE_NOTICE: somebody must ask the device for its completion */
    _Atomic uint8_t     poison; /* a predecessor failed */
    uint64_t            slot[WEIR__NODE_SLOTS];
    struct weir__extra *extra; /* tagged like .next */
    /* Here because edges read them: valid once .completed or .issued is CLOSED. */
    int32_t  status;
    uint32_t line; /* for exec/: place in the source */
    union {
        uint64_t  point;    /* of a node of a domain, once .issued is CLOSED; 0: nothing on a device */
        uintptr_t function; /* for exec/, before that */
    };
};

/* Owned by one submitter: a free list of extras that is refilled in chunks. */
struct weir__extras {
    struct weir__extra *free;
    size_t              count;
    void               *chunks;
};

/* State of linking one successor. */
struct weir__linking {
    struct weir__node   *node;
    struct weir__extras *extras; /* enough reserved */
    int32_t              links;  /* edges on lists */
    uint32_t             other;  /* of .links: all but the edges that wait for completion with a host on one side */
    uint32_t             done;   /* edges to completed predecessors */
    uint32_t             host_only; /* of .other: edges between two domains */
    const struct weir__node *failed; /* a failed predecessor, NULL: none */
    uint32_t             npoints;
    uint64_t             point[WEIR__LINKING_POINTS]; /* some that are in the node's slots: a second edge is not made */
    /* A successor or waiter went on .completed of a node with WEIR__NODE_NOTICE. */
    void (*want)(struct weir__node *pred);
};

static inline struct weir__extra *weir__extra_of(uintptr_t tagged)
{
    return (struct weir__extra *)(tagged & ~(uintptr_t)7);
}

static inline struct weir__extra *weir__extra_take(struct weir__extras *extras)
{
    struct weir__extra *extra = extras->free;

    extras->free = (struct weir__extra *)extra->next;
    extras->count--;
    return extra;
}

static inline void weir__node_attach(struct weir__node *node, struct weir__extra *extra, enum weir__extra_kind kind)
{
    extra->next = (uintptr_t)node->extra;
    node->extra = (struct weir__extra *)((uintptr_t)extra | kind);
}

/* Make sure that @n extras can be taken. 0 or WEIR_E_NO_MEMORY. */
int weir__extras_reserve(struct weir__extras *extras, size_t n);
/* Take a node's extras back. */
void weir__extras_recycle(struct weir__extras *extras, struct weir__node *node);
void weir__extras_fini(struct weir__extras *extras);

/* Prepare a node for linking; its memory is the caller's. */
static inline void weir__node_open(struct weir__node *node, uint64_t id, uint8_t domain)
{
    /* Relaxed: nobody else knows the node before its first edge or queue publishes it. */
    atomic_store_explicit(&node->completed, 0, memory_order_relaxed);
    atomic_store_explicit(&node->issued, 0, memory_order_relaxed);
    atomic_store_explicit(&node->pending, WEIR__PENDING_BIAS, memory_order_relaxed);
    atomic_store_explicit(&node->poison, 0, memory_order_relaxed);
    node->id = id;
    node->extra = NULL;
    node->domain = domain;
    node->nslots = 0;
    node->status = 0;
    node->point = 0;
}

/* Complete and successful: nothing can depend on it any more. */
static inline bool weir__node_is_done(const struct weir__node *node)
{
    /* A1 acquire: pairs with the exchange in weir__node_take(), so that .status is read after. */
    return atomic_load_explicit(&node->completed, memory_order_acquire) == WEIR__REF_CLOSED && node->status == 0;
}

/* Push @ref, whose link word is *link, on a list. False if the list is closed. */
static inline bool weir__list_push(_Atomic uintptr_t *list, uintptr_t ref, uint64_t *link)
{
    /* A2 acquire: pairs with the exchange in weir__node_take() when the list is closed, with R1 otherwise. */
    uintptr_t head = atomic_load_explicit(list, memory_order_acquire);

    do {
        if (head == WEIR__REF_CLOSED) return false;
        *link = head;
        /* R1 release: publishes the link and the successor; pairs with the exchange in weir__node_take(). Sequentially
         * consistent because exec/ looks at .issued afterwards to see whether a notice must be asked for. */
    } while (!atomic_compare_exchange_weak_explicit(list, &head, ref, memory_order_seq_cst, memory_order_acquire));
    return true;
}

/* The rest of weir__node_link(): device predecessors, full slots, a list that was closed meanwhile, failures. */
void weir__node_link_slow(struct weir__linking *linking, struct weir__node *pred);

/*
 * Make the edge pred -> node, which is linking->node, where pred is named (pred, id). The caller has reserved one extra for
 * every edge beyond WEIR__NODE_SLOTS. What most edges between host tasks need is here, without a call: this is the hottest
 * place.
 */
static inline __attribute__((always_inline)) void weir__node_link_to(struct weir__linking *linking, struct weir__node *node,
                                                                     struct weir__node *pred, uint64_t id)
{
    uintptr_t head;
    size_t    slot;

    if (pred->id != id || pred == node) return;
    /* A3 acquire: pairs with the exchange in weir__node_take() and with R1. */
    head = atomic_load_explicit(&pred->completed, memory_order_acquire);
    /* Scopes push one successor after the other: a double edge is found at the head. Nothing but the references of the
     * node's own slots differs from its address in the low three bits only. */
    if ((head ^ (uintptr_t)node) < 8) return;
    slot = node->nslots;
    if (__builtin_expect(head != WEIR__REF_CLOSED && !(pred->kind & WEIR__NODE_NOTICE) && slot < WEIR__NODE_SLOTS, 1)) {
        node->slot[slot] = head;
        /* R1, as in weir__list_push(). */
        if (__builtin_expect(atomic_compare_exchange_strong_explicit(&pred->completed, &head, (uintptr_t)node | slot,
                                                                     memory_order_seq_cst, memory_order_acquire), 1)) {
            node->nslots = (uint8_t)(slot + 1);
            linking->links++;
            return;
        }
    }
    weir__node_link_slow(linking, pred);
}

static inline void weir__node_link(struct weir__linking *linking, struct weir__node *pred, uint64_t id)
{
    weir__node_link_to(linking, linking->node, pred, id);
}

/* Nothing is linked yet. */
static inline void weir__linking_open(struct weir__linking *linking, struct weir__node *node, struct weir__extras *extras,
                                      void (*want)(struct weir__node *pred))
{
    linking->node = node;
    linking->extras = extras;
    linking->links = 0;
    linking->other = linking->done = linking->host_only = linking->npoints = 0;
    linking->failed = NULL;
    linking->want = want;
}

/* What walking a taken list yields. */
struct weir__taken {
    struct weir__node   *node;   /* a successor that lost this edge, or NULL */
    struct weir__waiter *waiter; /* or a waiter */
    bool                 order;  /* the edge only orders */
};

/* Close a list and return its first reference. */
static inline uintptr_t weir__node_take(_Atomic uintptr_t *list)
{
    /* Acquire: pairs with R1 (the links). Release: publishes .point, .status; pairs with A1 to A5. Sequentially
     * consistent: see R1. */
    return atomic_exchange_explicit(list, WEIR__REF_CLOSED, memory_order_seq_cst);
}

/* Step through a taken list: *ref must not be 0. Leaves @point in the successor's slot. */
static inline struct weir__taken weir__taken_next(uintptr_t *ref, uint64_t point)
{
    struct weir__taken taken = {NULL, NULL, false};
    unsigned           tag = *ref & 7;

    if (tag < WEIR__REF_EXTRA) {
        taken.node = (struct weir__node *)(*ref & ~(uintptr_t)7);
        *ref = taken.node->slot[tag];
        taken.node->slot[tag] = point;
    } else if (tag == WEIR__REF_EXTRA) {
        struct weir__extra *extra = weir__extra_of(*ref);

        taken.node = (struct weir__node *)(extra->value & ~(uintptr_t)1);
        taken.order = (extra->value & 1) != 0;
        *ref = extra->link;
        extra->link = point;
    } else {
        taken.waiter = (struct weir__waiter *)(*ref & ~(uintptr_t)7);
        *ref = taken.waiter->next;
    }
    return taken;
}

/* The successor lost one edge. True: it was the last, the caller owns the node now. */
static inline bool weir__node_unblock(struct weir__node *node)
{
    /* Acquire/release: the last one sees the slots and poison that the others wrote. */
    return atomic_fetch_sub_explicit(&node->pending, 1, memory_order_acq_rel) == 1;
}

/* End of linking. True: no edge is outstanding, the caller owns the node. */
static inline bool weir__node_close(const struct weir__linking *linking)
{
    int32_t less = WEIR__PENDING_BIAS - linking->links;

    if (linking->links == 0) {
        /* Relaxed: nobody else has the node. */
        atomic_store_explicit(&linking->node->pending, 0, memory_order_relaxed);
        return true;
    }
    return atomic_fetch_sub_explicit(&linking->node->pending, less, memory_order_acq_rel) == less;
}

#endif

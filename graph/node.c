/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <graph/node.h>

/* Does a list reference lead to @node? */
static bool leads_to(uintptr_t ref, const struct weir__node *node)
{
    unsigned tag = ref & 7;

    if (tag < WEIR__REF_EXTRA) return (ref & ~(uintptr_t)7) == (uintptr_t)node;
    return tag == WEIR__REF_EXTRA && weir__extra_of(ref)->value == (uintptr_t)node;
}

/* A link word in the successor for one more edge, and its reference. */
static uint64_t *slot_take(struct weir__linking *linking, uintptr_t *ref)
{
    struct weir__node  *node = linking->node;
    struct weir__extra *extra;

    if (node->nslots < WEIR__NODE_SLOTS) {
        *ref = (uintptr_t)node | node->nslots;
        return &node->slot[node->nslots++];
    }
    extra = weir__extra_take(linking->extras);
    extra->value = (uintptr_t)node;
    weir__node_attach(node, extra, WEIR__EXTRA_EDGE);
    *ref = (uintptr_t)extra | WEIR__REF_EXTRA;
    return &extra->link;
}

/* The newest link word was not needed. */
static void slot_untake(struct weir__linking *linking, uintptr_t ref)
{
    if ((ref & 7) < WEIR__REF_EXTRA) {
        linking->node->nslots--;
    } else {
        struct weir__extra *extra = weir__extra_of(ref);

        linking->node->extra = (struct weir__extra *)extra->next;
        extra->next = (uintptr_t)linking->extras->free;
        linking->extras->free = extra;
        linking->extras->count++;
    }
}

static void link_complete(struct weir__linking *linking, const struct weir__node *pred)
{
    if (pred->status != 0 && linking->failed == NULL) linking->failed = pred;
    linking->done++;
}

/* An edge from a node of the same domain that is issued: its point. Only exact doubles are dropped, because a failure of the
 * predecessor is found through the point. */
static inline void link_point(struct weir__linking *linking, uint64_t point)
{
    struct weir__node *node = linking->node;
    uint32_t           n = linking->npoints;
    uintptr_t          ref;

    for (uint32_t i = 0; i < n; i++) {
        if (linking->point[i] == point) return;
    }
    if (n < WEIR__LINKING_POINTS) {
        linking->point[n] = point;
        linking->npoints = n + 1;
    }
    if (node->nslots < WEIR__NODE_SLOTS) node->slot[node->nslots++] = point;
    else *slot_take(linking, &ref) = point;
}

/* The predecessor's list was open a moment ago. */
static __attribute__((noinline)) void link_open(struct weir__linking *linking, struct weir__node *pred, bool device)
{
    struct weir__node *node = linking->node;
    _Atomic uintptr_t *list = device ? &pred->issued : &pred->completed;
    uint64_t          *link;
    uintptr_t          ref;

    /* A double edge, as in weir__node_link(). Acquire: pairs with R1 or the exchange in weir__node_take(). */
    ref = atomic_load_explicit(list, memory_order_acquire);
    if (ref != 0 && ref != WEIR__REF_CLOSED && leads_to(ref, node)) return;
    link = slot_take(linking, &ref);
    if (weir__list_push(list, ref, link)) {
        linking->links++;
        if (pred->kind & node->kind & WEIR__NODE_NOTICE && pred->domain != WEIR__DOMAIN_FOREIGN && node->domain != WEIR__DOMAIN_FOREIGN) {
            linking->other++;
            if (!device) linking->host_only++;
        }
        if (!device && (pred->kind & WEIR__NODE_NOTICE)) linking->want(pred);
        return;
    }
    slot_untake(linking, ref);
    /* A5 acquire, as in weir__node_link_slow(). */
    if (!device || atomic_load_explicit(&pred->completed, memory_order_acquire) == WEIR__REF_CLOSED) link_complete(linking, pred);
    else link_point(linking, pred->point);
}

void weir__node_link_slow(struct weir__linking *linking, struct weir__node *pred)
{
    bool device = pred->domain != 0 && pred->domain == linking->node->domain;
    /* A4 acquire: pairs with the exchange in weir__node_take(); .point is read after. */
    bool issued = device && atomic_load_explicit(&pred->issued, memory_order_acquire) == WEIR__REF_CLOSED;

    /* A5 acquire: pairs with the exchange in weir__node_take(), .status is read after. Behind A4: a node that fails before
     * it is issued closes .completed first and .issued next. */
    if (atomic_load_explicit(&pred->completed, memory_order_acquire) == WEIR__REF_CLOSED) link_complete(linking, pred);
    else if (issued) link_point(linking, pred->point);
    else link_open(linking, pred, device);
}

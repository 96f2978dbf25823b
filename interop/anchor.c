/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "interop/anchor.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "interop/abi.h"
#include "interop/frame.h"
#include "interop/libomp.h"
#include "interop/runtime.h"
#include "interop/siblings.h"

/*
 * .word counts: TASK for each task in flight, HELD while the proxy stays open without any, OWNED for the siblings'
 * reference.
 *
 * Argument. .proxy is written by the generating thread only while no task is in flight and nothing is held, and
 * published with the first task (A1). Whoever takes a task away has read .proxy before (A2), while its own task kept it
 * as it was; if it was the last and nothing is held, the proxy is its to complete. The generating thread adds a task
 * with compare and exchange: either the proxy is kept open, by tasks or a hold, or whoever took the last one has its
 * own copy of the old proxy and does not touch the anchor again, unless the siblings have dropped it, and then it is
 * that thread's to free. Who ends a hold (A3) completes the proxy if no task is in flight, else the last task's end
 * finds it not held.
 */
#define OWNED UINT64_C(1)
#define HELD  UINT64_C(2)
#define TASK  UINT64_C(4)

struct weir__anchor {
    _Atomic uint64_t word;
    struct weir__abi_task *proxy;
    struct weir__anchor *outer; /* of the taskgroup around this one */
};

static struct weir__anchor *make(struct weir__siblings *siblings)
{
    struct weir__anchor *anchor = malloc(sizeof *anchor);
    if (!anchor) return NULL;
    atomic_init(&anchor->word, OWNED);
    anchor->outer = siblings->anchor;
    siblings->anchor = anchor;
    return anchor;
}

struct weir__anchor *weir__anchor_add(struct weir__siblings *siblings, struct weir__abi_ident *where, int32_t gtid)
{
    struct weir__anchor *anchor = siblings->anchor ? siblings->anchor : make(siblings);
    if (!anchor) return NULL;
    /* Acquire (A4): if no task is left, the last one has read .proxy (A2) before it went away. */
    uint64_t word = atomic_load_explicit(&anchor->word, memory_order_acquire);
    while (word & ~OWNED)
        if (atomic_compare_exchange_weak_explicit(&anchor->word, &word, word + TASK, memory_order_acquire,
                                                  memory_order_acquire))
            return anchor;
    anchor->proxy =
        weir__libomp()->task_alloc(where, gtid, WEIR__ABI_TASK_PROXY, sizeof *anchor->proxy, 0, weir__libomp_nothing);
    if (!anchor->proxy) return NULL;
    uint64_t held = weir__frame_covers(siblings) ? HELD : 0;
    siblings->let_go |= !held;
    atomic_store_explicit(&anchor->word, OWNED + TASK + held, memory_order_release); /* A1 */
    return anchor;
}

void weir__anchor_drop(struct weir__anchor *anchor)
{
    struct weir__abi_task *proxy = anchor->proxy; /* A2: the task came here after A1 */
    /* Acquire/release: the last one completes for all of them; pairs with itself, A3 and A4. */
    uint64_t word = atomic_fetch_sub_explicit(&anchor->word, TASK, memory_order_acq_rel) - TASK;
    if (word & ~OWNED) return;
    if (!word) free(anchor);
    weir__libomp()->proxy_completed(proxy);
}

static void release(struct weir__siblings *siblings, struct weir__anchor *anchor, int32_t gtid)
{
    struct weir__abi_task *proxy = anchor->proxy;
    uint64_t word = atomic_fetch_and_explicit(&anchor->word, ~HELD, memory_order_acq_rel); /* A3 */
    if ((word & ~OWNED) == HELD)
        weir__libomp()->own_proxy_completed(gtid, proxy);
    else
        siblings->let_go = true;
}

void weir__anchor_release(struct weir__siblings *siblings, int32_t gtid, bool all)
{
    struct weir__anchor *anchor = siblings->anchor;
    for (; anchor; anchor = all ? anchor->outer : NULL) /* Relaxed: the hold is this thread's own. */
        if (atomic_load_explicit(&anchor->word, memory_order_relaxed) & HELD) release(siblings, anchor, gtid);
}

bool weir__anchor_is_held(const struct weir__siblings *siblings)
{
    const struct weir__anchor *anchor = siblings->anchor;
    while (anchor && !(atomic_load_explicit(&anchor->word, memory_order_relaxed) & HELD)) anchor = anchor->outer;
    return anchor != NULL;
}

bool weir__anchor_is_idle(const struct weir__anchor *anchor)
{
    return atomic_load_explicit(&anchor->word, memory_order_acquire) < TASK; /* pairs with the release in drop() */
}

bool weir__anchor_all_idle(const struct weir__siblings *siblings)
{
    const struct weir__anchor *anchor = siblings->anchor;
    while (anchor && weir__anchor_is_idle(anchor)) anchor = anchor->outer;
    return !anchor;
}

void weir__anchor_push(struct weir__siblings *siblings)
{
    if (!make(siblings)) weir__fatal("out of memory"); /* the end of the group would miss its tasks */
}

void weir__anchor_pop(struct weir__siblings *siblings)
{
    struct weir__anchor *anchor = siblings->anchor;
    if (!anchor || !anchor->outer) return; /* the outermost stays */
    siblings->anchor = anchor->outer;
    /* Acquire/release: pairs with drop(), where the other may be the one that frees it. */
    if (atomic_fetch_sub_explicit(&anchor->word, OWNED, memory_order_acq_rel) == OWNED) free(anchor);
}

void weir__anchor_reset(struct weir__siblings *siblings)
{
    while (siblings->anchor && siblings->anchor->outer) weir__anchor_pop(siblings);
}

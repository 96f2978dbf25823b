/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "interop/anchor.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "interop/abi.h"
#include "interop/libomp.h"
#include "interop/runtime.h"
#include "interop/siblings.h"

/*
 * .word counts: 2 per task in flight, 1 for the siblings' reference.
 *
 * Argument. .proxy is written by the generating thread only while no task is in flight, and published with the first
 * one (A1). Whoever takes a task away has read .proxy before (A2), while its own task kept it as it was; if it was the
 * last, the proxy is its to complete. The generating thread adds a task with compare and exchange: it either finds some
 * in flight, and they keep the proxy open, or none, and then whoever took the last one has its own copy of the old
 * proxy and does not touch the anchor again, unless the siblings have dropped it, and then it is that thread's to free.
 */
#define TASK  UINT64_C(2)
#define OWNED UINT64_C(1)

struct weir__anchor {
    _Atomic uint64_t word;
    struct weir__abi_task *proxy;
    struct weir__anchor *outer; /* of the taskgroup around this one */
};

static int32_t nothing(int32_t gtid, void *task)
{
    (void)gtid, (void)task;
    return 0;
}

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
    uint64_t word = atomic_load_explicit(&anchor->word, memory_order_relaxed);
    while (word >= TASK)
        if (atomic_compare_exchange_weak_explicit(&anchor->word, &word, word + TASK, memory_order_relaxed,
                                                  memory_order_relaxed))
            return anchor;
    anchor->proxy = weir__libomp()->task_alloc(where, gtid, WEIR__ABI_TASK_PROXY, sizeof *anchor->proxy, 0, nothing);
    if (!anchor->proxy) return NULL;
    atomic_store_explicit(&anchor->word, OWNED + TASK, memory_order_release); /* A1 */
    return anchor;
}

void weir__anchor_drop(struct weir__anchor *anchor)
{
    struct weir__abi_task *proxy = anchor->proxy; /* A2: the task came here after A1 */
    uint64_t word = atomic_fetch_sub_explicit(&anchor->word, TASK, memory_order_acq_rel) - TASK;
    if (word >= TASK) return;
    if (!word) free(anchor);
    weir__libomp()->proxy_completed(proxy);
}

bool weir__anchor_is_idle(const struct weir__anchor *anchor)
{
    return atomic_load_explicit(&anchor->word, memory_order_acquire) < TASK; /* pairs with the release in drop() */
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

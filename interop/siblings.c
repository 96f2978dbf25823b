/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "interop/siblings.h"

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>

#include <exec/work.h>

#include "interop/abi.h"
#include "interop/anchor.h"
#include "interop/libomp.h"
#include "interop/runtime.h"

/*
 * Structures are made as they are needed and given from one generating task to the next, never freed: what a thread
 * remembers can always be looked at.
 *
 * Argument. .slot is written under the list's lock, by whoever has taken the structure (pins: 0 -> TAKEN). Only the
 * thread that executes the generating task S asks for S. It pins first (P1) and then compares the slot (P2): if it is
 * still S, nobody can take the structure before it leaves; if another has taken it meanwhile, the pin is given back and
 * the list is searched. Sequentially consistent, because P1 and P2 are to two words that the taker handles in the other
 * order.
 */
#define TAKEN INT32_MIN

#define TOKENS (UINT64_C(1) << 24)

enum {
    BUCKETS = 1024, /* of the hash table */
    REMEMBERED = 8, /* a thread remembers as many generating tasks */
    LOOKED_AT = 8,  /* structures that are tried before one more is made */
};

static struct {
    pthread_mutex_t lock;
    struct weir__siblings *bucket[BUCKETS];
    struct weir__siblings *all, *hand;
    uint64_t tokens; /* handed out in stretches; should one be too short the next one's are used, by another task */
} list = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local struct weir__siblings *remembered[REMEMBERED] __attribute__((tls_model("initial-exec")));

static size_t hash(const void *slot)
{
    return (size_t)((uintptr_t)slot * UINT64_C(0x9e3779b97f4a7c15) >> 40);
}

/* Pin it if it belongs to the generating task. */
static bool pin(struct weir__siblings *siblings, const void *slot)
{
    if (atomic_load_explicit(&siblings->slot, memory_order_relaxed) != slot) return false;              /* P2 decides */
    if (atomic_fetch_add(&siblings->pins, 1) >= 0 && atomic_load(&siblings->slot) == slot) return true; /* P1, P2 */
    atomic_fetch_sub(&siblings->pins, 1);
    return false;
}

void weir__siblings_leave(struct weir__siblings *siblings)
{
    atomic_fetch_sub_explicit(&siblings->pins, 1, memory_order_release); /* pairs with take() */
}

/* Under the lock. */
static struct weir__siblings *search(const void *slot)
{
    struct weir__siblings *siblings = list.bucket[hash(slot) % BUCKETS];
    while (siblings && atomic_load_explicit(&siblings->slot, memory_order_relaxed) != slot) siblings = siblings->chain;
    return siblings;
}

static void unchain(struct weir__siblings *siblings)
{
    const void *slot = atomic_load_explicit(&siblings->slot, memory_order_relaxed); /* under the lock */
    struct weir__siblings **at = &list.bucket[hash(slot) % BUCKETS];
    while (*at != siblings) at = &(*at)->chain;
    *at = siblings->chain;
}

static void enchain(struct weir__siblings *siblings, void *slot)
{
    struct weir__siblings **bucket = &list.bucket[hash(slot) % BUCKETS];
    atomic_store(&siblings->slot, slot);
    siblings->chain = *bucket;
    *bucket = siblings;
}

/* One of the next few that nobody uses and whose tasks are all complete. Under the lock; taken. */
static struct weir__siblings *take(void)
{
    for (int i = 0; i < LOOKED_AT; i++) {
        struct weir__siblings *siblings = list.hand ? list.hand : list.all;
        int32_t nobody = 0;
        if (!siblings) return NULL;
        list.hand = siblings->next;
        if (!weir__scope_is_idle(siblings->scope)) continue;
        /* Acquire: pairs with the release in leave(). */
        if (!atomic_compare_exchange_strong(&siblings->pins, &nobody, TAKEN)) continue;
        if (weir__scope_is_idle(siblings->scope) && !weir__anchor_is_held(siblings)) return siblings;
        atomic_fetch_sub(&siblings->pins, TAKEN);
    }
    return NULL;
}

/* Under the lock. */
static struct weir__siblings *make(void)
{
    struct weir__runtime *rt = weir__runtime_peek();
    struct weir__siblings *siblings = rt ? calloc(1, sizeof *siblings) : NULL;
    if (!siblings) return NULL;
    if (weir_scope_create(rt->context, NULL, &siblings->scope)) {
        free(siblings);
        return NULL;
    }
    weir__scope_never_wait(siblings->scope);
    atomic_init(&siblings->gates, WEIR__GATES_CLOSED);
    siblings->first_token = siblings->token = list.tokens += TOKENS;
    siblings->next = list.all;
    list.all = siblings;
    return siblings;
}

static struct weir__siblings *search_or_make(void *slot, bool make_one)
{
    pthread_mutex_lock(&list.lock);
    struct weir__siblings *siblings = search(slot);
    if (siblings) {
        atomic_fetch_add(&siblings->pins, 1);
    } else if (make_one && (siblings = take())) {
        unchain(siblings);
        weir__anchor_reset(siblings);
        siblings->has_all_memory = siblings->let_go = false;
        siblings->first_token = siblings->token = list.tokens += TOKENS;
        enchain(siblings, slot);
        atomic_fetch_add(&siblings->pins, 1);
        atomic_fetch_sub(&siblings->pins, TAKEN);
    } else if (make_one && (siblings = make())) {
        enchain(siblings, slot);
        atomic_fetch_add(&siblings->pins, 1);
    }
    pthread_mutex_unlock(&list.lock);
    return siblings;
}

static struct weir__siblings *lookup(int32_t gtid, bool make_one)
{
    void *slot = weir__libomp()->async_handle(gtid);
    if (!slot) return NULL;
    struct weir__siblings **mine = &remembered[hash(slot) % REMEMBERED];
    if (*mine && pin(*mine, slot)) return *mine;
    struct weir__siblings *siblings = search_or_make(slot, make_one);
    if (siblings) *mine = siblings;
    return siblings;
}

struct weir__siblings *weir__siblings_find(int32_t gtid)
{
    return lookup(gtid, false);
}

struct weir__siblings *weir__siblings_get(int32_t gtid)
{
    return lookup(gtid, true);
}

intptr_t weir__siblings_token(struct weir__siblings *siblings)
{
    return (intptr_t)(UINT64_C(1) << 61 | siblings->token++ << 4);
}

void weir__siblings_waited(struct weir__siblings *siblings)
{
    siblings->token = siblings->first_token;
}

void weir__siblings_drain(void)
{
    pthread_mutex_lock(&list.lock);
    struct weir__siblings *siblings = list.all;
    pthread_mutex_unlock(&list.lock);
    for (; siblings; siblings = siblings->next) { /* .next is written before the structure is in the list */
        /* Relaxed: a hint; a task that libomp has not run yet may never be run. */
        if (atomic_load_explicit(&siblings->hosted, memory_order_relaxed)) continue;
        int rc = weir_scope_wait(siblings->scope);
        (void)rc; /* failures were told by the tasks */
    }
}

/* ---- depend clauses ---- */

/*
 * Tasks of the host with mutexinoutset exclude each other in libomp, in any order. For what is made here they are a
 * set: the next one of another kind follows all of them. They must not be in one set with inoutset tasks, so they have
 * a second key at which they read what those write.
 */
static const void *second_key(intptr_t base)
{
    return (const void *)((uintptr_t)base | (uintptr_t)1 << 62); /* no address of a program */
}

static void add(struct weir__depends *depends, const void *address, uint32_t kind)
{
    depends->at[depends->n++] = (struct weir_access){address, 0, kind};
}

static void decode(struct weir__depends *depends, int32_t n, const struct weir__abi_depend *from,
                   enum weir__depends_use use)
{
    for (; n > 0; n--, from++) {
        const void *address = (const void *)from->base;
        unsigned flags = from->flags;
        bool simple = flags == WEIR__ABI_DEPEND_IN || flags == WEIR__ABI_DEPEND_INOUT;
        if (__builtin_expect(simple && address && from->base != -1, 1)) {
            add(depends, address, flags == WEIR__ABI_DEPEND_IN ? WEIR_ACCESS_IN : WEIR_ACCESS_INOUT);
        } else if (flags & WEIR__ABI_DEPEND_ALL_MEMORY || from->base == -1) {
            add(depends, NULL, WEIR_ACCESS_ALL_MEMORY);
        } else if (!address) {
            continue;
        } else if (flags == WEIR__ABI_DEPEND_INOUTSET) {
            add(depends, address, WEIR_ACCESS_INOUTSET);
            add(depends, second_key(from->base), WEIR_ACCESS_INOUTSET);
        } else if (flags == WEIR__ABI_DEPEND_MUTEXINOUTSET && use == WEIR__DEPENDS_HOSTED) {
            add(depends, address, WEIR_ACCESS_INOUTSET);
            add(depends, second_key(from->base), WEIR_ACCESS_IN);
        } else {
            bool lock = flags == WEIR__ABI_DEPEND_MUTEXINOUTSET && use == WEIR__DEPENDS_DEVICE;
            add(depends, address, lock ? WEIR_ACCESS_MUTEXINOUTSET : WEIR_ACCESS_INOUT);
        }
    }
}

int weir__depends_decode(struct weir__depends *depends, int32_t n, const struct weir__abi_depend *from,
                         int32_t nnoalias, const struct weir__abi_depend *noalias, enum weir__depends_use use)
{
    size_t most = 2 * ((size_t)(n > 0 ? n : 0) + (size_t)(nnoalias > 0 ? nnoalias : 0)) + 2;
    depends->at = depends->few;
    depends->n = 0;
    depends->is_heap = most > sizeof depends->few / sizeof depends->few[0];
    if (depends->is_heap && !(depends->at = malloc(most * sizeof *depends->at))) return WEIR_E_NO_MEMORY;
    decode(depends, n, from, use);
    decode(depends, nnoalias, noalias, use);
    return WEIR_OK;
}

void weir__depends_after(struct weir__depends *depends, struct weir_task *task)
{
    add(depends, task, WEIR_ACCESS_AFTER);
}

void weir__depends_fini(struct weir__depends *depends)
{
    if (depends->is_heap) free(depends->at);
}

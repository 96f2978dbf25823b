/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "interop/construct.h"

#include <linux/futex.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <exec/work.h>

#include "interop/libomp.h"
#include "interop/runtime.h"
#include "interop/shim.h"
#include "interop/target_task.h"
#include "interop/trace.h"

/*
 * The word `waiter` of a construct that stays behind
 *
 *      NOBODY ── query ──► thread ── query ──► another thread …
 *         └────────┬─────────┘
 *              completion
 *                  ▼
 *                DONE
 *
 * Completion exchanges the word for DONE (C1) and does not touch the construct afterwards, so whoever reads DONE may
 * reuse it. A query registers its thread by compare and exchange: it either sees DONE or its thread is what completion
 * gets. Completion then bumps that thread's `wake` and wakes it if it sleeps; the sleeper has read `wake` before it
 * registered, so a bump in between makes the futex return at once. `sleeping` and `wake` are sequentially consistent:
 * either the sleeper's futex call sees the new `wake`, or completion sees `sleeping`. Threads are never freed, so a
 * late wake-up is harmless.
 */
#define NOBODY ((uintptr_t)0)
#define DONE   ((uintptr_t)1)

enum {
    POOL_MOST = 64,          /* unused constructs per thread */
    QUICK_MISSES = 3,        /* questions answered without sleeping */
    SLEEP_LEAST_NS = 100000, /* doubled with every further question … */
    SLEEP_DOUBLINGS = 5,     /* … up to 3.2 ms: other tasks of the sleeping thread wait as long */
    SLEEPERS_LONG = 4,       /* half of libomp's helper threads; the others come back soon and look for new tasks */
};

/* ---- pool ---- */

static struct weir__construct *construct_get(struct weir__thread *thread)
{
    struct weir__construct *construct = thread->pool;
    if (construct) {
        thread->pool = construct->next;
        thread->npool--;
        return construct;
    }
    construct = calloc(1, sizeof *construct);
    if (!construct) return NULL;
    weir__region_init(&construct->region);
    return construct;
}

static void construct_put(struct weir__thread *thread, struct weir__construct *construct)
{
    if (!thread || thread->npool >= POOL_MOST) {
        weir__region_fini(&construct->region);
        free(construct);
        return;
    }
    construct->next = thread->pool;
    thread->pool = construct;
    thread->npool++;
}

void weir__construct_pool_free(struct weir__thread *thread)
{
    while (thread->pool) {
        struct weir__construct *construct = thread->pool;
        thread->pool = construct->next;
        weir__region_fini(&construct->region);
        free(construct);
    }
    thread->npool = 0;
}

/* ---- staying behind ---- */

static _Thread_local bool waits __attribute__((tls_model("initial-exec")));

bool weir__construct_set_waits(bool now)
{
    bool before = waits;
    waits = now;
    return before;
}

static pthread_once_t helpers_asked = PTHREAD_ONCE_INIT;
static bool has_helpers;

/* As libomp reads its variables. */
static void ask_for_helpers(void)
{
    const char *use = getenv("LIBOMP_USE_HIDDEN_HELPER_TASK"), *threads = getenv("LIBOMP_NUM_HIDDEN_HELPER_THREADS");
    bool off = use && *use && (strchr("0fFnNdD", *use) || !strncasecmp(use, "off", 3) || !strncasecmp(use, ".f", 2));
    has_helpers = !off && (!threads || atoi(threads) > 0);
}

/*
 * libomp's slot for a handle of the current task, if this is a task that can have one.
 *
 * libomp gives a task with a handle to a thread's queue before it is done with it: another thread of the team that takes
 * it at once can have completed and freed it by then. Helper threads get it a wake-up later; without them tasks wait.
 */
static void **handle_slot(void)
{
    const struct weir__libomp *libomp = weir__libomp();
    pthread_once(&helpers_asked, ask_for_helpers);
    if (!has_helpers || !libomp->async_handle || !libomp->has_task_team) return NULL;
    /* libomp executes a task at once in a team of one thread or a final task, does not count it, and must not be asked
     * to come back to it. */
    if (!libomp->num_threads || libomp->num_threads() == 1 || !libomp->in_final || libomp->in_final()) return NULL;
    int32_t gtid = libomp->global_thread_num(NULL);
    if (gtid == -2 || !libomp->has_task_team(gtid)) return NULL;
    void **slot = libomp->async_handle(gtid);
    return slot && !*slot ? slot : NULL;
}

static void wake(struct weir__thread *thread)
{
    atomic_fetch_add(&thread->wake, 1);
    if (atomic_load(&thread->sleeping)) syscall(SYS_futex, &thread->wake, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* Runs on whichever thread notices. */
static void on_complete(struct weir_task *task, int status, void *arg)
{
    (void)task;
    struct weir__construct *construct = arg;
    construct->status = status;
    uintptr_t waiter = atomic_exchange(&construct->waiter, DONE); /* C1 */
    if (waiter != NOBODY) wake((struct weir__thread *)waiter);
}

static void sleep_a_little(struct weir__thread *thread, uint32_t seen, uint32_t misses)
{
    static _Atomic uint32_t sleepers; /* relaxed: only how long to sleep depends on it */
    bool crowded = atomic_fetch_add_explicit(&sleepers, 1, memory_order_relaxed) >= SLEEPERS_LONG;
    uint32_t doublings = crowded ? 0 : misses < SLEEP_DOUBLINGS ? misses : SLEEP_DOUBLINGS;
    struct timespec time = {.tv_nsec = (long)SLEEP_LEAST_NS << doublings};
    atomic_store(&thread->sleeping, 1);
    syscall(SYS_futex, &thread->wake, FUTEX_WAIT_PRIVATE, seen, &time, NULL, 0);
    atomic_store(&thread->sleeping, 0);
    atomic_fetch_sub_explicit(&sleepers, 1, memory_order_relaxed);
}

/* Returns true when done. */
static bool register_waiter(struct weir__construct *construct, struct weir__thread *thread)
{
    uintptr_t word = atomic_load(&construct->waiter); /* pairs with C1 */
    while (word != DONE)
        if (word == (uintptr_t)thread || atomic_compare_exchange_weak(&construct->waiter, &word, (uintptr_t)thread))
            return false;
    return true;
}

/* ---- open, close ---- */

struct weir__construct *weir__construct_take(struct weir__target *target, const char *name)
{
    struct weir__construct *construct = construct_get(weir__runtime_thread());
    if (!construct) return NULL;
    construct->target = target;
    construct->name = name;
    construct->handle = NULL;
    construct->owner = NULL;
    return construct;
}

void weir__construct_give(struct weir__construct *construct)
{
    construct_put(weir__runtime_thread_peek(), construct);
}

void weir__construct_finish(struct weir__construct *construct)
{
    weir__region_finish(&construct->region);
    weir__construct_give(construct);
}

/* In a target task's routine. *construct_out is NULL if the construct is to be opened in the usual way. */
static int open_in_task(struct weir__target_task *owner, struct weir__target *target, const char *name, bool nowait,
                        struct weir__construct **construct_out)
{
    int rc = weir__target_task_open(owner, target, name, nowait, construct_out);
    if (!rc && *construct_out)
        weir__region_open(&(*construct_out)->region, (*construct_out)->task, target->device, target->table);
    return rc;
}

int weir__construct_open(struct weir__target *target, const char *name, bool nowait,
                         struct weir__construct **construct_out)
{
    struct weir__target_task *owner = weir__target_task_current();
    if (owner) {
        int rc = open_in_task(owner, target, name, nowait, construct_out);
        if (rc || *construct_out) return rc;
    }
    struct weir__thread *thread = weir__runtime_thread();
    struct weir__construct *construct = weir__construct_take(target, name);
    if (!construct) return WEIR_E_NO_MEMORY;
    construct->handle = nowait && !owner && !waits ? handle_slot() : NULL;
    struct weir_task_options options = {.size = sizeof options, .name = name};
    if (construct->handle) {
        construct->misses = 0;
        atomic_store_explicit(&construct->waiter, NOBODY, memory_order_relaxed); /* published by the task's end */
        options.complete = on_complete;
        options.complete_arg = construct;
    }
    int rc = weir_task_begin(thread->scope, target->device, NULL, 0, &options, &construct->task);
    if (rc) {
        construct_put(thread, construct);
        return rc;
    }
    if (nowait && weir__record_is_on() && !weir__shim_is_on())
        weir__trace_fallback(WEIR__FALLBACK_LIBOMP, construct->task, NULL);
    weir__region_open(&construct->region, construct->task, target->device, target->table);
    *construct_out = construct;
    return WEIR_OK;
}

void weir__construct_maps(struct weir__construct *construct, const struct weir__map_args *maps)
{
    if (!construct->owner || !maps->mappers) return;
    for (uint32_t i = 0; i < maps->n; i++) {
        if (!maps->mappers[i]) continue;
        weir__target_task_maps(construct->owner);
        return;
    }
}

/* The device's work is done: the host's share of it, and the end. */
static void finish(struct weir__construct *construct)
{
    if (construct->status)
        weir__fatal("%s on %s failed: %s", construct->name, construct->target->uid,
                    weir_error_string(construct->status));
    weir__construct_finish(construct);
}

void weir__construct_close(struct weir__construct *construct, int status)
{
    if (status)
        weir__fatal("%s on %s failed: %s: %s", construct->name, construct->target->uid, weir_error_string(status),
                    weir_error_text());
    if (construct->owner) {
        weir__target_task_close(construct->owner, construct);
        return;
    }
    if (construct->handle) {
        void **handle = construct->handle;
        int rc = weir_task_end(construct->task);
        /* The completion reports it as well. */
        (void)rc;
        *handle = construct;
        return;
    }
    construct->status = weir__task_end_and_wait(construct->task);
    finish(construct);
}

void weir__construct_query(void **handle)
{
    struct weir__construct *construct = *handle;
    if (!construct) return;
    struct weir__thread *thread = weir__runtime_thread();
    uint32_t seen = atomic_load(&thread->wake);
    if (!register_waiter(construct, thread)) {
        if (construct->misses++ < QUICK_MISSES) return;
        sleep_a_little(thread, seen, construct->misses - QUICK_MISSES);
        if (!register_waiter(construct, thread)) return;
    }
    finish(construct);
    *handle = NULL;
}

int weir__construct_copy(struct weir__target *target, const struct weir__copy *copy)
{
    struct weir_task_options options = {.size = sizeof options, .name = "copy"};
    struct weir_task *task;
    int rc = weir_task_begin(weir__runtime_thread()->scope, target->device, NULL, 0, &options, &task);
    if (rc) return rc;
    rc = weir__task_copy(task, copy);
    int done = weir__task_end_and_wait(task);
    return rc ? rc : done;
}

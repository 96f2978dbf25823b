/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "interop/first_run.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <exec/work.h>

#include "interop/runtime.h"

enum { WAITS, CLEAR, KNOWN };

struct weir__first_run {
    struct weir__first_run *next; /* in the list, under its lock */
    weir__task_routine entry;
    int64_t device;
    struct weir_task *put_on;     /* the switch; NULL in the list: stands for the first run itself */
    _Atomic int state;            /* WAITS until somebody wins */
    _Atomic unsigned references;  /* the list's, that of what waits for the predecessors, the submitter's, the task's */
};

static struct {
    pthread_mutex_t lock;
    struct weir__first_run *first;
} list = {.lock = PTHREAD_MUTEX_INITIALIZER};

void weir__first_run_drop(struct weir__first_run *wait)
{
    /* Acquire/release: the last one frees what the others have read. */
    if (atomic_fetch_sub_explicit(&wait->references, 1, memory_order_acq_rel) != 1) return;
    if (wait->put_on) weir_task_release(wait->put_on);
    free(wait);
}

/* The first one tells why, and issues the task. */
static void put_on(struct weir__first_run *wait, int why)
{
    int waits = WAITS;
    /* Relaxed: the fulfilment publishes it. */
    if (atomic_compare_exchange_strong_explicit(&wait->state, &waits, why, memory_order_relaxed, memory_order_relaxed)) {
        if (weir_task_fulfill(weir_task_retain(wait->put_on), 0))
            weir__fatal("a target task cannot be issued: %s", weir_error_text());
    }
    weir__first_run_drop(wait);
}

static int predecessors_complete(void *arg)
{
    put_on(arg, CLEAR);
    return 0;
}

static struct weir__first_run *make(weir__task_routine entry, int64_t device, unsigned references)
{
    struct weir__first_run *one = calloc(1, sizeof *one);
    if (!one) return NULL;
    one->entry = entry;
    one->device = device;
    atomic_init(&one->state, WAITS);
    atomic_init(&one->references, references);
    return one;
}

static bool is_of(const struct weir__first_run *one, weir__task_routine entry, int64_t device)
{
    return one->entry == entry && one->device == device;
}

/* What stands for the entry's first run, or NULL. */
static struct weir__first_run *first_locked(weir__task_routine entry, int64_t device)
{
    struct weir__first_run *one = list.first;
    while (one && (one->put_on || !is_of(one, entry, device))) one = one->next;
    return one;
}

bool weir__first_run_begin(weir__task_routine entry, int64_t device)
{
    struct weir__first_run *marker = make(entry, device, 1), *one;
    if (!marker) return true; /* nobody waits for it: each is a first one */
    pthread_mutex_lock(&list.lock);
    one = first_locked(entry, device);
    if (!one) {
        marker->next = list.first;
        list.first = marker;
    }
    pthread_mutex_unlock(&list.lock);
    if (one) weir__first_run_drop(marker);
    return !one;
}

void weir__first_run_over(weir__task_routine entry, int64_t device, bool offloads)
{
    struct weir__first_run *waiting = NULL, **last = &waiting;
    pthread_mutex_lock(&list.lock);
    for (struct weir__first_run **link = &list.first; *link;) {
        struct weir__first_run *one = *link;
        if (!is_of(one, entry, device)) {
            link = &one->next;
            continue;
        }
        *link = one->next;
        *last = one;
        last = &one->next;
        one->next = NULL;
    }
    pthread_mutex_unlock(&list.lock);
    while (waiting) {
        struct weir__first_run *one = waiting;
        waiting = one->next;
        if (one->put_on && offloads)
            put_on(one, KNOWN);
        else
            weir__first_run_drop(one);
    }
}

struct weir__first_run *weir__first_run_wait(weir__task_routine entry, int64_t device, struct weir_scope *scope,
                                             const struct weir_access *accesses, size_t naccesses,
                                             struct weir_task **switch_out)
{
    struct weir__first_run *wait = make(entry, device, 4), *one;
    if (!wait) return NULL;
    if (weir__task_switch(scope, &wait->put_on) ||
        weir__task_behind(scope, accesses, naccesses, false, predecessors_complete, wait, NULL))
        weir__fatal("a target task cannot be submitted: %s", weir_error_text());
    *switch_out = wait->put_on;
    pthread_mutex_lock(&list.lock);
    one = first_locked(entry, device);
    if (one) {
        wait->next = one->next;
        one->next = wait;
    }
    pthread_mutex_unlock(&list.lock);
    /* The first run is over meanwhile: what it did is known, if there was room to remember it. */
    if (!one && weir__learned_get(entry, device) == WEIR__LEARNED_OFFLOADS)
        put_on(wait, KNOWN);
    else if (!one)
        weir__first_run_drop(wait);
    return wait;
}

bool weir__first_run_is_known(const struct weir__first_run *wait)
{
    return atomic_load_explicit(&wait->state, memory_order_relaxed) == KNOWN; /* see put_on() */
}

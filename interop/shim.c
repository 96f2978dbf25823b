/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "interop/shim.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <exec/environment.h>
#include <exec/work.h>

#include "interop/abi.h"
#include "interop/anchor.h"
#include "interop/entries.h"
#include "interop/frame.h"
#include "interop/host_task.h"
#include "interop/libomp.h"
#include "interop/priority.h"
#include "interop/registry.h"
#include "interop/runtime.h"
#include "interop/siblings.h"
#include "interop/target_task.h"
#include "interop/trace.h"

/* ---- on or off ---- */

enum { UNDECIDED, ON, OFF, NO_DEVICES };
static _Atomic int state;

/* Are these functions found before libomp's? */
static bool is_in_front(void)
{
    return weir__shim_is_own(dlsym(RTLD_DEFAULT, "__kmpc_omp_task_with_deps"));
}

static int decide(void)
{
    const struct weir__libomp *libomp = weir__libomp();
    if (!weir__environment_number("WEIR_SHIM", 1, 0, 1) || !is_in_front()) return OFF;
    if (libomp->missing) {
        weir__warn("this libomp is not supported (%s of node VERSION is missing): target tasks are left to it, their "
                   "dependences are resolved on the host",
                   libomp->missing);
        return OFF;
    }
    if (!weir__runtime_devices()) return NO_DEVICES;
    weir__priority_enable();
    return ON;
}

bool weir__shim_is_on(void)
{
    /* Relaxed: what was decided stands on what has its own synchronisation. */
    int now = atomic_load_explicit(&state, memory_order_relaxed);
    if (now == UNDECIDED) {
        static _Thread_local bool deciding __attribute__((tls_model("initial-exec"))); /* libomp initialises itself in it */
        if (deciding || !weir__registry_machines()) return false;
        deciding = true;
        now = decide();
        deciding = false;
        atomic_store_explicit(&state, now, memory_order_relaxed);
    }
    return now == ON && !weir__runtime_is_child() && !weir__runtime_in_kernel();
}

/* ---- waiting ---- */

/* While device work is waited for, tasks of the host that come up elsewhere are looked for as often. */
#define TICK_NS 1000000u

struct settling {
    struct weir__siblings *siblings;
    bool (*done)(void *arg);
    void *arg;
    uint32_t opened;
};

static bool has_news(void *arg)
{
    struct settling *settling = arg;
    /* Acquire: pairs with gate_open() in host_task.c. */
    return settling->done(settling->arg) ||
           atomic_load_explicit(&settling->siblings->opened, memory_order_acquire) != settling->opened;
}

static bool is_idle(void *scope)
{
    return weir__scope_is_idle(scope);
}

static bool is_group_idle(void *anchor)
{
    return weir__anchor_is_idle(anchor);
}

/* Are its target tasks complete, and has libomp all its tasks of the host that waited for some? */
static bool has_ended(void *arg)
{
    const struct weir__siblings *siblings = arg;
    /* Acquire: pairs with complete() in host_task.c. */
    return weir__anchor_all_idle(siblings) && !atomic_load_explicit(&siblings->closed, memory_order_acquire);
}

/* What waits for that, in a recording. */
static enum weir__record_wait reason(bool (*done)(void *arg))
{
    return done == is_idle         ? WEIR__WAIT_TASKWAIT
           : done == is_group_idle ? WEIR__WAIT_GROUP
           : done == has_ended     ? WEIR__WAIT_ENDING
                                   : WEIR__WAIT_DEPEND;
}

/*
 * Wait until @done, or as long as libomp has nothing that only this thread can run: sleep until device work completes,
 * a gate opens or, if there may be tasks of the host, a little while has passed, and run what libomp has ready.
 * libomp's own wait, which follows, then has little left to spin for. In a team of one thread libomp runs tasks in its
 * waits only. @elsewhere: what is waited for may be another generating task's.
 */
static void settle(struct weir__siblings *siblings, struct weir__abi_ident *where, int32_t gtid,
                   bool (*done)(void *arg), void *arg, bool elsewhere)
{
    const struct weir__libomp *libomp = weir__libomp();
    bool alone = libomp->num_threads() == 1;
    struct settling settling = {siblings, done, arg, 0};
    weir__submitter_waits();
    if (done(arg)) return;
    uint64_t began = weir__trace_now();
    weir__host_task_wait_begin(siblings);
    while (!done(arg)) {
        if (alone && atomic_load_explicit(&siblings->hosted, memory_order_relaxed)) break; /* only we finish them */
        settling.opened = atomic_load_explicit(&siblings->opened, memory_order_acquire);   /* as in has_news() */
        weir__host_task_open_gates(siblings, gtid);
        if (!alone) libomp->taskyield(where, gtid, 0);
        weir__scope_wait_until(siblings->scope, has_news, &settling, alone && !elsewhere ? 0 : TICK_NS,
                               done == is_idle);
    }
    weir__host_task_wait_end(siblings, gtid);
    if (began) weir__trace_directive(began, reason(done), siblings->scope, where);
}

void weir__shim_settle(struct weir__abi_ident *where, int32_t gtid)
{
    struct weir__siblings *siblings = weir__siblings_find(gtid);
    if (!siblings) return;
    settle(siblings, where, gtid, is_idle, siblings->scope, false);
    weir__anchor_release(siblings, gtid, true);
    weir__siblings_leave(siblings);
}

void weir__shim_end_task(int32_t gtid, bool is_tied)
{
    struct weir__siblings *siblings = weir__siblings_find(gtid);
    if (!siblings) return;
    /* Relaxed: a hint; its own tasks of the host are counted. */
    if (!has_ended(siblings) && (is_tied || !atomic_load_explicit(&siblings->hosted, memory_order_relaxed))) {
        settle(siblings, NULL, gtid, has_ended, siblings, false);
        /* In a team of one libomp runs what they wait for in its own waits only. */
        while (!has_ended(siblings)) weir__libomp()->taskwait(NULL, gtid);
    }
    weir__anchor_release(siblings, gtid, true);
    weir__siblings_leave(siblings);
}

void weir__shim_drain(void)
{
    if (weir__shim_is_on()) weir__shim_settle(NULL, weir__libomp()->global_thread_num(NULL));
    weir__runtime_drain();
}

struct predecessors {
    struct weir_scope *scope;
    struct weir__depends depends;
};

static bool is_clear(void *arg)
{
    struct predecessors *p = arg;
    return weir__scope_is_clear(p->scope, p->depends.at, p->depends.n, false);
}

/* Before libomp waits for the predecessors that it knows: those that it does not, and @after if that is not NULL. */
static void settle_predecessors(struct weir__abi_ident *where, int32_t gtid, int32_t n,
                                const struct weir__abi_depend *list, int32_t nnoalias,
                                const struct weir__abi_depend *noalias, struct weir_task *after)
{
    struct weir__siblings *siblings = after ? weir__siblings_get(gtid) : weir__siblings_find(gtid);
    struct predecessors p;
    if (!siblings && after) weir__fatal("out of memory");
    if (!siblings) return;
    if (weir__depends_decode(&p.depends, n, list, nnoalias, noalias, WEIR__DEPENDS_WAITING))
        weir__fatal("out of memory");
    if (after) weir__depends_after(&p.depends, after);
    p.scope = siblings->scope;
    settle(siblings, where, gtid, is_clear, &p, after != NULL);
    if (!is_clear(&p)) weir__host_task_wait(where, gtid, siblings, &p.depends);
    weir__depends_fini(&p.depends);
    weir__siblings_leave(siblings);
}

/* libomp writes into the lists that it is given. */
static void libomp_wait(struct weir__abi_ident *where, int32_t gtid, int32_t n, const struct weir__abi_depend *list)
{
    const struct weir__libomp *libomp = weir__libomp();
    struct weir__abi_depend few[16], *copy = few;
    if (n > (int32_t)(sizeof few / sizeof few[0]) && !(copy = malloc((size_t)n * sizeof *copy)))
        weir__fatal("out of memory");
    memcpy(copy, list, (size_t)n * sizeof *copy);
    if (libomp->taskwait_deps)
        libomp->taskwait_deps(where, gtid, n, copy, 0, NULL, 0);
    else if (libomp->wait_deps)
        libomp->wait_deps(where, gtid, n, copy, 0, NULL);
    else if (libomp->taskwait)
        libomp->taskwait(where, gtid);
    if (copy != few) free(copy);
}

void weir__shim_wait_for(struct weir__abi_ident *where, int32_t gtid, int32_t n, const struct weir__abi_depend *list,
                         struct weir_task *after)
{
    if (weir__shim_is_on()) settle_predecessors(where, gtid, n, list, 0, NULL, after);
    if (n > 0) libomp_wait(where, gtid, n, list);
}

/* ---- task reductions ---- */

/*
 * A task with in_reduction asks libomp for its thread's private copy, by the taskgroup that the task was made in. While
 * there are such groups target tasks are libomp's. Groups of one thread nest.
 */
static _Atomic uint32_t reductions; /* relaxed: whoever makes a task in such a group has begun it, or follows who has */
static _Thread_local struct {
    uint64_t reduces; /* bit i: group i has reductions */
    uint32_t depth;
} groups __attribute__((tls_model("initial-exec")));

static void group_begin(int32_t gtid)
{
    struct weir__siblings *siblings = weir__siblings_find(gtid);
    groups.depth++;
    if (!siblings) return;
    weir__anchor_push(siblings);
    weir__siblings_leave(siblings);
}

static void group_settle(struct weir__abi_ident *where, int32_t gtid)
{
    struct weir__siblings *siblings = weir__siblings_find(gtid);
    if (!siblings) return;
    if (siblings->anchor) settle(siblings, where, gtid, is_group_idle, siblings->anchor, false);
    weir__anchor_release(siblings, gtid, false);
    weir__siblings_leave(siblings);
}

static void group_end(int32_t gtid)
{
    struct weir__siblings *siblings = weir__siblings_find(gtid);
    if (groups.depth) {
        uint64_t bit = groups.depth < 64 ? UINT64_C(1) << groups.depth : 0;
        if (groups.reduces & bit) atomic_fetch_sub_explicit(&reductions, 1, memory_order_relaxed);
        groups.reduces &= ~bit;
        groups.depth--;
    }
    if (!siblings) return;
    weir__anchor_pop(siblings);
    weir__siblings_leave(siblings);
}

/* The innermost group has reductions. Deeper than 63 they stay counted: target tasks remain libomp's. */
static void group_reduces(void)
{
    uint64_t bit = groups.depth && groups.depth < 64 ? UINT64_C(1) << groups.depth : 0;
    if (bit && groups.reduces & bit) return;
    groups.reduces |= bit;
    atomic_fetch_add_explicit(&reductions, 1, memory_order_relaxed);
}

/* ---- in front of libomp: tasks ---- */

WEIR__EXPORT struct weir__abi_task *__kmpc_omp_task_alloc(struct weir__abi_ident *where, int32_t gtid, int32_t flags,
                                                          size_t bytes, size_t shareds,
                                                          int32_t (*entry)(int32_t gtid, void *task))
{
    if (!weir__shim_is_on()) return weir__libomp()->task_alloc(where, gtid, flags, bytes, shareds, entry);
    return weir__host_task_alloc(where, gtid, flags, bytes, shareds, entry, false);
}

WEIR__EXPORT struct weir__abi_task *__kmpc_omp_target_task_alloc(struct weir__abi_ident *where, int32_t gtid,
                                                                 int32_t flags, size_t bytes, size_t shareds,
                                                                 int32_t (*entry)(int32_t gtid, void *task),
                                                                 int64_t device)
{
    if (!weir__shim_is_on())
        return weir__libomp()->target_task_alloc(where, gtid, flags, bytes, shareds, entry, device);
    if (atomic_load_explicit(&reductions, memory_order_relaxed)) {
        if (weir__record_is_on()) weir__trace_fallback(WEIR__FALLBACK_REDUCTION, NULL, weir__trace_source(where));
        return weir__host_task_alloc(where, gtid, flags, bytes, shareds, entry, true);
    }
    struct weir__abi_task *task = weir__target_task_alloc(gtid, flags, bytes, shareds, entry, device);
    if (!task) weir__fatal("out of memory");
    return task;
}

WEIR__EXPORT int32_t __kmpc_omp_task(struct weir__abi_ident *where, int32_t gtid, struct weir__abi_task *task)
{
    if (!weir__target_task_is(task)) {
        weir__host_task_prepare(task);
        return weir__libomp()->task(where, gtid, task);
    }
    weir__target_task_submit(where, gtid, task, 0, NULL, 0, NULL);
    return 0;
}

WEIR__EXPORT int32_t __kmpc_omp_task_with_deps(struct weir__abi_ident *where, int32_t gtid, struct weir__abi_task *task,
                                               int32_t n, struct weir__abi_depend *depends, int32_t nnoalias,
                                               struct weir__abi_depend *noalias)
{
    if (weir__target_task_is(task)) {
        weir__target_task_submit(where, gtid, task, n, depends, nnoalias, noalias);
        return 0;
    }
    if (!weir__shim_is_on() || n + nnoalias <= 0) {
        weir__host_task_prepare(task);
        return weir__libomp()->task_with_deps(where, gtid, task, n, depends, nnoalias, noalias);
    }
    return weir__host_task_submit(where, gtid, task, n, depends, nnoalias, noalias);
}

/* ---- …: waiting ---- */

WEIR__EXPORT int32_t __kmpc_omp_taskwait(struct weir__abi_ident *where, int32_t gtid)
{
    bool on = weir__shim_is_on();
    if (on) weir__shim_settle(where, gtid);
    int32_t result = weir__libomp()->taskwait(where, gtid);
    struct weir__siblings *siblings = on ? weir__siblings_find(gtid) : NULL;
    if (!siblings) return result;
    weir__siblings_waited(siblings);
    weir__siblings_leave(siblings);
    return result;
}

WEIR__EXPORT void __kmpc_omp_taskwait_deps_51(struct weir__abi_ident *where, int32_t gtid, int32_t n,
                                              struct weir__abi_depend *depends, int32_t nnoalias,
                                              struct weir__abi_depend *noalias, int32_t nowait)
{
    if (weir__shim_is_on()) settle_predecessors(where, gtid, n, depends, nnoalias, noalias, NULL);
    weir__libomp()->taskwait_deps(where, gtid, n, depends, nnoalias, noalias, nowait);
}

WEIR__EXPORT void __kmpc_omp_wait_deps(struct weir__abi_ident *where, int32_t gtid, int32_t n,
                                       struct weir__abi_depend *depends, int32_t nnoalias,
                                       struct weir__abi_depend *noalias)
{
    if (weir__shim_is_on()) settle_predecessors(where, gtid, n, depends, nnoalias, noalias, NULL);
    weir__libomp()->wait_deps(where, gtid, n, depends, nnoalias, noalias);
}

static void before_barrier(struct weir__abi_ident *where, int32_t gtid)
{
    if (weir__shim_is_on()) weir__shim_settle(where, gtid);
}

WEIR__EXPORT void __kmpc_barrier(struct weir__abi_ident *where, int32_t gtid)
{
    before_barrier(where, gtid);
    weir__libomp()->barrier(where, gtid);
}

WEIR__EXPORT int32_t __kmpc_cancel_barrier(struct weir__abi_ident *where, int32_t gtid)
{
    before_barrier(where, gtid);
    return weir__libomp()->cancel_barrier(where, gtid);
}

WEIR__EXPORT int32_t __kmpc_barrier_master(struct weir__abi_ident *where, int32_t gtid)
{
    before_barrier(where, gtid);
    return weir__libomp()->barrier_master(where, gtid);
}

WEIR__EXPORT int32_t __kmpc_barrier_master_nowait(struct weir__abi_ident *where, int32_t gtid)
{
    before_barrier(where, gtid);
    return weir__libomp()->barrier_master_nowait(where, gtid);
}

WEIR__EXPORT void __kmpc_end_barrier_master(struct weir__abi_ident *where, int32_t gtid)
{
    before_barrier(where, gtid);
    weir__libomp()->end_barrier_master(where, gtid);
}

WEIR__EXPORT int32_t __kmpc_reduce(struct weir__abi_ident *where, int32_t gtid, int32_t n, size_t bytes, void *data,
                                   void (*function)(void *to, void *from), void *lock)
{
    before_barrier(where, gtid);
    return weir__libomp()->reduce(where, gtid, n, bytes, data, function, lock);
}

WEIR__EXPORT void __kmpc_end_reduce(struct weir__abi_ident *where, int32_t gtid, void *lock)
{
    before_barrier(where, gtid);
    weir__libomp()->end_reduce(where, gtid, lock);
}

WEIR__EXPORT void __kmpc_copyprivate(struct weir__abi_ident *where, int32_t gtid, size_t bytes, void *data,
                                     void (*function)(void *to, void *from), int32_t did_it)
{
    before_barrier(where, gtid);
    weir__libomp()->copyprivate(where, gtid, bytes, data, function, did_it);
}

/* ---- …: parallel regions ---- */

enum { FEW_ARGUMENTS = 8, MOST_ARGUMENTS = 64 };

struct region {
    void (*microtask)(int32_t *gtid, int32_t *tid, ...);
    int32_t n;
    void **args;
};

/* A function of the x86-64 ABI does not mind more arguments than it has. */
#define ARGUMENTS_8(a) (a)[0], (a)[1], (a)[2], (a)[3], (a)[4], (a)[5], (a)[6], (a)[7]
#define ARGUMENTS_64(a)                                                                                                \
    ARGUMENTS_8(a), ARGUMENTS_8((a) + 8), ARGUMENTS_8((a) + 16), ARGUMENTS_8((a) + 24), ARGUMENTS_8((a) + 32),         \
        ARGUMENTS_8((a) + 40), ARGUMENTS_8((a) + 48), ARGUMENTS_8((a) + 56)

/* What each thread of the team runs: the program's function, with its end noticed. */
static void in_region(int32_t *gtid, int32_t *tid, ...)
{
    va_list list;
    va_start(list, tid);
    const struct region *region = va_arg(list, const struct region *);
    va_end(list);
    struct weir__frame frame;
    weir__frame_enter(&frame, *gtid, true);
    if (region->n <= FEW_ARGUMENTS)
        region->microtask(gtid, tid, ARGUMENTS_8(region->args));
    else
        region->microtask(gtid, tid, ARGUMENTS_64(region->args));
    weir__frame_leave(&frame, *gtid);
}

WEIR__EXPORT void __kmpc_fork_call(struct weir__abi_ident *where, int32_t n,
                                   void (*microtask)(int32_t *gtid, int32_t *tid, ...), ...)
{
    void *args[MOST_ARGUMENTS];
    va_list list;
    if (n > MOST_ARGUMENTS) weir__fatal("a parallel region with %d arguments is not supported", n);
    va_start(list, microtask);
    for (int32_t i = 0; i < n; i++) args[i] = va_arg(list, void *);
    for (int32_t i = n; i < (n <= FEW_ARGUMENTS ? FEW_ARGUMENTS : MOST_ARGUMENTS); i++) args[i] = NULL;
    va_end(list);
    struct region region = {microtask, n, args};
    if (weir__shim_is_on())
        weir__libomp()->fork_call(where, 1, in_region, &region);
    else if (n <= FEW_ARGUMENTS)
        weir__libomp()->fork_call(where, n, microtask, ARGUMENTS_8(args));
    else
        weir__libomp()->fork_call(where, n, microtask, ARGUMENTS_64(args));
}

/* ---- …: taskgroups ---- */

WEIR__EXPORT void __kmpc_taskgroup(struct weir__abi_ident *where, int32_t gtid)
{
    if (weir__shim_is_on()) group_begin(gtid);
    weir__libomp()->taskgroup(where, gtid);
}

WEIR__EXPORT void __kmpc_end_taskgroup(struct weir__abi_ident *where, int32_t gtid)
{
    bool on = weir__shim_is_on();
    if (on) group_settle(where, gtid);
    weir__libomp()->end_taskgroup(where, gtid);
    if (on) group_end(gtid);
}

WEIR__EXPORT void *__kmpc_taskred_init(int32_t gtid, int32_t n, void *data)
{
    if (weir__shim_is_on()) group_reduces();
    return weir__libomp()->taskred_init(gtid, n, data);
}

WEIR__EXPORT void *__kmpc_taskred_modifier_init(struct weir__abi_ident *where, int32_t gtid, int32_t is_worksharing,
                                                int32_t n, void *data)
{
    if (weir__shim_is_on()) {
        group_begin(gtid);
        group_reduces();
    }
    return weir__libomp()->taskred_modifier_init(where, gtid, is_worksharing, n, data);
}

WEIR__EXPORT void __kmpc_task_reduction_modifier_fini(struct weir__abi_ident *where, int32_t gtid,
                                                      int32_t is_worksharing)
{
    bool on = weir__shim_is_on();
    if (on) group_settle(where, gtid);
    weir__libomp()->task_reduction_modifier_fini(where, gtid, is_worksharing);
    if (on) group_end(gtid);
}

/* ---- …: the current task's thread limit ---- */

WEIR__EXPORT void __kmpc_set_thread_limit(struct weir__abi_ident *where, int32_t gtid, int32_t limit)
{
    /* In the routine of a target task that runs early the current task is the generating one, whose limit it is not;
     * the kernel's arguments have it, too. */
    if (weir__target_task_current() && !weir__target_task_on_host(weir__target_task_current())) return;
    weir__libomp()->set_thread_limit(where, gtid, limit);
}

/* ---- own or not ---- */

/* Other names of some of them: by its own name a function is the first one that the dynamic linker finds. */
static __typeof__(__kmpc_omp_taskwait) own_taskwait __attribute__((alias("__kmpc_omp_taskwait")));
static __typeof__(__kmpc_omp_target_task_alloc) own_target_task_alloc
    __attribute__((alias("__kmpc_omp_target_task_alloc")));
static __typeof__(__kmpc_omp_task_with_deps) own_task_with_deps __attribute__((alias("__kmpc_omp_task_with_deps")));
static __typeof__(__kmpc_omp_taskwait_deps_51) own_taskwait_deps __attribute__((alias("__kmpc_omp_taskwait_deps_51")));
static __typeof__(__kmpc_omp_wait_deps) own_wait_deps __attribute__((alias("__kmpc_omp_wait_deps")));

bool weir__shim_is_own(const void *address)
{
    return address == (const void *)own_taskwait || address == (const void *)own_target_task_alloc ||
           address == (const void *)own_task_with_deps || address == (const void *)own_taskwait_deps ||
           address == (const void *)own_wait_deps;
}

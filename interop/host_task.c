/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "interop/host_task.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <exec/work.h>

#include "interop/abi.h"
#include "interop/construct.h"
#include "interop/frame.h"
#include "interop/learned.h"
#include "interop/libomp.h"
#include "interop/priority.h"
#include "interop/runtime.h"
#include "interop/shim.h"
#include "interop/siblings.h"
#include "interop/trace.h"

/*
 * libomp lays a task out as its own part, the compiler's part, and what the task shares with its creator, each rounded
 * up to 8 bytes, and .shareds points to the last. The trailer is the end of a compiler's part made larger by it, so it
 * is found in front of .shareds.
 */
struct trailer {
    weir__task_routine routine; /* the compiler's */
    struct weir_task *node;     /* foreign task, fulfilled when the routine has returned */
    struct weir__siblings *siblings;
    weir__task_routine destructors; /* the compiler's, or NULL */
    bool waits;                     /* its constructs do, nowait or not */
    bool is_tied;
};

/* The task that this thread allocated last, and how it may be followed. */
static _Thread_local struct {
    const struct weir__abi_task *task;
    bool is_detachable;
} newest __attribute__((tls_model("initial-exec")));

static struct trailer *trailer_of(const struct weir__abi_task *task)
{
    return (struct trailer *)task->shareds - 1;
}

static void finished(struct weir__siblings *siblings, struct weir_task *node)
{
    int rc = weir_task_fulfill(node, 0);
    if (rc) weir__fatal("a task of the host cannot be completed: %s", weir_error_text());
    atomic_fetch_sub_explicit(&siblings->hosted, 1, memory_order_relaxed); /* a hint */
}

static int32_t ended(int32_t gtid, void *arg);

/* Around the compiler's routine. The task may be gone when that has returned: it is untied and goes on elsewhere. */
static int32_t run(int32_t gtid, void *arg)
{
    struct trailer trailer = *trailer_of(arg);
    struct weir__frame frame;
    /* libomp copies the tasks of a taskloop, and with them a thunk that we have not seen. */
    bool waits_here = trailer.is_tied && (weir__task_routine)((struct weir__abi_task *)arg)->destructors != ended;
    weir__frame_enter(&frame, gtid, false);
    bool waited = weir__construct_set_waits(trailer.waits);
    uint64_t began = trailer.node ? weir__trace_now() : 0;
    int32_t result = trailer.routine(gtid, arg);
    if (began) weir__trace_ran(trailer.node, began);
    (void)weir__construct_set_waits(waited);
    if (waits_here) weir__shim_end_task(gtid, true);
    weir__frame_leave(&frame, gtid);
    return result;
}

/* libomp calls this once for each task when its routine has returned for the last time, or will not be called:
 * cancelled. */
static int32_t ended(int32_t gtid, void *arg)
{
    struct trailer trailer = *trailer_of(arg);
    int32_t result = trailer.destructors ? trailer.destructors(gtid, arg) : 0;
    if (trailer.node) finished(trailer.siblings, trailer.node);
    weir__shim_end_task(gtid, trailer.is_tied);
    return result;
}

/* The compiler may have put its own thunk there since. */
static void ended_set(struct weir__abi_task *task)
{
    if ((weir__task_routine)task->destructors == ended) return;
    trailer_of(task)->destructors = (weir__task_routine)task->destructors;
    task->destructors = (void *)ended;
}

void weir__host_task_prepare(struct weir__abi_task *task)
{
    if (newest.task != task) return; /* not known to be one of ours */
    ended_set(task);
    weir__priority_keep(task);
    newest.task = NULL;
}

struct weir__abi_task *weir__host_task_alloc(struct weir__abi_ident *where, int32_t gtid, int32_t flags, size_t bytes,
                                             size_t shareds, weir__task_routine entry, bool waits)
{
    size_t more = ((bytes + 7) & ~(size_t)7) + sizeof(struct trailer);
    struct weir__abi_task *task =
        weir__libomp()->task_alloc(where, gtid, flags | WEIR__ABI_TASK_DESTRUCTORS | WEIR__ABI_TASK_PRIORITY, more,
                                   shareds ? shareds : 1, run);
    if (!task) return NULL;
    task->priority = 0;
    *trailer_of(task) = (struct trailer){.routine = entry, .waits = waits, .is_tied = flags & WEIR__ABI_TASK_TIED};
    task->destructors = (void *)ended; /* the compiler's, if it has some, take its place until the task is submitted */
    newest.task = task;
    newest.is_detachable = flags & WEIR__ABI_TASK_DETACHABLE;
    return task;
}

/* ---- the end of one ---- */

/* A task of libomp behind a detached one, whose end is that of its event. */
struct listener {
    struct weir__abi_task task;
    struct weir_task *node;
    struct weir__siblings *siblings;
};

static int32_t heard(int32_t gtid, void *arg)
{
    struct listener *listener = arg;
    (void)gtid;
    finished(listener->siblings, listener->node);
    return 0;
}

static void listen(struct weir__abi_ident *where, int32_t gtid, struct weir__siblings *siblings, struct weir_task *node,
                   const struct weir__abi_depend *end)
{
    const struct weir__libomp *libomp = weir__libomp();
    struct listener *listener = (struct listener *)libomp->task_alloc(
        where, gtid, WEIR__ABI_TASK_TIED | WEIR__ABI_TASK_PRIORITY, sizeof *listener, 0, heard);
    struct weir__abi_depend depend = *end;
    if (!listener) weir__fatal("out of memory");
    weir__priority_raise(&listener->task);
    listener->node = node;
    listener->siblings = siblings;
    depend.flags = WEIR__ABI_DEPEND_IN;
    libomp->task_with_deps(where, gtid, &listener->task, 1, &depend, 0, NULL);
}

/* ---- gates ---- */

/*
 * A gate is a proxy task: libomp runs its routine at once, and it is complete when somebody says so. That may only be
 * said once libomp has released it, which it has when it is handed over, unless a task with omp_all_memory is before
 * it. Then a detached task is used, which costs more and may be completed at any time.
 *
 * libomp lets any thread of the team finish a gate. What it held back goes to a list of the team (priority.c), where a
 * thread looks beyond the first task only if the team has seen untied tasks. So gates are not tied.
 */
struct gate {
    struct weir__abi_task task;
    struct weir__siblings *siblings;
    void *event;       /* of a detached task */
    struct gate *next; /* in the siblings' list */
};

#define ANY_THREAD (-1)

/* @gtid: of the generating task's thread, which calls; or ANY_THREAD. The gate is gone afterwards. */
static void complete(struct gate *gate, int32_t gtid)
{
    const struct weir__libomp *libomp = weir__libomp();
    struct weir__siblings *siblings = gate->siblings;
    if (gate->event)
        libomp->fulfill_event(gate->event);
    else if (gtid == ANY_THREAD)
        libomp->proxy_completed(&gate->task);
    else
        libomp->own_proxy_completed(gtid, &gate->task);
    /* Release: pairs with the acquire of the generating task's end: libomp has been told. */
    atomic_fetch_sub_explicit(&siblings->closed, 1, memory_order_release);
}

static void gate_open(struct weir_task *node, int status, void *arg)
{
    struct gate *gate = arg;
    struct weir__siblings *siblings = gate->siblings;
    (void)node;
    if (status) weir__fatal("a target task failed: %s", weir_error_string(status));
    void *head = atomic_load_explicit(&siblings->gates, memory_order_relaxed);
    do {
        gate->next = head;
        /* Release: pairs with the acquire of the generating thread, which takes the whole list: no ABA. */
    } while (head != WEIR__GATES_CLOSED &&
             !atomic_compare_exchange_weak_explicit(&siblings->gates, &head, gate, memory_order_release,
                                                    memory_order_relaxed));
    if (head == WEIR__GATES_CLOSED) complete(gate, ANY_THREAD);
    /* Release: pairs with the acquire in shim.c: libomp has something to do now. */
    atomic_fetch_add_explicit(&siblings->opened, 1, memory_order_release);
}

static void open_all(struct gate *gate, int32_t gtid)
{
    while (gate) {
        struct gate *next = gate->next; /* the gate is gone when it is open */
        complete(gate, gtid);
        gate = next;
    }
}

void weir__host_task_wait_begin(struct weir__siblings *siblings)
{
    atomic_store_explicit(&siblings->gates, NULL, memory_order_relaxed); /* closed: only this thread writes */
}

void weir__host_task_open_gates(struct weir__siblings *siblings, int32_t gtid)
{
    open_all(atomic_exchange_explicit(&siblings->gates, NULL, memory_order_acquire), gtid); /* see gate_open() */
}

void weir__host_task_wait_end(struct weir__siblings *siblings, int32_t gtid)
{
    open_all(atomic_exchange_explicit(&siblings->gates, WEIR__GATES_CLOSED, memory_order_acquire), gtid); /* as above */
}

/* A gate that is open when every target task is complete that the task must follow. *token: what it depends on (in). */
static void gate_make(struct weir__abi_ident *where, int32_t gtid, struct weir__siblings *siblings,
                      const struct weir__depends *depends, struct weir__abi_depend *token)
{
    const struct weir__libomp *libomp = weir__libomp();
    bool detached = siblings->has_all_memory;
    struct gate *gate =
        (struct gate *)libomp->task_alloc(where, gtid, detached ? WEIR__ABI_TASK_DETACHABLE : WEIR__ABI_TASK_PROXY,
                                          sizeof *gate, 0, weir__libomp_nothing);
    if (!gate) weir__fatal("out of memory");
    gate->siblings = siblings;
    atomic_fetch_add_explicit(&siblings->closed, 1, memory_order_relaxed); /* of the generating thread */
    gate->event = detached ? libomp->completion_event(where, gtid, &gate->task) : NULL;
    struct weir__abi_depend out = {.base = weir__siblings_token(siblings), .bytes = 1, .flags = WEIR__ABI_DEPEND_INOUT};
    *token = out;
    token->flags = WEIR__ABI_DEPEND_IN;
    libomp->task_with_deps(where, gtid, &gate->task, 1, &out, 0, NULL);
    struct weir_task_options options = {.size = sizeof options, .complete = gate_open, .complete_arg = gate};
    if (weir__task_behind(siblings->scope, depends->at, depends->n, true, NULL, NULL, &options))
        weir__fatal("a task of the host cannot wait for target tasks: %s", weir_error_text());
}

void weir__host_task_wait(struct weir__abi_ident *where, int32_t gtid, struct weir__siblings *siblings,
                          const struct weir__depends *depends)
{
    struct weir__abi_depend token;
    gate_make(where, gtid, siblings, depends, &token);
    weir__libomp()->taskwait_deps(where, gtid, 1, &token, 0, NULL, 0);
}

/* ---- submission ---- */

/* libomp's list with one or two more. */
struct list {
    struct weir__abi_depend *at, few[16];
    int32_t n;
};

static void list_make(struct list *list, int32_t n, const struct weir__abi_depend *depends, int32_t nnoalias,
                      const struct weir__abi_depend *noalias)
{
    size_t total = (size_t)n + (size_t)nnoalias + 2;
    list->at = total > sizeof list->few / sizeof list->few[0] ? malloc(total * sizeof *list->at) : list->few;
    if (!list->at) weir__fatal("out of memory");
    if (n) memcpy(list->at, depends, (size_t)n * sizeof *list->at);
    if (nnoalias) memcpy(list->at + n, noalias, (size_t)nnoalias * sizeof *list->at);
    list->n = n + nnoalias;
}

static void list_fini(struct list *list)
{
    if (list->at != list->few) free(list->at);
}

/* Hand it to libomp, with what was found out. */
static int32_t hand_over(struct weir__abi_ident *where, int32_t gtid, struct weir__abi_task *task, struct list *list,
                         struct weir__siblings *siblings, struct weir_task *node, bool is_followed)
{
    const struct weir__libomp *libomp = weir__libomp();
    if (is_followed) {
        struct trailer *trailer = trailer_of(task);
        trailer->node = node;
        trailer->siblings = siblings;
        ended_set(task);
        return libomp->task_with_deps(where, gtid, task, list->n, list->at, 0, NULL);
    }
    struct weir__abi_depend end = {.base = (intptr_t)task, .bytes = 1, .flags = WEIR__ABI_DEPEND_INOUT};
    list->at[list->n++] = end;
    int32_t result = libomp->task_with_deps(where, gtid, task, list->n, list->at, 0, NULL);
    listen(where, gtid, siblings, node, &end);
    return result;
}

int32_t weir__host_task_submit(struct weir__abi_ident *where, int32_t gtid, struct weir__abi_task *task, int32_t n,
                               struct weir__abi_depend *abi_depends, int32_t nnoalias, struct weir__abi_depend *noalias)
{
    struct weir__siblings *siblings = weir__siblings_get(gtid);
    bool is_followed = newest.task == task && !newest.is_detachable;
    struct weir__depends depends;
    struct weir_task *node;
    struct list list;
    newest.task = NULL;
    if (!siblings || weir__depends_decode(&depends, n, abi_depends, nnoalias, noalias, WEIR__DEPENDS_HOSTED))
        weir__fatal("out of memory");
    list_make(&list, n, abi_depends, nnoalias, noalias);
    if (!weir__scope_is_clear(siblings->scope, depends.at, depends.n, true)) {
        gate_make(where, gtid, siblings, &depends, &list.at[list.n]);
        list.n++;
        weir__priority_raise(task);
    } else {
        weir__priority_keep(task);
    }
    if (weir__task_foreign(siblings->scope, depends.at, depends.n, NULL, &node))
        weir__fatal("a task of the host cannot be submitted: %s", weir_error_text());
    if (weir__record_is_on()) weir__trace_label(node, NULL, weir__trace_source(where));
    for (size_t i = 0; i < depends.n; i++)
        if (depends.at[i].kind == WEIR_ACCESS_ALL_MEMORY) siblings->has_all_memory = true;
    weir__depends_fini(&depends);
    atomic_fetch_add_explicit(&siblings->hosted, 1, memory_order_relaxed); /* a hint */
    int32_t result = hand_over(where, gtid, task, &list, siblings, node, is_followed);
    list_fini(&list);
    weir__siblings_leave(siblings);
    return result;
}

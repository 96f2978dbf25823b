/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "interop/target_task.h"

#include <stdatomic.h>
#include <stdlib.h>

#include <exec/work.h>

#include "interop/abi.h"
#include "interop/anchor.h"
#include "interop/construct.h"
#include "interop/first_run.h"
#include "interop/learned.h"
#include "interop/libomp.h"
#include "interop/runtime.h"
#include "interop/shim.h"
#include "interop/siblings.h"
#include "interop/trace.h"

/*
 * Two ways to run the routine.
 *
 * EARLY, for entries that are known to offload: the routine is the issue function of a device task of the siblings'
 * scope, so it runs when all predecessors are issued, on the generating thread or on the one that makes the last
 * predecessor known. What it queues goes on that task's stream. The task is complete when the stream says so.
 *
 * Also for entries that may offload, if all predecessors are complete when the task is generated, or if another task of
 * the entry is about to find it out: then behind a switch (first_run.h). Where it is not known at the time of the issue the
 * predecessors are complete, and the routine runs between the brackets, too.
 *
 * WAITING, for all others: the routine runs on a worker when all predecessors are complete, between the brackets that
 * libomp has for tasks that are executed where they are generated, so that host code finds a task of its own. It may
 * leave device tasks behind. In the siblings' table an external task stands for all of it.
 */
enum mode { EARLY, WAITING };

struct weir__target_task {
    union {
        struct weir__anchor *anchor;
        struct weir__target_task *next; /* in a pool */
    };
    struct weir_task *node; /* EARLY: open while the routine runs; WAITING: the external task */
    weir__task_routine entry;
    int64_t device;                    /* as the program names it */
    struct weir__target *target;       /* what that was when the task was generated; NULL: the host */
    struct weir__construct *construct; /* kept until the end, or NULL */
    struct weir__abi_task *bracket;    /* the routine became host code: libomp's task for it */
    const char *name;                  /* of the construct, for messages */
    union {
        uint64_t token;                /* WAITING: of its parts, in a recording; 0: none is made */
        struct weir__first_run *first; /* EARLY, until it is issued: its switch, or NULL */
    };
    int32_t gtid, flags;
    _Atomic uint32_t parts; /* WAITING: the submission, the routine, its device tasks */
    uint16_t size_class;    /* SIZES: not from a pool */
    uint8_t mode;
    bool offloaded, on_host, mapped;         /* what the routine did */
    bool unsure;                             /* EARLY: it may be host code, and may run as such */
    bool kept;                               /* EARLY: what it queued may use the task's memory */
    _Alignas(16) struct weir__abi_task task; /* the compiler's privates and shareds follow */
};

/* The sizes that malloc() has with 8 bytes of its own before them. */
enum { SIZE_FIRST = 8, SIZE_STEP = 16, SIZES = WEIR__TARGET_TASK_SIZES };

static _Thread_local struct weir__target_task *current __attribute__((tls_model("initial-exec")));
static _Thread_local struct weir__target_task *submitting __attribute__((tls_model("initial-exec")));

/* ---- memory ---- */

/*
 * A thread takes from lists of its own; whoever finishes a task pushes its memory on a shared stack, which is only ever
 * taken as a whole, so that there is no ABA.
 */
static _Atomic(struct weir__target_task *) returned[SIZES];

static struct weir__target_task *memory_take(size_t bytes)
{
    size_t size_class = (bytes - SIZE_FIRST + SIZE_STEP - 1) / SIZE_STEP;
    if (size_class >= SIZES) {
        struct weir__target_task *task = malloc(bytes);
        if (task) task->size_class = SIZES;
        return task;
    }
    struct weir__target_task **mine = &weir__runtime_thread()->tasks[size_class];
    /* Acquire: pairs with the release in memory_give(). */
    if (!*mine) *mine = atomic_exchange_explicit(&returned[size_class], NULL, memory_order_acquire);
    struct weir__target_task *task = *mine;
    if (task) {
        *mine = task->next;
        return task;
    }
    task = malloc(SIZE_FIRST + size_class * SIZE_STEP);
    if (task) task->size_class = (uint16_t)size_class;
    return task;
}

static void memory_give(struct weir__target_task *task)
{
    if (task->size_class == SIZES) {
        free(task);
        return;
    }
    _Atomic(struct weir__target_task *) *stack = &returned[task->size_class];
    task->next = atomic_load_explicit(stack, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(stack, &task->next, task, memory_order_release, memory_order_relaxed))
        continue;
}

void weir__target_task_free_pool(struct weir__thread *thread)
{
    for (size_t i = 0; i < SIZES; i++) {
        while (thread->tasks[i]) {
            struct weir__target_task *task = thread->tasks[i];
            thread->tasks[i] = task->next;
            free(task);
        }
    }
}

static struct weir__target_task *of(struct weir__abi_task *task)
{
    return (struct weir__target_task *)((char *)task - offsetof(struct weir__target_task, task));
}

/* Marks the tasks made here. Somebody who runs it all the same gets what the compiler wrote. */
static int32_t marker(int32_t gtid, void *task)
{
    return of(task)->entry(gtid, task);
}

bool weir__target_task_is(const struct weir__abi_task *task)
{
    return task->routine == marker;
}

struct weir__abi_task *weir__target_task_alloc(int32_t gtid, int32_t flags, size_t bytes, size_t shareds,
                                               weir__task_routine entry, int64_t device)
{
    size_t until_shareds = offsetof(struct weir__target_task, task) + ((bytes + 15) & ~(size_t)15);
    struct weir__target_task *task = memory_take(until_shareds + shareds);
    if (!task) return NULL;
    task->entry = entry;
    task->device = device;
    task->gtid = gtid;
    task->flags = flags;
    task->construct = NULL;
    task->bracket = NULL;
    task->token = 0;
    task->name = "target task";
    task->offloaded = task->on_host = task->mapped = task->unsure = task->kept = false;
    task->task = (struct weir__abi_task){.shareds = shareds ? (char *)task + until_shareds : NULL, .routine = marker};
    return &task->task;
}

/* ---- the end ---- */

static void finish(struct weir__target_task *task)
{
    if (task->construct) weir__construct_finish(task->construct);
    if (task->flags & WEIR__ABI_TASK_DESTRUCTORS && task->task.destructors)
        ((weir__task_routine)task->task.destructors)(task->gtid, &task->task);
    struct weir__anchor *anchor = task->anchor;
    memory_give(task);
    weir__anchor_drop(anchor);
}

static void check(const struct weir__target_task *task, int status)
{
    if (status) weir__fatal("%s failed: %s", task->name, weir_error_string(status));
}

static void on_complete(struct weir_task *node, int status, void *arg)
{
    (void)node;
    check(arg, status);
    finish(arg);
}

/* ---- running the routine ---- */

static void bracket_open(struct weir__target_task *task, int32_t gtid)
{
    const struct weir__libomp *libomp = weir__libomp();
    task->bracket = libomp->task_alloc(NULL, gtid, WEIR__ABI_TASK_TIED, sizeof *task->bracket, 0, weir__libomp_nothing);
    if (!task->bracket) weir__fatal("out of memory");
    libomp->task_begin_if0(NULL, gtid, task->bracket);
}

static void bracket_close(struct weir__target_task *task, int32_t gtid)
{
    weir__shim_end_task(gtid, true);
    weir__libomp()->task_complete_if0(NULL, gtid, task->bracket);
    task->bracket = NULL;
}

/* What was done counts for later tasks of the entry. */
static void learn(const struct weir__target_task *task)
{
    enum weir__learned what = task->on_host || !task->offloaded ? WEIR__LEARNED_HOST
                              : task->mapped                    ? WEIR__LEARNED_MAPPER
                                                                : WEIR__LEARNED_OFFLOADS;
    weir__learned_set(task->entry, task->device, what);
    weir__first_run_over(task->entry, task->device, what == WEIR__LEARNED_OFFLOADS);
}

/* Of a task whose memory was given back when it was issued. */
static void on_spent_complete(struct weir_task *node, int status, void *anchor)
{
    if (status) {
        char name[96];
        weir__task_describe(node, name, sizeof name);
        weir__fatal("%s failed: %s", name, weir_error_string(status));
    }
    weir__anchor_drop(anchor);
}

/* Everything that the task waits for on its stream has happened. */
static void wait_for_predecessors(struct weir__target_task *task)
{
    struct weir__point point;
    if (task->mode != EARLY) return; /* they are complete */
    int rc = weir__task_mark(task->node, &point);
    if (!rc) rc = weir__point_wait(weir__runtime_peek()->context, point);
    check(task, rc);
}

/* The switch, if there is one, is on. Returns the thread that the routine is run by. BLOCKS if it may be host code that
 * excludes others, and one of them was before it. */
static int32_t begin(struct weir__target_task *task)
{
    if (task->first) {
        task->unsure = !weir__first_run_is_known(task->first);
        weir__first_run_drop(task->first);
        if (task->unsure && weir__record_is_on()) weir__trace_fallback(WEIR__FALLBACK_FIRST, task->node, NULL);
    }
    if (!task->unsure) return task->gtid;
    int32_t gtid = weir__libomp()->global_thread_num(NULL);
    if (weir__task_pending(task->node, NULL, 0)) wait_for_predecessors(task);
    bracket_open(task, gtid);
    return gtid;
}

static int issue(struct weir_task *node, void *native_stream, void *arg)
{
    (void)native_stream;
    struct weir__target_task *task = arg, *outer = current;
    task->node = node;
    int32_t gtid = task->first || task->unsure ? begin(task) : task->gtid;
    current = task;
    task->entry(gtid, &task->task);
    current = outer;
    if (task->bracket) bracket_close(task, weir__libomp()->global_thread_num(NULL));
    if (task->unsure || task->on_host || !task->offloaded || task->mapped) learn(task);
    if (task->offloaded && !task->kept && !task->on_host && !(task->flags & WEIR__ABI_TASK_DESTRUCTORS)) {
        /* Kernels and waits are all that is left of it: the next task has the memory while it is in the cache. */
        weir__task_hand_over(node, on_spent_complete, task->anchor);
        memory_give(task);
    }
    return WEIR_OK;
}

/* One part less of a waiting task. */
static void part_done(struct weir__target_task *task)
{
    /* Acquire/release: the last one sees what the others did. */
    if (atomic_fetch_sub_explicit(&task->parts, 1, memory_order_acq_rel) != 1) return;
    /* The anchor first: who waits for it is woken by the other. */
    struct weir_task *node = task->node;
    finish(task);
    if (weir_task_fulfill(node, 0)) weir__fatal("a target task cannot be completed: %s", weir_error_text());
}

static int run_waiting(void *arg)
{
    struct weir__target_task *task = arg, *outer = current;
    int32_t gtid = weir__libomp()->global_thread_num(NULL);
    uint64_t token = task->token ? weir__record_set_token(task->token) : 0;
    bracket_open(task, gtid);
    current = task;
    task->entry(gtid, &task->task);
    current = outer;
    if (task->token) weir__record_set_token(token);
    bracket_close(task, gtid);
    learn(task);
    part_done(task);
    return 0;
}

/* ---- submission ---- */

static void fail(const char *what)
{
    weir__fatal("a target task cannot be %s: %s", what, weir_error_text());
}

/* @handle_out: NULL, or where a handle is wanted. */
static void submit_early(struct weir__target_task *task, struct weir_scope *scope, const struct weir__depends *depends,
                         struct weir_task **handle_out)
{
    struct weir__target_task *outer = submitting;
    task->mode = EARLY;
    submitting = task;
    if (weir__task_submit_quiet(scope, task->target->device, depends->at, depends->n, issue, task, task->name,
                                on_complete, task, handle_out))
        fail("submitted");
    submitting = outer;
}

/* For a recording: what the task is called where nothing else is known, and why it waits. */
static void note_waiting(const struct weir__target_task *task, const struct weir__abi_ident *where, enum weir__learned what)
{
    weir__trace_label(task->node, NULL, weir__trace_source(where));
    weir__trace_fallback(what == WEIR__LEARNED_HOST     ? WEIR__FALLBACK_HOST_CODE
                         : what == WEIR__LEARNED_MAPPER ? WEIR__FALLBACK_MAPPER
                                                        : WEIR__FALLBACK_FIRST,
                         task->node, weir__trace_source(where));
    weir__record_set_token(0);
}

/* Of an entry whose first run is not over. @depends as the table has them; @waiting for what waits. */
static void submit_behind_first(struct weir__target_task *task, struct weir_scope *scope, struct weir__depends *depends,
                                const struct weir__depends *waiting, struct weir_task **handle_out)
{
    struct weir_task *switch_;
    struct weir__first_run *first =
        weir__first_run_wait(task->entry, task->device, scope, waiting->at, waiting->n, &switch_);
    if (!first) weir__fatal("out of memory");
    task->first = first;
    weir__depends_after(depends, switch_);
    submit_early(task, scope, depends, handle_out);
    weir__first_run_drop(first);
}

static void submit_waiting(struct weir__target_task *task, struct weir_scope *scope, const struct weir__abi_ident *where,
                           const struct weir__depends *depends, enum weir__learned what, struct weir_task **handle_out)
{
    task->mode = WAITING;
    atomic_store_explicit(&task->parts, 2, memory_order_relaxed); /* published by the queue, or our own */
    if (weir__record_is_on()) weir__record_set_token(task->token = weir__record_new_token());
    if (weir__task_behind(scope, depends->at, depends->n, false, run_waiting, task, NULL))
        fail("submitted");
    if (weir_task_external(scope, depends->at, depends->n, NULL, &task->node)) fail("submitted");
    if (task->token) note_waiting(task, where, what);
    if (handle_out) *handle_out = weir_task_retain(task->node);
    part_done(task);
}

/* Find the device, by the generating task's default device, and the kind of the entry. The images are loaded here: a
 * worker might wait for the dynamic linker's lock while somebody who unloads a library waits for the worker. */
static enum weir__learned look_up(struct weir__target_task *task)
{
    enum weir__learned what = weir__learned_get(task->entry, task->device);
    task->target = task->device == WEIR__TARGET_BY_HOST ? NULL : weir__runtime_target(task->device);
    return what == WEIR__LEARNED_OFFLOADS && !task->target ? WEIR__LEARNED_HOST : what;
}

void weir__target_task_submit(struct weir__abi_ident *where, int32_t gtid, struct weir__abi_task *abi_task, int32_t n,
                              const struct weir__abi_depend *list, int32_t nnoalias,
                              const struct weir__abi_depend *noalias)
{
    struct weir__target_task *task = of(abi_task);
    struct weir__siblings *siblings = weir__siblings_get(gtid);
    struct weir__depends depends;
    struct weir_task *handle = NULL;
    bool included = weir__libomp()->in_final();
    enum weir__learned what = look_up(task);
    enum weir__depends_use use = what == WEIR__LEARNED_OFFLOADS ? WEIR__DEPENDS_DEVICE : WEIR__DEPENDS_WAITING;
    if (!siblings || weir__depends_decode(&depends, n, list, nnoalias, noalias, use)) weir__fatal("out of memory");
    task->anchor = weir__anchor_add(siblings, where, gtid);
    if (!task->anchor) weir__fatal("out of memory");
    task->unsure = what == WEIR__LEARNED_NOTHING && task->target &&
                   weir__scope_is_clear(siblings->scope, depends.at, depends.n, false);
    if (what == WEIR__LEARNED_OFFLOADS || task->unsure) {
        submit_early(task, siblings->scope, &depends, included ? &handle : NULL);
    } else if (what == WEIR__LEARNED_NOTHING && task->target && !weir__first_run_begin(task->entry, task->device)) {
        struct weir__depends own;
        if (weir__depends_decode(&own, n, list, nnoalias, noalias, WEIR__DEPENDS_DEVICE)) weir__fatal("out of memory");
        submit_behind_first(task, siblings->scope, &own, &depends, included ? &handle : NULL);
        weir__depends_fini(&own);
    } else {
        submit_waiting(task, siblings->scope, where, &depends, what, included ? &handle : NULL);
    }
    if (handle) {
        if (weir__record_is_on()) weir__trace_fallback(WEIR__FALLBACK_FINAL, handle, weir__trace_source(where));
        int rc = weir_task_wait(handle); /* a failure has ended the program */
        (void)rc;
        weir_task_release(handle);
    }
    weir__depends_fini(&depends);
    weir__siblings_leave(siblings);
}

/* ---- constructs ---- */

struct weir__target_task *weir__target_task_current(void)
{
    return current;
}

bool weir__target_task_on_host(const struct weir__target_task *task)
{
    return task->bracket != NULL;
}

/* Not for what the host's version of a region does. */
static bool queues_on_node(const struct weir__target_task *task)
{
    return task->mode == EARLY && (!task->bracket || (task->unsure && !task->on_host));
}

struct weir_task *weir__target_task_node(const struct weir__target_task *task)
{
    return queues_on_node(task) ? task->node : NULL;
}

bool weir__target_task_is_submitting(const struct weir__target_task *task)
{
    return submitting == task;
}

struct weir__target *weir__target_task_target(int64_t device)
{
    return current && device == current->device ? current->target : weir__runtime_target(device);
}

static void on_part_complete(struct weir_task *node, int status, void *arg)
{
    (void)node;
    struct weir__construct *construct = arg;
    struct weir__target_task *task = construct->owner;
    check(task, status);
    weir__construct_finish(construct);
    part_done(task);
}

struct weir_task *weir__target_task_take_plain(const struct weir__target *target, const char *name)
{
    struct weir__target_task *task = current;
    if (!task || !queues_on_node(task) || target != task->target || task->construct) return NULL;
    task->name = name;
    task->offloaded = true;
    weir__task_rename(task->node, name);
    return task->node;
}

int weir__target_task_open(struct weir__target_task *task, struct weir__target *target, const char *name, bool nowait,
                           struct weir__construct **construct_out)
{
    *construct_out = NULL;
    if (!nowait) return WEIR_OK; /* of a function that the region calls on the host */
    bool early = queues_on_node(task);
    if (early && (task->construct || target != task->target)) {
        /* A second one, or on another device than the task names: the caller does it in the usual way. */
        wait_for_predecessors(task);
        task->offloaded = true;
        return WEIR_OK;
    }
    struct weir__construct *construct = weir__construct_take(target, name);
    if (!construct) return weir__fail(WEIR_E_NO_MEMORY, "no memory for a construct");
    construct->owner = task;
    task->name = name;
    if (early) {
        construct->task = task->node;
        weir__task_rename(task->node, name);
    } else {
        struct weir_task_options options = {
            .size = sizeof options, .name = name, .complete = on_part_complete, .complete_arg = construct};
        struct weir_scope *scope = weir__runtime_thread()->scope;
        int rc = weir_task_begin(scope, target->device, NULL, 0, &options, &construct->task);
        if (rc) {
            weir__construct_give(construct);
            return rc;
        }
        weir__scope_count_inner(scope);
        atomic_fetch_add_explicit(&task->parts, 1, memory_order_relaxed); /* ours is still there */
    }
    *construct_out = construct;
    return WEIR_OK;
}

void weir__target_task_close(struct weir__target_task *task, struct weir__construct *construct)
{
    task->offloaded = true;
    if (task->mode == EARLY) {
        task->kept = true;
        if (construct->region.needed)
            task->construct = construct;
        else
            weir__construct_finish(construct);
        return;
    }
    int rc = weir_task_end(construct->task);
    (void)rc; /* its completion tells */
}

void weir__target_task_to_host(struct weir__target_task *task)
{
    task->on_host = true;
    if (task->mode != EARLY || task->bracket) return;
    if (weir__record_is_on()) weir__trace_fallback(WEIR__FALLBACK_REFUSED, task->node, NULL);
    wait_for_predecessors(task);
    bracket_open(task, weir__libomp()->global_thread_num(NULL));
}

void weir__target_task_maps(struct weir__target_task *task)
{
    if (!task->mapped) wait_for_predecessors(task);
    task->mapped = true;
}

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <exec/submit.h>

#include <exec/issue.h>
#include <exec/trace.h>

#define ID_BLOCK 256

static _Thread_local char this_thread __attribute__((tls_model("initial-exec"))); /* its address names the thread */

void weir__scope_own(struct weir_scope *scope)
{
    atomic_store_explicit(&scope->owner, &this_thread, memory_order_relaxed); /* see below */
}

bool weir__scope_is_own(const struct weir_scope *scope)
{
    /* Relaxed: a thread finds its own name only if it wrote it. */
    return atomic_load_explicit(&scope->owner, memory_order_relaxed) == &this_thread;
}

static inline struct weir_task *take_task(struct weir_scope *scope, bool force)
{
    struct weir__pool *pool = scope->pool;

    if (__builtin_expect(pool->free == NULL || pool->used >= scope->limit, 0) && weir__scope_make_room(scope, force) != WEIR_OK) return NULL;
    return weir__pool_take(pool);
}

struct weir_task *weir__scope_take_task(struct weir_scope *scope, bool force)
{
    return take_task(scope, force);
}

/* ---- a task ---- */

static _Atomic uint64_t next_id; /* unique in the process: records of several contexts lie side by side */

static inline void open_task(struct weir_scope *scope, struct weir_task *task, uint8_t kind, uint8_t domain)
{
    if (scope->next_id == scope->end_id) {
        /* Relaxed: uniqueness is all that is asked for. */
        scope->next_id = 1 + atomic_fetch_add_explicit(&next_id, ID_BLOCK, memory_order_relaxed);
        scope->end_id = scope->next_id + ID_BLOCK;
    }
    weir__node_open(&task->node, scope->next_id++, domain);
    task->node.kind = kind;
    atomic_store_explicit(&task->flags, 0, memory_order_relaxed); /* not shared yet */
    task->priority = 0;
    task->device = 0;
    atomic_store_explicit(&task->state, WEIR__TASK_CREATED, memory_order_relaxed); /* not shared yet */
}

void weir__task_open(struct weir_scope *scope, struct weir_task *task, uint8_t kind, uint8_t domain)
{
    open_task(scope, task, kind, domain);
}

static inline __attribute__((always_inline)) void enter(struct weir_scope *scope, struct weir__linking *linking, bool inner)
{
    struct weir_task *task = weir__task_of(linking->node);

    if (scope->pool->used > scope->pool->peak) scope->pool->peak = scope->pool->used;
    if (inner) {
        scope->counters.inner++;
    } else {
        scope->counters.edges_done += linking->done;
        scope->counters.edges_host += (uint32_t)linking->links - linking->other;
        scope->counters.edges_host_only += linking->host_only;
    }
    if (__builtin_expect(linking->failed != NULL, 0)) {
        /* Relaxed: published by the queue or the list. A predecessor that fails now may have been first. */
        if (atomic_exchange_explicit(&task->node.poison, 1, memory_order_relaxed) == 0 && !weir__kind_is_external(task->node.kind)) {
            task->arg = weir__task_root_through(weir__task_of((struct weir__node *)linking->failed));
        }
    }
    if (weir__node_close(linking)) {
        weir__runner_deal(&scope->runner, task);
        /* What was finished here must not stay uncounted while the submitter is elsewhere. */
        if (scope->runner.count != 0 && !scope->runner.draining) weir__runner_flush(&scope->runner);
    }
    /* Release: a waiter on another thread sees issued tasks as issued; pairs with weir_scope_wait(). */
    atomic_store_explicit(&scope->submitted, atomic_load_explicit(&scope->submitted, memory_order_relaxed) + 1,
                          memory_order_release);
    atomic_store_explicit(&scope->queue.submitted, (uint32_t)atomic_load_explicit(&scope->submitted, memory_order_relaxed),
                          memory_order_relaxed); /* a hint for thieves */
}

void weir__scope_enter(struct weir_scope *scope, struct weir__linking *linking)
{
    enter(scope, linking, false);
}

/* What a submission brings. */
struct submission {
    struct weir_scope              *scope;
    const struct weir_access       *accesses;
    size_t                          naccesses;
    const struct weir_task_options *options;
    struct weir_task              **task_out;
    struct weir_device             *device; /* NULL: host */
    uintptr_t                       function, arg;
    uint8_t                         kind, domain; /* of a task without device */
    uint8_t                         flags;
};

static int check_after(const struct weir_context *context, const struct weir_task *task)
{
    if (task == NULL) return weir__fail(WEIR_E_INVALID, "an explicit edge from NULL");
    if (task->pool == NULL || task->pool->context != context) {
        return weir__fail(WEIR_E_INVALID, "an explicit edge from a task of another context");
    }
    if (!(weir__task_flags(task) & WEIR__TASK_HAS_HANDLE) || atomic_load_explicit(&task->references, memory_order_relaxed) == 0) {
        return weir__fail(WEIR_E_INVALID, "an explicit edge from a handle that was released");
    }
    return WEIR_OK;
}

static inline __attribute__((always_inline)) int check(const struct submission *s)
{
    int rc;

    if (s->scope == NULL) return weir__fail(WEIR_E_INVALID, "the scope is NULL");
    if ((rc = weir__context_check(s->scope->context)) != WEIR_OK) return rc;
    if (s->naccesses != 0 && s->accesses == NULL) return weir__fail(WEIR_E_INVALID, "%zu accesses at NULL", s->naccesses);
    if (s->naccesses > INT32_MAX / 8) return weir__fail(WEIR_E_INVALID, "%zu accesses are too many", s->naccesses);
    if (s->options != NULL && s->options->size != sizeof *s->options) {
        return weir__fail(WEIR_E_VERSION, "struct weir_task_options of %zu bytes is not known", s->options->size);
    }
    if (s->device != NULL && s->device->context != s->scope->context) {
        return weir__fail(WEIR_E_NO_DEVICE, "the device belongs to another context");
    }
    return WEIR_OK;
}

/* Accesses that are not plain: explicit edges are looked at before anything is reserved. */
static __attribute__((noinline)) int reserve_any(struct weir_scope *scope, const struct weir_access *accesses, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int rc = accesses[i].kind == WEIR_ACCESS_AFTER ? check_after(scope->context, accesses[i].address) : WEIR_OK;

        if (rc != WEIR_OK) return rc;
    }
    return weir__depend_reserve_any(&scope->depend, accesses, n);
}

static inline __attribute__((always_inline)) int reserve(const struct submission *s)
{
    struct weir_scope *scope = s->scope;
    int                rc = WEIR_OK;

    if (s->naccesses != 0) {
        if (!weir__depend_reserve_plain(&scope->depend, s->accesses, s->naccesses)) rc = reserve_any(scope, s->accesses, s->naccesses);
    } else if (s->options != NULL && (rc = weir__extras_reserve(&scope->pool->extras, WEIR__DEPEND_SPARE)) != WEIR_OK) {
        weir__fail(rc, "no memory for a task's options");
    }
    return rc;
}

static int check_device(const struct weir_device *device)
{
    return device != NULL ? WEIR_OK : weir__fail(WEIR_E_NO_DEVICE, "the device is NULL");
}

static inline __attribute__((always_inline)) void attach_options(struct weir_scope *scope, struct weir_task *task,
                                                                const struct weir_task_options *options)
{
    int32_t priority = options->priority;

    task->priority = (int8_t)(priority > 127 ? 127 : priority < -128 ? -128 : priority);
    task->node.line = options->line;
    if (options->name != NULL) {
        struct weir__extra *extra = weir__extra_take(&scope->pool->extras);

        extra->value = (uintptr_t)options->name;
        extra->link = (uintptr_t)options->file;
        weir__node_attach(&task->node, extra, WEIR__EXTRA_NAME);
    }
    if (options->complete != NULL) {
        struct weir__extra *extra = weir__extra_take(&scope->pool->extras);

        extra->value = (uintptr_t)options->complete;
        extra->link = (uintptr_t)options->complete_arg;
        weir__node_attach(&task->node, extra, WEIR__EXTRA_CALLBACK);
        weir__task_set(task, WEIR__TASK_HAS_CALLBACK);
    }
}

static __attribute__((noinline)) void apply_options(struct weir_scope *scope, struct weir_task *task, const struct weir_task_options *options)
{
    attach_options(scope, task, options);
}

/* Everything that can fail, up to a task with an identity and no edges. */
static inline __attribute__((always_inline)) int prepare(const struct submission *s, struct weir_task **task_out)
{
    struct weir_scope *scope = s->scope;
    struct weir_task  *task;
    int                rc = check(s);

    if (rc != WEIR_OK) return rc;
    /* Relaxed: the submitter names itself. */
    atomic_store_explicit(&scope->owner, &this_thread, memory_order_relaxed);
    if (atomic_load_explicit(&scope->nparked, memory_order_relaxed) >= scope->sweep_at) weir__scope_sweep(scope, false);
    task = take_task(scope, false);
    if (task == NULL) return WEIR_E_NO_MEMORY;
    /* After back-pressure, which may have run a task that submits here. */
    if ((rc = reserve(s)) != WEIR_OK) {
        weir__pool_untake(scope->pool, task);
        return rc;
    }
    open_task(scope, task, s->kind, s->device != NULL ? s->device->domain : s->domain);
    if (s->device != NULL) {
        task->device = (uint8_t)s->device->number;
        scope->counters.tasks_device++;
    }
    task->node.function = s->function;
    task->arg = s->arg;
    if (s->flags & WEIR__TASK_QUIET) attach_options(scope, task, s->options); /* known when this is compiled */
    else if (s->options != NULL) apply_options(scope, task, s->options);
    if (s->flags != 0) weir__task_set(task, s->flags);
    if (s->task_out != NULL) {
        weir__task_set(task, WEIR__TASK_HAS_HANDLE);
        atomic_store_explicit(&task->references, 2, memory_order_relaxed); /* not shared yet */
    }
    *task_out = task;
    return WEIR_OK;
}

static inline void open_linking(struct weir__linking *linking, struct weir_scope *scope, struct weir_task *task)
{
    weir__linking_open(linking, &task->node, &scope->pool->extras, weir__task_want);
}

static inline __attribute__((always_inline)) void enter_accesses(const struct submission *s, struct weir__linking *linking)
{
    uintptr_t before = (uintptr_t)linking->node->extra;

    if (weir__record_is_on()) weir__trace_made(s->scope, weir__task_of(linking->node), s->accesses, s->naccesses, s->options, false);
    if (s->naccesses != 0) weir__depend_enter(&s->scope->depend, s->accesses, s->naccesses, linking);
    for (uintptr_t e = (uintptr_t)linking->node->extra; e != before; e = weir__extra_of(e)->next) {
        if ((e & 7) == WEIR__EXTRA_LOCK) weir__task_set(weir__task_of(linking->node), WEIR__TASK_HAS_LOCKS);
    }
}

/* Inlined where the kind is known: that is a third of the cost of a small task. */
static inline __attribute__((always_inline)) int submit_kind(const struct submission *s)
{
    struct weir_task    *task;
    struct weir__linking linking;
    int                  rc = prepare(s, &task);

    if (rc != WEIR_OK) return rc;
    if (s->task_out != NULL) *s->task_out = task;
    open_linking(&linking, s->scope, task);
    enter_accesses(s, &linking);
    if (weir__kind_is_external(s->kind)) linking.links++, linking.other++; /* weir_task_fulfill() */
    enter(s->scope, &linking, false);
    return WEIR_OK;
}

static int submit(const struct submission *s)
{
    return submit_kind(s);
}

int weir__task_submit_quiet(struct weir_scope *scope, struct weir_device *device, const struct weir_access *accesses,
                            size_t naccesses, weir_issue_function issue, void *arg, const char *name,
                            weir_complete_function complete, void *complete_arg, struct weir_task **task_out)
{
    struct weir_task_options options = {.size = sizeof options, .name = name, .complete = complete, .complete_arg = complete_arg};
    struct submission s = {scope, accesses, naccesses, &options, task_out, device, (uintptr_t)issue, (uintptr_t)arg, WEIR__TASK_ISSUE, 0, WEIR__TASK_QUIET};

    return submit_kind(&s);
}

/* It has one: weir__task_submit_quiet() saw to it. */
static struct weir__extra *extra_of_kind(const struct weir_task *task, enum weir__extra_kind kind)
{
    uintptr_t e = (uintptr_t)task->node.extra;

    while ((e & 7) != kind) e = weir__extra_of(e)->next;
    return weir__extra_of(e);
}

void weir__task_rename(struct weir_task *task, const char *name)
{
    extra_of_kind(task, WEIR__EXTRA_NAME)->value = (uintptr_t)name;
}

void weir__task_hand_over(struct weir_task *task, weir_complete_function complete, void *complete_arg)
{
    struct weir__extra *extra = extra_of_kind(task, WEIR__EXTRA_CALLBACK);

    extra->value = (uintptr_t)complete;
    extra->link = (uintptr_t)complete_arg;
}

int weir_task_host(struct weir_scope *scope, weir_host_function function, void *arg, const struct weir_access *accesses,
                   size_t naccesses, const struct weir_task_options *options, struct weir_task **task_out)
{
    struct submission s = {scope, accesses, naccesses, options, task_out, NULL, (uintptr_t)function, (uintptr_t)arg, WEIR__TASK_HOST, 0, 0};

    if (function == NULL) return weir__fail(WEIR_E_INVALID, "weir_task_host: the function is NULL");
    return submit_kind(&s);
}

int weir_task_submit(struct weir_scope *scope, struct weir_device *device, const struct weir_access *accesses,
                     size_t naccesses, weir_issue_function issue, void *arg, const struct weir_task_options *options,
                     struct weir_task **task_out)
{
    struct submission s = {scope, accesses, naccesses, options, task_out, device, (uintptr_t)issue, (uintptr_t)arg, WEIR__TASK_ISSUE, 0, 0};

    if (issue == NULL) return weir__fail(WEIR_E_INVALID, "weir_task_submit: the issue function is NULL");
    return check_device(device) == WEIR_OK ? submit_kind(&s) : WEIR_E_NO_DEVICE;
}

int weir_task_external(struct weir_scope *scope, const struct weir_access *accesses, size_t naccesses,
                       const struct weir_task_options *options, struct weir_task **task_out)
{
    struct submission s = {scope, accesses, naccesses, options, task_out, NULL, 0, 0, WEIR__TASK_EXTERNAL, 0, 0};

    if (task_out == NULL) return weir__fail(WEIR_E_INVALID, "weir_task_external: nobody could fulfill it without a handle");
    return submit(&s);
}

int weir_task_import(struct weir_scope *scope, struct weir_device *device, void *native_event,
                     const struct weir_access *accesses, size_t naccesses, const struct weir_task_options *options,
                     struct weir_task **task_out)
{
    struct submission s = {scope, accesses, naccesses, options, task_out, device, 0, (uintptr_t)native_event, WEIR__TASK_IMPORT, 0, 0};

    if (native_event == NULL) return weir__fail(WEIR_E_INVALID, "weir_task_import: the event is NULL");
    if (check_device(device) != WEIR_OK) return WEIR_E_NO_DEVICE;
    if (!(device->info.features & WEIR__DEVICE_FOREIGN)) {
        return weir__fail(WEIR_E_UNSUPPORTED, "%s has no events to import", device->info.name);
    }
    return submit(&s);
}

/* ---- begin ---- */

static bool is_ready(void *arg)
{
    struct weir_task *task = arg;

    /* Acquire: pairs with the release in weir__runner_ready(). */
    return atomic_load_explicit(&task->state, memory_order_acquire) == WEIR__TASK_READY;
}

/* The task is in the graph, ready, and ours: open it, or finish it if that is impossible. */
static int open_ready(struct weir_scope *scope, struct weir_task *task)
{
    int rc;

    weir__task_unset(task, WEIR__TASK_BLOCKING);
    /* A failure that became known after the check is treated as one that becomes known later still: the task is complete,
     * cancelled, when its stream has come to its end. */
    rc = weir__issue_open(task, true, true);
    if (rc == WEIR_OK) return rc;
    weir__runner_finish(&scope->runner, task, rc);
    weir__runner_drain(&scope->runner);
    weir__runner_flush(&scope->runner);
    if (weir__task_drop(task)) weir__pool_return(task->pool, task, task); /* the caller gets no handle */
    return rc;
}

struct issuable {
    const struct submission *submission;
    int                      rc;
};

static bool is_issuable(void *arg)
{
    struct issuable         *issuable = arg;
    const struct submission *s = issuable->submission;

    issuable->rc = weir__depend_probe(&s->scope->depend, s->accesses, s->naccesses, s->device->domain);
    return issuable->rc != WEIR_E_NOT_ISSUED;
}

/* Are all predecessors issued and none failed? With @block, wait until that is known. Nothing is entered. */
static int check_issuable(const struct submission *s, bool block)
{
    struct issuable issuable = {s, WEIR_OK};

    if (s->naccesses == 0) return WEIR_OK;
    if (!is_issuable(&issuable) && block) {
        uint64_t began = weir__trace_now();

        weir__wait_until(s->scope->context, s->scope->pool, &s->scope->runner, is_issuable, &issuable);
        if (began != 0) weir__trace_waited(began, WEIR__WAIT_BEGIN, s->scope, 0, NULL, __builtin_return_address(0));
    }
    if (issuable.rc == WEIR_OK) return WEIR_OK;
    return weir__fail(issuable.rc, issuable.rc == WEIR_E_PREDECESSOR ? "a predecessor failed" : "a predecessor is not issued yet");
}

/* A device task that was prepared and not entered. */
static void take_back(struct weir_scope *scope, struct weir_task *task)
{
    atomic_store_explicit(&task->references, 0, memory_order_relaxed); /* nobody has the handle */
    weir__pool_untake(scope->pool, task);
    scope->counters.tasks_device--;
}

int weir_task_begin(struct weir_scope *scope, struct weir_device *device, const struct weir_access *accesses,
                    size_t naccesses, const struct weir_task_options *options, struct weir_task **task_out)
{
    struct submission    s = {scope, accesses, naccesses, options, task_out, device, 0, 0, WEIR__TASK_BEGIN, 0, 0};
    struct weir__linking linking;
    struct weir_task    *task;
    int                  rc;

    if (task_out == NULL) return weir__fail(WEIR_E_INVALID, "weir_task_begin: task_out is NULL");
    if (check_device(device) != WEIR_OK) return WEIR_E_NO_DEVICE;
    if ((rc = prepare(&s, &task)) != WEIR_OK) return rc;
    if ((rc = check_issuable(&s, options != NULL && options->block)) != WEIR_OK) {
        take_back(scope, task);
        return rc;
    }
    open_linking(&linking, scope, task);
    enter_accesses(&s, &linking);
    weir__task_set(task, WEIR__TASK_BLOCKING);
    weir__scope_enter(scope, &linking);
    /* Only a mutexinoutset neighbour that is not issued can still hold it back. */
    if (!is_ready(task)) weir__wait_until(scope->context, scope->pool, &scope->runner, is_ready, task);
    if ((rc = open_ready(scope, task)) != WEIR_OK) return rc;
    *task_out = task;
    return WEIR_OK;
}

int weir__task_renew(struct weir_task *task, struct weir_task **next_out)
{
    struct weir_scope   *scope = task->pool->scope;
    struct weir__stream *stream = weir__task_stream_of(task);
    struct submission    s = {scope, NULL, 0, NULL, next_out, stream->device, 0, 0, WEIR__TASK_BEGIN, 0, 0};
    struct weir__linking linking;
    struct weir_task    *next;
    int                  rc = prepare(&s, &next);

    if (rc != WEIR_OK) return rc;
    rc = weir__stream_reserve(stream, 2);
    if (rc == WEIR_OK) rc = weir__issue_close_and_keep(&scope->runner, task);
    if (rc != WEIR_OK) {
        take_back(scope, next);
        return rc;
    }
    open_linking(&linking, scope, next);
    if (weir__record_is_on()) weir__trace_made(scope, next, NULL, 0, NULL, false);
    weir__task_set(next, WEIR__TASK_BLOCKING);
    weir__scope_enter(scope, &linking); /* ready: it has no predecessors */
    weir__task_unset(next, WEIR__TASK_BLOCKING);
    next->arg = (uintptr_t)stream;
    atomic_store_explicit(&next->state, WEIR__TASK_OPEN, memory_order_relaxed); /* published with the handle */
    weir__runner_drain(&scope->runner);
    weir__runner_flush(&scope->runner);
    weir_task_release(task);
    *next_out = next;
    return WEIR_OK;
}

/* Behind what it conflicts with; nothing is ordered behind it. It is no task of the program's: its edges are not counted. */
static void enter_peeking(const struct submission *s, struct weir_task *task)
{
    struct weir__linking linking;

    open_linking(&linking, s->scope, task);
    if (weir__record_is_on()) weir__trace_made(s->scope, task, s->accesses, s->naccesses, s->options, true);
    if (s->naccesses != 0) weir__depend_peek(&s->scope->depend, s->accesses, s->naccesses, &linking);
    enter(s->scope, &linking, true);
}

int weir_scope_wait_for(struct weir_scope *scope, const struct weir_access *accesses, size_t naccesses)
{
    struct weir_task *task;
    struct submission s = {scope, accesses, naccesses, NULL, &task, NULL, 0, 0, WEIR__TASK_EMPTY, 0, 0};
    int               rc = prepare(&s, &task);

    if (rc != WEIR_OK) return rc;
    enter_peeking(&s, task);
    rc = weir_task_wait(task);
    weir_task_release(task);
    return rc;
}

/* ---- beside another runtime ---- */

int weir__task_foreign(struct weir_scope *scope, const struct weir_access *accesses, size_t naccesses,
                       const struct weir_task_options *options, struct weir_task **task_out)
{
    struct submission    s = {scope, accesses, naccesses, options, task_out, NULL, 0, 0, WEIR__TASK_FOREIGN, WEIR__DOMAIN_FOREIGN, 0};
    struct weir__linking linking;
    int                  rc = prepare(&s, task_out);

    if (rc != WEIR_OK) return rc;
    open_linking(&linking, scope, *task_out);
    (void)weir__node_take(&linking.node->issued); /* nobody knows it yet */
    enter_accesses(&s, &linking);
    linking.links++, linking.other++; /* weir_task_fulfill() */
    weir__scope_enter(scope, &linking);
    return WEIR_OK;
}

bool weir__scope_is_clear(struct weir_scope *scope, const struct weir_access *accesses, size_t naccesses, bool foreign)
{
    return weir__depend_probe(&scope->depend, accesses, naccesses, foreign ? WEIR__DOMAIN_FOREIGN : 0) != WEIR_E_NOT_ISSUED;
}

int weir__task_behind(struct weir_scope *scope, const struct weir_access *accesses, size_t naccesses, bool foreign,
                      weir_host_function function, void *arg, const struct weir_task_options *options)
{
    struct submission s = {scope, accesses, naccesses, options, NULL, NULL, (uintptr_t)function, (uintptr_t)arg,
                           function != NULL ? WEIR__TASK_HOST : WEIR__TASK_EMPTY, foreign ? WEIR__DOMAIN_FOREIGN : 0, 0};
    struct weir_task *task;
    int               rc = prepare(&s, &task);

    if (rc != WEIR_OK) return rc;
    enter_peeking(&s, task);
    return WEIR_OK;
}

int weir__task_switch(struct weir_scope *scope, struct weir_task **task_out)
{
    struct submission    s = {scope, NULL, 0, NULL, task_out, NULL, 0, 0, WEIR__TASK_EXTERNAL, 0, 0};
    struct weir__linking linking;
    int                  rc = prepare(&s, task_out);

    if (rc != WEIR_OK) return rc;
    open_linking(&linking, scope, *task_out);
    linking.links++, linking.other++; /* weir_task_fulfill() */
    enter(scope, &linking, true);
    return WEIR_OK;
}

void weir__scope_count_inner(struct weir_scope *scope)
{
    scope->counters.inner++;
}

void weir__scope_never_wait(struct weir_scope *scope)
{
    scope->never_waits = true;
}

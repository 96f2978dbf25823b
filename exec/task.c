/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <exec/task.h>

#include <exec/issue.h>
#include <exec/submit.h>
#include <exec/trace.h>
#include <exec/work.h>

/* A runner for whoever calls: the scope's own on the submitting thread, else one on the stack. */
static struct weir__runner *runner_of(struct weir_task *task, struct weir__runner *own)
{
    struct weir_scope *scope = task->pool->scope;

    *own = (struct weir__runner){.context = task->pool->context};
    return scope != NULL && weir__scope_is_own(scope) ? &scope->runner : own;
}

/* Deal with what became ready; nothing finished stays uncounted. */
static void settle(struct weir__runner *runner)
{
    weir__runner_drain(runner);
    if (!runner->draining) weir__runner_flush(runner);
}

static int check_handle(const struct weir_task *task, const char *call)
{
    if (task == NULL) return weir__fail(WEIR_E_INVALID, "%s: NULL", call);
    if (!(weir__task_flags(task) & WEIR__TASK_HAS_HANDLE) || atomic_load_explicit(&task->references, memory_order_relaxed) == 0) {
        return weir__fail(WEIR_E_INVALID, "%s: the handle was released", call);
    }
    return WEIR_OK;
}

struct weir_task *weir_task_retain(struct weir_task *task)
{
    /* Relaxed: the caller has a reference. */
    if (task != NULL) atomic_fetch_add_explicit(&task->references, 1, memory_order_relaxed);
    return task;
}

/* Move an open task on, once. */
static int leave_open(struct weir_task *task, const char *call)
{
    uint8_t open = WEIR__TASK_OPEN;
    int     rc = check_handle(task, call);

    if (rc == WEIR_OK) rc = weir__context_check(task->pool->context);
    if (rc != WEIR_OK) return rc;
    if (task->node.kind != WEIR__TASK_BEGIN ||
        !atomic_compare_exchange_strong_explicit(&task->state, &open, WEIR__TASK_ENDED, memory_order_acq_rel, memory_order_relaxed)) {
        return weir__fail(WEIR_E_STATE, "%s: the task is not open", call);
    }
    return WEIR_OK;
}

void *weir_task_stream(struct weir_task *task)
{
    struct weir__stream *stream;

    if (task == NULL || atomic_load_explicit(&task->state, memory_order_relaxed) != WEIR__TASK_OPEN) {
        weir__fail(WEIR_E_STATE, "weir_task_stream: the task is not open");
        return NULL;
    }
    stream = weir__task_stream_of(task);
    return stream->ops->stream_native(stream->handle);
}

static int end(struct weir_task *task, bool flush)
{
    struct weir__runner own, *runner = runner_of(task, &own);
    int                 rc = weir__issue_close(runner, task, flush);

    settle(runner);
    return rc;
}

int weir_task_end(struct weir_task *task)
{
    int rc = leave_open(task, "weir_task_end");

    if (rc != WEIR_OK) return rc;
    rc = end(task, true);
    weir_task_release(task);
    return rc;
}

int weir_task_fail(struct weir_task *task, int status)
{
    struct weir__runner own, *runner;
    int                 rc;

    if (status >= 0) return weir__fail(WEIR_E_INVALID, "weir_task_fail: status %d is not negative", status);
    if ((rc = leave_open(task, "weir_task_fail")) != WEIR_OK) return rc;
    runner = runner_of(task, &own);
    weir__issue_abandon(runner, task, status);
    settle(runner);
    weir_task_release(task);
    return WEIR_OK;
}

/* False: it was fulfilled already. */
static bool fulfill(struct weir_task *task, int status)
{
    struct weir__runner own, *runner;
    uint8_t             created = WEIR__TASK_CREATED;

    if (!atomic_compare_exchange_strong_explicit(&task->state, &created, WEIR__TASK_FULFILLED, memory_order_acq_rel,
                                                 memory_order_relaxed)) {
        return false;
    }
    task->arg = (uintptr_t)(intptr_t)status;
    runner = runner_of(task, &own);
    if (weir__node_unblock(&task->node)) weir__runner_ready(runner, task);
    settle(runner);
    return true;
}

int weir_task_fulfill(struct weir_task *task, int status)
{
    int rc;

    if ((rc = check_handle(task, "weir_task_fulfill")) != WEIR_OK) return rc;
    if ((rc = weir__context_check(task->pool->context)) != WEIR_OK) return rc;
    if (status > 0) return weir__fail(WEIR_E_INVALID, "weir_task_fulfill: status %d is positive", status);
    if (!weir__kind_is_external(task->node.kind)) return weir__fail(WEIR_E_STATE, "weir_task_fulfill: not an external task");
    if (!fulfill(task, status)) return weir__fail(WEIR_E_STATE, "weir_task_fulfill: fulfilled already");
    weir_task_release(task);
    return WEIR_OK;
}

/* Nobody can end or fulfill it any more: it fails. */
static void give_up(struct weir_task *task)
{
    struct weir__runner own, *runner;
    char                name[96];

    weir__task_describe(task, name, sizeof name);
    if (weir__kind_is_external(task->node.kind)) {
        if (fulfill(task, WEIR_E_STATE)) weir__log(1, "%s: released, but not fulfilled: it fails", name);
    } else if (leave_open(task, "weir_task_release") == WEIR_OK) {
        weir__log(1, "%s: released, but not ended: it fails", name);
        runner = runner_of(task, &own);
        weir__issue_abandon(runner, task, WEIR_E_STATE);
        settle(runner);
    }
}

static bool is_unfinished(const struct weir_task *task)
{
    /* Relaxed: a hint, give_up() decides. */
    uint8_t state = atomic_load_explicit(&task->state, memory_order_relaxed);

    return weir__kind_is_external(task->node.kind) ? state == WEIR__TASK_CREATED
                                                  : task->node.kind == WEIR__TASK_BEGIN && state == WEIR__TASK_OPEN;
}

void weir_task_release(struct weir_task *task)
{
    if (task == NULL || check_handle(task, "weir_task_release") != WEIR_OK) return;
    /* Acquire: pairs with weir__task_drop(). Two are left, the caller's and the runtime's: nobody else can end it. */
    if (__builtin_expect(is_unfinished(task), 0) && atomic_load_explicit(&task->references, memory_order_acquire) == 2 &&
        weir__context_check(task->pool->context) == WEIR_OK) {
        give_up(task);
    }
    if (weir__task_drop(task)) weir__pool_return(task->pool, task, task);
}

int weir_task_export(struct weir_task *task, void *native_stream)
{
    struct weir_context *context;
    struct weir__stream *stream;
    uint64_t             point;
    int                  rc = check_handle(task, "weir_task_export");

    if (rc != WEIR_OK) return rc;
    if (native_stream == NULL) return weir__fail(WEIR_E_INVALID, "weir_task_export: the stream is NULL");
    context = task->pool->context;
    if (!(task->node.kind & WEIR__NODE_NOTICE)) return weir__fail(WEIR_E_UNSUPPORTED, "a host task cannot be exported");
    /* Acquire: pairs with weir__node_take(), .point is read after. */
    if (atomic_load_explicit(&task->node.issued, memory_order_acquire) != WEIR__REF_CLOSED) {
        return weir__fail(WEIR_E_NOT_ISSUED, "weir_task_export: the task is not issued yet");
    }
    if ((point = task->node.point) == 0) return WEIR_OK; /* failed before it had a place on a stream: nothing to wait for */
    stream = context->streams[weir__point_stream(point)];
    if (!(stream->device->info.features & WEIR__DEVICE_FOREIGN)) {
        return weir__fail(WEIR_E_UNSUPPORTED, "%s cannot make foreign streams wait", stream->device->info.name);
    }
    rc = stream->ops->foreign_signal(stream->handle, weir__point_position(point), native_stream);
    if (rc == WEIR_OK) return rc;
    return weir__fail(rc, "%s: %s", stream->device->info.name, stream->ops->last_error(stream->device->handle));
}

static bool is_complete(void *arg)
{
    struct weir_task *task = arg;

    /* Acquire: pairs with weir__node_take(): .status and what the task did are visible. */
    return atomic_load_explicit(&task->node.completed, memory_order_acquire) == WEIR__REF_CLOSED;
}

static int status_of(const struct weir_task *task)
{
    char text[96], root[96];

    if (task->node.status == WEIR_OK) return WEIR_OK;
    weir__task_describe(task, text, sizeof text);
    if (task->node.status == WEIR_E_PREDECESSOR) {
        weir__root_describe(task->pool->context, weir__task_root(task), root, sizeof root);
        return weir__fail(task->node.status, task->node.kind & WEIR__NODE_NOTICE && task->node.point != 0 ?
                          "%s had been issued when %s failed" : "%s was cancelled: %s failed", text, root);
    }
    return weir__fail(task->node.status, "%s failed: %s (%s)", text, weir_error_name(task->node.status),
                      weir_error_string(task->node.status));
}

/* A waiter on a task's list: counts the pool's event up. */
struct task_waiter {
    struct weir__waiter waiter;
    struct weir__pool  *pool;
    _Atomic bool        woken;
};

static void wake_waiter(struct weir__waiter *waiter)
{
    struct task_waiter *self = (struct task_waiter *)waiter;
    struct weir__pool  *pool = self->pool;

    /* Release: pairs with the acquire in is_woken(); afterwards the waiter's stack may be gone. */
    atomic_store_explicit(&self->woken, true, memory_order_release);
    weir__pool_tell(pool);
}

static bool is_woken(void *arg)
{
    struct task_waiter *self = arg;

    return atomic_load_explicit(&self->woken, memory_order_acquire); /* pairs with wake_waiter() */
}

/* The newest device point of the task: run it on this thread where the backend can. */
static void sync_inline(struct weir_task *task)
{
    struct weir__stream *stream;

    /* Acquire: pairs with weir__node_take(). */
    if (!(task->node.kind & WEIR__NODE_NOTICE) ||
        atomic_load_explicit(&task->node.issued, memory_order_acquire) != WEIR__REF_CLOSED || task->node.point == 0) {
        return;
    }
    stream = task->pool->context->streams[weir__point_stream(task->node.point)];
    if (stream->device->info.features & WEIR__DEVICE_INLINE_SYNC) {
        (void)stream->ops->sync(stream->handle, weir__point_position(task->node.point)); /* a failure is the task's status */
    }
}

static void wait_for(struct weir_task *task)
{
    struct task_waiter   waiter = {.waiter = {0, wake_waiter}, .pool = task->pool};
    struct weir__runner  own, *runner = runner_of(task, &own);
    struct weir_context *context = task->pool->context;

    sync_inline(task);
    weir__context_retire(context, runner);
    settle(runner);
    if (is_complete(task)) return;
    if (!weir__list_push(&task->node.completed, (uintptr_t)&waiter | WEIR__REF_WAITER, &waiter.waiter.next)) return;
    if (task->node.kind & WEIR__NODE_NOTICE) weir__task_want(&task->node);
    weir__wait_until(context, task->pool, runner, is_woken, &waiter);
}

int weir_task_wait(struct weir_task *task)
{
    int rc = check_handle(task, "weir_task_wait");

    if (rc == WEIR_OK) rc = weir__context_check(task->pool->context);
    if (rc != WEIR_OK) return rc;
    weir__submitter_waits();
    if (!is_complete(task)) {
        uint64_t began = weir__trace_now();

        wait_for(task);
        if (began != 0) weir__trace_waited(began, WEIR__WAIT_TASK, NULL, task->node.id, NULL, __builtin_return_address(0));
    }
    return status_of(task);
}

int weir_task_test(struct weir_task *task)
{
    int rc = check_handle(task, "weir_task_test");

    if (rc == WEIR_OK) rc = weir__context_check(task->pool->context);
    if (rc != WEIR_OK) return rc;
    if (!is_complete(task) && task->node.kind & WEIR__NODE_NOTICE) {
        struct weir__runner own = {.context = task->pool->context};

        weir__context_retire(own.context, &own);
        settle(&own);
    }
    return is_complete(task) ? status_of(task) : WEIR_E_PENDING;
}

int weir__task_end_and_wait(struct weir_task *task)
{
    int rc = leave_open(task, "weir__task_end_and_wait");

    if (rc != WEIR_OK) return rc;
    rc = end(task, (task->pool->context->devices[task->device]->info.features & WEIR__DEVICE_INLINE_SYNC) == 0);
    if (rc == WEIR_OK) rc = weir_task_wait(task);
    weir_task_release(task);
    return rc;
}

void weir__scope_sync_recent(struct weir_scope *scope, struct weir__runner *runner)
{
    bool any = false;

    if (runner != &scope->runner) return; /* .recent is the submitter's */
    for (unsigned i = 0; i < sizeof scope->recent / sizeof scope->recent[0]; i++) {
        struct weir__stream *stream;

        if (scope->recent[i] == 0) continue;
        stream = scope->context->streams[weir__point_stream(scope->recent[i])];
        if (stream->device->info.features & WEIR__DEVICE_INLINE_SYNC) {
            (void)stream->ops->sync(stream->handle, weir__point_position(scope->recent[i])); /* statuses are the tasks' */
            any = true;
        }
        scope->recent[i] = 0;
    }
    if (!any) return;
    weir__context_retire(scope->context, runner);
    weir__runner_drain(runner);
    weir__runner_flush(runner);
}

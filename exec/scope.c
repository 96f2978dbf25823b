/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <exec/scope.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <exec/issue.h>
#include <exec/submit.h>
#include <exec/trace.h>
#include <exec/work.h>

#define FIRST_SWEEP 256

/* ---- fences, for graph/ ---- */

static struct weir_scope *scope_of_fencer(struct weir__fencer *fencer)
{
    return (struct weir_scope *)((char *)fencer - offsetof(struct weir_scope, fencer));
}

static struct weir__node *fence_create(struct weir__fencer *fencer, uint8_t domain, const struct weir__node *like)
{
    struct weir_scope *scope = scope_of_fencer(fencer);
    struct weir_task  *task = weir__scope_take_task(scope, true);

    if (task == NULL) return NULL;
    if (domain == WEIR__DOMAIN_FOREIGN) domain = 0;
    weir__task_open(scope, task, domain != 0 ? WEIR__TASK_FENCE : WEIR__TASK_EMPTY, domain);
    task->device = domain != 0 ? ((const struct weir_task *)like)->device : 0;
    if (weir__record_is_on()) weir__trace_made(scope, task, NULL, 0, NULL, true);
    return &task->node;
}

static void fence_submit(struct weir__fencer *fencer, struct weir__linking *linking)
{
    struct weir_scope *scope = scope_of_fencer(fencer);

    scope->counters.fences++;
    weir__scope_enter(scope, linking);
}

/* ---- life ---- */

static int check_options(const struct weir_scope_options *options)
{
    if (options == NULL) return WEIR_OK;
    if (options->size != sizeof *options) {
        return weir__fail(WEIR_E_VERSION, "struct weir_scope_options of %zu bytes is not known", options->size);
    }
    if (options->window <= WEIR__MAX_WINDOW) return WEIR_OK;
    return weir__fail(WEIR_E_INVALID, "a window of %u tasks: at most %u are possible", options->window, WEIR__MAX_WINDOW);
}

static struct weir__pool *take_pool(struct weir_context *context)
{
    struct weir__pool *pool;

    pthread_mutex_lock(&context->scope_lock);
    pool = context->idle_pools;
    if (pool != NULL) context->idle_pools = pool->next;
    pthread_mutex_unlock(&context->scope_lock);
    return pool != NULL ? pool : weir__pool_create(context);
}

static void give_pool(struct weir_context *context, struct weir__pool *pool)
{
    pthread_mutex_lock(&context->scope_lock);
    pool->scope = NULL;
    pool->next = context->idle_pools;
    context->idle_pools = pool;
    pthread_mutex_unlock(&context->scope_lock);
}

int weir_scope_create(struct weir_context *context, const struct weir_scope_options *options, struct weir_scope **scope_out)
{
    static _Atomic uint32_t numbers;
    struct weir_scope *scope;
    int                rc;

    if (context == NULL || scope_out == NULL) return weir__fail(WEIR_E_INVALID, "weir_scope_create: NULL");
    if ((rc = weir__context_check(context)) != WEIR_OK || (rc = check_options(options)) != WEIR_OK) return rc;
    scope = aligned_alloc(64, (sizeof *scope + 63) & ~(size_t)63);
    if (scope == NULL) return weir__fail(WEIR_E_NO_MEMORY, "no memory for a scope");
    memset(scope, 0, sizeof *scope);
    scope->context = context;
    scope->number = 1 + atomic_fetch_add_explicit(&numbers, 1, memory_order_relaxed); /* unique, nothing else */
    scope->pool = take_pool(context);
    scope->fencer = (struct weir__fencer){fence_create, fence_submit, weir__task_want, NULL};
    rc = scope->pool != NULL ? weir__depend_init(&scope->depend, options != NULL && options->ranges, &scope->fencer) : WEIR_E_NO_MEMORY;
    if (rc != WEIR_OK) {
        if (scope->pool != NULL) give_pool(context, scope->pool);
        free(scope);
        return weir__fail(rc, "no memory for a scope");
    }
    scope->fencer.extras = &scope->pool->extras;
    scope->pool->scope = scope;
    scope->base = atomic_load_explicit(&scope->pool->completed, memory_order_relaxed); /* nothing is in flight */
    scope->window = options != NULL && options->window != 0 ? options->window : context->window;
    scope->limit = scope->window;
    scope->runner = (struct weir__runner){.context = context, .queue = &scope->queue};
    scope->queue.owned = true;
    scope->sweep_at = FIRST_SWEEP;
    pthread_mutex_init(&scope->failure_lock, NULL);
    pthread_mutex_lock(&context->scope_lock);
    scope->next = context->scopes;
    if (scope->next != NULL) scope->next->prev = scope;
    context->scopes = scope;
    pthread_mutex_unlock(&context->scope_lock);
    *scope_out = scope;
    return WEIR_OK;
}

int weir_scope_destroy(struct weir_scope *scope)
{
    struct weir_context *context;
    struct weir_counters counters = {0};
    int                  rc;

    if (scope == NULL) return weir__fail(WEIR_E_INVALID, "weir_scope_destroy: NULL");
    context = scope->context;
    if ((rc = weir__context_check(context)) != WEIR_OK) return rc; /* the memory is the parent's: left alone */
    rc = weir_scope_wait(scope);
    weir__scope_sweep(scope, true);
    weir__context_unlist(context, &scope->queue);
    weir__depend_fini(&scope->depend);
    weir__scope_count(scope, &counters);
    pthread_mutex_lock(&context->scope_lock);
    if (scope->prev != NULL) scope->prev->next = scope->next;
    else context->scopes = scope->next;
    if (scope->next != NULL) scope->next->prev = scope->prev;
    weir__counters_add(&context->past, &counters);
    pthread_mutex_unlock(&context->scope_lock);
    weir__pool_collect(scope->pool);
    scope->pool->peak = scope->pool->used;
    give_pool(context, scope->pool);
    pthread_mutex_destroy(&scope->failure_lock);
    free(scope);
    return rc;
}

/* ---- waiting ---- */

struct quiet {
    struct weir_scope *scope;
    uint64_t           until; /* of pool->completed */
};

static bool is_quiet(void *arg)
{
    struct quiet *quiet = arg;

    /* Sequentially consistent: see wait.c; what the tasks did is visible. */
    return (int64_t)(atomic_load_explicit(&quiet->scope->pool->completed, memory_order_seq_cst) - quiet->until) >= 0;
}

int weir_scope_wait(struct weir_scope *scope)
{
    struct quiet         quiet;
    struct weir__runner  own, *runner = &own;
    int                  rc;

    if (scope == NULL) return weir__fail(WEIR_E_INVALID, "weir_scope_wait: NULL");
    if ((rc = weir__context_check(scope->context)) != WEIR_OK) return rc;
    /* Acquire: pairs with the release in weir__scope_enter(): issued tasks are seen as issued. */
    quiet = (struct quiet){scope, scope->base + atomic_load_explicit(&scope->submitted, memory_order_acquire)};
    own = (struct weir__runner){.context = scope->context};
    if (weir__scope_is_own(scope)) runner = &scope->runner;
    if (!is_quiet(&quiet)) {
        uint64_t began = weir__trace_now();

        weir__scope_sync_recent(scope, runner);
        weir__wait_until(scope->context, scope->pool, runner, is_quiet, &quiet);
        if (began != 0) weir__trace_waited(began, WEIR__WAIT_SCOPE, scope, 0, NULL, __builtin_return_address(0));
    }
    return weir__scope_take_failure(scope);
}

int weir_scope_test(struct weir_scope *scope)
{
    struct weir__runner runner;
    int                 rc;

    if (scope == NULL) return weir__fail(WEIR_E_INVALID, "weir_scope_test: NULL");
    if ((rc = weir__context_check(scope->context)) != WEIR_OK) return rc;
    if (weir__scope_is_idle(scope)) return WEIR_OK;
    runner = (struct weir__runner){.context = scope->context};
    weir__context_retire(scope->context, &runner);
    weir__runner_drain(&runner);
    weir__runner_flush(&runner);
    return weir__scope_is_idle(scope) ? WEIR_OK : WEIR_E_PENDING;
}

/* ---- counters ---- */

void weir__counters_add(struct weir_counters *sum, const struct weir_counters *more)
{
    const uint64_t *from = (const uint64_t *)more;
    uint64_t       *to = (uint64_t *)sum;

    for (size_t i = 0; i < offsetof(struct weir_counters, peak_in_flight) / sizeof *to; i++) to[i] += from[i];
    if (more->peak_in_flight > sum->peak_in_flight) sum->peak_in_flight = more->peak_in_flight;
}

void weir__scope_count(struct weir_scope *scope, struct weir_counters *sum)
{
    struct weir_counters counters = scope->counters;

    /* Relaxed: a snapshot. */
    counters.tasks = atomic_load_explicit(&scope->submitted, memory_order_relaxed);
    counters.completed = atomic_load_explicit(&scope->pool->completed, memory_order_relaxed) - scope->base;
    counters.failed = atomic_load_explicit(&scope->nfailed, memory_order_relaxed);
    counters.cancelled = atomic_load_explicit(&scope->ncancelled, memory_order_relaxed);
    counters.issued_late = atomic_load_explicit(&scope->late, memory_order_relaxed);
    counters.edges_done += atomic_load_explicit(&scope->late_done, memory_order_relaxed);
    counters.edges_stream += atomic_load_explicit(&scope->late_stream, memory_order_relaxed);
    counters.edges_implied += atomic_load_explicit(&scope->late_implied, memory_order_relaxed);
    counters.edges_event += atomic_load_explicit(&scope->late_event, memory_order_relaxed);
    counters.event_waits += atomic_load_explicit(&scope->late_waits, memory_order_relaxed);
    counters.edges = counters.edges_done + counters.edges_stream + counters.edges_implied + counters.edges_event +
                     counters.edges_host + counters.edges_host_only;
    counters.copies_direct = atomic_load_explicit(&scope->copies[WEIR__WAY_DIRECT], memory_order_relaxed);
    counters.bytes_direct = atomic_load_explicit(&scope->copied[WEIR__WAY_DIRECT], memory_order_relaxed);
    counters.copies_staged = atomic_load_explicit(&scope->copies[WEIR__WAY_STAGED], memory_order_relaxed);
    counters.bytes_staged = atomic_load_explicit(&scope->copied[WEIR__WAY_STAGED], memory_order_relaxed);
    counters.copies_bounced = atomic_load_explicit(&scope->copies[WEIR__WAY_BOUNCED], memory_order_relaxed);
    counters.bytes_bounced = atomic_load_explicit(&scope->copied[WEIR__WAY_BOUNCED], memory_order_relaxed);
    counters.peak_in_flight = scope->pool->peak;
    weir__counters_add(sum, &counters);
}

void weir_scope_counters(struct weir_scope *scope, struct weir_counters *counters_out)
{
    if (counters_out == NULL) return;
    memset(counters_out, 0, sizeof *counters_out);
    if (scope != NULL) weir__scope_count(scope, counters_out);
}

/* ---- failures ---- */

void weir__task_describe(const struct weir_task *task, char *text, size_t bytes)
{
    for (uintptr_t e = (uintptr_t)task->node.extra; e != 0; e = weir__extra_of(e)->next) {
        const struct weir__extra *extra = weir__extra_of(e);

        if ((e & 7) != WEIR__EXTRA_NAME || extra->value == 0) continue;
        if (extra->link == 0) snprintf(text, bytes, "%s", (const char *)extra->value);
        else snprintf(text, bytes, "%s at %s:%u", (const char *)extra->value, (const char *)(uintptr_t)extra->link, task->node.line);
        return;
    }
    snprintf(text, bytes, "task %llu", (unsigned long long)task->node.id);
}

static void note_root(struct weir_context *context, uint64_t id, const char *name)
{
    struct weir__root *root;

    weir__spin_lock(&context->root_lock);
    root = &context->roots[context->nroots++ % (sizeof context->roots / sizeof context->roots[0])];
    root->id = id;
    snprintf(root->name, sizeof root->name, "%s", name);
    weir__spin_unlock(&context->root_lock);
}

void weir__root_describe(struct weir_context *context, uint64_t id, char *text, size_t bytes)
{
    if (id == 0) snprintf(text, bytes, "a predecessor");
    else snprintf(text, bytes, "task %llu", (unsigned long long)id);
    weir__spin_lock(&context->root_lock);
    for (size_t i = 0; id != 0 && i < sizeof context->roots / sizeof context->roots[0]; i++) {
        if (context->roots[i].id == id) snprintf(text, bytes, "%s", context->roots[i].name);
    }
    weir__spin_unlock(&context->root_lock);
}

static void note_cancelled(struct weir_scope *scope, const struct weir_task *task)
{
    /* Relaxed: counters, read when the task is complete. */
    atomic_fetch_add_explicit(&scope->ncancelled, 1, memory_order_relaxed);
    if (task->node.kind == WEIR__TASK_EMPTY || task->node.kind == WEIR__TASK_FENCE) return;
    if (atomic_fetch_add_explicit(&scope->since_cancelled, 1, memory_order_relaxed) == 0) {
        atomic_store_explicit(&scope->cancelled_by, weir__task_root(task), memory_order_relaxed);
    }
}

void weir__scope_note_failure(struct weir_scope *scope, struct weir_task *task, int status)
{
    char name[96];

    if (status == WEIR_E_PREDECESSOR) {
        note_cancelled(scope, task);
        return;
    }
    atomic_fetch_add_explicit(&scope->nfailed, 1, memory_order_relaxed);
    weir__task_describe(task, name, sizeof name);
    note_root(scope->context, task->node.id, name);
    pthread_mutex_lock(&scope->failure_lock);
    if (scope->failure.status == WEIR_OK) {
        scope->failure.status = status;
        snprintf(scope->failure.text, sizeof scope->failure.text, "%s failed: %s (%s)", name, weir_error_name(status),
                 weir_error_string(status));
    }
    atomic_store_explicit(&scope->failed, true, memory_order_relaxed); /* before the task counts as complete */
    pthread_mutex_unlock(&scope->failure_lock);
}

bool weir__scope_park(struct weir_scope *scope, struct weir_task *task)
{
    pthread_mutex_lock(&scope->failure_lock);
    weir__task_push(&scope->parked, task);
    /* Relaxed: written under the lock; the submitter reads it as a hint. */
    atomic_fetch_add_explicit(&scope->nparked, 1, memory_order_relaxed);
    pthread_mutex_unlock(&scope->failure_lock);
    return true;
}

void weir__scope_sweep(struct weir_scope *scope, bool all)
{
    struct weir_task *task, *next;
    uint32_t          left;
    bool              told;

    /* Relaxed: whoever must be seen has completed before. */
    if (atomic_load_explicit(&scope->nparked, memory_order_relaxed) == 0) return;
    pthread_mutex_lock(&scope->failure_lock);
    task = scope->parked;
    scope->parked = NULL;
    told = (atomic_load_explicit(&scope->nparked, memory_order_relaxed) & WEIR__FAILURE_TOLD) != 0;
    atomic_store_explicit(&scope->nparked, 0, memory_order_relaxed);
    pthread_mutex_unlock(&scope->failure_lock);
    if (task == NULL) return;
    /* Something in flight: the thread that waited is not the one that submits; its wait told what was complete then. */
    all |= told && weir__scope_is_idle(scope);
    if (all && weir__record_is_on()) weir__trace_forget(scope);
    if (all) weir__depend_clear(&scope->depend);
    else weir__depend_mark_failed(&scope->depend);
    for (; task != NULL; task = next) {
        next = weir__task_next(task);
        /* Relaxed: the submitter's own mark. */
        if (!all && atomic_load_explicit(&task->node.poison, memory_order_relaxed) == WEIR__POISON_NAMED) {
            atomic_store_explicit(&task->node.poison, 1, memory_order_relaxed);
            weir__scope_park(scope, task);
        } else if (!(weir__task_flags(task) & WEIR__TASK_HAS_HANDLE) || weir__task_drop(task)) {
            weir__pool_return(scope->pool, task, task);
        }
    }
    left = atomic_load_explicit(&scope->nparked, memory_order_relaxed);
    scope->sweep_at = 2 * left > FIRST_SWEEP ? 2 * left : FIRST_SWEEP;
}

int weir__scope_take_failure(struct weir_scope *scope)
{
    struct weir__failure failure;
    uint64_t             cancelled, root;
    char                 name[96];

    /* Relaxed: set before the failed or cancelled task counted as complete, which the caller has seen. */
    if (!atomic_load_explicit(&scope->failed, memory_order_relaxed) &&
        atomic_load_explicit(&scope->since_cancelled, memory_order_relaxed) == 0) {
        return WEIR_OK;
    }
    pthread_mutex_lock(&scope->failure_lock);
    failure = scope->failure;
    scope->failure.status = WEIR_OK;
    atomic_store_explicit(&scope->failed, false, memory_order_relaxed);
    root = atomic_load_explicit(&scope->cancelled_by, memory_order_relaxed);
    cancelled = atomic_exchange_explicit(&scope->since_cancelled, 0, memory_order_relaxed);
    atomic_fetch_or_explicit(&scope->nparked, WEIR__FAILURE_TOLD, memory_order_relaxed);
    pthread_mutex_unlock(&scope->failure_lock);
    if (failure.status != WEIR_OK && cancelled == 0) return weir__fail(failure.status, "%s", failure.text);
    if (failure.status != WEIR_OK) {
        return weir__fail(failure.status, "%s; %llu task%s after it %s cancelled", failure.text, (unsigned long long)cancelled,
                          cancelled == 1 ? "" : "s", cancelled == 1 ? "was" : "were");
    }
    if (cancelled == 0) return WEIR_OK; /* another thread has just told it */
    weir__root_describe(scope->context, root, name, sizeof name);
    return weir__fail(WEIR_E_PREDECESSOR, "%llu task%s cancelled: %s failed before", (unsigned long long)cancelled,
                      cancelled == 1 ? " was" : "s were", name);
}

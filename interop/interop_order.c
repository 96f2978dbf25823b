/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "interop/interop_order.h"

#include <stdatomic.h>
#include <stdlib.h>

#include <exec/work.h>

#include "interop/anchor.h"
#include "interop/interop_object.h"
#include "interop/libomp.h"
#include "interop/runtime.h"
#include "interop/shim.h"
#include "interop/siblings.h"
#include "interop/trace.h"

/*
 * The task of a construct with nowait is a device task T of the generating task's scope, beside its target tasks:
 *
 *      batch i of the object's stream ----> T ----> batch i + 1
 *                 depend clauses -----------'  `--> later tasks
 *
 * Early: T is issued while it is submitted, and batch i + 1 waits for its point on the device.
 *
 * Late: a task of the host comes before T. The stream may not wait for a point that is not recorded, and the program
 * may queue on it at once: so batch i + 1 waits at a *gate*, which T opens when its stream comes to it. Until then
 * nobody but the object may have the stream: whoever else queued on it would wait for the host's task. That holds for
 * the streams of later T's as well, so each T follows the one before, and they are issued in order.
 *
 * Argument for .state. The submitter makes batch i + 1 wait at the gate and then goes from PENDING to GATED (O1); T
 * goes to ISSUED by an exchange (O2) when it is issued. If O2 came first it has left its point, and the submitter opens
 * the gate itself; if O1 did, T sees the gate and opens it. Both have their own reference to the operation.
 */
enum { PENDING, GATED, ISSUED };

struct operation {
    struct weir__interop *object;
    struct weir__anchor *anchor;
    struct weir__interop_callback *callbacks; /* to be run at the end */
    struct weir__point point;                 /* that T's record will be */
    struct weir__gate gate;
    _Atomic int state;
    _Atomic int references;
    bool early; /* the submitter's */
};

static _Thread_local struct operation *submitting __attribute__((tls_model("initial-exec")));

/* ---- the end of a task ---- */

static void run_callbacks(struct weir__interop *object, struct weir__interop_callback *list)
{
    while (list) {
        struct weir__interop_callback *callback = list;
        list = callback->next;
        callback->function(object, callback->arg);
        free(callback);
    }
}

static struct weir__interop_callback *take_callbacks(struct weir__interop *object)
{
    struct weir__interop_callback *list = object->callbacks;
    object->callbacks = NULL;
    return list;
}

static void check(const struct weir__interop *object, int status)
{
    if (status) weir__fatal("foreign work on %s failed: %s", object->target->uid, weir_error_text());
}

static void drop(struct operation *operation)
{
    /* Acquire/release: the last one frees what the other used. */
    if (atomic_fetch_sub_explicit(&operation->references, 1, memory_order_acq_rel) == 1) free(operation);
}

static void on_complete(struct weir_task *node, int status, void *arg)
{
    struct operation *operation = arg;
    struct weir__interop *object = operation->object;
    struct weir__anchor *anchor = operation->anchor;
    (void)node;
    if (status)
        weir__fatal("foreign work on %s, or what it waited for, failed: %s", object->target->uid,
                    weir_error_string(status));
    run_callbacks(object, operation->callbacks);
    drop(operation);
    weir__interop_release(object);
    weir__anchor_drop(anchor);
}

/* ---- submission ---- */

static int issue(struct weir_task *node, void *native_stream, void *arg)
{
    struct operation *operation = arg;
    (void)native_stream;
    operation->point = weir__task_next_mark(node);
    if (submitting == operation) {
        operation->early = true;
        return WEIR_OK;
    }
    /* O2. Acquire: .gate. Release: .point. */
    if (atomic_exchange_explicit(&operation->state, ISSUED, memory_order_acq_rel) != GATED) return WEIR_OK;
    return weir__task_open_gate(node, &operation->gate);
}

/* The next batch does not begin before the task that was submitted, which is not issued. */
static void hold_back(struct operation *operation, struct weir__interop *object, struct weir__abi_ident *where,
                      int32_t gtid)
{
    int pending = PENDING;
    if (weir__gate_create(object->target->device, &operation->gate)) {
        if (weir__record_is_on()) weir__trace_fallback(WEIR__FALLBACK_NOT_HELD, object->last, weir__trace_source(where));
        weir__shim_wait_for(where, gtid, 0, NULL, object->last);
        return;
    }
    if (weir__task_wait_gate(object->batch, &operation->gate)) weir__fatal("out of memory");
    /* O1. Release: .gate. Acquire: .point. */
    if (atomic_compare_exchange_strong_explicit(&operation->state, &pending, GATED, memory_order_acq_rel,
                                                memory_order_acquire))
        return;
    if (weir__task_wait_point(object->batch, operation->point)) weir__fatal("out of memory");
    weir__gate_open(&operation->gate);
}

/* The newest task may be with a host task still: then the stream may be held by a gate that nobody has opened yet. */
static bool is_held(const struct weir__interop *object)
{
    return object->is_last_late && weir_task_test(object->last) == WEIR_E_PENDING;
}

/* A handle of the batch that ends here; NULL: nothing can have been queued. */
static struct weir_task *end_batch(struct weir__interop *object, enum weir__interop_action action)
{
    struct weir_task *batch = object->batch;
    int rc;
    if (action == WEIR__INTEROP_INIT || !batch) return NULL;
    /* Relaxed: for queries. */
    atomic_store_explicit(&object->event, weir__task_next_mark(batch).value, memory_order_relaxed);
    weir_task_retain(batch);
    if (action == WEIR__INTEROP_DESTROY && !is_held(object)) {
        weir__task_lend(batch, false);
        object->batch = NULL;
        rc = weir_task_end(batch);
    } else {
        rc = weir__task_renew(batch, &object->batch);
    }
    if (rc) weir__fatal("an interop construct on %s failed: %s", object->target->uid, weir_error_text());
    return batch;
}

/* Replace the object's newest task. */
static void note_last(struct weir__interop *object, struct weir_task *task, bool late)
{
    if (object->last) weir_task_release(object->last);
    object->last = task;
    object->is_last_late = late;
}

static void order_nowait(struct weir__interop *object, enum weir__interop_action action, struct weir__abi_ident *where,
                         int32_t gtid, int32_t n, const struct weir__abi_depend *list)
{
    struct weir__siblings *siblings = weir__siblings_get(gtid);
    struct operation *operation = calloc(1, sizeof *operation), *outer = submitting;
    struct weir__depends depends;
    struct weir_task *task;
    if (!siblings || !operation || weir__depends_decode(&depends, n, list, 0, NULL, WEIR__DEPENDS_DEVICE))
        weir__fatal("out of memory");
    struct weir_task *batch = end_batch(object, action);
    if (batch) weir__depends_after(&depends, batch);
    if (object->last) weir__depends_after(&depends, object->last);
    operation->object = object;
    operation->callbacks = take_callbacks(object);
    atomic_init(&operation->references, 2);
    operation->anchor = weir__anchor_add(siblings, where, gtid);
    if (!operation->anchor) weir__fatal("out of memory");
    weir__interop_retain(object);
    submitting = operation;
    if (weir__task_submit_quiet(siblings->scope, object->target->device, depends.at, depends.n, issue, operation,
                                "interop", on_complete, operation, &task))
        weir__fatal("an interop construct on %s cannot be submitted: %s", object->target->uid, weir_error_text());
    submitting = outer;
    if (weir__record_is_on()) weir__trace_interop(task, weir__trace_source(where));
    if (batch) weir_task_release(batch);
    note_last(object, task, !operation->early);
    if (action != WEIR__INTEROP_DESTROY) {
        if (!operation->early)
            hold_back(operation, object, where, gtid);
        else if (weir__task_wait_point(object->batch, operation->point))
            weir__fatal("out of memory");
    }
    drop(operation);
    weir__depends_fini(&depends);
    weir__siblings_leave(siblings);
}

/* An included task: complete on return, so nobody has to wait for it. */
static void order_included(struct weir__interop *object, enum weir__interop_action action,
                           struct weir__abi_ident *where, int32_t gtid, int32_t n, const struct weir__abi_depend *list)
{
    if (object->last && weir_task_test(object->last) != WEIR_E_PENDING) note_last(object, NULL, false);
    weir__shim_wait_for(where, gtid, n, list, object->last);
    struct weir_task *batch = end_batch(object, action);
    if (batch) {
        check(object, weir_task_wait(batch));
        weir_task_release(batch);
    }
    note_last(object, NULL, false);
    run_callbacks(object, take_callbacks(object));
}

int weir__interop_order(struct weir__interop *object, enum weir__interop_action action, struct weir__abi_ident *where,
                        int32_t gtid, int32_t n, const struct weir__abi_depend *depends, bool nowait)
{
    int rc = n > 0 ? weir__interop_need_stream(object) : WEIR_OK;
    if (rc) return rc;
    if (n <= 0 && (action == WEIR__INTEROP_INIT || !object->batch) && !object->last) {
        run_callbacks(object, action == WEIR__INTEROP_INIT ? NULL : take_callbacks(object));
        return WEIR_OK;
    }
    if (nowait && weir__shim_is_on() && !weir__libomp()->in_final())
        order_nowait(object, action, where, gtid, n, depends);
    else
        order_included(object, action, where, gtid, n, depends);
    return WEIR_OK;
}

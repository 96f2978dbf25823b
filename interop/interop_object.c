/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "interop/interop_object.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <devices/thread.h>
#include <exec/work.h>

#include "interop/abi.h"
#include "interop/libomp.h"
#include "interop/runtime.h"

/* ---- texts ---- */

enum { TEXT = 256 };
static _Thread_local void *reason;

const char *weir__interop_reason(void)
{
    return reason;
}

int weir__interop_fail(int code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = weir__thread_memory(&reason, TEXT);
    if (text) vsnprintf(text, TEXT, format, args);
    va_end(args);
    weir__log(2, "interop: %s", text ? text : "no memory");
    return code;
}

/* ---- unused objects ---- */

enum { LOOKED_AT = 8 };

static struct {
    pthread_mutex_t lock;
    struct weir__interop *first, **last;
} unused = {.lock = PTHREAD_MUTEX_INITIALIZER, .last = &unused.first};

static void put(struct weir__interop *object)
{
    pthread_mutex_lock(&unused.lock);
    object->next = NULL;
    *unused.last = object;
    unused.last = &object->next;
    pthread_mutex_unlock(&unused.lock);
}

static struct weir__interop *take(void)
{
    pthread_mutex_lock(&unused.lock);
    struct weir__interop *object = unused.first;
    if (object && !(unused.first = object->next)) unused.last = &unused.first;
    pthread_mutex_unlock(&unused.lock);
    return object;
}

static struct weir__interop *make(void)
{
    struct weir__interop *object = calloc(1, sizeof *object);
    if (!object) return NULL;
    if (weir_scope_create(weir__runtime_peek()->context, NULL, &object->scope)) {
        free(object);
        return NULL;
    }
    weir__scope_never_wait(object->scope);
    pthread_mutex_init(&object->lock, NULL);
    object->magic = WEIR__INTEROP_MAGIC;
    return object;
}

/* One whose last batch is complete, else a new one. */
static struct weir__interop *take_or_make(void)
{
    for (int i = 0; i < LOOKED_AT; i++) {
        struct weir__interop *object = take();
        if (!object) break;
        if (weir_scope_test(object->scope) == WEIR_OK) {
            int failed = weir_scope_wait(object->scope); /* what failed was told: forget it */
            (void)failed;
            return object;
        }
        put(object);
    }
    return make();
}

/* ---- making one ---- */

/* The device that the program names. */
static int find_target(int64_t device, struct weir__target **target_out)
{
    int n = weir__runtime_devices();
    *target_out = NULL;
    if (weir__runtime_is_child())
        return weir__interop_fail(WEIR_E_FORKED, "this process was forked: there are no devices");
    if (weir__runtime_in_kernel()) return weir__interop_fail(WEIR_E_NO_DEVICE, "no interop objects inside a kernel");
    if (!n) return weir__interop_fail(WEIR_E_NO_DEVICE, "there is no device, or offloading is disabled");
    if (device == -1) device = weir__libomp()->default_device();
    if (device == n)
        return weir__interop_fail(WEIR_E_NO_DEVICE, "device %d is the host: nothing to interoperate with", n);
    if (device < 0 || device > n)
        return weir__interop_fail(WEIR_E_NO_DEVICE, "device number %lld is out of range: there are %d devices",
                                  (long long)device, n);
    if (weir__runtime_routine_target((int)device, target_out) || !*target_out)
        return weir__interop_fail(WEIR_E_NO_DEVICE, "device %lld is not ready", (long long)device);
    return WEIR_OK;
}

/* OpenMP 5.2 section 14.1.3 prefer_type: the first one that can be had; otherwise the choice is the implementation's.
 */
static const struct weir__native *choose(const struct weir__device_info *info, int32_t nprefers,
                                         const struct weir__abi_interop_prefer *prefers)
{
    for (int32_t i = 0; i < nprefers; i++) {
        /* In order is what streams are; of other implementations' attributes none is known here. */
        if (prefers[i].own_attributes || prefers[i].attributes & ~WEIR__ABI_INTEROP_IN_ORDER) continue;
        for (uint32_t j = 0; j < info->nnatives; j++)
            if (info->natives[j].runtime == prefers[i].runtime) return &info->natives[j];
    }
    return info->nnatives ? &info->natives[0] : NULL;
}

int weir__interop_choose(int64_t device, int32_t nprefers, const struct weir__abi_interop_prefer *prefers,
                         struct weir__target **target_out, const struct weir__native **native_out)
{
    int rc = find_target(device, target_out);
    if (rc) return rc;
    *native_out = choose(weir__device_info_of((*target_out)->device), nprefers, prefers);
    if (*native_out) return WEIR_OK;
    return weir__interop_fail(WEIR_E_NO_DEVICE, "%s shows no handles of a foreign runtime", (*target_out)->uid);
}

int weir__interop_create(int64_t device, enum weir__interop_type type, int32_t nprefers,
                         const struct weir__abi_interop_prefer *prefers, struct weir__interop **object_out)
{
    struct weir__target *target;
    const struct weir__native *native;
    int rc = weir__interop_choose(device, nprefers, prefers, &target, &native);
    if (rc) return rc;
    struct weir__interop *object = take_or_make();
    if (!object) return weir__interop_fail(WEIR_E_NO_MEMORY, "no memory for an interop object on %s", target->uid);
    object->target = target;
    object->native = native;
    object->type = type;
    object->owner = -1;
    object->is_dirty = object->is_last_late = false;
    /* Relaxed: the program's pointer publishes them. */
    atomic_store_explicit(&object->users, 1, memory_order_relaxed);
    atomic_store_explicit(&object->event, 0, memory_order_relaxed);
    atomic_store_explicit(&object->native_stream, NULL, memory_order_relaxed);
    atomic_store_explicit(&object->is_live, true, memory_order_relaxed);
    if (type == WEIR__INTEROP_TARGETSYNC && (rc = weir__interop_need_stream(object))) {
        weir__interop_end(object);
        return rc;
    }
    *object_out = object;
    return WEIR_OK;
}

/* ---- the stream ---- */

static int lease(struct weir__interop *object)
{
    struct weir_task_options options = {.size = sizeof options, .name = "foreign work of an interop object"};
    int rc = weir_task_begin(object->scope, object->target->device, NULL, 0, &options, &object->batch);
    if (rc) {
        object->batch = NULL;
        return weir__interop_fail(rc, "no stream on %s: %s", object->target->uid, weir_error_text());
    }
    uint64_t position;
    weir__point_unpack(weir__task_next_mark(object->batch), &object->stream_id, &position);
    weir__task_lend(object->batch, true);
    /* Release: pairs with need_stream() and the queries. */
    atomic_store_explicit(&object->native_stream, weir_task_stream(object->batch), memory_order_release);
    return WEIR_OK;
}

int weir__interop_need_stream(struct weir__interop *object)
{
    int rc = WEIR_OK;
    if (atomic_load_explicit(&object->native_stream, memory_order_acquire)) return WEIR_OK;
    if (weir__runtime_is_child())
        return weir__interop_fail(WEIR_E_FORKED, "this process was forked: there are no streams");
    pthread_mutex_lock(&object->lock);
    if (!atomic_load_explicit(&object->native_stream, memory_order_relaxed)) rc = lease(object); /* under the lock */
    pthread_mutex_unlock(&object->lock);
    return rc;
}

/* ---- the end ---- */

void weir__interop_retain(struct weir__interop *object)
{
    atomic_fetch_add_explicit(&object->users, 1, memory_order_relaxed); /* the caller has one */
}

void weir__interop_release(struct weir__interop *object)
{
    /* Acquire/release: the last one ends what the others used. */
    if (atomic_fetch_sub_explicit(&object->users, 1, memory_order_acq_rel) != 1) return;
    if (object->batch) {
        weir__task_lend(object->batch, false);
        int rc = weir_task_end(object->batch);
        if (rc) weir__fatal("foreign work on %s cannot be ended: %s", object->target->uid, weir_error_text());
        object->batch = NULL;
    }
    if (object->last) weir_task_release(object->last);
    object->last = NULL;
    while (object->callbacks) {
        struct weir__interop_callback *callback = object->callbacks;
        object->callbacks = callback->next;
        free(callback);
    }
    put(object);
}

void weir__interop_end(struct weir__interop *object)
{
    /* Relaxed: whoever asks a destroyed object is wrong anyway. */
    atomic_store_explicit(&object->is_live, false, memory_order_relaxed);
    weir__interop_release(object);
}

struct weir__interop *weir__interop_of(const void *pointer)
{
    struct weir__interop *object = (struct weir__interop *)pointer;
    if (!object || (uintptr_t)object % _Alignof(struct weir__interop) || object->magic != WEIR__INTEROP_MAGIC)
        return NULL;
    return atomic_load_explicit(&object->is_live, memory_order_relaxed) ? object : NULL;
}

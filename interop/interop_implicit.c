/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "interop/interop_implicit.h"

#include <pthread.h>

#include "interop/interop_order.h"

/* As many as threads, devices, types and foreign runtimes meet; kept until the process ends. */
static struct {
    pthread_mutex_t lock;
    struct weir__interop *first;
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct weir__interop *find_locked(int32_t gtid, const struct weir__interop *like)
{
    struct weir__interop *object = all.first;
    while (object && (object->owner != gtid || object->target != like->target || object->native != like->native ||
                      object->type != like->type))
        object = object->next;
    return object;
}

int weir__interop_implicit_get(int32_t gtid, int64_t device, enum weir__interop_type type, int32_t nprefers,
                               const struct weir__abi_interop_prefer *prefers, struct weir__interop **object_out)
{
    struct weir__interop *wanted;
    /* A target object has no stream before somebody asks, so this costs little if there is one already. */
    int rc = weir__interop_create(device, WEIR__INTEROP_TARGET, nprefers, prefers, &wanted);
    if (rc) return rc;
    wanted->type = type;
    pthread_mutex_lock(&all.lock);
    struct weir__interop *object = find_locked(gtid, wanted);
    if (!object) {
        object = wanted;
        object->owner = gtid;
        object->next = all.first;
        all.first = object;
    }
    pthread_mutex_unlock(&all.lock);
    if (object != wanted) {
        weir__interop_end(wanted);
    }
    if (type == WEIR__INTEROP_TARGETSYNC && (rc = weir__interop_need_stream(object))) return rc;
    object->is_dirty = true;
    *object_out = object;
    return WEIR_OK;
}

void weir__interop_implicit_sync(struct weir__abi_ident *where, int32_t gtid)
{
    pthread_mutex_lock(&all.lock);
    struct weir__interop *object = all.first;
    pthread_mutex_unlock(&all.lock);
    for (; object; object = object->next) { /* .next is written before the object is in the list */
        if (object->owner != gtid || !object->is_dirty) continue;
        object->is_dirty = false;
        int rc = weir__interop_order(object, WEIR__INTEROP_USE, where, gtid, 0, NULL, false);
        (void)rc; /* without dependences nothing is needed for it */
    }
}

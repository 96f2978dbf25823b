/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "interop/interop_implicit.h"

#include <pthread.h>

#include "interop/interop_order.h"

/* As many as threads, devices, types and foreign runtimes meet; kept until the process ends. */
static struct {
    pthread_mutex_t lock;
    struct weir__interop *first;
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct weir__interop *first(void)
{
    pthread_mutex_lock(&all.lock);
    struct weir__interop *object = all.first;
    pthread_mutex_unlock(&all.lock);
    return object; /* .next is written before the object is in the list */
}

static struct weir__interop *find(int32_t gtid, const struct weir__target *target, const struct weir__native *native,
                                  enum weir__interop_type type)
{
    struct weir__interop *object = first();
    while (object &&
           (object->owner != gtid || object->target != target || object->native != native || object->type != type))
        object = object->next;
    return object;
}

static void keep(struct weir__interop *object, int32_t gtid)
{
    object->owner = gtid;
    pthread_mutex_lock(&all.lock);
    object->next = all.first;
    all.first = object;
    pthread_mutex_unlock(&all.lock);
}

int weir__interop_implicit_get(int32_t gtid, int64_t device, enum weir__interop_type type, int32_t nprefers,
                               const struct weir__abi_interop_prefer *prefers, struct weir__interop **object_out)
{
    struct weir__target *target;
    const struct weir__native *native;
    int rc = weir__interop_choose(device, nprefers, prefers, &target, &native);
    if (rc) return rc;
    struct weir__interop *object = find(gtid, target, native, type);
    if (!object) {
        rc = weir__interop_create(device, type, nprefers, prefers, &object);
        if (rc) return rc;
        keep(object, gtid);
    }
    object->is_dirty = true;
    *object_out = object;
    return WEIR_OK;
}

void weir__interop_implicit_sync(struct weir__abi_ident *where, int32_t gtid)
{
    for (struct weir__interop *object = first(); object; object = object->next) {
        if (object->owner != gtid || !object->is_dirty) continue;
        object->is_dirty = false;
        int rc = weir__interop_order(object, WEIR__INTEROP_USE, where, gtid, 0, NULL, false);
        (void)rc; /* without dependences nothing is needed for it */
    }
}

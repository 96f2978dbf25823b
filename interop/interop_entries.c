/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/*
 * The interop directive and its routines, by the names that compilers and libomp know. Which argument is how wide
 * differs between clang 14 and 22; on x86-64 the low 32 bits of each are the value in all of them.
 */
#include "interop/entries.h"

#include <stdlib.h>
#include <string.h>

#include "interop/abi.h"
#include "interop/interop_implicit.h"
#include "interop/interop_object.h"
#include "interop/interop_order.h"
#include "interop/interop_properties.h"
#include "interop/libomp.h"
#include "interop/runtime.h"
#include "interop/shim.h"

/* ---- the directive, in the style of OpenMP 5.1 ---- */

/* Without a stream for it the dependences cannot be kept by a task: the host keeps them. After init there is no object
 * then. */
static int order(struct weir__interop *object, enum weir__interop_action action, struct weir__abi_ident *where,
                 int32_t gtid, int32_t n, const struct weir__abi_depend *depends, bool nowait)
{
    int rc = weir__interop_order(object, action, where, gtid, n, depends, nowait);
    if (rc && action != WEIR__INTEROP_INIT) weir__shim_wait_for(where, gtid, n, depends, NULL);
    return rc;
}

WEIR__EXPORT void __tgt_interop_init(struct weir__abi_ident *where, int32_t gtid, void **variable, int32_t type,
                                     int32_t device, int32_t n, struct weir__abi_depend *depends, int32_t nowait)
{
    struct weir__interop *object;
    *variable = NULL;
    if (type != WEIR__INTEROP_TARGET && type != WEIR__INTEROP_TARGETSYNC) {
        (void)weir__interop_fail(WEIR_E_INVALID, "interop type %d is not known", type);
        return;
    }
    if (weir__interop_create(device, (enum weir__interop_type)type, 0, NULL, &object)) return;
    if (order(object, WEIR__INTEROP_INIT, where, gtid, n, depends, nowait)) {
        weir__interop_end(object);
        return;
    }
    *variable = object;
}

/* The object that use or destroy name; NULL: there is nothing to do. */
static struct weir__interop *named(void *const *variable, int32_t device, const char *directive)
{
    struct weir__interop *object = weir__interop_of(*variable);
    if (!*variable || weir__runtime_is_child()) return NULL;
    if (!object) {
        (void)weir__interop_fail(WEIR_E_INVALID, "interop %s: the variable names no object", directive);
        weir__warn("%s", weir__interop_reason());
        return NULL;
    }
    /* Compilers send -1 for "not said". What the object is on counts; nothing is left out because of the mistake. */
    if (device != -1 && device != object->target->number) {
        (void)weir__interop_fail(WEIR_E_INVALID, "interop %s: the object is on device %d, not on %d", directive,
                                 object->target->number, device);
        weir__warn("%s", weir__interop_reason());
    }
    return object;
}

WEIR__EXPORT void __tgt_interop_use(struct weir__abi_ident *where, int32_t gtid, void **variable, int32_t device,
                                    int32_t n, struct weir__abi_depend *depends, int32_t nowait)
{
    struct weir__interop *object = named(variable, device, "use");
    if (object) (void)order(object, WEIR__INTEROP_USE, where, gtid, n, depends, nowait);
}

WEIR__EXPORT void __tgt_interop_destroy(struct weir__abi_ident *where, int32_t gtid, void **variable, int32_t device,
                                        int32_t n, struct weir__abi_depend *depends, int32_t nowait)
{
    struct weir__interop *object = named(variable, device, "destroy");
    *variable = NULL;
    if (!object) return;
    (void)order(object, WEIR__INTEROP_DESTROY, where, gtid, n, depends, nowait);
    weir__interop_end(object);
}

WEIR__EXPORT void __kmpc_interop_init(struct weir__abi_ident *where, int32_t gtid, void **variable, int32_t type,
                                      int32_t device, int32_t n, struct weir__abi_depend *depends, int32_t nowait)
{
    __tgt_interop_init(where, gtid, variable, type, device, n, depends, nowait);
}

WEIR__EXPORT void __kmpc_interop_use(struct weir__abi_ident *where, int32_t gtid, void **variable, int32_t device,
                                     int32_t n, struct weir__abi_depend *depends, int32_t nowait)
{
    __tgt_interop_use(where, gtid, variable, device, n, depends, nowait);
}

WEIR__EXPORT void __kmpc_interop_destroy(struct weir__abi_ident *where, int32_t gtid, void **variable, int32_t device,
                                         int32_t n, struct weir__abi_depend *depends, int32_t nowait)
{
    __tgt_interop_destroy(where, gtid, variable, device, n, depends, nowait);
}

/* ---- …in the style of OpenMP 6.0, as LLVM 22 has it; no compiler up to clang 22 calls these ---- */

/* Both lists of a pack as one. NULL: there is none. @n_out is how many. */
static struct weir__abi_depend *unpack(const struct weir__abi_depend_pack *pack, int32_t *n_out,
                                       struct weir__abi_depend **heap_out)
{
    int32_t n = pack && pack->n > 0 ? pack->n : 0, nnoalias = pack && pack->nnoalias > 0 ? pack->nnoalias : 0;
    *n_out = n + nnoalias;
    *heap_out = NULL;
    if (!nnoalias) return n ? pack->list : NULL;
    if (!n) return pack->noalias;
    *heap_out = malloc((size_t)*n_out * sizeof **heap_out);
    if (!*heap_out) weir__fatal("out of memory");
    memcpy(*heap_out, pack->list, (size_t)n * sizeof **heap_out);
    memcpy(*heap_out + n, pack->noalias, (size_t)nnoalias * sizeof **heap_out);
    return *heap_out;
}

static bool is_nowait(const struct weir__abi_interop_context *context)
{
    return context && context->flags & WEIR__ABI_INTEROP_NOWAIT;
}

static int32_t gtid_of(const struct weir__abi_interop_context *context)
{
    return context ? context->gtid : weir__libomp()->global_thread_num(NULL);
}

/* One directive with its pack. */
static int order_pack(struct weir__interop *object, enum weir__interop_action action, struct weir__abi_ident *where,
                      const struct weir__abi_interop_context *context, const struct weir__abi_depend_pack *pack)
{
    int32_t n;
    struct weir__abi_depend *heap, *depends = unpack(pack, &n, &heap);
    int rc = order(object, action, where, gtid_of(context), n, depends, is_nowait(context));
    free(heap);
    return rc;
}

WEIR__EXPORT struct weir__interop *__tgt_interop_get(struct weir__abi_ident *where, int32_t type, int64_t device,
                                                     int32_t nprefers, struct weir__abi_interop_prefer *prefers,
                                                     struct weir__abi_interop_context *context,
                                                     struct weir__abi_depend_pack *pack)
{
    bool implicit = context && context->flags & WEIR__ABI_INTEROP_IMPLICIT;
    enum weir__interop_type kind = type ? WEIR__INTEROP_TARGETSYNC : WEIR__INTEROP_TARGET;
    struct weir__interop *object;
    if (type < 0 || type > 1) {
        (void)weir__interop_fail(WEIR_E_INVALID, "interop type %d is not known", type);
        return NULL;
    }
    int rc = implicit ? weir__interop_implicit_get(context->gtid, device, kind, nprefers, prefers, &object)
                      : weir__interop_create(device, kind, nprefers, prefers, &object);
    if (rc) return NULL;
    if (!order_pack(object, WEIR__INTEROP_INIT, where, context, pack)) return object;
    if (implicit) return NULL; /* it stays its thread's */
    weir__interop_end(object);
    return NULL;
}

WEIR__EXPORT int __tgt_interop_use60(struct weir__abi_ident *where, struct weir__interop *pointer,
                                     struct weir__abi_interop_context *context, struct weir__abi_depend_pack *pack)
{
    struct weir__interop *object = weir__interop_of(pointer);
    if (!object || weir__runtime_is_child()) return -1;
    return order_pack(object, WEIR__INTEROP_USE, where, context, pack) ? -1 : 0;
}

WEIR__EXPORT int __tgt_interop_release(struct weir__abi_ident *where, struct weir__interop *pointer,
                                       struct weir__abi_interop_context *context, struct weir__abi_depend_pack *pack)
{
    struct weir__interop *object = weir__interop_of(pointer);
    if (!object || weir__runtime_is_child()) return -1;
    if (object->owner >= 0) return order_pack(object, WEIR__INTEROP_USE, where, context, pack) ? -1 : 0;
    int rc = order_pack(object, WEIR__INTEROP_DESTROY, where, context, pack);
    weir__interop_end(object);
    return rc ? -1 : 0;
}

/* The host runtime of LLVM 22 calls this where the thread waits for its tasks. */
WEIR__EXPORT void __tgt_target_sync(struct weir__abi_ident *where, int32_t gtid, void *task, void *event)
{
    (void)task, (void)event;
    weir__interop_implicit_sync(where, gtid);
}

WEIR__EXPORT int ompx_interop_add_completion_callback(struct weir__interop *pointer,
                                                      void (*function)(struct weir__interop *object, void *arg),
                                                      void *arg)
{
    struct weir__interop *object = weir__interop_of(pointer);
    if (!object || !function) return WEIR__IRC_OTHER;
    struct weir__interop_callback *callback = malloc(sizeof *callback), **at = &object->callbacks;
    if (!callback) return WEIR__IRC_OTHER;
    *callback = (struct weir__interop_callback){NULL, function, arg};
    while (*at) at = &(*at)->next;
    *at = callback;
    return 0;
}

/* ---- queries ---- */

WEIR__EXPORT intptr_t omp_get_interop_int(struct weir__interop *object, int property, int *code_out)
{
    return weir__interop_get(object, property, WEIR__INTEROP_INT, code_out);
}

WEIR__EXPORT void *omp_get_interop_ptr(struct weir__interop *object, int property, int *code_out)
{
    return (void *)weir__interop_get(object, property, WEIR__INTEROP_POINTER, code_out);
}

WEIR__EXPORT const char *omp_get_interop_str(struct weir__interop *object, int property, int *code_out)
{
    return (const char *)weir__interop_get(object, property, WEIR__INTEROP_TEXT, code_out);
}

WEIR__EXPORT const char *omp_get_interop_name(struct weir__interop *object, int property)
{
    (void)object;
    return weir__interop_property_name(property);
}

WEIR__EXPORT const char *omp_get_interop_type_desc(struct weir__interop *object, int property)
{
    return weir__interop_type_text(object, property);
}

WEIR__EXPORT const char *omp_get_interop_rc_desc(struct weir__interop *object, int code)
{
    return weir__interop_code_text(object, code);
}

/* The name that libomp looks for. */
WEIR__EXPORT const char *omp_get_interop_rec_desc(struct weir__interop *object, int code)
{
    return weir__interop_code_text(object, code);
}

WEIR__EXPORT int omp_get_num_interop_properties(struct weir__interop *object)
{
    (void)object;
    return WEIR__IPR_OWN;
}

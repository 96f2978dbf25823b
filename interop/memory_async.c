/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <exec/work.h>

#include "interop/abi.h"
#include "interop/entries.h"
#include "interop/libomp.h"
#include "interop/runtime.h"
#include "interop/shim.h"
#include "interop/target_task.h"
#include "interop/transfer.h"

/*
 * The asynchronous copy routines (OpenMP 5.2 sections 18.8.7, 18.8.8; 6.0: memset) are target tasks with depend clauses
 * given at run time; their routine does the copy as a nowait construct. They are weir's own where it stands in front of
 * libomp, else libomp's. What the caller gave is copied into the task's own memory before the call returns.
 */
#define FAILED (-1)

struct async {
    struct weir__abi_task task; /* libomp's; the rest is private to the task and freed with it */
    bool is_fill;
    uint8_t value;
    struct weir__transfer transfer; /* a fill uses to, to_target and volume[0] */
    size_t vectors[];               /* volume, to_offsets, from_offsets, to_dims, from_dims */
};

static int32_t routine(int32_t gtid, void *arg)
{
    (void)gtid;
    struct async *async = arg;
    const struct weir__transfer *transfer = &async->transfer;
    int rc = async->is_fill
                 ? weir__transfer_fill(transfer->to_target, transfer->to, async->value, transfer->volume[0], true)
                 : weir__transfer_run(transfer, true);
    if (rc) weir__fatal("an asynchronous copy failed: %s", weir_error_string(rc));
    return 0;
}

/* Between devices that cannot do it the host copies. */
static int64_t device_of(const struct weir__transfer *transfer)
{
    const struct weir__target *to = transfer->to_target, *from = transfer->from_target;
    if (to && from && weir__device_ops_of(to->device) != weir__device_ops_of(from->device)) return WEIR__TARGET_BY_HOST;
    return to ? to->number : from ? from->number : WEIR__TARGET_BY_HOST;
}

static struct async *async_alloc(const struct weir__transfer *from, int32_t gtid)
{
    const struct weir__libomp *libomp = weir__libomp();
    size_t n = from->ndims, bytes = sizeof(struct async) + 5 * n * sizeof(size_t);
    struct async *async;
    if (!libomp->target_task_alloc || !libomp->task_with_deps)
        weir__fatal("libomp is too old for asynchronous copies: it has no __kmpc_omp_target_task_alloc");
    if (weir__shim_is_on())
        async = (struct async *)weir__target_task_alloc(gtid, WEIR__ABI_TASK_TIED, bytes, 0, routine, device_of(from));
    else
        async = (struct async *)libomp->target_task_alloc(NULL, gtid, WEIR__ABI_TASK_TIED, bytes, 0, routine, -1);
    if (!async) return NULL;
    async->is_fill = false;
    async->transfer = *from;
    const size_t **vectors[] = {&async->transfer.volume, &async->transfer.to_offsets, &async->transfer.from_offsets,
                                &async->transfer.to_dims, &async->transfer.from_dims};
    for (size_t i = 0; i < 5; i++) {
        if (!*vectors[i]) continue;
        *vectors[i] = memcpy(async->vectors + i * n, *vectors[i], n * sizeof(size_t));
    }
    return async;
}

/* A depend object is an array of dependences with its length in front. */
static size_t depend_count(int ndepends, void **depends)
{
    size_t n = 0;
    for (int i = 0; i < ndepends; i++)
        if (depends[i]) n += (size_t)((struct weir__abi_depend *)depends[i])[-1].base;
    return n;
}

/* Hands the task to libomp, which writes into the list of dependences that it is given. */
static int submit(struct async *async, int32_t gtid, int ndepends, void **depends)
{
    const struct weir__libomp *libomp = weir__libomp();
    struct weir__abi_depend room[16], *list = room;
    size_t n = depend_count(ndepends, depends);
    if (n > sizeof room / sizeof room[0]) list = malloc(n * sizeof *list);
    if (!list) weir__fatal("out of memory");
    size_t at = 0;
    for (int i = 0; i < ndepends; i++) {
        if (!depends[i]) continue;
        const struct weir__abi_depend *object = depends[i];
        memcpy(list + at, object, (size_t)object[-1].base * sizeof *list);
        at += (size_t)object[-1].base;
    }
    if (weir__target_task_is(&async->task))
        weir__target_task_submit(NULL, gtid, &async->task, (int32_t)n, list, 0, NULL);
    else
        libomp->task_with_deps(NULL, gtid, &async->task, (int32_t)n, list, 0, NULL);
    if (list != room) free(list);
    return 0;
}

static int transfer_submit(struct weir__transfer *transfer, int to_device, int from_device, int ndepends,
                           void **depends)
{
    if (ndepends < 0 || (ndepends && !depends)) return FAILED;
    if (weir__runtime_routine_target(to_device, &transfer->to_target) ||
        weir__runtime_routine_target(from_device, &transfer->from_target) || weir__transfer_check(transfer))
        return FAILED;
    int32_t gtid = weir__libomp()->global_thread_num(NULL);
    struct async *async = async_alloc(transfer, gtid);
    return async ? submit(async, gtid, ndepends, depends) : FAILED;
}

WEIR__EXPORT int omp_target_memcpy_async(void *to, const void *from, size_t bytes, size_t to_offset, size_t from_offset,
                                         int to_device, int from_device, int ndepends, void **depends)
{
    if (bytes && (!to || !from)) return FAILED;
    struct weir__transfer transfer = {
        .to = to,
        .from = from,
        .element_bytes = 1,
        .ndims = 1,
        .volume = &bytes,
        .to_offsets = &to_offset,
        .from_offsets = &from_offset,
    };
    return transfer_submit(&transfer, to_device, from_device, ndepends, depends);
}

WEIR__EXPORT int omp_target_memcpy_rect_async(void *to, const void *from, size_t element_bytes, int ndims,
                                              const size_t *volume, const size_t *to_offsets,
                                              const size_t *from_offsets, const size_t *to_dims,
                                              const size_t *from_dims, int to_device, int from_device, int ndepends,
                                              void **depends)
{
    if (!to && !from) return INT_MAX;
    struct weir__transfer transfer;
    if (!weir__transfer_rect(&transfer, to, from, element_bytes, ndims, volume, to_offsets, from_offsets, to_dims,
                             from_dims))
        return FAILED;
    return transfer_submit(&transfer, to_device, from_device, ndepends, depends);
}

WEIR__EXPORT void *omp_target_memset_async(void *to, int value, size_t bytes, int device, int ndepends, void **depends)
{
    size_t zero = 0;
    struct weir__transfer transfer = {
        .to = to,
        .element_bytes = 1,
        .ndims = 1,
        .volume = &bytes,
        .to_offsets = &zero,
        .from_offsets = &zero,
    };
    if (!to || ndepends < 0 || (ndepends && !depends)) return to;
    if (weir__runtime_routine_target(device, &transfer.to_target)) return to;
    int32_t gtid = weir__libomp()->global_thread_num(NULL);
    struct async *async = async_alloc(&transfer, gtid);
    if (!async) return to;
    async->is_fill = true;
    async->value = (uint8_t)value;
    (void)submit(async, gtid, ndepends, depends);
    return to;
}

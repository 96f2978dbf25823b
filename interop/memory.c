/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <limits.h>
#include <stdlib.h>

#include "interop/decode.h"
#include "interop/entries.h"
#include "interop/mapping.h"
#include "interop/runtime.h"
#include "interop/transfer.h"

/* Routines of OpenMP 5.2 section 18.8. They report a wrong device or argument by NULL, 0 or this; they never end the
 * program for it. */
#define FAILED (-1)

/* ---- memory ---- */

WEIR__EXPORT void *omp_target_alloc(size_t bytes, int device)
{
    struct weir__target *target;
    void *address = NULL;
    if (!bytes || weir__runtime_routine_target(device, &target)) return NULL;
    if (!target) return malloc(bytes);
    return weir_device_alloc(target->device, bytes, &address) ? NULL : address;
}

WEIR__EXPORT void omp_target_free(void *address, int device)
{
    struct weir__target *target;
    if (!address || weir__runtime_routine_target(device, &target)) return;
    if (!target)
        free(address);
    else if (weir_device_free(target->device, address))
        weir__warn("omp_target_free: %s", weir_error_text());
}

/* Memory that host and device both reach: on a CPU device that is any memory, elsewhere it is not offered. */
static void *alloc_common(size_t bytes, int device)
{
    struct weir__target *target;
    if (!bytes || weir__runtime_routine_target(device, &target)) return NULL;
    return !target || target->machine == WEIR__MACHINE_X86_64 ? malloc(bytes) : NULL;
}

WEIR__EXPORT void *llvm_omp_target_alloc_device(size_t bytes, int device)
{
    return omp_target_alloc(bytes, device);
}

WEIR__EXPORT void *llvm_omp_target_alloc_host(size_t bytes, int device)
{
    return alloc_common(bytes, device);
}

WEIR__EXPORT void *llvm_omp_target_alloc_shared(size_t bytes, int device)
{
    return alloc_common(bytes, device);
}

WEIR__EXPORT void llvm_omp_target_free_device(void *address, int device)
{
    omp_target_free(address, device);
}

WEIR__EXPORT void llvm_omp_target_free_host(void *address, int device)
{
    (void)device;
    free(address);
}

WEIR__EXPORT void llvm_omp_target_free_shared(void *address, int device)
{
    (void)device;
    free(address);
}

/* Pinning only makes copies faster; the address for the device is the same. */
WEIR__EXPORT void *llvm_omp_target_lock_mem(void *address, size_t bytes, int device)
{
    (void)bytes, (void)device;
    return address;
}

WEIR__EXPORT void llvm_omp_target_unlock_mem(void *address, int device)
{
    (void)address, (void)device;
}

/* Memory of a team, inside kernels; this is the host's version. */
WEIR__EXPORT void *llvm_omp_target_dynamic_shared_alloc(void)
{
    return NULL;
}

WEIR__EXPORT void *llvm_omp_get_dynamic_shared(void)
{
    return NULL;
}

/* ---- what is mapped ---- */

/* Where it is on the device once the construct that maps it has come to its turn; NULL before, and if it is not mapped.
 */
static void *mapped_address(const struct weir__target *target, const void *host)
{
    struct weir__found found;
    weir__table_find(target->table, (uintptr_t)host, 1, &found);
    if (found.relation != WEIR__FOUND_CONTAINED) return NULL;
    /* Sequentially consistent, as in weir__table_publish(): once it is not pending .since is there. */
    if (atomic_load(&found.entry->transfer) == WEIR__TRANSFER_PENDING) return NULL;
    struct weir__point since = {atomic_load(&found.entry->since)};
    if (since.value && weir__point_test(weir__runtime_peek()->context, since)) return NULL;
    return (void *)weir__found_address(&found, (uintptr_t)host);
}

WEIR__EXPORT int omp_target_is_present(const void *address, int device)
{
    struct weir__target *target;
    if (!address || weir__runtime_routine_target(device, &target)) return 0;
    return !target || mapped_address(target, address) != NULL;
}

WEIR__EXPORT int omp_target_is_accessible(const void *address, size_t bytes, int device)
{
    struct weir__target *target;
    if (!address || weir__runtime_routine_target(device, &target)) return 0;
    /* A CPU device reaches what the host reaches. */
    return !target || target->machine == WEIR__MACHINE_X86_64 ||
           weir__table_is_accessible(target->table, address, bytes);
}

WEIR__EXPORT void *omp_get_mapped_ptr(const void *host, int device)
{
    struct weir__target *target;
    if (!host || weir__runtime_routine_target(device, &target)) return NULL;
    return target ? mapped_address(target, host) : (void *)(uintptr_t)host;
}

WEIR__EXPORT int omp_target_associate_ptr(const void *host, const void *memory, size_t bytes, size_t offset, int device)
{
    struct weir__target *target;
    if (!host || !memory || !bytes || weir__runtime_routine_target(device, &target) || !target) return FAILED;
    return weir__table_associate(target->table, host, (char *)(uintptr_t)memory, bytes, offset) ? FAILED : 0;
}

WEIR__EXPORT int omp_target_disassociate_ptr(const void *host, int device)
{
    struct weir__target *target;
    if (!host || weir__runtime_routine_target(device, &target) || !target) return FAILED;
    return weir__table_disassociate(target->table, host) ? FAILED : 0;
}

/* ---- copies ---- */

WEIR__EXPORT int omp_target_memcpy(void *to, const void *from, size_t bytes, size_t to_offset, size_t from_offset,
                                   int to_device, int from_device)
{
    if (!bytes) return 0;
    struct weir__transfer transfer = {
        .to = to,
        .from = from,
        .element_bytes = 1,
        .ndims = 1,
        .volume = &bytes,
        .to_offsets = &to_offset,
        .from_offsets = &from_offset,
    };
    if (!to || !from || weir__runtime_routine_target(to_device, &transfer.to_target) ||
        weir__runtime_routine_target(from_device, &transfer.from_target))
        return FAILED;
    return weir__transfer_check(&transfer) || weir__transfer_run(&transfer, false) ? FAILED : 0;
}

WEIR__EXPORT int omp_target_memcpy_rect(void *to, const void *from, size_t element_bytes, int ndims,
                                        const size_t *volume, const size_t *to_offsets, const size_t *from_offsets,
                                        const size_t *to_dims, const size_t *from_dims, int to_device, int from_device)
{
    if (!to && !from) return INT_MAX; /* the question how many dimensions there may be */
    struct weir__transfer transfer;
    if (!weir__transfer_rect(&transfer, to, from, element_bytes, ndims, volume, to_offsets, from_offsets, to_dims,
                             from_dims))
        return FAILED;
    if (weir__runtime_routine_target(to_device, &transfer.to_target) ||
        weir__runtime_routine_target(from_device, &transfer.from_target))
        return FAILED;
    return weir__transfer_check(&transfer) || weir__transfer_run(&transfer, false) ? FAILED : 0;
}

WEIR__EXPORT void *omp_target_memset(void *to, int value, size_t bytes, int device)
{
    struct weir__target *target;
    if (!to || !bytes || weir__runtime_routine_target(device, &target)) return to;
    if (weir__transfer_fill(target, to, (uint8_t)value, bytes, false))
        weir__warn("omp_target_memset: %s", weir_error_text());
    return to;
}

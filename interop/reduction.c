/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "interop/reduction.h"

#include <string.h>

#include <exec/work.h>

#include "interop/data_internal.h"

/* What device code of clang 17 to 22 finds behind the leading pointer. It leaves the counters as they were. */
struct launch_environment {
    uint32_t teams_done, rounds;
    uint64_t buffer;
};
_Static_assert(sizeof(struct launch_environment) == 16, "launch environment");

enum { BUFFER_AT = 256 }; /* aligned for any type; what is before is the environment's */

int weir__reduction_begin(struct weir__region *region, const struct weir__shape *shape,
                          void **memory_out, uint64_t *pointer_out)
{
    const struct weir__device_ops *ops = weir__device_ops_of(region->device);
    void *handle = weir__device_handle_of(region->device), *memory;
    *pointer_out = 0;
    *memory_out = NULL;
    if (!weir__reduction_is_any(shape)) return WEIR_OK;
    size_t bytes = (size_t)shape->reduction_bytes * (size_t)shape->reduction_records;
    struct launch_environment *environment = weir__region_keep(region, sizeof *environment);
    if (!environment) return WEIR_E_NO_MEMORY;
    int rc = ops->alloc(handle, BUFFER_AT + bytes, &memory);
    if (rc) return weir__fail(rc, "%zu bytes of device memory for a reduction: %s", bytes, ops->last_error(handle));
    *environment = (struct launch_environment){0, 0, (uintptr_t)memory + BUFFER_AT};
    rc = weir__task_copy(region->task, &(struct weir__copy){.kind = WEIR__COPY_TO_DEVICE,
                                                            .to = memory,
                                                            .from = environment,
                                                            .bytes = sizeof *environment});
    if (rc) {
        weir__reduction_end(region, memory);
        return rc;
    }
    *memory_out = memory;
    *pointer_out = (uintptr_t)memory;
    return WEIR_OK;
}

void weir__reduction_end(struct weir__region *region, void *memory)
{
    if (memory) weir__region_free(region, memory);
}

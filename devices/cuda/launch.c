/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "internal.h"

#include <stdlib.h>

enum { SHARED_WITHOUT_ASKING = 48 * 1024 };

/* More dynamic shared memory than every device has must be asked for, once for each kernel. */
static int shared_allow(struct cuda_kernel *kernel, uint32_t bytes)
{
    struct cuda_device *device = kernel->module->device;
    int rc = WEIR_OK;
    /* Relaxed: it only grows, and an older value costs the lock. */
    if (bytes + (uint32_t)kernel->static_bytes <= SHARED_WITHOUT_ASKING ||
        bytes <= atomic_load_explicit(&kernel->dynamic_bytes, memory_order_relaxed))
        return WEIR_OK;
    if ((int64_t)bytes + kernel->static_bytes > device->shared_most)
        return weir__cuda_fail(WEIR_E_UNSUPPORTED, "%s: %u bytes of shared memory, the device has %d", kernel->name,
                               bytes + (uint32_t)kernel->static_bytes, device->shared_most);
    pthread_mutex_lock(&kernel->module->lock);
    if (bytes > atomic_load_explicit(&kernel->dynamic_bytes, memory_order_relaxed)) {
        rc = DRIVER(device, function_set, kernel->function,
                    (enum driver_function_attribute)DRIVER_FUNCTION_MAX_DYNAMIC_SHARED, (int)bytes);
        if (!rc) atomic_store_explicit(&kernel->dynamic_bytes, bytes, memory_order_relaxed);
    }
    pthread_mutex_unlock(&kernel->module->lock);
    return rc;
}

static unsigned dimension(uint32_t n)
{
    return n ? n : 1;
}

/* The driver copies the values during the call, as many bytes of each as the kernel's parameter has: the machine is
 * little endian. The list ends with a NULL entry, so that a reader that does not know the kernel finds its end. */
static int launch_values(struct cuda_stream *stream, const struct weir__launch *launch, void **params)
{
    const struct cuda_kernel *kernel = launch->kernel;
    for (uint32_t i = 0; i < launch->nargs; i++) params[i] = (void *)(uintptr_t)&launch->args[i];
    params[launch->nargs] = NULL;
    return DRIVER(stream->device, launch, kernel->function, dimension(launch->grid[0]), dimension(launch->grid[1]),
                  dimension(launch->grid[2]), dimension(launch->block[0]), dimension(launch->block[1]),
                  dimension(launch->block[2]), launch->shared_bytes, stream->handle, params, NULL);
}

int weir__cuda_launch(void *handle, const struct weir__launch *launch)
{
    struct cuda_stream *stream = handle;
    struct cuda_guard guard;
    void *few[ARGUMENTS_ON_STACK + 1], **params = few;
    if (launch->nargs > ARGUMENTS_ON_STACK) {
        params = malloc(((size_t)launch->nargs + 1) * sizeof *params);
        if (!params) return weir__cuda_fail(WEIR_E_NO_MEMORY, "no memory for the arguments of a kernel");
    }
    int rc = weir__cuda_enter(stream->device, &guard);
    if (!rc) {
        /* Where kernels can use pageable memory, this one may read what a late copy writes, and write anything. */
        if (stream->device->reads_host) rc = weir__cuda_call_settle_own(stream);
        if (!rc) rc = shared_allow(launch->kernel, launch->shared_bytes);
        if (!rc) rc = launch_values(stream, launch, params);
        if (stream->device->reads_host) weir__cuda_writes_anything(stream);
        weir__cuda_leave(&guard);
    }
    if (params != few) free(params);
    return rc;
}

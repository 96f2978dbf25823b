/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Questions about a pointer. */
#include "internal.h"

/* 8 bytes at most are written; 0 or an error code. */
static int answer(const struct range *range, int attribute, uint64_t address, void *value)
{
    bool is_host = range->kind == PINNED_RANGE || range->kind == REGISTERED_RANGE;
    bool is_pool = range->is_async;
    switch (attribute) {
    case CUDA_POINTER_CONTEXT:
        *(void **)value = is_pool ? NULL : range->context->handle;
        return 0;
    case CUDA_POINTER_MEMORY_TYPE:
        *(unsigned *)value = is_host ? CUDA_MEMORY_HOST : CUDA_MEMORY_DEVICE;
        return 0;
    case CUDA_POINTER_DEVICE_POINTER:
        *(uint64_t *)value = address;
        return 0;
    case CUDA_POINTER_HOST_POINTER:
        if (is_host) *(uint64_t *)value = address;
        return is_host ? 0 : CUDA_INVALID_VALUE;
    case CUDA_POINTER_SYNC_MEMOPS:
        *(unsigned *)value = 0;
        return 0;
    case CUDA_POINTER_BUFFER_ID:
        *(uint64_t *)value = range->id;
        return 0;
    case CUDA_POINTER_IS_MANAGED:
        *(unsigned *)value = 0;
        return 0;
    case CUDA_POINTER_DEVICE_ORDINAL:
        *(int *)value = range->device->ordinal;
        return 0;
    case CUDA_POINTER_RANGE_START:
        *(uint64_t *)value = range->base;
        return 0;
    case CUDA_POINTER_RANGE_SIZE:
        *(size_t *)value = range->bytes;
        return 0;
    case CUDA_POINTER_MEMPOOL:
        *(void **)value = is_pool ? emulator__handle_of(&range->device->pool->object) : NULL;
        return 0;
    default:
        return CUDA_INVALID_VALUE;
    }
}

int emulator__cuPointerGetAttribute(void *value, int attribute, uint64_t address)
{
    struct range *range = emulator__range_find(address);
    if (!value || !range) return CUDA_INVALID_VALUE; /* ordinary memory of the host included */
    if (range->is_freed) emulator__report("asks for memory after cuMemFreeAsync");
    return answer(range, attribute, address, value);
}

static size_t size_of(int attribute)
{
    switch (attribute) {
    case CUDA_POINTER_MEMORY_TYPE:
    case CUDA_POINTER_SYNC_MEMOPS:
    case CUDA_POINTER_IS_MANAGED:
    case CUDA_POINTER_DEVICE_ORDINAL:
        return 4;
    default:
        return 8;
    }
}

int emulator__cuPointerGetAttributes(unsigned count, int *attributes, void **values, uint64_t address)
{
    struct range *range = emulator__range_find(address);
    if (!count || !attributes || !values) return CUDA_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++) {
        if (range && !answer(range, attributes[i], address, values[i])) continue;
        for (size_t byte = 0; byte < size_of(attributes[i]); byte++) ((char *)values[i])[byte] = 0;
        if (!range && attributes[i] == CUDA_POINTER_DEVICE_ORDINAL) *(int *)values[i] = -2;
    }
    return 0;
}

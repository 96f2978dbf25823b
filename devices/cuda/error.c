/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/*
 * What the driver says, as codes of weir's. An error of asynchronous work is *sticky*: every later call returns it, so
 * the first call that meets it loses the device, keeps the text, and nobody asks the driver any more.
 */
#include "internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <devices/thread.h>

enum { TEXT = 256 };
static _Thread_local void *error_text;

int weir__cuda_fail(int code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = weir__thread_memory(&error_text, TEXT);
    if (text) vsnprintf(text, TEXT, format, args);
    va_end(args);
    return code;
}

const char *weir__cuda_last_error(void *device)
{
    (void)device;
    return error_text ? error_text : "";
}

/* cuda.h: "the process must be terminated", "the context must be destroyed", or the context is not there any more. */
static bool is_sticky(enum driver_result result)
{
    switch (result) {
    case DRIVER_DEINITIALIZED:
    case DRIVER_INVALID_CONTEXT:
    case DRIVER_ECC_UNCORRECTABLE:
    case DRIVER_NVLINK_UNCORRECTABLE:
    case DRIVER_CONTAINED:
    case DRIVER_ILLEGAL_ADDRESS:
    case DRIVER_LAUNCH_TIMEOUT:
    case DRIVER_CONTEXT_IS_DESTROYED:
    case DRIVER_ASSERT:
    case DRIVER_HARDWARE_STACK_ERROR:
    case DRIVER_ILLEGAL_INSTRUCTION:
    case DRIVER_MISALIGNED_ADDRESS:
    case DRIVER_INVALID_ADDRESS_SPACE:
    case DRIVER_INVALID_PC:
    case DRIVER_LAUNCH_FAILED:
    case DRIVER_TENSOR_MEMORY_LEAK:
    case DRIVER_MPS_CLIENT_TERMINATED:
    case DRIVER_UNKNOWN:
        return true;
    default:
        return false;
    }
}

static int code_of(enum driver_result result)
{
    switch (result) {
    case DRIVER_OUT_OF_MEMORY:
        return WEIR_E_NO_MEMORY;
    case DRIVER_NO_BINARY_FOR_GPU:
    case DRIVER_INVALID_IMAGE:
    case DRIVER_INVALID_PTX:
    case DRIVER_INVALID_SOURCE:
    case DRIVER_UNSUPPORTED_PTX_VERSION:
    case DRIVER_JIT_COMPILER_NOT_FOUND:
        return WEIR_E_IMAGE;
    case DRIVER_NOT_FOUND:
        return WEIR_E_NOT_FOUND;
    case DRIVER_NOT_READY:
        return WEIR_E_PENDING;
    case DRIVER_LAUNCH_OUT_OF_RESOURCES:
    case DRIVER_NOT_SUPPORTED:
        return WEIR_E_UNSUPPORTED;
    case DRIVER_INVALID_VALUE:
    case DRIVER_INVALID_HANDLE:
        return WEIR_E_INVALID;
    default:
        return WEIR_E_SYSTEM;
    }
}

static void lose(struct cuda_device *device)
{
    pthread_mutex_lock(&device->lost_lock);
    if (!atomic_load_explicit(&device->lost, memory_order_relaxed)) { /* under the lock */
        snprintf(device->lost_text, sizeof device->lost_text, "%.191s", weir__cuda_last_error(device));
        /* Release: the text; pairs with the acquire in weir__cuda_is_lost(). */
        atomic_store_explicit(&device->lost, true, memory_order_release);
    }
    pthread_mutex_unlock(&device->lost_lock);
}

int weir__cuda_result(struct cuda_device *device, enum driver_result result, enum weir__driver_call call)
{
    if (__builtin_expect(result == DRIVER_OK, 1)) return WEIR_OK;
    if (result == DRIVER_NOT_READY) return WEIR_E_PENDING;
    char *text = weir__thread_memory(&error_text, TEXT);
    if (text) weir__driver_describe(text, TEXT, weir__driver_symbols[call], result);
    if (!is_sticky(result)) return code_of(result);
    lose(device);
    return WEIR_E_DEVICE;
}

int weir__cuda_distrust(struct cuda_device *device, int rc)
{
    if (!rc || rc == WEIR_E_PENDING || rc == WEIR_E_FORKED) return rc;
    lose(device);
    return WEIR_E_DEVICE;
}

int weir__cuda_lost(struct cuda_device *device)
{
    return weir__cuda_fail(WEIR_E_DEVICE, "the device is lost since %s", device->lost_text);
}

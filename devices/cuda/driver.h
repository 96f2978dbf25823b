/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_DEVICES_CUDA_DRIVER_H
#define WEIR_DEVICES_CUDA_DRIVER_H

/*
 * The part of the CUDA Driver API that is used, declared here, so that no file of the vendor is needed to build. One table
 * of pointers is filled once from libcuda.so.1, each by the exact name of the function's binary interface: a name without
 * its suffix is the oldest one. tests/devices_cuda_header.c compares everything with cuda.h where that is installed; for
 * this the tags below can be mapped to those of cuda.h, and the types left out (WEIR__DRIVER_TYPES).
 */

#include <stddef.h>
#include <stdint.h>

/* Own name, name in cuda.h, value. */
#define WEIR__DRIVER_RESULTS(X)                                                                                        \
    X(OK, CUDA_SUCCESS, 0)                                                                                             \
    X(INVALID_VALUE, CUDA_ERROR_INVALID_VALUE, 1)                                                                      \
    X(OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY, 2)                                                                      \
    X(DEINITIALIZED, CUDA_ERROR_DEINITIALIZED, 4)                                                                      \
    X(STUB_LIBRARY, CUDA_ERROR_STUB_LIBRARY, 34)                                                                       \
    X(NO_DEVICE, CUDA_ERROR_NO_DEVICE, 100)                                                                            \
    X(INVALID_IMAGE, CUDA_ERROR_INVALID_IMAGE, 200)                                                                    \
    X(INVALID_CONTEXT, CUDA_ERROR_INVALID_CONTEXT, 201)                                                                \
    X(NO_BINARY_FOR_GPU, CUDA_ERROR_NO_BINARY_FOR_GPU, 209)                                                            \
    X(ECC_UNCORRECTABLE, CUDA_ERROR_ECC_UNCORRECTABLE, 214)                                                            \
    X(INVALID_PTX, CUDA_ERROR_INVALID_PTX, 218)                                                                        \
    X(NVLINK_UNCORRECTABLE, CUDA_ERROR_NVLINK_UNCORRECTABLE, 220)                                                      \
    X(JIT_COMPILER_NOT_FOUND, CUDA_ERROR_JIT_COMPILER_NOT_FOUND, 221)                                                  \
    X(UNSUPPORTED_PTX_VERSION, CUDA_ERROR_UNSUPPORTED_PTX_VERSION, 222)                                                \
    X(CONTAINED, CUDA_ERROR_CONTAINED, 226)                                                                            \
    X(INVALID_SOURCE, CUDA_ERROR_INVALID_SOURCE, 300)                                                                  \
    X(INVALID_HANDLE, CUDA_ERROR_INVALID_HANDLE, 400)                                                                  \
    X(NOT_FOUND, CUDA_ERROR_NOT_FOUND, 500)                                                                            \
    X(NOT_READY, CUDA_ERROR_NOT_READY, 600)                                                                            \
    X(ILLEGAL_ADDRESS, CUDA_ERROR_ILLEGAL_ADDRESS, 700)                                                                \
    X(LAUNCH_OUT_OF_RESOURCES, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, 701)                                                \
    X(LAUNCH_TIMEOUT, CUDA_ERROR_LAUNCH_TIMEOUT, 702)                                                                  \
    X(CONTEXT_IS_DESTROYED, CUDA_ERROR_CONTEXT_IS_DESTROYED, 709)                                                      \
    X(ASSERT, CUDA_ERROR_ASSERT, 710)                                                                                  \
    X(HARDWARE_STACK_ERROR, CUDA_ERROR_HARDWARE_STACK_ERROR, 714)                                                      \
    X(ILLEGAL_INSTRUCTION, CUDA_ERROR_ILLEGAL_INSTRUCTION, 715)                                                        \
    X(MISALIGNED_ADDRESS, CUDA_ERROR_MISALIGNED_ADDRESS, 716)                                                          \
    X(INVALID_ADDRESS_SPACE, CUDA_ERROR_INVALID_ADDRESS_SPACE, 717)                                                    \
    X(INVALID_PC, CUDA_ERROR_INVALID_PC, 718)                                                                          \
    X(LAUNCH_FAILED, CUDA_ERROR_LAUNCH_FAILED, 719)                                                                    \
    X(TENSOR_MEMORY_LEAK, CUDA_ERROR_TENSOR_MEMORY_LEAK, 721)                                                          \
    X(NOT_SUPPORTED, CUDA_ERROR_NOT_SUPPORTED, 801)                                                                    \
    X(MPS_CLIENT_TERMINATED, CUDA_ERROR_MPS_CLIENT_TERMINATED, 810)                                                    \
    X(UNKNOWN, CUDA_ERROR_UNKNOWN, 999)

#define WEIR__DRIVER_DEVICE_ATTRIBUTES(X)                                                                              \
    X(MAX_THREADS_PER_BLOCK, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1)                                             \
    X(MAX_GRID_DIM_X, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 5)                                                           \
    X(WARP_SIZE, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 10)                                                                    \
    X(MAX_PITCH, CU_DEVICE_ATTRIBUTE_MAX_PITCH, 11)                                                                    \
    X(MULTIPROCESSOR_COUNT, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 16)                                              \
    X(COMPUTE_CAPABILITY_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 75)                                      \
    X(COMPUTE_CAPABILITY_MINOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 76)                                      \
    X(PAGEABLE_MEMORY_ACCESS, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, 88)                                          \
    X(MAX_SHARED_OPTIN, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 97)

#define WEIR__DRIVER_CONSTANTS(X)                                                                                      \
    X(STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING, 1)                                                                  \
    X(EVENT_BLOCKING_SYNC, CU_EVENT_BLOCKING_SYNC, 1)                                                                  \
    X(EVENT_DISABLE_TIMING, CU_EVENT_DISABLE_TIMING, 2)                                                                \
    X(HOST_PORTABLE, CU_MEMHOSTALLOC_PORTABLE, 1)                                                                      \
    X(MEMORY_HOST, CU_MEMORYTYPE_HOST, 1)                                                                              \
    X(MEMORY_DEVICE, CU_MEMORYTYPE_DEVICE, 2)                                                                          \
    X(POINTER_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 2)                                                        \
    X(FUNCTION_SHARED_BYTES, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, 1)                                                   \
    X(FUNCTION_MAX_DYNAMIC_SHARED, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 8)                                 \
    X(CAPTURE_MODE_RELAXED, CU_STREAM_CAPTURE_MODE_RELAXED, 2)                                                         \
    X(JIT_ERROR_LOG, CU_JIT_ERROR_LOG_BUFFER, 5)                                                                       \
    X(JIT_ERROR_LOG_BYTES, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, 6)

#define WEIR__DRIVER_ENUMERATOR(own, theirs, value) DRIVER_##own = (value),

struct driver_context;
struct driver_stream;
struct driver_event;
struct driver_module;
struct driver_function;

#ifndef WEIR__DRIVER_TYPES
enum driver_result { WEIR__DRIVER_RESULTS(WEIR__DRIVER_ENUMERATOR) };
enum driver_device_attribute { WEIR__DRIVER_DEVICE_ATTRIBUTES(WEIR__DRIVER_ENUMERATOR) };
enum driver_constant { WEIR__DRIVER_CONSTANTS(WEIR__DRIVER_ENUMERATOR) };
enum driver_pointer_attribute { DRIVER_POINTER_ATTRIBUTE_NONE };
enum driver_function_attribute { DRIVER_FUNCTION_ATTRIBUTE_NONE };
enum driver_jit_option { DRIVER_JIT_OPTION_NONE };
enum driver_capture_status { DRIVER_CAPTURE_STATUS_NONE };
enum driver_capture_mode { DRIVER_CAPTURE_MODE_NONE };

struct driver_copy_2d {
    size_t from_x, from_y;
    unsigned from_type;
    const void *from_host;
    unsigned long long from_device;
    void *from_array;
    size_t from_pitch;
    size_t to_x, to_y;
    unsigned to_type;
    void *to_host;
    unsigned long long to_device;
    void *to_array;
    size_t to_pitch;
    size_t bytes, rows;
};

struct driver_copy_peer {
    size_t from_x, from_y, from_z, from_lod;
    unsigned from_type;
    const void *from_host;
    unsigned long long from_device;
    void *from_array;
    struct driver_context *from_context;
    size_t from_pitch, from_height;
    size_t to_x, to_y, to_z, to_lod;
    unsigned to_type;
    void *to_host;
    unsigned long long to_device;
    void *to_array;
    struct driver_context *to_context;
    size_t to_pitch, to_height;
    size_t bytes, rows, planes;
};
#endif


/* A device address is an integer to the driver. */
#define WEIR__DRIVER_ADDRESS unsigned long long

/*
 * Field, symbol, older symbol of the same interface or NULL, parameters. Each returns enum driver_result. Without one of
 * the first list there are no devices; NEWER ones may be NULL, and what is lost without them stands beside their use.
 */
#define WEIR__DRIVER_CALLS(X)                                                                                          \
    X(init, cuInit, NULL, (unsigned flags))                                                                            \
    X(version, cuDriverGetVersion, NULL, (int *version_out))                                                           \
    X(error_name, cuGetErrorName, NULL, (enum driver_result, const char **text_out))                                   \
    X(error_string, cuGetErrorString, NULL, (enum driver_result, const char **text_out))                               \
    X(device_get, cuDeviceGet, NULL, (int *device_out, int ordinal))                                                   \
    X(device_count, cuDeviceGetCount, NULL, (int *count_out))                                                          \
    X(device_name, cuDeviceGetName, NULL, (char *name_out, int bytes, int device))                                     \
    X(device_memory, cuDeviceTotalMem_v2, NULL, (size_t *bytes_out, int device))                                       \
    X(device_attribute, cuDeviceGetAttribute, NULL, (int *value_out, enum driver_device_attribute, int device))        \
    X(context_retain, cuDevicePrimaryCtxRetain, NULL, (struct driver_context **context_out, int device))               \
    X(context_release, cuDevicePrimaryCtxRelease_v2, "cuDevicePrimaryCtxRelease", (int device))                        \
    X(context_push, cuCtxPushCurrent_v2, NULL, (struct driver_context *))                                              \
    X(context_pop, cuCtxPopCurrent_v2, NULL, (struct driver_context **context_out))                                    \
    X(context_get, cuCtxGetCurrent, NULL, (struct driver_context **context_out))                                       \
    X(context_set, cuCtxSetCurrent, NULL, (struct driver_context *))                                                   \
    X(priority_range, cuCtxGetStreamPriorityRange, NULL, (int *least_out, int *greatest_out))                          \
    X(peer_can_access, cuDeviceCanAccessPeer, NULL, (int *can_out, int device, int peer))                              \
    X(peer_enable, cuCtxEnablePeerAccess, NULL, (struct driver_context *peer, unsigned flags))                         \
    X(stream_create, cuStreamCreateWithPriority, NULL, (struct driver_stream **, unsigned flags, int priority))        \
    X(stream_destroy, cuStreamDestroy_v2, NULL, (struct driver_stream *))                                              \
    X(stream_context, cuStreamGetCtx, NULL, (struct driver_stream *, struct driver_context **context_out))              \
    X(stream_sync, cuStreamSynchronize, NULL, (struct driver_stream *))                                                \
    X(stream_wait, cuStreamWaitEvent, NULL, (struct driver_stream *, struct driver_event *, unsigned flags))           \
    X(stream_call, cuLaunchHostFunc, NULL, (struct driver_stream *, void (*function)(void *arg), void *arg))           \
    X(stream_capturing, cuStreamIsCapturing, NULL, (struct driver_stream *, enum driver_capture_status *status_out))   \
    X(capture_mode, cuThreadExchangeStreamCaptureMode, NULL, (enum driver_capture_mode *))                             \
    X(event_create, cuEventCreate, NULL, (struct driver_event **, unsigned flags))                                     \
    X(event_destroy, cuEventDestroy_v2, NULL, (struct driver_event *))                                                 \
    X(event_record, cuEventRecord, NULL, (struct driver_event *, struct driver_stream *))                              \
    X(event_query, cuEventQuery, NULL, (struct driver_event *))                                                        \
    X(event_sync, cuEventSynchronize, NULL, (struct driver_event *))                                                   \
    X(memory_alloc, cuMemAlloc_v2, NULL, (WEIR__DRIVER_ADDRESS *, size_t bytes))                                       \
    X(memory_free, cuMemFree_v2, NULL, (WEIR__DRIVER_ADDRESS))                                                         \
    X(pinned_alloc, cuMemHostAlloc, NULL, (void **, size_t bytes, unsigned flags))                                     \
    X(pinned_free, cuMemFreeHost, NULL, (void *))                                                                      \
    X(pointer_attributes, cuPointerGetAttributes, NULL,                                                                \
      (unsigned n, enum driver_pointer_attribute *, void **values, WEIR__DRIVER_ADDRESS))                              \
    X(copy_to, cuMemcpyHtoDAsync_v2, NULL,                                                                             \
      (WEIR__DRIVER_ADDRESS to, const void *from, size_t bytes, struct driver_stream *))                               \
    X(copy_from, cuMemcpyDtoHAsync_v2, NULL,                                                                           \
      (void *to, WEIR__DRIVER_ADDRESS from, size_t bytes, struct driver_stream *))                                     \
    X(copy_on, cuMemcpyDtoDAsync_v2, NULL,                                                                             \
      (WEIR__DRIVER_ADDRESS to, WEIR__DRIVER_ADDRESS from, size_t bytes, struct driver_stream *))                      \
    X(copy_peer, cuMemcpyPeerAsync, NULL,                                                                              \
      (WEIR__DRIVER_ADDRESS to, struct driver_context *, WEIR__DRIVER_ADDRESS from, struct driver_context *,           \
       size_t bytes, struct driver_stream *))                                                                          \
    X(copy_2d, cuMemcpy2DAsync_v2, NULL, (const struct driver_copy_2d *, struct driver_stream *))                      \
    X(copy_rows_peer, cuMemcpy3DPeerAsync, NULL, (const struct driver_copy_peer *, struct driver_stream *))            \
    X(fill, cuMemsetD8Async, NULL,                                                                                     \
      (WEIR__DRIVER_ADDRESS to, unsigned char value, size_t count, struct driver_stream *))                            \
    X(module_load, cuModuleLoadDataEx, NULL,                                                                           \
      (struct driver_module **, const void *image, unsigned n, enum driver_jit_option *, void **values))               \
    X(module_unload, cuModuleUnload, NULL, (struct driver_module *))                                                   \
    X(module_function, cuModuleGetFunction, NULL, (struct driver_function **, struct driver_module *, const char *))   \
    X(module_variable, cuModuleGetGlobal_v2, NULL,                                                                     \
      (WEIR__DRIVER_ADDRESS *, size_t *bytes_out, struct driver_module *, const char *))                               \
    X(function_attribute, cuFuncGetAttribute, NULL,                                                                    \
      (int *value_out, enum driver_function_attribute, struct driver_function *))                                      \
    X(function_set, cuFuncSetAttribute, NULL, (struct driver_function *, enum driver_function_attribute, int value))   \
    X(launch, cuLaunchKernel, NULL,                                                                                    \
      (struct driver_function *, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,         \
       unsigned shared_bytes, struct driver_stream *, void **params, void **extra))

#define WEIR__DRIVER_NEWER_CALLS(X)                                                                                    \
    X(function_load, cuFuncLoad, NULL, (struct driver_function *))

struct weir__driver {
#define WEIR_X(field, symbol, older, parameters) enum driver_result(*field) parameters;
    WEIR__DRIVER_CALLS(WEIR_X)
    WEIR__DRIVER_NEWER_CALLS(WEIR_X)
#undef WEIR_X
    int number; /* of its version: 12040 is 12.4 */
};

/* A number and the symbol of each call, for messages. */
enum weir__driver_call {
#define WEIR_X(field, symbol, older, parameters) WEIR__DRIVER_##field,
    WEIR__DRIVER_CALLS(WEIR_X)
    WEIR__DRIVER_NEWER_CALLS(WEIR_X)
#undef WEIR_X
};
extern const char *const weir__driver_symbols[];

/* "cuInit: CUDA_ERROR_UNKNOWN (999): unknown error", as the driver says. Only with its functions there. */
void weir__driver_describe(char *text, size_t bytes, const char *symbol, enum driver_result result);

/* NULL until it is open, then for ever the same. */
extern const struct weir__driver *weir__cuda_driver;

/*
 * Open the driver and initialise it, once in a process.
 * @reason_out  when NULL is returned: why, static text.
 * Threads      any. BLOCKS while the driver initialises itself.
 */
const struct weir__driver *weir__driver_open(const char **reason_out);

#endif

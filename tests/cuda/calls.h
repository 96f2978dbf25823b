/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Every entry point of the emulated driver: one row each. Included several times with different meanings of
 *
 *   CALL(symbol, since, class, parameters, arguments)         exported as it stands
 *   CALL_PTSZ(...), CALL_PTDS(...)                            also with _ptsz or _ptds: stream 0 is the thread's own
 *   OLD(symbol)                                               the superseded name of an older interface
 *
 * @since is 1000 * major + 10 * minor of the driver that had it first; 11.0 and older count as 11000. The class says
 * what must hold before the call:
 *
 *   ANY      nothing, it works without cuInit and in host functions
 *   INIT     cuInit
 *   HANDLE   cuInit; the context is found from a handle, whose owner's sticky error is returned
 *   QUIET    a context is current; an earlier asynchronous error is not returned
 *   CURRENT  a context is current; its sticky error is returned
 */
CALL(cuInit, 11000, ANY, (unsigned flags), (flags))
CALL(cuDriverGetVersion, 11000, ANY, (int *version), (version))
CALL(cuGetErrorName, 11000, ANY, (int code, const char **text), (code, text))
CALL(cuGetErrorString, 11000, ANY, (int code, const char **text), (code, text))
CALL(cuGetProcAddress, 11030, ANY, (const char *name, void **function, int version, uint64_t flags),
     (name, function, version, flags))
CALL(cuGetProcAddress_v2, 12000, ANY, (const char *name, void **function, int version, uint64_t flags, int *status),
     (name, function, version, flags, status))

CALL(cuDeviceGet, 11000, INIT, (int *device, int ordinal), (device, ordinal))
CALL(cuDeviceGetCount, 11000, INIT, (int *count), (count))
CALL(cuDeviceGetName, 11000, INIT, (char *name, int bytes, int device), (name, bytes, device))
CALL(cuDeviceGetUuid, 11000, INIT, (struct cuda_uuid * uuid, int device), (uuid, device))
CALL(cuDeviceGetUuid_v2, 11040, INIT, (struct cuda_uuid * uuid, int device), (uuid, device))
CALL(cuDeviceTotalMem_v2, 11000, INIT, (size_t *bytes, int device), (bytes, device))
CALL(cuDeviceGetAttribute, 11000, INIT, (int *value, int attribute, int device), (value, attribute, device))
CALL(cuDevicePrimaryCtxRetain, 11000, INIT, (void **context, int device), (context, device))
CALL(cuDevicePrimaryCtxGetState, 11000, INIT, (int device, unsigned *flags, int *active), (device, flags, active))
CALL(cuDevicePrimaryCtxRelease_v2, 11000, INIT, (int device), (device))
CALL(cuDevicePrimaryCtxReset_v2, 11000, INIT, (int device), (device))
CALL(cuDevicePrimaryCtxSetFlags_v2, 11000, INIT, (int device, unsigned flags), (device, flags))
CALL(cuDeviceCanAccessPeer, 11000, INIT, (int *can, int device, int peer), (can, device, peer))
CALL(cuDeviceGetDefaultMemPool, 11020, INIT, (void **pool, int device), (pool, device))

CALL(cuCtxCreate_v2, 11000, INIT, (void **context, unsigned flags, int device), (context, flags, device))
CALL(cuCtxDestroy_v2, 11000, INIT, (void *context), (context))
CALL(cuCtxPushCurrent_v2, 11000, INIT, (void *context), (context))
CALL(cuCtxPopCurrent_v2, 11000, INIT, (void **context), (context))
CALL(cuCtxSetCurrent, 11000, INIT, (void *context), (context))
CALL(cuCtxGetCurrent, 11000, INIT, (void **context), (context))
CALL(cuCtxGetDevice, 11000, QUIET, (int *device), (device))
CALL(cuCtxGetDevice_v2, 13000, INIT, (int *device, void *context), (device, context))
CALL(cuCtxSynchronize, 11000, CURRENT, (void), ())
CALL(cuCtxSynchronize_v2, 13000, INIT, (void *context), (context))
CALL(cuCtxGetStreamPriorityRange, 11000, CURRENT, (int *least, int *greatest), (least, greatest))
CALL(cuCtxGetId, 12000, INIT, (void *context, uint64_t *id), (context, id))
CALL(cuCtxRecordEvent, 12050, HANDLE, (void *context, void *event), (context, event))
CALL(cuCtxWaitEvent, 12050, HANDLE, (void *context, void *event), (context, event))
CALL(cuCtxEnablePeerAccess, 11000, CURRENT, (void *peer, unsigned flags), (peer, flags))
CALL(cuCtxDisablePeerAccess, 11000, CURRENT, (void *peer), (peer))

CALL(cuStreamCreate, 11000, CURRENT, (void **stream, unsigned flags), (stream, flags))
CALL(cuStreamCreateWithPriority, 11000, CURRENT, (void **stream, unsigned flags, int priority),
     (stream, flags, priority))
CALL(cuStreamDestroy_v2, 11000, CURRENT, (void *stream), (stream))
CALL_PTSZ(cuStreamQuery, 11000, CURRENT, (void *stream), (stream))
CALL_PTSZ(cuStreamSynchronize, 11000, CURRENT, (void *stream), (stream))
CALL_PTSZ(cuStreamWaitEvent, 11000, CURRENT, (void *stream, void *event, unsigned flags), (stream, event, flags))
CALL_PTSZ(cuStreamGetPriority, 11000, CURRENT, (void *stream, int *priority), (stream, priority))
CALL_PTSZ(cuStreamGetFlags, 11000, CURRENT, (void *stream, unsigned *flags), (stream, flags))
CALL_PTSZ(cuStreamGetCtx, 11000, CURRENT, (void *stream, void **context), (stream, context))
CALL_PTSZ(cuStreamGetId, 12000, CURRENT, (void *stream, uint64_t *id), (stream, id))
CALL_PTSZ(cuStreamGetDevice, 12080, CURRENT, (void *stream, int *device), (stream, device))
CALL_PTSZ(cuLaunchHostFunc, 11000, CURRENT, (void *stream, void (*function)(void *), void *arg),
          (stream, function, arg))
CALL_PTSZ(cuStreamAddCallback, 11000, CURRENT,
          (void *stream, void (*function)(void *, int, void *), void *arg, unsigned flags),
          (stream, function, arg, flags))

CALL(cuEventCreate, 11000, CURRENT, (void **event, unsigned flags), (event, flags))
CALL(cuEventDestroy_v2, 11000, CURRENT, (void *event), (event))
CALL_PTSZ(cuEventRecord, 11000, CURRENT, (void *event, void *stream), (event, stream))
CALL_PTSZ(cuEventRecordWithFlags, 11010, CURRENT, (void *event, void *stream, unsigned flags), (event, stream, flags))
CALL(cuEventQuery, 11000, HANDLE, (void *event), (event))
CALL(cuEventSynchronize, 11000, CURRENT, (void *event), (event))
CALL(cuEventElapsedTime, 11000, HANDLE, (float *ms, void *start, void *end), (ms, start, end))
CALL(cuEventElapsedTime_v2, 12080, HANDLE, (float *ms, void *start, void *end), (ms, start, end))

CALL(cuMemAlloc_v2, 11000, CURRENT, (uint64_t *address, size_t bytes), (address, bytes))
CALL(cuMemFree_v2, 11000, CURRENT, (uint64_t address), (address))
CALL(cuMemGetInfo_v2, 11000, CURRENT, (size_t *unused, size_t *total), (unused, total))
CALL(cuMemGetAddressRange_v2, 11000, CURRENT, (uint64_t *base, size_t *bytes, uint64_t address), (base, bytes, address))
CALL_PTSZ(cuMemAllocAsync, 11020, QUIET, (uint64_t *address, size_t bytes, void *stream), (address, bytes, stream))
CALL_PTSZ(cuMemFreeAsync, 11020, QUIET, (uint64_t address, void *stream), (address, stream))
CALL_PTSZ(cuMemAllocFromPoolAsync, 11020, QUIET, (uint64_t *address, size_t bytes, void *pool, void *stream),
          (address, bytes, pool, stream))
CALL(cuMemPoolGetAttribute, 11020, INIT, (void *pool, int attribute, void *value), (pool, attribute, value))
CALL(cuMemPoolSetAttribute, 11020, INIT, (void *pool, int attribute, void *value), (pool, attribute, value))
CALL(cuMemPoolTrimTo, 11020, INIT, (void *pool, size_t bytes), (pool, bytes))
CALL(cuMemHostAlloc, 11000, CURRENT, (void **address, size_t bytes, unsigned flags), (address, bytes, flags))
CALL(cuMemFreeHost, 11000, CURRENT, (void *address), (address))
CALL(cuMemHostRegister_v2, 11000, CURRENT, (void *address, size_t bytes, unsigned flags), (address, bytes, flags))
CALL(cuMemHostUnregister, 11000, CURRENT, (void *address), (address))
CALL(cuMemHostGetDevicePointer_v2, 11000, CURRENT, (uint64_t *device, void *host, unsigned flags),
     (device, host, flags))
CALL(cuPointerGetAttribute, 11000, CURRENT, (void *value, int attribute, uint64_t address), (value, attribute, address))
CALL(cuPointerGetAttributes, 11000, CURRENT, (unsigned count, int *attributes, void **values, uint64_t address),
     (count, attributes, values, address))

CALL_PTDS(cuMemcpyHtoD_v2, 11000, CURRENT, (uint64_t to, const void *from, size_t bytes), (to, from, bytes))
CALL_PTDS(cuMemcpyDtoH_v2, 11000, CURRENT, (void *to, uint64_t from, size_t bytes), (to, from, bytes))
CALL_PTDS(cuMemcpyDtoD_v2, 11000, CURRENT, (uint64_t to, uint64_t from, size_t bytes), (to, from, bytes))
CALL_PTDS(cuMemcpy, 11000, CURRENT, (uint64_t to, uint64_t from, size_t bytes), (to, from, bytes))
CALL_PTDS(cuMemcpyPeer, 11000, CURRENT,
          (uint64_t to, void *to_context, uint64_t from, void *from_context, size_t bytes),
          (to, to_context, from, from_context, bytes))
CALL_PTSZ(cuMemcpyHtoDAsync_v2, 11000, CURRENT, (uint64_t to, const void *from, size_t bytes, void *stream),
          (to, from, bytes, stream))
CALL_PTSZ(cuMemcpyDtoHAsync_v2, 11000, CURRENT, (void *to, uint64_t from, size_t bytes, void *stream),
          (to, from, bytes, stream))
CALL_PTSZ(cuMemcpyDtoDAsync_v2, 11000, CURRENT, (uint64_t to, uint64_t from, size_t bytes, void *stream),
          (to, from, bytes, stream))
CALL_PTSZ(cuMemcpyAsync, 11000, CURRENT, (uint64_t to, uint64_t from, size_t bytes, void *stream),
          (to, from, bytes, stream))
CALL_PTSZ(cuMemcpyPeerAsync, 11000, CURRENT,
          (uint64_t to, void *to_context, uint64_t from, void *from_context, size_t bytes, void *stream),
          (to, to_context, from, from_context, bytes, stream))
CALL_PTDS(cuMemcpy2D_v2, 11000, CURRENT, (const struct cuda_copy_2d *copy), (copy))
CALL_PTDS(cuMemcpy2DUnaligned_v2, 11000, CURRENT, (const struct cuda_copy_2d *copy), (copy))
CALL_PTDS(cuMemcpy3D_v2, 11000, CURRENT, (const struct cuda_copy_3d *copy), (copy))
CALL_PTDS(cuMemcpy3DPeer, 11000, CURRENT, (const struct cuda_copy_3d *copy), (copy))
CALL_PTSZ(cuMemcpy2DAsync_v2, 11000, CURRENT, (const struct cuda_copy_2d *copy, void *stream), (copy, stream))
CALL_PTSZ(cuMemcpy3DAsync_v2, 11000, CURRENT, (const struct cuda_copy_3d *copy, void *stream), (copy, stream))
CALL_PTSZ(cuMemcpy3DPeerAsync, 11000, CURRENT, (const struct cuda_copy_3d *copy, void *stream), (copy, stream))
CALL_PTSZ(cuMemcpyBatchAsync, 12080, CURRENT,
          (uint64_t *to, uint64_t *from, size_t *bytes, size_t count, struct cuda_copy_attributes *attributes,
           size_t *first, size_t attribute_count, size_t *failed, void *stream),
          (to, from, bytes, count, attributes, first, attribute_count, failed, stream))
CALL_PTSZ(cuMemcpyBatchAsync_v2, 13000, CURRENT,
          (uint64_t *to, uint64_t *from, size_t *bytes, size_t count, struct cuda_copy_attributes *attributes,
           size_t *first, size_t attribute_count, void *stream),
          (to, from, bytes, count, attributes, first, attribute_count, stream))
CALL_PTDS(cuMemsetD8_v2, 11000, CURRENT, (uint64_t to, unsigned char value, size_t count), (to, value, count))
CALL_PTDS(cuMemsetD16_v2, 11000, CURRENT, (uint64_t to, unsigned short value, size_t count), (to, value, count))
CALL_PTDS(cuMemsetD32_v2, 11000, CURRENT, (uint64_t to, unsigned value, size_t count), (to, value, count))
CALL_PTDS(cuMemsetD2D8_v2, 11000, CURRENT,
          (uint64_t to, size_t pitch, unsigned char value, size_t width, size_t height),
          (to, pitch, value, width, height))
CALL_PTDS(cuMemsetD2D16_v2, 11000, CURRENT,
          (uint64_t to, size_t pitch, unsigned short value, size_t width, size_t height),
          (to, pitch, value, width, height))
CALL_PTDS(cuMemsetD2D32_v2, 11000, CURRENT, (uint64_t to, size_t pitch, unsigned value, size_t width, size_t height),
          (to, pitch, value, width, height))
CALL_PTSZ(cuMemsetD8Async, 11000, CURRENT, (uint64_t to, unsigned char value, size_t count, void *stream),
          (to, value, count, stream))
CALL_PTSZ(cuMemsetD16Async, 11000, CURRENT, (uint64_t to, unsigned short value, size_t count, void *stream),
          (to, value, count, stream))
CALL_PTSZ(cuMemsetD32Async, 11000, CURRENT, (uint64_t to, unsigned value, size_t count, void *stream),
          (to, value, count, stream))
CALL_PTSZ(cuMemsetD2D8Async, 11000, CURRENT,
          (uint64_t to, size_t pitch, unsigned char value, size_t width, size_t height, void *stream),
          (to, pitch, value, width, height, stream))
CALL_PTSZ(cuMemsetD2D16Async, 11000, CURRENT,
          (uint64_t to, size_t pitch, unsigned short value, size_t width, size_t height, void *stream),
          (to, pitch, value, width, height, stream))
CALL_PTSZ(cuMemsetD2D32Async, 11000, CURRENT,
          (uint64_t to, size_t pitch, unsigned value, size_t width, size_t height, void *stream),
          (to, pitch, value, width, height, stream))

CALL(cuModuleLoadData, 11000, CURRENT, (void **module, const void *image), (module, image))
CALL(cuModuleLoadFatBinary, 11000, CURRENT, (void **module, const void *image), (module, image))
CALL(cuModuleLoadDataEx, 11000, CURRENT,
     (void **module, const void *image, unsigned count, int *options, void **values),
     (module, image, count, options, values))
CALL(cuModuleUnload, 11000, CURRENT, (void *module), (module))
CALL(cuModuleGetFunction, 11000, CURRENT, (void **function, void *module, const char *name), (function, module, name))
CALL(cuModuleGetGlobal_v2, 11000, CURRENT, (uint64_t *address, size_t *bytes, void *module, const char *name),
     (address, bytes, module, name))
CALL(cuModuleGetLoadingMode, 11070, INIT, (int *mode), (mode))
CALL(cuLibraryLoadData, 12000, INIT,
     (void **library, const void *image, int *jit, void **jit_values, unsigned jit_count, int *options, void **values,
      unsigned count),
     (library, image, jit, jit_values, jit_count, options, values, count))
CALL(cuLibraryUnload, 12000, INIT, (void *library), (library))
CALL(cuLibraryGetKernel, 12000, INIT, (void **kernel, void *library, const char *name), (kernel, library, name))
CALL(cuKernelGetFunction, 12000, QUIET, (void **function, void *kernel), (function, kernel))
CALL(cuLibraryGetGlobal, 12000, QUIET, (uint64_t *address, size_t *bytes, void *library, const char *name),
     (address, bytes, library, name))
CALL(cuFuncGetAttribute, 11000, CURRENT, (int *value, int attribute, void *function), (value, attribute, function))
CALL(cuFuncSetAttribute, 11000, CURRENT, (void *function, int attribute, int value), (function, attribute, value))
CALL(cuFuncLoad, 12040, QUIET, (void *function), (function))
CALL(cuFuncIsLoaded, 12040, QUIET, (int *loaded, void *function), (loaded, function))
CALL(cuFuncGetParamInfo, 12040, QUIET, (void *function, size_t index, size_t *offset, size_t *bytes),
     (function, index, offset, bytes))
CALL_PTSZ(cuLaunchKernel, 11000, CURRENT,
          (void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
           unsigned block_z, unsigned shared_bytes, void *stream, void **arguments, void **extra),
          (function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream, arguments, extra))
CALL_PTSZ(cuLaunchKernelEx, 11060, CURRENT,
          (const struct cuda_launch_config *config, void *function, void **arguments, void **extra),
          (config, function, arguments, extra))
CALL_PTSZ(cuLaunchCooperativeKernel, 11000, CURRENT,
          (void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
           unsigned block_z, unsigned shared_bytes, void *stream, void **arguments),
          (function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream, arguments))
CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor, 11000, CURRENT,
     (int *blocks, void *function, int block, size_t shared_bytes), (blocks, function, block, shared_bytes))
CALL(cuOccupancyMaxPotentialBlockSize, 11000, CURRENT,
     (int *grid, int *block, void *function, size_t (*shared_bytes)(int), size_t fixed_bytes, int limit),
     (grid, block, function, shared_bytes, fixed_bytes, limit))

CALL_PTSZ(cuStreamWaitValue32_v2, 11070, CURRENT, (void *stream, uint64_t address, uint32_t value, unsigned flags),
          (stream, address, value, flags))
CALL_PTSZ(cuStreamWaitValue64_v2, 11070, CURRENT, (void *stream, uint64_t address, uint64_t value, unsigned flags),
          (stream, address, value, flags))
CALL_PTSZ(cuStreamWriteValue32_v2, 11070, CURRENT, (void *stream, uint64_t address, uint32_t value, unsigned flags),
          (stream, address, value, flags))
CALL_PTSZ(cuStreamWriteValue64_v2, 11070, CURRENT, (void *stream, uint64_t address, uint64_t value, unsigned flags),
          (stream, address, value, flags))
CALL_PTSZ(cuStreamBatchMemOp_v2, 11070, CURRENT,
          (void *stream, unsigned count, union cuda_memory_operation *operations, unsigned flags),
          (stream, count, operations, flags))

CALL_PTSZ(cuStreamBeginCapture_v2, 11000, CURRENT, (void *stream, int mode), (stream, mode))
CALL_PTSZ(cuStreamEndCapture, 11000, CURRENT, (void *stream, void **graph), (stream, graph))
CALL_PTSZ(cuStreamIsCapturing, 11000, CURRENT, (void *stream, int *status), (stream, status))
CALL(cuThreadExchangeStreamCaptureMode, 11000, INIT, (int *mode), (mode))
CALL(cuGraphCreate, 11000, INIT, (void **graph, unsigned flags), (graph, flags))
CALL(cuGraphDestroy, 11000, INIT, (void *graph), (graph))
CALL(cuGraphAddKernelNode_v2, 12000, CURRENT,
     (void **node, void *graph, void *const *after, size_t count, const struct cuda_kernel_node *kernel),
     (node, graph, after, count, kernel))
CALL(cuGraphAddHostNode, 11000, INIT,
     (void **node, void *graph, void *const *after, size_t count, const struct cuda_host_node *host),
     (node, graph, after, count, host))
CALL(cuGraphAddEmptyNode, 11000, INIT, (void **node, void *graph, void *const *after, size_t count),
     (node, graph, after, count))
CALL(cuGraphExecUpdate_v2, 12000, INIT, (void *exec, void *graph, struct cuda_update_info *info), (exec, graph, info))
CALL(cuGraphExecKernelNodeSetParams_v2, 12000, CURRENT, (void *exec, void *node, const struct cuda_kernel_node *kernel),
     (exec, node, kernel))
CALL(cuGraphInstantiateWithFlags, 11040, CURRENT, (void **exec, void *graph, uint64_t flags), (exec, graph, flags))
CALL(cuGraphExecDestroy, 11000, INIT, (void *exec), (exec))
CALL_PTSZ(cuGraphLaunch, 11000, CURRENT, (void *exec, void *stream), (exec, stream))
CALL_PTSZ(cuGraphUpload, 11010, CURRENT, (void *exec, void *stream), (exec, stream))

OLD(cuDeviceTotalMem)
OLD(cuDevicePrimaryCtxRelease)
OLD(cuDevicePrimaryCtxReset)
OLD(cuDevicePrimaryCtxSetFlags)
OLD(cuCtxCreate)
OLD(cuCtxDestroy)
OLD(cuCtxPushCurrent)
OLD(cuCtxPopCurrent)
OLD(cuStreamDestroy)
OLD(cuEventDestroy)
OLD(cuMemAlloc)
OLD(cuMemFree)
OLD(cuMemGetInfo)
OLD(cuMemGetAddressRange)
OLD(cuMemHostRegister)
OLD(cuMemHostGetDevicePointer)
OLD(cuMemcpyHtoD)
OLD(cuMemcpyDtoH)
OLD(cuMemcpyDtoD)
OLD(cuMemcpyHtoDAsync)
OLD(cuMemcpyDtoHAsync)
OLD(cuMemcpyDtoDAsync)
OLD(cuMemcpy2D)
OLD(cuMemcpy2DUnaligned)
OLD(cuMemcpy3D)
OLD(cuMemcpy2DAsync)
OLD(cuMemcpy3DAsync)
OLD(cuMemsetD8)
OLD(cuMemsetD16)
OLD(cuMemsetD32)
OLD(cuMemsetD2D8)
OLD(cuMemsetD2D16)
OLD(cuMemsetD2D32)
OLD(cuModuleGetGlobal)
OLD(cuStreamBeginCapture)
OLD(cuGraphAddKernelNode)
OLD(cuGraphExecUpdate)
OLD(cuGraphExecKernelNodeSetParams)
OLD(cuStreamWaitValue32)
OLD(cuStreamWaitValue64)
OLD(cuStreamWriteValue32)
OLD(cuStreamWriteValue64)
OLD(cuStreamBatchMemOp)

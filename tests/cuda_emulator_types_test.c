/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The emulated driver's declarations against NVIDIA's header and stub library, where a toolkit is installed. */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include "cuda/types.h"

/* Every exported name, with its variants. */
static const char *const names[] = {
#define CALL(name, since, class, parameters, arguments)      #name,
#define CALL_PTSZ(name, since, class, parameters, arguments) #name, #name "_ptsz",
#define CALL_PTDS(name, since, class, parameters, arguments) #name, #name "_ptds",
#define OLD(name)                                            #name,
#include "cuda/calls.h"
#undef CALL
#undef CALL_PTSZ
#undef CALL_PTDS
#undef OLD
};

Test(emulator_types, names_are_exported)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    cr_assert(library);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) cr_expect(dlsym(library, names[i]), "%s", names[i]);
}

/* The name of an exported symbol at @index of the library's table; "" for others. */
static const char *exported(const struct link_map *library, size_t index)
{
    const ElfW(Sym) *symbols = NULL;
    const char *texts = NULL;
    for (const ElfW(Dyn) *entry = library->l_ld; entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_SYMTAB) symbols = (const ElfW(Sym) *)entry->d_un.d_ptr;
        if (entry->d_tag == DT_STRTAB) texts = (const char *)entry->d_un.d_ptr;
    }
    cr_assert(symbols && texts);
    if ((const char *)&symbols[index] >= texts) return NULL; /* the table of texts follows that of symbols */
    return symbols[index].st_shndx == SHN_UNDEF ? "" : texts + symbols[index].st_name;
}

/* A program that binds to a name which a driver does not have would pass here. */
Test(emulator_types, nothing_else_is_exported)
{
    struct link_map *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    size_t seen = 0;
    const char *name;
    cr_assert(library);
    for (size_t i = 1; (name = exported(library, i)); i++) {
        size_t at = 0;
        if (name[0] != 'c' || name[1] != 'u') continue;
        while (at < sizeof names / sizeof *names && strcmp(names[at], name)) at++;
        cr_expect(at < sizeof names / sizeof *names, "%s", name);
        seen++;
    }
    cr_assert_eq(seen, sizeof names / sizeof *names);
}

#ifdef CUDA_HEADER
#include CUDA_HEADER
#endif

#if defined CUDA_VERSION && CUDA_VERSION >= 12080 /* which declares all of it */

#define SIZE(ours, theirs)        {#ours, sizeof(struct ours), sizeof(theirs)}
#define FIELD(ours, a, theirs, b) {#ours "." #a, offsetof(struct ours, a), offsetof(theirs, b)}
#define NUMBER(ours, theirs)      {#ours, (size_t)ours, (size_t)theirs}
#define ERROR(name)               {#name, (size_t)CUDA_##name, (size_t)CUDA_ERROR_##name}
#define ATTRIBUTE(ours, theirs)   {#ours, CUDA_ATTRIBUTE_##ours, CU_DEVICE_ATTRIBUTE_##theirs}
#define COPY_2D(a, b)             FIELD(cuda_copy_2d, a, CUDA_MEMCPY2D, b)
#define COPY_3D(a, b)             FIELD(cuda_copy_3d, a, CUDA_MEMCPY3D_PEER, b)
#define LAUNCH(a, b)              FIELD(cuda_launch_config, a, CUlaunchConfig, b)

static const struct {
    const char *what;
    size_t ours, theirs;
} rows[] = {
    SIZE(cuda_uuid, CUuuid),
    SIZE(cuda_copy_2d, CUDA_MEMCPY2D),
    SIZE(cuda_copy_3d, CUDA_MEMCPY3D),
    SIZE(cuda_copy_3d, CUDA_MEMCPY3D_PEER),
    SIZE(cuda_launch_config, CUlaunchConfig),
    SIZE(cuda_kernel_node, CUDA_KERNEL_NODE_PARAMS_v2),
    FIELD(cuda_kernel_node, shared_bytes, CUDA_KERNEL_NODE_PARAMS_v2, sharedMemBytes),
    FIELD(cuda_kernel_node, extra, CUDA_KERNEL_NODE_PARAMS_v2, extra),
    FIELD(cuda_kernel_node, kernel, CUDA_KERNEL_NODE_PARAMS_v2, kern),
    SIZE(cuda_host_node, CUDA_HOST_NODE_PARAMS),
    SIZE(cuda_update_info, CUgraphExecUpdateResultInfo),
    SIZE(cuda_copy_attributes, CUmemcpyAttributes),
    {"cuda_memory_operation", sizeof(union cuda_memory_operation), sizeof(CUstreamBatchMemOpParams)},
    COPY_2D(from_type, srcMemoryType),
    COPY_2D(from_device, srcDevice),
    COPY_2D(from_pitch, srcPitch),
    COPY_2D(to_type, dstMemoryType),
    COPY_2D(to_pitch, dstPitch),
    COPY_2D(height, Height),
    COPY_3D(from_type, srcMemoryType),
    COPY_3D(from_device, srcDevice),
    COPY_3D(from_context, srcContext),
    COPY_3D(from_height, srcHeight),
    COPY_3D(to_type, dstMemoryType),
    COPY_3D(to_context, dstContext),
    COPY_3D(to_pitch, dstPitch),
    COPY_3D(depth, Depth),
    LAUNCH(block_x, blockDimX),
    LAUNCH(shared_bytes, sharedMemBytes),
    LAUNCH(stream, hStream),
    LAUNCH(attribute_count, numAttrs),
    {"address", offsetof(union cuda_memory_operation, value.address),
     offsetof(CUstreamBatchMemOpParams, waitValue.address)},
    {"flags", offsetof(union cuda_memory_operation, value.flags), offsetof(CUstreamBatchMemOpParams, writeValue.flags)},
    ERROR(INVALID_VALUE),
    ERROR(OUT_OF_MEMORY),
    ERROR(NOT_INITIALIZED),
    ERROR(DEINITIALIZED),
    ERROR(STUB_LIBRARY),
    ERROR(NO_DEVICE),
    ERROR(INVALID_DEVICE),
    ERROR(INVALID_IMAGE),
    ERROR(INVALID_CONTEXT),
    ERROR(NO_BINARY_FOR_GPU),
    ERROR(ECC_UNCORRECTABLE),
    ERROR(PEER_ACCESS_UNSUPPORTED),
    ERROR(INVALID_PTX),
    ERROR(INVALID_HANDLE),
    ERROR(NOT_FOUND),
    ERROR(NOT_READY),
    ERROR(ILLEGAL_ADDRESS),
    ERROR(LAUNCH_OUT_OF_RESOURCES),
    ERROR(PEER_ACCESS_ALREADY_ENABLED),
    ERROR(PEER_ACCESS_NOT_ENABLED),
    ERROR(CONTEXT_IS_DESTROYED),
    ERROR(ASSERT),
    ERROR(HOST_MEMORY_ALREADY_REGISTERED),
    ERROR(HOST_MEMORY_NOT_REGISTERED),
    ERROR(LAUNCH_FAILED),
    ERROR(COOPERATIVE_LAUNCH_TOO_LARGE),
    ERROR(NOT_PERMITTED),
    ERROR(NOT_SUPPORTED),
    ERROR(GRAPH_EXEC_UPDATE_FAILURE),
    ERROR(CAPTURED_EVENT),
    NUMBER(CUDA_CAPTURE_UNSUPPORTED, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED),
    NUMBER(CUDA_CAPTURE_WRONG_THREAD, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD),
    ATTRIBUTE(THREADS_PER_BLOCK, MAX_THREADS_PER_BLOCK),
    ATTRIBUTE(BLOCK_Z, MAX_BLOCK_DIM_Z),
    ATTRIBUTE(GRID_Z, MAX_GRID_DIM_Z),
    ATTRIBUTE(SHARED_MEMORY, MAX_SHARED_MEMORY_PER_BLOCK),
    ATTRIBUTE(WARP, WARP_SIZE),
    ATTRIBUTE(MAX_PITCH, MAX_PITCH),
    ATTRIBUTE(SM_COUNT, MULTIPROCESSOR_COUNT),
    ATTRIBUTE(INTEGRATED, INTEGRATED),
    ATTRIBUTE(COMPUTE_MODE, COMPUTE_MODE),
    ATTRIBUTE(CONCURRENT_KERNELS, CONCURRENT_KERNELS),
    ATTRIBUTE(PCI_BUS, PCI_BUS_ID),
    ATTRIBUTE(PCI_DOMAIN, PCI_DOMAIN_ID),
    ATTRIBUTE(THREADS_PER_SM, MAX_THREADS_PER_MULTIPROCESSOR),
    ATTRIBUTE(ASYNC_ENGINES, ASYNC_ENGINE_COUNT),
    ATTRIBUTE(UNIFIED_ADDRESSING, UNIFIED_ADDRESSING),
    ATTRIBUTE(CC_MAJOR, COMPUTE_CAPABILITY_MAJOR),
    ATTRIBUTE(CC_MINOR, COMPUTE_CAPABILITY_MINOR),
    ATTRIBUTE(STREAM_PRIORITIES, STREAM_PRIORITIES_SUPPORTED),
    ATTRIBUTE(MANAGED, MANAGED_MEMORY),
    ATTRIBUTE(PAGEABLE_ACCESS, PAGEABLE_MEMORY_ACCESS),
    ATTRIBUTE(HOST_POINTER_FOR_REGISTERED, CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM),
    ATTRIBUTE(COOPERATIVE, COOPERATIVE_LAUNCH),
    ATTRIBUTE(SHARED_MEMORY_OPTIN, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
    ATTRIBUTE(FLUSH_REMOTE_WRITES, CAN_FLUSH_REMOTE_WRITES),
    ATTRIBUTE(MEMORY_POOLS, MEMORY_POOLS_SUPPORTED),
    ATTRIBUTE(64_BIT_STREAM_MEMORY_OPERATIONS, CAN_USE_64_BIT_STREAM_MEM_OPS),
    ATTRIBUTE(WAIT_NOR, CAN_USE_STREAM_WAIT_VALUE_NOR),
    NUMBER(CUDA_POINTER_BUFFER_ID, CU_POINTER_ATTRIBUTE_BUFFER_ID),
    NUMBER(CUDA_POINTER_RANGE_SIZE, CU_POINTER_ATTRIBUTE_RANGE_SIZE),
    NUMBER(CUDA_POINTER_MEMPOOL, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE),
    NUMBER(CUDA_POOL_RELEASE_THRESHOLD, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD),
    NUMBER(CUDA_POOL_USED_HIGH, CU_MEMPOOL_ATTR_USED_MEM_HIGH),
    NUMBER(CUDA_MEMORY_UNIFIED, CU_MEMORYTYPE_UNIFIED),
    NUMBER(CUDA_EVENT_INTERPROCESS, CU_EVENT_INTERPROCESS),
    NUMBER(CUDA_HOST_WRITE_COMBINED, CU_MEMHOSTALLOC_WRITECOMBINED),
    NUMBER(CUDA_WAIT_NOR, CU_STREAM_WAIT_VALUE_NOR),
    NUMBER(CUDA_WAIT_FLUSH, CU_STREAM_WAIT_VALUE_FLUSH),
};

Test(emulator_types, header)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        cr_expect_eq(rows[i].ours, rows[i].theirs, "%s: %zu, not %zu", rows[i].what, rows[i].ours, rows[i].theirs);
}
#else
Test(emulator_types, header)
{
    cr_skip_test("there is no cuda.h of CUDA 12.8 or later");
}
#endif

/* None of the names is our invention. */
Test(emulator_types, stub_library)
{
#ifdef CUDA_STUB
    void *library = dlopen(CUDA_STUB, RTLD_NOW | RTLD_LOCAL);
    cr_assert(library, "%s", dlerror());
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) cr_expect(dlsym(library, names[i]), "%s", names[i]);
#else
    cr_skip_test("there is no stub library");
#endif
}

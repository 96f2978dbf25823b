/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The emulated driver: allocations, copies, sets, pools, and who may touch what. */
#include <cuda/rig.h>

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

Test(emulator_memory, allocation)
{
    struct rig rig = rig_start((struct setting[]){{"memory", 1}, {NULL, 0}});
    uint64_t address = 1, second;
    size_t unused, total, bytes;
    cr_assert_eq(cuMemAlloc_v2(&address, 0), CUDA_INVALID_VALUE);
    cr_assert_eq(cuMemAlloc_v2(&address, 2 << 20), CUDA_OUT_OF_MEMORY);
    cr_assert_eq(address, 1);
    address = rig_alloc(1000);
    second = rig_alloc(1);
    cr_assert_eq(address % 256, 0);
    OK(cuMemGetInfo_v2(&unused, &total));
    cr_assert_eq(total - unused, 1024 + 256);
    uint64_t base;
    OK(cuMemGetAddressRange_v2(&base, &bytes, address + 999));
    cr_assert(base == address && bytes == 1000);
    cr_assert_eq(cuMemGetAddressRange_v2(&base, &bytes, address + 1000), CUDA_NOT_FOUND);
    OK(cuMemFree_v2(address));
    cr_assert_eq(cuMemFree_v2(address), CUDA_INVALID_VALUE);
    rig_expect_report("no base");
    OK(cuMemFree_v2(second));
    for (int i = 0; i < 5000; i++) OK(cuMemFree_v2(rig_alloc(1000))); /* the place comes back */
    rig_stop(rig);
}

/* What a child that touches @address says before it dies. */
static void expect_death(uint64_t address, const char *text)
{
    int ends[2], status;
    char said[256] = "";
    cr_assert_eq(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        ++*(volatile char *)(uintptr_t)address;
        _exit(0);
    }
    close(ends[1]);
    cr_assert(read(ends[0], said, sizeof said - 1) > 0);
    close(ends[0]);
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert_neq(status, 0);
    cr_assert(strstr(said, text), "%s", said);
}

/* The host has no access to device memory, nor to the variables of a module. */
Test(emulator_memory, host_touches_device_memory)
{
    struct rig rig = rig_start(NULL);
    uint64_t address = rig_alloc(8), variable;
    OK(cuModuleGetGlobal_v2(&variable, NULL, rig.module, "table"));
    expect_death(address, "the host touches memory of device 0");
    expect_death(variable, "the host touches module variables of device 0");
    OK(cuMemFree_v2(address));
    rig_stop(rig);
}

/* A kernel may use the memory of its device, and of others only with peer access. */
Test(emulator_memory, peer_access)
{
    void *other;
    struct rig rig = rig_start((struct setting[]){{"devices", 2}, {NULL, 0}});
    OK(cuDevicePrimaryCtxRetain(&other, 1));
    OK(cuCtxPushCurrent_v2(other));
    uint64_t far = rig_alloc(8), near;
    OK(cuMemsetD8_v2(far, 0, 8));
    OK(cuCtxPopCurrent_v2(NULL));
    near = rig_alloc(8);
    OK(cuMemcpyPeer(near, rig.context, far, other, 8)); /* copies need no access */
    cr_assert_eq(cuMemcpyPeer(near, other, far, rig.context, 8), CUDA_INVALID_VALUE);
    rig_expect_report("no memory of the context");
    cr_assert_eq(cuCtxEnablePeerAccess(rig.context, 0), CUDA_INVALID_CONTEXT);
    cr_assert_eq(cuCtxDisablePeerAccess(other), CUDA_PEER_ACCESS_NOT_ENABLED);
    OK(cuCtxEnablePeerAccess(other, 0));
    cr_assert_eq(cuCtxEnablePeerAccess(other, 0), CUDA_PEER_ACCESS_ALREADY_ENABLED);
    void *add = rig_function(rig, "add");
    rig_launch(add, NULL, near, 2, 0);
    rig_launch(add, NULL, far, 3, 0);
    cr_assert_eq(rig_read(near), 2);
    cr_assert_eq(rig_read(far), 3);
    OK(cuCtxDisablePeerAccess(other));
    rig_launch(add, NULL, far, 3, 0);
    cr_assert_eq(cuCtxSynchronize(), CUDA_ILLEGAL_ADDRESS);
    OK(cuCtxSetCurrent(other)); /* which goes on */
    cr_assert_eq(rig_read(far), 3);
}

Test(emulator_memory, no_peer_access)
{
    void *other;
    int can;
    struct rig rig = rig_start((struct setting[]){{"devices", 2}, {"peer", 0}, {NULL, 0}});
    OK(cuDevicePrimaryCtxRetain(&other, 1));
    OK(cuDeviceCanAccessPeer(&can, 0, 1));
    cr_assert_eq(can, 0);
    cr_assert_eq(cuCtxEnablePeerAccess(other, 0), CUDA_PEER_ACCESS_UNSUPPORTED);
    OK(cuDevicePrimaryCtxRelease_v2(1));
    rig_stop(rig);
}

/* Which devices can use each other's memory is said pair by pair; copies need it of none. */
Test(emulator_memory, some_have_peer_access)
{
    void *contexts[3];
    int can;
    struct rig rig = rig_start((struct setting[]){{"devices", 3}, {NULL, 0}});
    uint64_t memory[3];
    emulator_peer(0, 1, 0);
    for (int i = 2; i >= 0; i--) {
        OK(cuDevicePrimaryCtxRetain(&contexts[i], i));
        OK(cuCtxSetCurrent(contexts[i]));
        memory[i] = rig_alloc(8);
        OK(cuMemsetD8_v2(memory[i], i, 8));
        OK(cuCtxSynchronize());
    }
    for (int i = 0; i < 9; i++) {
        OK(cuDeviceCanAccessPeer(&can, i / 3, i % 3));
        cr_assert_eq(can, i / 3 != i % 3 && i != 1, "%d %d", i / 3, i % 3);
    }
    cr_assert_eq(cuCtxEnablePeerAccess(contexts[1], 0), CUDA_PEER_ACCESS_UNSUPPORTED);
    OK(cuCtxEnablePeerAccess(contexts[2], 0));
    OK(cuMemcpyPeer(memory[0], contexts[0], memory[1], contexts[1], 8));
    cr_assert_eq(rig_read(memory[0]), 0x0101010101010101);
    void *add = rig_function(rig, "add");
    rig_launch(add, NULL, memory[2], 1, 0);
    OK(cuCtxSynchronize());
    rig_launch(add, NULL, memory[1], 1, 0);
    cr_assert_eq(cuCtxSynchronize(), CUDA_ILLEGAL_ADDRESS);
    cr_assert_eq(emulator_report_count(), 0);
}

/* A host address as device memory, a freed one, and one past the end. */
Test(emulator_memory, wrong_addresses)
{
    char host[16] = {0};
    struct rig rig = rig_start(NULL);
    uint64_t address = rig_alloc(16), freed = rig_alloc(16);
    OK(cuMemFree_v2(freed));
    cr_assert_eq(cuMemcpyHtoD_v2((uintptr_t)host, host, 8), CUDA_INVALID_VALUE);
    rig_expect_report("host memory where device memory");
    cr_assert_eq(cuMemcpyHtoD_v2(address, (void *)(uintptr_t)address, 8), CUDA_INVALID_VALUE);
    rig_expect_report("device memory where host memory");
    cr_assert_eq(cuMemcpyHtoD_v2(address, host, 17), CUDA_INVALID_VALUE);
    rig_expect_report("past the end");
    cr_assert_eq(cuMemcpyHtoD_v2(freed, host, 8), CUDA_INVALID_VALUE);
    rig_expect_report("no device address");
    cr_assert_eq(cuMemsetD8_v2((uintptr_t)host, 0, 8), CUDA_INVALID_VALUE);
    rig_expect_report("no device address");
    rig_launch(rig_function(rig, "add"), NULL, freed, 1, 0);
    rig_expect_report("device memory that was freed");
    OK(cuCtxSynchronize());
    OK(cuMemFree_v2(address));
    rig_stop(rig);
}

/* Counts of sets are elements; addresses and pitches are aligned to them. */
Test(emulator_memory, sets)
{
    unsigned char host[64];
    struct rig rig = rig_start(NULL);
    uint64_t address = rig_alloc(64);
    OK(cuMemsetD8_v2(address, 0, 64));
    OK(cuMemsetD32_v2(address, 0x01020304, 2));
    OK(cuMemsetD16_v2(address + 10, 0x0506, 1));
    OK(cuMemsetD2D8_v2(address + 16, 8, 9, 2, 3));
    OK(cuMemcpyDtoH_v2(host, address, 64));
    cr_assert(host[0] == 4 && host[7] == 1 && host[8] == 0 && host[10] == 6 && host[11] == 5 && host[12] == 0);
    cr_assert(host[16] == 9 && host[17] == 9 && host[18] == 0 && host[32] == 9 && host[33] == 9 && host[40] == 0);
    cr_assert_eq(cuMemsetD32_v2(address + 2, 0, 1), CUDA_INVALID_VALUE);
    cr_assert_eq(cuMemsetD16_v2(address + 1, 0, 1), CUDA_INVALID_VALUE);
    cr_assert_eq(cuMemsetD2D16_v2(address, 3, 0, 1, 2), CUDA_INVALID_VALUE);
    cr_assert_eq(cuMemsetD2D8_v2(address, 3, 0, 4, 2), CUDA_INVALID_VALUE);
    OK(cuMemFree_v2(address));
    rig_stop(rig);
}

/* Synchronous copies and sets in device memory return before they have run. */
Test(emulator_memory, synchronous_forms_that_return_early)
{
    int64_t value = 5;
    struct rig rig = rig_start(STOPPED);
    uint64_t a = rig_alloc(8), b = rig_alloc(8);
    OK(cuMemcpyHtoD_v2(a, &value, 8)); /* pageable: staged */
    value = 6;
    OK(cuMemcpyDtoD_v2(b, a, 8));
    OK(cuMemsetD8_v2(a, 0, 8));
    cr_assert_eq(cuStreamQuery(NULL), CUDA_NOT_READY);
    emulator_start(0);
    cr_assert_eq(rig_read(b), 5);
    cr_assert_eq(rig_read(a), 0);
    OK(cuMemFree_v2(a));
    OK(cuMemFree_v2(b));
    rig_stop(rig);
}

/* A copy from pinned memory reads it when it runs, one from pageable memory during the call. */
Test(emulator_memory, when_the_source_is_read)
{
    int64_t pageable = 1, *source;
    struct rig rig = rig_start(
        (struct setting[]){{"stopped", 1}, {"free_blocks", 0}, {"pageable_blocks", 0}, {"strict", 1}, {NULL, 0}});
    void *stream = rig_stream();
    uint64_t a = rig_alloc(8), b = rig_alloc(8);
    source = rig_pinned(8);
    *source = 1;
    OK(cuMemcpyHtoDAsync_v2(a, source, 8, stream));
    OK(cuMemcpyHtoDAsync_v2(b, &pageable, 8, stream));
    *source = pageable = 2;
    emulator_start(0);
    OK(cuStreamSynchronize(stream));
    rig_expect_report("was changed before it ran");
    cr_assert_eq(rig_read(a), 2);
    cr_assert_eq(rig_read(b), 1);
    OK(cuMemFree_v2(a));
    OK(cuMemFree_v2(b));
    OK(cuMemFreeHost(source));
    OK(cuStreamDestroy_v2(stream));
    rig_stop(rig);
}

/* An asynchronous copy to pageable memory blocks for all that is queued before, if asked so; and it can be reported. */
Test(emulator_memory, hidden_synchronisation)
{
    int64_t value = 0;
    struct rig rig = rig_start((struct setting[]){{"report_hidden_sync", 1}, {NULL, 0}});
    void *stream = rig_stream();
    uint64_t address = rig_alloc(8);
    OK(cuMemsetD32Async(address, 7, 2, stream));
    OK(cuMemcpyDtoHAsync_v2(&value, address, 8, stream));
    rig_expect_report("pageable");
    cr_assert_eq(value, 0x700000007);
    OK(cuMemFree_v2(address));
    OK(cuStreamDestroy_v2(stream));
    rig_stop(rig);
}

/* Memory that queued work names is freed too early. */
Test(emulator_memory, freed_while_in_use)
{
    struct rig rig = rig_start(STOPPED);
    void *stream = rig_stream();
    uint64_t a = rig_alloc(8), b = rig_alloc(8);
    void *host = rig_pinned(8);
    OK(cuMemcpyDtoDAsync_v2(b, a, 8, stream));
    OK(cuMemFree_v2(b));
    rig_expect_report("in use by queued work");
    rig_launch(rig_function(rig, "add"), stream, a, 1, 0);
    OK(cuMemFree_v2(a));
    rig_expect_report("in use by queued work");
    OK(cuMemsetD8Async((uintptr_t)host, 0, 8, stream));
    OK(cuMemFreeHost(host));
    rig_expect_report("pinned memory");
    emulator_start(0);
    OK(cuStreamSynchronize(stream));
    OK(cuStreamDestroy_v2(stream));
    rig_stop(rig);
}

Test(emulator_memory, registered_memory)
{
    static char memory[8192];
    uint64_t address;
    struct rig rig = rig_start(NULL);
    OK(cuMemHostRegister_v2(memory, 4096, 0));
    cr_assert_eq(cuMemHostRegister_v2(memory + 100, 8, 0), CUDA_HOST_MEMORY_ALREADY_REGISTERED);
    cr_assert_eq(cuMemHostUnregister(memory + 100), CUDA_HOST_MEMORY_NOT_REGISTERED);
    OK(cuMemHostGetDevicePointer_v2(&address, memory + 8, 0));
    cr_assert_eq(cuMemHostGetDevicePointer_v2(&address, memory + 5000, 0), CUDA_INVALID_VALUE);
    OK(cuMemHostUnregister(memory));
    cr_assert_eq(cuMemHostUnregister(memory), CUDA_HOST_MEMORY_NOT_REGISTERED);
    OK(cuMemHostRegister_v2(memory, 4096, 0));
    OK(cuModuleUnload(rig.module));
    OK(cuDevicePrimaryCtxRelease_v2(0));
    rig_expect_report("are left at the end");
}

Test(emulator_memory, pointer_attributes)
{
    unsigned type = 9;
    int ordinal = 9, host = 0;
    uint64_t id[2];
    struct rig rig = rig_start(NULL);
    uint64_t address = rig_alloc(16);
    OK(cuPointerGetAttribute(&type, CUDA_POINTER_MEMORY_TYPE, address + 8));
    cr_assert_eq(type, CUDA_MEMORY_DEVICE);
    OK(cuPointerGetAttribute(&id[0], CUDA_POINTER_BUFFER_ID, address));
    cr_assert_eq(cuPointerGetAttribute(&type, CUDA_POINTER_MEMORY_TYPE, (uintptr_t)&host), CUDA_INVALID_VALUE);
    int attributes[] = {CUDA_POINTER_MEMORY_TYPE, CUDA_POINTER_DEVICE_ORDINAL};
    void *values[] = {&type, &ordinal};
    OK(cuPointerGetAttributes(2, attributes, values, address));
    cr_assert(type == CUDA_MEMORY_DEVICE && ordinal == 0);
    OK(cuPointerGetAttributes(2, attributes, values, (uintptr_t)&host));
    cr_assert_eq(type, 0);
    OK(cuMemFree_v2(address));
    address = rig_alloc(16);
    OK(cuPointerGetAttribute(&id[1], CUDA_POINTER_BUFFER_ID, address));
    cr_assert_neq(id[0], id[1]);
    OK(cuMemFree_v2(address));
    rig_stop(rig);
}

/* Rows of a box; pitches that are too small are refused. */
Test(emulator_memory, boxes)
{
    char from[6][8], to[6][8] = {{0}};
    struct rig rig = rig_start(NULL);
    uint64_t address = rig_alloc(256);
    for (int y = 0; y < 6; y++)
        for (int x = 0; x < 8; x++) from[y][x] = (char)(10 * y + x);
    struct cuda_copy_2d in = {.from_type = CUDA_MEMORY_HOST,
                              .from_host = from,
                              .from_pitch = 8,
                              .from_x_bytes = 2,
                              .from_y = 1,
                              .to_type = CUDA_MEMORY_DEVICE,
                              .to_device = address,
                              .to_pitch = 16,
                              .width_bytes = 3,
                              .height = 4};
    struct cuda_copy_3d out = {.from_type = CUDA_MEMORY_DEVICE,
                               .from_device = address,
                               .from_pitch = 16,
                               .from_height = 2,
                               .to_type = CUDA_MEMORY_HOST,
                               .to_host = to,
                               .to_pitch = 8,
                               .to_height = 3,
                               .to_x_bytes = 1,
                               .width_bytes = 3,
                               .height = 2,
                               .depth = 2};
    OK(cuMemcpy2D_v2(&in));
    OK(cuMemcpy3D_v2(&out));
    cr_assert(to[0][1] == 12 && to[0][3] == 14 && to[0][4] == 0 && to[1][1] == 22 && to[2][1] == 0);
    cr_assert(to[3][1] == 32 && to[4][3] == 44 && to[5][1] == 0);
    in.to_pitch = 2;
    cr_assert_eq(cuMemcpy2D_v2(&in), CUDA_INVALID_VALUE);
    in.to_pitch = 128;
    cr_assert_eq(cuMemcpy2D_v2(&in), CUDA_INVALID_VALUE); /* past the end */
    rig_expect_report("past the end");
    OK(cuMemFree_v2(address));
    rig_stop(rig);
}

Test(emulator_memory, batches)
{
    struct rig rig = rig_start(NULL);
    void *stream = rig_stream();
    uint64_t a = rig_alloc(16), to[2] = {a, a + 8};
    int64_t *values = rig_pinned(16);
    uint64_t from[2] = {(uintptr_t)values, (uintptr_t)(values + 1)};
    size_t bytes[2] = {8, 8}, first[1] = {0};
    struct cuda_copy_attributes attributes = {.access_order = 1};
    values[0] = 3;
    values[1] = 4;
    OK(cuMemcpyBatchAsync_v2(to, from, bytes, 2, &attributes, first, 1, stream));
    OK(cuStreamSynchronize(stream));
    cr_assert(rig_read(a) == 3 && rig_read(a + 8) == 4);
    attributes.access_order = 0;
    cr_assert_eq(cuMemcpyBatchAsync_v2(to, from, bytes, 2, &attributes, first, 1, stream), CUDA_INVALID_VALUE);
    attributes.access_order = 1;
    first[0] = 1;
    cr_assert_eq(cuMemcpyBatchAsync_v2(to, from, bytes, 2, &attributes, first, 1, stream), CUDA_INVALID_VALUE);
    OK(cuMemFree_v2(a));
    OK(cuMemFreeHost(values));
    OK(cuStreamDestroy_v2(stream));
    rig_stop(rig);
}

/* Stream-ordered memory: usable at once in the stream, gone for later work after the free call. */
Test(emulator_memory, stream_ordered)
{
    struct rig rig = rig_start((struct setting[]){{"memory", 1}, {NULL, 0}});
    void *stream = rig_stream(), *pool;
    uint64_t address, used, threshold = UINT64_MAX;
    OK(cuDeviceGetDefaultMemPool(&pool, 0));
    OK(cuMemPoolSetAttribute(pool, CUDA_POOL_RELEASE_THRESHOLD, &threshold));
    for (int i = 0; i < 20; i++) { /* more than there is, if it did not come back */
        OK(cuMemAllocAsync(&address, 500000, stream));
        OK(cuMemsetD8Async(address, 1, 500000, stream));
        OK(cuMemFreeAsync(address, stream));
    }
    cr_assert_eq(cuMemsetD8Async(address, 1, 8, stream), CUDA_INVALID_VALUE);
    emulator_reports_take();
    OK(cuStreamSynchronize(stream));
    OK(cuMemPoolGetAttribute(pool, CUDA_POOL_USED_CURRENT, &used));
    cr_assert_eq(used, 0);
    OK(cuMemAllocAsync(&address, 8, stream));
    OK(cuMemFree_v2(address));
    emulator_stop(0);
    OK(cuMemAllocAsync(&address, 8, stream));
    OK(cuMemFreeAsync(address, stream));
    cr_assert_eq(cuMemsetD8Async(address, 1, 8, stream), CUDA_INVALID_VALUE);
    rig_expect_report("after cuMemFreeAsync");
    emulator_start(0);
    OK(cuStreamDestroy_v2(stream));
    OK(cuCtxSynchronize());
    rig_stop(rig);
}

/* Stream-ordered memory in another stream needs an event behind its allocation, and one behind the use to be freed. */
Test(emulator_memory, order_between_streams)
{
    struct rig rig = rig_start((struct setting[]){{"stopped", 1}, {NULL, 0}});
    void *a = rig_stream(), *b = rig_stream(), *c = rig_stream(), *event = rig_event(), *second = rig_event();
    uint64_t address;
    OK(cuMemAllocAsync(&address, 8, a));
    OK(cuMemsetD8Async(address, 0, 8, a));
    OK(cuMemsetD8Async(address, 0, 8, b));
    rig_expect_report("without an order behind its allocation");
    OK(cuEventRecord(event, a));
    OK(cuStreamWaitEvent(b, event, 0));
    OK(cuMemsetD8Async(address, 0, 8, b));
    OK(cuEventRecord(second, b));
    OK(cuStreamWaitEvent(c, second, 0)); /* through b behind a */
    OK(cuMemsetD8Async(address, 0, 8, c));
    cr_assert_eq(emulator_report_count(), 0);
    OK(cuMemFreeAsync(address, b));
    rig_expect_report("freed without an order behind its use");
    OK(cuMemAllocAsync(&address, 8, a));
    emulator_start(0);
    OK(cuStreamSynchronize(a)); /* the host knows */
    OK(cuMemsetD8Async(address, 0, 8, b));
    OK(cuMemFreeAsync(address, b));
    OK(cuCtxSynchronize());
    void *streams[] = {a, b, c};
    for (int i = 0; i < 3; i++) OK(cuStreamDestroy_v2(streams[i]));
    OK(cuEventDestroy_v2(event));
    OK(cuEventDestroy_v2(second));
    rig_stop(rig);
}

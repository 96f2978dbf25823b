/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The emulated driver: modules, libraries, launches, values in memory. */
#include <cuda/rig.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static int launch(void *function, void **arguments, void **extra)
{
    return cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, extra);
}

/* Each load has variables of its own, and a name that it lacks is not found elsewhere. */
Test(emulator_module, loads_are_separate)
{
    struct rig rig = rig_start(NULL);
    void *second, *image = rig_file(EMULATOR_IMAGE, NULL), *function;
    uint64_t counters[2];
    size_t bytes;
    OK(cuModuleLoadData(&second, image));
    free(image);
    OK(cuModuleGetGlobal_v2(&counters[0], &bytes, rig.module, "counter"));
    OK(cuModuleGetGlobal_v2(&counters[1], NULL, second, "counter"));
    cr_assert_geq(bytes, 8); /* more if the image is instrumented */
    cr_assert_neq(counters[0], counters[1]);
    OK(launch(rig_function(rig, "count"), NULL, NULL));
    cr_assert_eq(rig_read(counters[0]), 41);
    cr_assert_eq(rig_read(counters[1]), 40);
    OK(cuMemsetD32_v2(counters[1], 0, 2));
    cr_assert_eq(rig_read(counters[1]), 0);
    cr_assert_eq(cuModuleGetFunction(&function, second, "missing"), CUDA_NOT_FOUND);
    cr_assert_eq(cuModuleGetFunction(&function, second, "malloc"), CUDA_NOT_FOUND);
    cr_assert_eq(cuModuleGetGlobal_v2(counters, NULL, second, "missing"), CUDA_NOT_FOUND);
    OK(cuModuleUnload(second));
    cr_assert_eq(cuModuleUnload(second), CUDA_INVALID_HANDLE);
    rig_expect_report("was destroyed");
    rig_stop(rig);
}

Test(emulator_module, images_for_others)
{
    void *module;
    uint32_t fatbin[4] = {0x466243b1, 1};
    struct rig rig = rig_start(NULL);
    size_t bytes;
    unsigned char *image = rig_file(EMULATOR_IMAGE, &bytes);
    cr_assert_eq(cuModuleLoadData(&module, ".version 8.0\n"), CUDA_NO_BINARY_FOR_GPU);
    cr_assert_eq(cuModuleLoadData(&module, fatbin), CUDA_NO_BINARY_FOR_GPU);
    cr_assert_eq(cuModuleLoadData(&module, "nonsense"), CUDA_INVALID_IMAGE);
    cr_assert_eq(cuModuleLoadData(&module, NULL), CUDA_INVALID_VALUE);
    image[18] = 190; /* e_machine: CUDA */
    cr_assert_eq(cuModuleLoadData(&module, image), CUDA_NO_BINARY_FOR_GPU);
    free(image);
    rig_stop(rig);
}

static void *start_clock(void *arg)
{
    while (!emulator_report_count()) continue;
    emulator_start(0);
    return arg;
}

Test(emulator_module, unloaded_with_launches_in_flight)
{
    struct rig rig = rig_start(STOPPED);
    void *function = rig_function(rig, "count");
    pthread_t thread;
    OK(launch(function, NULL, NULL));
    pthread_create(&thread, NULL, start_clock, NULL);
    OK(cuModuleUnload(rig.module));
    pthread_join(thread, NULL);
    rig_expect_report("launches in flight");
    cr_assert_eq(launch(function, NULL, NULL), CUDA_INVALID_HANDLE);
    rig_expect_report("was destroyed");
    OK(cuDevicePrimaryCtxRelease_v2(0));
}

/* With lazy loading the first use of a kernel waits for all that is queued. */
Test(emulator_module, lazy_loading)
{
    struct rig rig = rig_start((struct setting[]){{"lazy", 1}, {NULL, 0}});
    int mode;
    OK(cuModuleGetLoadingMode(&mode));
    cr_assert_eq(mode, 2);
    uint64_t address = rig_alloc(8);
    OK(cuMemsetD8Async(address, 0, 8, NULL));
    void *function = rig_function(rig, "count");
    OK(cuStreamQuery(NULL));
    OK(cuFuncIsLoaded(&mode, function));
    cr_assert_eq(mode, 1);
    OK(cuMemFree_v2(address));
    rig_stop(rig);
}

/* Arguments are copied in the call, by the sizes of the image's table where it has one. */
Test(emulator_module, arguments)
{
    struct rig rig = rig_start(STOPPED);
    uint64_t to = rig_alloc(8);
    uint32_t a = 12;
    uint16_t b = 345;
    size_t offset, bytes;
    void *mixed = rig_function(rig, "mixed"), *arguments[] = {&to, &a, &b, NULL, NULL};
    OK(launch(mixed, arguments, NULL));
    a = b = 0;
    emulator_start(0);
    cr_assert_eq(rig_read(to), 1200345);
    OK(cuFuncGetParamInfo(mixed, 2, &offset, &bytes));
    cr_assert(offset == 12 && bytes == 2);
    arguments[3] = &a;
    cr_assert_eq(launch(mixed, arguments, NULL), CUDA_LAUNCH_OUT_OF_RESOURCES);
    arguments[2] = NULL;
    cr_assert_eq(launch(mixed, arguments, NULL), CUDA_LAUNCH_OUT_OF_RESOURCES);
    OK(cuCtxSynchronize()); /* which is not a sticky error */
    OK(cuMemFree_v2(to));
    rig_stop(rig);
}

Test(emulator_module, packed_arguments)
{
    struct rig rig = rig_start(NULL);
    struct {
        uint64_t to;
        uint32_t a;
        uint16_t b;
    } values = {rig_alloc(8), 2, 7};
    size_t bytes = 14;
    void *mixed = rig_function(rig, "mixed");
    void *extra[] = {(void *)CUDA_LAUNCH_BUFFER_POINTER, &values, (void *)CUDA_LAUNCH_BUFFER_SIZE, &bytes,
                     (void *)CUDA_LAUNCH_END};
    OK(launch(mixed, NULL, extra));
    cr_assert_eq(rig_read(values.to), 200007);
    void *arguments[] = {&values.to, &values.a, &values.b, NULL};
    cr_assert_eq(launch(mixed, arguments, extra), CUDA_INVALID_VALUE);
    bytes = 12;
    cr_assert_eq(launch(mixed, NULL, extra), CUDA_LAUNCH_OUT_OF_RESOURCES);
    OK(cuMemFree_v2(values.to));
    rig_stop(rig);
}

/* Grid, block and shared memory against the limits. */
Test(emulator_module, sizes_of_launches)
{
    static const struct {
        unsigned size[6], shared_bytes;
        int expected;
    } rows[] = {
        {{1, 1, 1, 32, 32, 1}, 0, 0},
        {{0, 1, 1, 1, 1, 1}, 0, CUDA_INVALID_VALUE},
        {{1, 1, 1, 1, 0, 1}, 0, CUDA_INVALID_VALUE},
        {{1, 65536, 1, 1, 1, 1}, 0, CUDA_INVALID_VALUE},
        {{1, 1, 1, 1, 1, 65}, 0, CUDA_INVALID_VALUE},
        {{1, 1, 1, 1024, 2, 1}, 0, CUDA_INVALID_VALUE},
        {{1, 1, 1, 1, 1, 1}, 49152, 0},
        {{1, 1, 1, 1, 1, 1}, 49153, CUDA_INVALID_VALUE},
    };
    struct rig rig = rig_start(NULL);
    void *function = rig_function(rig, "count");
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        const unsigned *s = rows[i].size;
        int code = cuLaunchKernel(function, s[0], s[1], s[2], s[3], s[4], s[5], rows[i].shared_bytes, NULL, NULL, NULL);
        cr_expect_eq(code, rows[i].expected, "row %u: %d", i, code);
    }
    OK(cuFuncSetAttribute(function, 8, 65536));
    OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 65536, NULL, NULL, NULL));
    cr_assert_eq(cuFuncSetAttribute(function, 8, 1 << 20), CUDA_INVALID_VALUE);
    OK(cuLaunchCooperativeKernel(function, 8, 1, 1, 1024, 1, 1, 0, NULL, NULL));
    cr_assert_eq(cuLaunchCooperativeKernel(function, 9, 1, 1, 1024, 1, 1, 0, NULL, NULL),
                 CUDA_COOPERATIVE_LAUNCH_TOO_LARGE);
    OK(cuCtxSynchronize());
    rig_stop(rig);
}

Test(emulator_module, kernel_knows_its_launch)
{
    int64_t seen[8];
    struct rig rig = rig_start(NULL);
    uint64_t to = rig_alloc(sizeof seen);
    void *arguments[] = {&to, NULL};
    struct cuda_launch_config config = {
        .grid_x = 2, .grid_y = 3, .grid_z = 4, .block_x = 5, .block_y = 6, .block_z = 7, .shared_bytes = 8};
    OK(cuLaunchKernelEx(&config, rig_function(rig, "describe"), arguments, NULL));
    OK(cuMemcpyDtoH_v2(seen, to, sizeof seen));
    for (int i = 0; i < 7; i++) cr_assert_eq(seen[i], 2 + i);
    cr_assert_eq(seen[7], 0);
    cr_assert_null(emulator_launch());
    OK(cuMemFree_v2(to));
    rig_stop(rig);
}

/* A function, a stream and the current context belong together. */
Test(emulator_module, launch_in_another_context)
{
    void *other;
    struct rig rig = rig_start((struct setting[]){{"devices", 2}, {NULL, 0}});
    void *own = rig_stream(), *function = rig_function(rig, "count");
    OK(cuDevicePrimaryCtxRetain(&other, 1));
    OK(cuCtxPushCurrent_v2(other));
    void *stream = rig_stream();
    cr_assert_eq(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL), CUDA_INVALID_HANDLE);
    rig_expect_report("do not belong together");
    cr_assert_eq(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, own, NULL, NULL), CUDA_INVALID_HANDLE);
    rig_expect_report("do not belong together");
    OK(cuStreamDestroy_v2(stream));
    OK(cuStreamDestroy_v2(own));
    OK(cuCtxPopCurrent_v2(NULL));
    OK(cuDevicePrimaryCtxRelease_v2(1));
    rig_stop(rig);
}

/* A library needs no context; its kernel runs in that of the stream. */
Test(emulator_module, libraries)
{
    void *library, *kernel, *function, *image;
    uint64_t address;
    struct rig rig = rig_start(NULL);
    image = rig_file(EMULATOR_IMAGE, NULL);
    OK(cuLibraryLoadData(&library, image, NULL, NULL, 0, NULL, NULL, 0));
    free(image);
    cr_assert_eq(cuLibraryGetKernel(&kernel, library, "missing"), CUDA_NOT_FOUND);
    OK(cuLibraryGetKernel(&kernel, library, "count"));
    OK(cuLibraryGetGlobal(&address, NULL, library, "counter"));
    OK(launch(kernel, NULL, NULL));
    OK(cuKernelGetFunction(&function, kernel));
    OK(launch(function, NULL, NULL));
    cr_assert_eq(rig_read(address), 42);
    OK(cuLibraryUnload(library));
    cr_assert_eq(launch(kernel, NULL, NULL), CUDA_INVALID_HANDLE);
    rig_expect_report("not a function");
    rig_stop(rig);
}

/* Streams wait for values and write them; alignment and capabilities are checked. */
Test(emulator_module, values)
{
    struct rig rig = rig_start((struct setting[]){{"wait_nor", 0}, {NULL, 0}});
    void *a = rig_stream(), *b = rig_stream(), *c = rig_stream();
    uint64_t address = rig_alloc(16);
    union cuda_memory_operation batch[] = {
        {.value = {.operation = 4, .address = address + 8, .value = 9, .flags = CUDA_WAIT_EQ}},
        {.value = {.operation = 2, .address = address, .value = 3}},
    };
    OK(cuMemsetD8_v2(address, 0, 16));
    OK(cuStreamSynchronize(NULL));
    OK(cuStreamWaitValue32_v2(a, address, 2, CUDA_WAIT_GEQ));
    OK(cuStreamWriteValue32_v2(a, address + 4, 5, 0));
    OK(cuStreamBatchMemOp_v2(b, 2, batch, 0));
    cr_assert_eq(cuStreamQuery(a), CUDA_NOT_READY);
    OK(cuStreamWriteValue64_v2(c, address + 8, 9, 0));
    OK(cuStreamSynchronize(a));
    cr_assert_eq(rig_read(address), 5ll << 32 | 3);
    cr_assert_eq(cuStreamWaitValue64_v2(a, address + 4, 2, 0), CUDA_INVALID_VALUE);
    cr_assert_eq(cuStreamWaitValue32_v2(a, address, 2, CUDA_WAIT_NOR), CUDA_NOT_SUPPORTED);
    OK(cuStreamSynchronize(b));
    OK(cuStreamDestroy_v2(a));
    OK(cuStreamDestroy_v2(b));
    OK(cuStreamDestroy_v2(c));
    OK(cuMemFree_v2(address));
    rig_stop(rig);
}

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The emulated driver: start, end, names, devices, contexts. */
#include <cuda/rig.h>

#include <dlfcn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Nothing works before cuInit, which takes no flags. */
Test(emulator_start, before_init)
{
    int count;
    void *context;
    cr_assert_eq(cuDeviceGetCount(&count), CUDA_NOT_INITIALIZED);
    cr_assert_eq(cuCtxGetCurrent(&context), CUDA_NOT_INITIALIZED);
    cr_assert_eq(cuInit(1), CUDA_INVALID_VALUE);
    cr_assert_eq(cuDeviceGetCount(&count), CUDA_NOT_INITIALIZED);
    OK(cuInit(0));
    OK(cuInit(0));
    OK(cuDeviceGetCount(&count));
    cr_assert_eq(count, 1);
}

Test(emulator_start, no_device)
{
    emulator_set("devices", 0);
    cr_assert_eq(cuInit(0), CUDA_NO_DEVICE);
}

Test(emulator_start, init_fails)
{
    emulator_fail("cuInit", 1, CUDA_UNKNOWN);
    cr_assert_eq(cuInit(0), CUDA_UNKNOWN);
    OK(cuInit(0));
}

/* After the driver's exit handler everything answers 4. */
Test(emulator_start, after_shut_down)
{
    int value;
    struct rig rig = rig_start(NULL);
    void *stream = rig_stream(), *event = rig_event();
    emulator_shut_down();
    cr_assert_eq(cuEventQuery(event), CUDA_DEINITIALIZED);
    cr_assert_eq(cuStreamDestroy_v2(stream), CUDA_DEINITIALIZED);
    cr_assert_eq(cuModuleUnload(rig.module), CUDA_DEINITIALIZED);
    cr_assert_eq(cuDevicePrimaryCtxRelease_v2(0), CUDA_DEINITIALIZED);
    cr_assert_eq(cuDeviceGetCount(&value), CUDA_DEINITIALIZED);
    cr_assert_eq(cuInit(0), CUDA_DEINITIALIZED);
}

/* A child of a process that used the driver cannot use it. */
Test(emulator_start, forked_child)
{
    int status, count;
    struct rig rig = rig_start(NULL);
    pid_t child = fork();
    if (child == 0) {
        bool refused = cuDeviceGetCount(&count) == CUDA_NOT_INITIALIZED && cuInit(0) == CUDA_NOT_INITIALIZED &&
                       cuCtxSynchronize() == CUDA_NOT_INITIALIZED;
        _exit(refused ? 0 : 1);
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert_eq(status, 0);
    rig_stop(rig);
}

/* The result of cuGetProcAddress depends on the version that is asked for. */
Test(emulator_start, names_by_version)
{
    void *function, *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    int status;
    cr_assert(library);
    OK(cuGetProcAddress_v2("cuCtxGetDevice", &function, 12000, 0, &status));
    cr_assert_eq(function, dlsym(library, "cuCtxGetDevice"));
    OK(cuGetProcAddress_v2("cuCtxGetDevice", &function, 13000, 0, &status));
    cr_assert_eq(function, dlsym(library, "cuCtxGetDevice_v2"));
    cr_assert_eq(status, 0);
    OK(cuGetProcAddress("cuMemAlloc", &function, 3020, 0));
    OK(cuGetProcAddress_v2("cuStreamGetId", &function, 11080, 0, &status));
    cr_assert_null(function);
    cr_assert_eq(status, 2);
    OK(cuGetProcAddress_v2("cuNothing", &function, 13000, 0, &status));
    cr_assert_null(function);
    cr_assert_eq(status, 1);
    cr_assert_eq(cuGetProcAddress("cuInit", &function, 13010, 0), CUDA_INVALID_VALUE);
    OK(cuGetProcAddress("cuStreamQuery", &function, 12000, 2));
    cr_assert_eq(function, dlsym(library, "cuStreamQuery_ptsz"));
    OK(cuGetProcAddress("cuEventQuery", &function, 12000, 2)); /* has no such variant */
    cr_assert_eq(function, dlsym(library, "cuEventQuery"));
    dlclose(library);
}

/* A younger name is absent from an older driver; the version can be lowered, too. */
Test(emulator_start, older_driver)
{
    void *function;
#ifdef EMULATOR_11_0 /* the sanitizers do not work in a second name space */
    void *library = dlmopen(LM_ID_NEWLM, EMULATOR_11_0, RTLD_NOW | RTLD_LOCAL);
    cr_assert(library, "%s", dlerror());
    cr_assert(dlsym(library, "cuEventRecord"));
    cr_assert_null(dlsym(library, "cuMemAllocAsync"));
    cr_assert_null(dlsym(library, "cuGetProcAddress"));
#endif
    emulator_set("version", 12020);
    OK(cuGetProcAddress("cuStreamGetDevice", &function, 12020, 0));
    cr_assert_null(function);
    cr_assert_eq(cuGetProcAddress("cuInit", &function, 13000, 0), CUDA_INVALID_VALUE);
}

#ifdef EMULATOR_12_2
Test(emulator_start, driver_between)
{
    void *library = dlmopen(LM_ID_NEWLM, EMULATOR_12_2, RTLD_NOW | RTLD_LOCAL);
    cr_assert(library, "%s", dlerror());
    cr_assert(dlsym(library, "cuMemAllocAsync") && dlsym(library, "cuGetProcAddress_v2"));
    cr_assert_null(dlsym(library, "cuFuncLoad"));
    cr_assert_null(dlsym(library, "cuCtxGetDevice_v2"));
}
#endif

/* A superseded name takes other arguments; to call it is a mistake. */
Test(emulator_start, superseded_name)
{
    rig_init(NULL);
    cr_assert_neq(cuMemAlloc(), 0);
    rig_expect_report("cuMemAlloc: the superseded");
}

Test(emulator_start, error_texts)
{
    const char *text = "";
    OK(cuGetErrorName(700, &text));
    cr_assert_str_eq(text, "CUDA_ERROR_ILLEGAL_ADDRESS");
    OK(cuGetErrorString(0, &text));
    cr_assert_eq(cuGetErrorName(12345, &text), CUDA_INVALID_VALUE);
    cr_assert_null(text);
}

Test(emulator_start, devices)
{
    int value, count;
    size_t bytes;
    char name[64];
    struct cuda_uuid a, b;
    rig_init((struct setting[]){{"devices", 3}, {"memory", 16}, {"pools", 0}, {NULL, 0}});
    OK(cuDeviceGetCount(&count));
    cr_assert_eq(count, 3);
    cr_assert_eq(cuDeviceGet(&value, 3), CUDA_INVALID_DEVICE);
    OK(cuDeviceGetName(name, sizeof name, 2));
    OK(cuDeviceTotalMem_v2(&bytes, 2));
    cr_assert_eq(bytes, 16 << 20);
    OK(cuDeviceGetUuid_v2(&a, 0));
    OK(cuDeviceGetUuid_v2(&b, 1));
    cr_assert(memcmp(&a, &b, sizeof a));
    OK(cuDeviceGetAttribute(&value, CUDA_ATTRIBUTE_MEMORY_POOLS, 0));
    cr_assert_eq(value, 0);
    cr_assert_eq(cuDeviceGetAttribute(&value, 100000, 0), CUDA_INVALID_VALUE);
}

/* Calls that need a current context say so. */
Test(emulator_start, no_current_context)
{
    void *event;
    uint64_t address;
    rig_init(NULL);
    cr_assert_eq(cuEventCreate(&event, 0), CUDA_INVALID_CONTEXT);
    cr_assert_eq(cuMemAlloc_v2(&address, 8), CUDA_INVALID_CONTEXT);
    cr_assert_eq(cuCtxSynchronize(), CUDA_INVALID_CONTEXT);
    rig_expect_report("no context is current");
}

/* The stack: push and pop nest, set replaces the top, retain does not push. */
Test(emulator_start, current_stack)
{
    void *a, *b, *current;
    rig_init((struct setting[]){{"devices", 2}, {NULL, 0}});
    OK(cuDevicePrimaryCtxRetain(&a, 0));
    OK(cuDevicePrimaryCtxRetain(&b, 1));
    OK(cuCtxGetCurrent(&current));
    cr_assert_null(current);
    OK(cuCtxPushCurrent_v2(a));
    OK(cuCtxPushCurrent_v2(b));
    OK(cuCtxGetCurrent(&current));
    cr_assert_eq(current, b);
    OK(cuCtxSetCurrent(a));
    OK(cuCtxPopCurrent_v2(&current));
    cr_assert_eq(current, a);
    OK(cuCtxSetCurrent(NULL));
    cr_assert_eq(cuCtxPopCurrent_v2(&current), CUDA_INVALID_CONTEXT);
    cr_assert_eq(emulator_context_switches(), 4);
    OK(cuDevicePrimaryCtxRelease_v2(0));
    OK(cuDevicePrimaryCtxRelease_v2(1));
    cr_assert_eq(emulator_report_count(), 0);
}

/* The primary context is counted; the last release ends its handles, though it is still current. */
Test(emulator_start, primary_context_is_counted)
{
    void *context, *again;
    unsigned flags;
    int active;
    rig_init(NULL);
    cr_assert_eq(cuDevicePrimaryCtxRelease_v2(0), CUDA_INVALID_CONTEXT);
    rig_expect_report("not retained");
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuDevicePrimaryCtxRetain(&again, 0));
    cr_assert_eq(context, again);
    OK(cuCtxSetCurrent(context));
    void *event = rig_event();
    OK(cuDevicePrimaryCtxRelease_v2(0));
    OK(cuEventQuery(event));
    OK(cuDevicePrimaryCtxRelease_v2(0));
    rig_expect_report("is left at the end of its context");
    OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    cr_assert_eq(active, 0);
    cr_assert_eq(cuCtxSynchronize(), CUDA_CONTEXT_IS_DESTROYED);
    rig_expect_report("the context was destroyed");
    cr_assert_eq(cuEventQuery(event), CUDA_INVALID_HANDLE);
    rig_expect_report("was destroyed");
}

Test(emulator_start, flags_of_an_active_context)
{
    void *context;
    rig_init(NULL);
    OK(cuDevicePrimaryCtxSetFlags_v2(0, 4));
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuDevicePrimaryCtxSetFlags_v2(0, 4));
    cr_assert_eq(emulator_report_count(), 0);
    OK(cuDevicePrimaryCtxSetFlags_v2(0, 1));
    rig_expect_report("changes the flags");
    OK(cuDevicePrimaryCtxRelease_v2(0));
}

/* Handles have a kind and a generation. */
Test(emulator_start, stale_and_foreign_handles)
{
    struct rig rig = rig_start(NULL);
    void *stream = rig_stream(), *event = rig_event();
    cr_assert_eq(cuEventDestroy_v2(stream), CUDA_INVALID_HANDLE);
    rig_expect_report("is a stream, not a event");
    OK(cuEventDestroy_v2(event));
    cr_assert_eq(cuEventDestroy_v2(event), CUDA_INVALID_HANDLE);
    rig_expect_report("was destroyed");
    cr_assert_eq(cuEventRecord(event, stream), CUDA_INVALID_HANDLE);
    rig_expect_report("was destroyed");
    cr_assert_eq(cuStreamQuery((void *)&rig), CUDA_INVALID_HANDLE);
    rig_expect_report("is no handle");
    OK(cuStreamDestroy_v2(stream));
    rig_stop(rig);
}

/* On demand a handle that was freed comes back at once, as with the real driver. */
Test(emulator_start, handles_come_back)
{
    struct rig rig = rig_start((struct setting[]){{"reuse_handles", 1}, {NULL, 0}});
    void *event = rig_event();
    OK(cuEventDestroy_v2(event));
    cr_assert_eq(rig_event(), event);
    OK(cuEventDestroy_v2(event));
    void *stream = rig_stream();
    OK(cuStreamDestroy_v2(stream));
    cr_assert_eq(rig_stream(), stream);
    OK(cuStreamDestroy_v2(stream));
    rig_stop(rig);
}

/* The n-th call of an entry point fails and changes nothing. */
Test(emulator_start, injected_failure)
{
    struct rig rig = rig_start(NULL);
    uint64_t address = 7;
    emulator_fail("cuMemAlloc_v2", 2, CUDA_OUT_OF_MEMORY);
    uint64_t first = rig_alloc(64);
    cr_assert_eq(cuMemAlloc_v2(&address, 64), CUDA_OUT_OF_MEMORY);
    cr_assert_eq(address, 7);
    OK(cuMemAlloc_v2(&address, 64));
    OK(cuMemFree_v2(address));
    emulator_fail("*", 1, CUDA_UNKNOWN);
    cr_assert_eq(cuMemFree_v2(first), CUDA_UNKNOWN);
    OK(cuMemFree_v2(first));
    cr_assert_eq(emulator_calls("cuMemAlloc_v2"), 3);
    rig_stop(rig);
}

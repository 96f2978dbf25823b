/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The emulated driver: how a process ends in strict mode, and that seeds and delays change no result. */
#include <cuda/rig.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The exit status of a process that runs @body. */
static int status_of(void (*body)(void))
{
    int status;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        if (!freopen("/dev/null", "w", stderr)) _exit(1);
        body();
        exit(0);
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void clean(void)
{
    rig_stop(rig_start((struct setting[]){{"strict", 1}, {NULL, 0}}));
}

static void lost_edge(void)
{
    struct rig rig = rig_start((struct setting[]){{"strict", 1}, {NULL, 0}});
    void *stream = rig_stream(), *event = rig_event();
    OK(cuStreamWaitEvent(stream, event, 0));
    OK(cuStreamDestroy_v2(stream));
    OK(cuEventDestroy_v2(event));
    OK(cuModuleUnload(rig.module));
    OK(cuDevicePrimaryCtxRelease_v2(0));
}

static void taken_report(void)
{
    lost_edge();
    emulator_reports_take();
}

static void hanging_wait(void)
{
    rig_start((struct setting[]){{"strict", 1}, {NULL, 0}});
    uint64_t address = rig_alloc(8);
    OK(cuMemsetD8_v2(address, 0, 8));
    OK(cuStreamSynchronize(NULL));
    OK(cuStreamWaitValue32_v2(rig_stream(), address, 1, CUDA_WAIT_EQ));
    while (!emulator_calls("cuStreamWaitValue32_v2")) continue;
    usleep(20000); /* until a worker has it */
}

Test(emulator_strict, exit_status)
{
    cr_assert_eq(status_of(clean), 0);
    cr_assert_eq(status_of(lost_edge), 99);
    cr_assert_eq(status_of(taken_report), 0);
    cr_assert_eq(status_of(hanging_wait), 99);
}

/* Three streams hand a counter to each other; whatever the order and the delays, the result is the same. */
static int64_t relay(struct rig rig, int64_t rounds)
{
    void *streams[3], *events[3], *add = rig_function(rig, "add");
    uint64_t counter = rig_alloc(8);
    OK(cuMemsetD8_v2(counter, 0, 8));
    OK(cuStreamSynchronize(NULL));
    for (int i = 0; i < 3; i++) {
        streams[i] = rig_stream();
        events[i] = rig_event();
        OK(cuEventRecord(events[i], streams[i]));
    }
    for (int64_t i = 0; i < rounds; i++) {
        void *stream = streams[i % 3];
        OK(cuStreamWaitEvent(stream, events[(i + 2) % 3], 0));
        if (i % 5 == 4)
            OK(cuMemsetD32Async(counter, (unsigned)i, 1, stream));
        else
            rig_launch(add, stream, counter, (uint64_t)i, 0);
        OK(cuEventRecord(events[i % 3], stream));
    }
    OK(cuCtxSynchronize());
    int64_t result = rig_read(counter);
    for (int i = 0; i < 3; i++) {
        OK(cuStreamDestroy_v2(streams[i]));
        OK(cuEventDestroy_v2(events[i]));
    }
    OK(cuMemFree_v2(counter));
    return result;
}

static void relay_with(int64_t seed, int64_t workers, int64_t queues)
{
    struct rig rig = rig_start((struct setting[]){
        {"seed", seed}, {"workers", workers}, {"queues", queues}, {"delay_us", seed ? 20 : 0}, {NULL, 0}});
    cr_assert_eq(relay(rig, 103), 99 + 100 + 101 + 102);
    rig_stop(rig);
}

Test(emulator_strict, one_at_a_time)
{
    relay_with(0, 1, 1);
}

Test(emulator_strict, first_seed)
{
    relay_with(1, 16, 0);
}

Test(emulator_strict, second_seed)
{
    relay_with(2, 4, 2);
}

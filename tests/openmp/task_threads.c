/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
// not on cuda: its kernels wait for each other, on more streams than there are hardware queues
/* Plain threads generate deferred target tasks: each has its own siblings. Libomp alone crashes on this. */
// flags: -pthread
// preload only: OMP_TARGET_OFFLOAD=MANDATORY => PASS
// not yet: OMP_TARGET_OFFLOAD=DISABLED, where libomp alone runs the tasks and corrupts its memory when such threads end
// preload only: OMP_NUM_THREADS=1 KMP_BLOCKTIME=0 => PASS
// preload only: OMP_THREAD_LIMIT=4 => PASS
#include <pthread.h>

#include "task_check.h"

enum { THREADS = 8, CELLS = 3, TASKS = 60 };

static int ready;

static void chains(void)
{
    unsigned cell[CELLS] = {0}, want[CELLS] = {0};
    int devices = omp_get_num_devices();
    for (unsigned i = 0; i < TASKS; i++) {
        int c = (int)(draw() % CELLS), device = devices ? (int)(draw() % 4) % devices : 0;
        unsigned z = draw();
        uintptr_t at = (uintptr_t)&cell[c];
        model(&want[c], INOUT, i, NULL);
        if (draw() % 5) {
#pragma omp target nowait depend(inout : cell[c]) device(device)
            touch(at, INOUT, i, z, 0);
        } else {
#pragma omp task depend(inout : cell[c]) firstprivate(at, i, z)
            touch(at, INOUT, i, z, 0);
        }
    }
#pragma omp taskwait
    CHECK(!memcmp(cell, want, sizeof cell));
}

/* All threads name the same address; the first one's kernel ends only after the others' have. */
static int named, gate, passed;

static void not_siblings(int id)
{
    uintptr_t flag = (uintptr_t)&gate, done = (uintptr_t)&passed;
    if (id == 0) {
#pragma omp target nowait depend(inout : named)
        __atomic_store_n((int *)done, wait_flag(flag, THREADS - 1), __ATOMIC_RELEASE);
    } else {
#pragma omp target nowait depend(inout : named)
        add_flag(flag);
    }
#pragma omp taskwait
}

static void team(void)
{
    unsigned sum[3] = {0};
#pragma omp parallel num_threads(3)
    for (unsigned i = 0; i < 10; i++) {
        unsigned *mine = &sum[omp_get_thread_num()];
#pragma omp target nowait depend(inout : mine[0]) map(tofrom : mine[0 : 1])
        mine[0] = mine[0] * 2 + i;
    }
    for (int i = 1; i < omp_get_max_threads() && i < 3; i++) CHECK(sum[i] == sum[0] || sum[i] == 0);
    CHECK(sum[0] == 1013);
}

static void *work(void *arg)
{
    int id = (int)(intptr_t)arg;
    __atomic_add_fetch(&ready, 1, __ATOMIC_ACQ_REL);
    while (__atomic_load_n(&ready, __ATOMIC_ACQUIRE) < THREADS) usleep(10);
    chains();
    if (omp_get_num_devices()) not_siblings(id);
    chains();
    if (id % 4 == 0) team();
    return NULL;
}

int main(void)
{
    for (int round = 0; round < rounds(5); round++) {
        pthread_t threads[THREADS];
        ready = gate = 0;
        passed = !omp_get_num_devices();
        for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void *)(intptr_t)i);
        if (round % 2) chains();
        for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
        CHECK(__atomic_load_n(&passed, __ATOMIC_ACQUIRE));
    }
    return finish();
}

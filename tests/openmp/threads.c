/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Plain threads that come and go offload at the same time, from the very first use on. */
// flags: -pthread
#include <pthread.h>

#include "check.h"

#pragma omp begin declare target
int table[8] = {3, 1, 4, 1, 5, 9, 2, 6};
#pragma omp end declare target

static int shared[256];
static int ready;

static void *work(void *arg)
{
    int id = (int)(intptr_t)arg;
    __atomic_add_fetch(&ready, 1, __ATOMIC_ACQ_REL);
    while (__atomic_load_n(&ready, __ATOMIC_ACQUIRE) < 12) usleep(10);
    for (int i = 0; i < 50; i++) {
        int out = 0, d = (id + i) % omp_get_num_devices(), local[16];
        for (int k = 0; k < 16; k++) local[k] = id;
#pragma omp target map(from : out) device(d)
        out = table[id % 8] + i;
        CHECK(out == table[id % 8] + i);
#pragma omp target data map(tofrom : local) device(d)
#pragma omp target map(to : shared) device(d)
        for (int k = 0; k < 16; k++) local[k] += shared[k];
        for (int k = 0; k < 16; k++) CHECK(local[k] == id + k);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[12];
    for (int i = 0; i < 256; i++) shared[i] = i;
    for (int round = 0; round < 3; round++) {
        ready = round ? 12 : 0;
        for (int i = 0; i < 12; i++) pthread_create(&threads[i], NULL, work, (void *)(intptr_t)i);
        for (int i = 0; i < 12; i++) pthread_join(threads[i], NULL);
    }
    return finish();
}

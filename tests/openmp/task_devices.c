/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Dependences between tasks of four devices. */
// run: OMP_TARGET_OFFLOAD=MANDATORY => PASS
// run: OMP_TARGET_OFFLOAD=MANDATORY OMP_NUM_THREADS=1 => PASS
// run: OMP_WAIT_POLICY=passive => PASS
// preload only: OMP_THREAD_LIMIT=2 => PASS
#include "task_check.h"

enum { N = 300, DEVICES = 4 };

/* One array goes from device to device by way of the host. */
static void relay(void)
{
    int a[N], want[N];
    for (int k = 0; k < N; k++) a[k] = want[k] = k;
    for (int i = 0; i < 12; i++) {
        int device = (int)(draw() % DEVICES);
        unsigned z = draw();
        for (int k = 0; k < N; k++) want[k] = want[k] * 3 % 10007 + i;
#pragma omp target nowait map(tofrom : a) depend(inout : a) device(device)
        {
            nap(z);
            for (int k = 0; k < N; k++) a[k] = a[k] * 3 % 10007 + i;
        }
    }
#pragma omp taskwait
    CHECK(!memcmp(a, want, sizeof a));
}

/* The array lives on all devices; updates carry what one has written to the next. */
static void resident(void)
{
    int a[N], want = 5, last = 0;
    for (int k = 0; k < N; k++) a[k] = want;
    for (int d = 0; d < DEVICES; d++) {
#pragma omp target enter data map(to : a) nowait depend(in : a) device(d)
    }
    for (int i = 0; i < 10; i++) {
        int device = (int)(draw() % DEVICES);
        unsigned z = draw();
        want = want * 2 % 9973 + i;
        if (device != last) {
#pragma omp target update from(a) nowait depend(inout : a) device(last)
#pragma omp target update to(a) nowait depend(inout : a) device(device)
        }
        last = device;
#pragma omp target nowait depend(inout : a) device(device)
        {
            nap(z);
            for (int k = 0; k < N; k++) a[k] = a[k] * 2 % 9973 + i;
        }
    }
#pragma omp target update from(a) nowait depend(inout : a) device(last)
    for (int d = 0; d < DEVICES; d++) {
#pragma omp target exit data map(release : a) nowait depend(inout : a) device(d)
    }
#pragma omp taskwait
    for (int k = 0; k < N; k++) CHECK(a[k] == want);
}

/* Copies between the devices' own memory. */
static void direct(void)
{
    int *at[DEVICES], host = omp_get_initial_device(), want = 1, last = 0, out[N];
    omp_depend_t any[DEVICES];
    for (int d = 0; d < DEVICES; d++) {
        at[d] = omp_target_alloc(N * sizeof(int), d);
        int *p = at[d];
#pragma omp depobj(any[d]) depend(inout : p[0])
    }
    int *first = at[0];
#pragma omp target nowait is_device_ptr(first) depend(inout : first[0]) device(0)
    for (int k = 0; k < N; k++) first[k] = 1;
    for (int i = 0; i < 10; i++) {
        int device = (last + 1 + (int)(draw() % (DEVICES - 1))) % DEVICES, *p = at[device];
        unsigned z = draw();
        omp_depend_t both[2] = {any[last], any[device]};
        CHECK(!omp_target_memcpy_async(p, at[last], N * sizeof(int), 0, 0, device, last, 2, both));
#pragma omp target nowait is_device_ptr(p) depend(inout : p[0]) device(device)
        {
            nap(z);
            for (int k = 0; k < N; k++) p[k] = p[k] * 2 % 9973 + i;
        }
        last = device;
        want = want * 2 % 9973 + i;
    }
    CHECK(!omp_target_memcpy_async(out, at[last], sizeof out, 0, 0, host, last, 1, &any[last]));
#pragma omp taskwait
    for (int k = 0; k < N; k++) CHECK(out[k] == want);
    for (int d = 0; d < DEVICES; d++) {
        omp_target_free(at[d], d);
#pragma omp depobj(any[d]) destroy
    }
}

/* Four producers, one consumer that depends on all of them, again and again. */
static void join(void)
{
    unsigned part[DEVICES] = {0}, want[DEVICES] = {0}, seen[DEVICES] = {0}, want_seen[DEVICES];
    for (unsigned i = 0; i < 8; i++) {
        for (int d = 0; d < DEVICES; d++) {
            unsigned z = draw(), id = i + (unsigned)d;
            uintptr_t at = (uintptr_t)&part[d];
            model(&want[d], INOUT, id, NULL);
#pragma omp target nowait depend(inout : part[d]) device(d)
            touch(at, INOUT, id, z, 0);
        }
        int device = (int)(draw() % DEVICES);
        uintptr_t from = (uintptr_t)part, to = (uintptr_t)seen;
        unsigned z = draw();
        memcpy(want_seen, want, sizeof want);
#pragma omp target nowait depend(iterator(k = 0 : DEVICES), in : part[k]) depend(inout : seen) device(device)
        for (unsigned k = 0; k < DEVICES; k++) touch(from + 4 * k, IN, 0, z, to + 4 * k);
#pragma omp task depend(in : seen) shared(seen) firstprivate(want_seen)
        CHECK(!memcmp(seen, want_seen, sizeof seen));
    }
#pragma omp taskwait
}

static void all(void)
{
    relay();
    resident();
    direct();
    join();
}

int main(void)
{
    CHECK(omp_get_num_devices() == DEVICES);
    return everywhere(all, 4, 3);
}

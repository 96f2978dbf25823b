/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_TESTS_DEVICES_HOST_RIG_H
#define WEIR_TESTS_DEVICES_HOST_RIG_H

/* CPU devices opened for a test, and gates that hold a stream until the test lets it go. */

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <unistd.h>

#include <devices/device.h>
#include <devices/host/host.h>

#define OPS        (&weir__host_ops)
#define must(call) cr_assert_eq((call), WEIR_OK, "%s: %s", #call, OPS->last_error(NULL))

struct rig {
    void *backend;
    uint32_t ndevices;
    void *devices[4];
    struct weir__device_info info[4];
};

/* The owner of each stream that is notified. */
struct owner {
    _Atomic uint64_t reached;
    _Atomic uint32_t calls;
    pthread_t thread;
    int device; /* weir__host_current_device() in the newest call */
};

static void owner_reached(void *arg, uint64_t reached)
{
    struct owner *owner = arg;
    owner->thread = pthread_self();
    owner->device = weir__host_current_device();
    atomic_store(&owner->reached, reached);
    atomic_fetch_add(&owner->calls, 1);
}

static const struct weir__device_notice rig_notice = {.reached = owner_reached};

/* Of the backends that are opened from then on. */
static struct weir__host_options rig_options = {.short_ns = WEIR__HOST_SHORT_NS};

static inline void rig_open(struct rig *rig, uint32_t ndevices)
{
    rig->ndevices = ndevices;
    must(weir__host_backend_create(ndevices, &rig_options, &rig->backend));
    for (uint32_t i = 0; i < ndevices; i++)
        must(OPS->device_open(rig->backend, i, &rig_notice, &rig->info[i], &rig->devices[i]));
}

static inline void rig_close(struct rig *rig)
{
    for (uint32_t i = 0; i < rig->ndevices; i++) OPS->device_close(rig->devices[i]);
    weir__host_backend_destroy(rig->backend);
}

static inline void *rig_stream(struct rig *rig, uint32_t device)
{
    void *stream = NULL;
    must(OPS->stream_create(rig->devices[device], NULL, 0, &stream));
    return stream;
}

static inline void rig_sync_and_destroy(void *stream)
{
    uint64_t position = 0;
    must(OPS->record(stream, &position));
    must(OPS->sync(stream, position));
    OPS->stream_destroy(stream);
}

static inline uint64_t rig_record(void *stream)
{
    uint64_t position = 0;
    must(OPS->record(stream, &position));
    OPS->flush(stream);
    return position;
}

/* A function that blocks its thread until the gate is opened. */
struct gate {
    _Atomic int arrived;
    _Atomic int open;
};

static inline int gate_pass(void *arg)
{
    struct gate *gate = arg;
    atomic_fetch_add(&gate->arrived, 1);
    while (!atomic_load(&gate->open)) usleep(200);
    return 0;
}

static inline void until(_Atomic int *counter, int value)
{
    while (atomic_load(counter) < value) usleep(200);
}

static inline int count_up(void *arg)
{
    atomic_fetch_add((_Atomic int *)arg, 1);
    return 0;
}

#endif

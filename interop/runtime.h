/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_INTEROP_RUNTIME_H
#define WEIR_INTEROP_RUNTIME_H

/*
 * The one context of the process that compiled programs share, and what each calling thread has of it.
 *
 * It is made by the first use, from whichever thread that is, and never destroyed: programs offload from exit handlers
 * and from destructors of libraries. In the child of a fork it is gone: there are no devices and everything runs on the
 * host.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <weir/task.h>

struct weir__table;
struct weir__construct;
struct weir__target_task;

/* What programs call; everything else stays inside the library. */
#define WEIR__EXPORT __attribute__((visibility("default")))

/* A device as OpenMP numbers it. Lives as long as the process. */
struct weir__target {
    struct weir_device *device;
    struct weir__table *table; /* mapped data */
    int number;                /* for OpenMP; index of visible[] */
    uint32_t index;            /* in targets[]: position in the context */
    uint32_t machine;          /* bits of enum weir__machine: the images it takes */
    pthread_mutex_t load;      /* held while images are loaded; see registry.c */
    /* Generation of the registry whose libraries are all loaded here. Written under @load (release, pairs with the
     * acquire in weir__registry_load()). */
    _Atomic uint64_t loaded;
    char uid[80];
};

struct weir__runtime {
    struct weir_context *context;
    uint32_t ntargets;
    struct weir__target *targets;  /* targets[ntargets], all devices of the context */
    struct weir__target **visible; /* visible[nvisible], those that some image fits */
    _Atomic int nvisible;          /* grows only; release after the slot is written */
    _Atomic uint32_t machines;     /* enum weir__machine, that are visible already */
};

/* Sizes of pooled target tasks. */
#define WEIR__TARGET_TASK_SIZES 64

/*
 * What a thread keeps from its first offload to its end. Never freed, reused by later threads, so that a late wake-up
 * finds it (construct.c).
 */
struct weir__thread {
    struct weir_scope *scope;     /* its tasks; only this thread submits */
    struct weir__construct *pool; /* of this thread alone */
    uint32_t npool;
    struct weir__target_task *tasks[WEIR__TARGET_TASK_SIZES]; /* unused memory, of this thread alone */
    _Atomic uint32_t wake;     /* construct.c: a futex */
    _Atomic uint32_t sleeping; /* construct.c */
    struct weir__thread *next; /* list of all, under the list's lock */
    struct weir__thread *next_free;
    uint32_t pins; /* who waits for @scope on somebody's behalf; under the list's lock */
    bool live;     /* under the list's lock */
};

/*
 * The number of devices that OpenMP sees: those of every backend for which some library has brought an image; 0 if
 * offloading is disabled, and in the child of a fork. Makes the context if there is an image. Any thread.
 */
int weir__runtime_devices(void);

/*
 * The device that a construct names: -1 is the default device; the number of devices is the host.
 * Returns  the device, its images loaded; NULL: the program is to use the host.
 *          Ends the program for a number out of range, and when offloading is mandatory without a device.
 * Threads  any. Blocks while another thread makes the context or loads images.
 */
struct weir__target *weir__runtime_target(int64_t device);

/*
 * The device that a library routine names: -1 and the number of devices are the host (*target_out = NULL).
 * Returns  WEIR_OK; WEIR_E_NO_DEVICE.
 */
WEIR_MUST_CHECK int weir__runtime_routine_target(int device, struct weir__target **target_out);

/* Is the program to end rather than to run a construct on the host? (OMP_TARGET_OFFLOAD=MANDATORY) Any thread. */
bool weir__runtime_is_mandatory(void);

/* What the calling thread has; made at its first call, which ends the program if there is no memory for it.
 * weir__runtime_target() has given a device before. */
struct weir__thread *weir__runtime_thread(void);

/* The same, or NULL if it has none yet. */
struct weir__thread *weir__runtime_thread_peek(void);

/* Is this the child of a process that had offloaded? Nothing of weir works in it. Any thread. */
bool weir__runtime_is_child(void);

/* Does the calling thread run a kernel of a CPU device? */
bool weir__runtime_in_kernel(void);

/* The context, if it was made and is this process's own; else NULL. Any thread. Never blocks. */
struct weir__runtime *weir__runtime_peek(void);

/* A library registers: this one stays loaded from now on, and its exit handler stands behind those of the program. */
void weir__runtime_stay(void);

/* Wait for the work of all threads. Blocks. Any thread without open task; does nothing inside a kernel. */
void weir__runtime_drain(void);
/* Also finish what the calling thread has left with libomp: tasks that could not start yet. Once, at the end. */
void weir__runtime_drain_all(void);

/* "weir: …" on stderr, then abort(). */
_Noreturn void weir__fatal(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* "weir: …" on stderr. */
void weir__warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif

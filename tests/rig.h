/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_TESTS_RIG_H
#define WEIR_TESTS_RIG_H

/*
 * A context with one of several sets of devices, and an agent: a thread that ends open tasks and fulfils external ones
 * in place of the submitter. One thread opens and closes a rig; rig_agent_push() may be called by any.
 */

#include <pthread.h>
#include <stdatomic.h>

#include <devices/mock/mock.h>
#include <weir/weir.h>

enum { RIG_DEVICES = 4, RIG_QUEUE = 1024 };

struct rig_kind {
    const char *name;
    uint32_t host_devices; /* used by the tests; a context always has one at least */
    uint32_t mock_devices;
    uint32_t streams;   /* per device; 0: the backend's advice */
    bool clock_thread;  /* a thread of the rig moves a manual clock */
    bool no_faults;     /* the backend keeps one failure a stream only */
    const char *others; /* whose devices: "cuda", "plugin"; NULL: the mock's */
    struct weir__mock_options mock;
};

/* WEIR_TEST_KINDS=cuda or plugin: the kinds that need a driver or a plugin, which stand in for all of them; else those
 * that need neither. */
extern const struct rig_kind *rig_kinds;
extern size_t rig_nkinds;

struct rig_job {
    void (*run)(void *arg);
    void *arg;
};

struct rig {
    const struct rig_kind *kind;
    struct weir_context *context;
    struct weir__mock *mock; /* NULL: none */
    struct weir_device *devices[RIG_DEVICES];
    bool is_host[RIG_DEVICES]; /* native streams are weir/host.h's */
    uint32_t ndevices;

    pthread_t agent, clock;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t change;
    struct rig_job jobs[RIG_QUEUE];
    uint32_t first, count, active;
    bool closing;
    _Atomic bool clock_stop;
};

/* 0, or the failing call's code. */
int rig_open(struct rig *rig, const struct rig_kind *kind, uint32_t window);
/* Drains the agent, destroys the context and the mock. @violations_out: 0 when the mock saw no breach of its rules. */
int rig_close(struct rig *rig, bool *violations_out);
/* The agent calls run(arg) soon. Blocks while RIG_QUEUE jobs are queued. */
void rig_agent_push(struct rig *rig, void (*run)(void *arg), void *arg);
/* Wait until the agent has nothing to do. */
void rig_agent_drain(struct rig *rig);

#endif

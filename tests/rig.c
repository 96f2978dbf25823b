/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <exec/work.h>

#include "rig.h"

static const struct rig_kind plain_kinds[] = {
    {.name = "host", .host_devices = 1},
    {.name = "two hosts, two streams each", .host_devices = 2, .streams = 2},
    {.name = "mock, automatic", .mock_devices = 2, .mock = {.devices = 2, .clock = WEIR__MOCK_AUTOMATIC}},
    {.name = "mock, ticker",
     .mock_devices = 2,
     .mock = {.devices = 2, .clock = WEIR__MOCK_TICKER, .duration = 5, .random_seed = 7}},
    {.name = "mock, manual clock",
     .mock_devices = 1,
     .streams = 3,
     .clock_thread = true,
     .mock = {.clock = WEIR__MOCK_MANUAL, .duration = 3, .random_seed = 11}},
    {.name = "mock, no events",
     .mock_devices = 2,
     .mock = {.devices = 2, .clock = WEIR__MOCK_TICKER, .no_events = true}},
    {.name = "mock, no cross wait",
     .mock_devices = 2,
     .mock = {.devices = 2, .clock = WEIR__MOCK_TICKER, .no_cross_wait = true}},
    {.name = "mock, no notices", .mock_devices = 1, .mock = {.clock = WEIR__MOCK_TICKER, .no_event_notify = true}},
    {.name = "mock, late answers",
     .mock_devices = 2,
     .mock = {.devices = 2, .clock = WEIR__MOCK_TICKER, .duration = 3, .random_seed = 13, .late_answers = true}},
    {.name = "mock, positions", .mock_devices = 2, .no_faults = true, .mock = {.devices = 2, .positions = true}},
    {.name = "hosts and mock",
     .host_devices = 2,
     .mock_devices = 1,
     .mock = {.clock = WEIR__MOCK_TICKER, .duration = 2, .random_seed = 3}},
};
static const struct rig_kind cuda_kinds[] = {
    {.name = "cuda", .others = "cuda"},
    {.name = "cuda, two streams each", .others = "cuda", .streams = 2},
    {.name = "host and cuda", .host_devices = 1, .others = "cuda"},
};
static const struct rig_kind plugin_kinds[] = {
    {.name = "plugin", .others = "plugin"},
    {.name = "plugin, two streams each", .others = "plugin", .streams = 2},
    {.name = "host and plugin", .host_devices = 1, .others = "plugin"},
};
const struct rig_kind *rig_kinds = plain_kinds;
size_t rig_nkinds = sizeof(plain_kinds) / sizeof(plain_kinds[0]);

__attribute__((constructor)) static void choose_kinds(void)
{
    const char *kinds = getenv("WEIR_TEST_KINDS");
    if (kinds != NULL && strcmp(kinds, "cuda") == 0) {
        rig_kinds = cuda_kinds;
        rig_nkinds = sizeof(cuda_kinds) / sizeof(cuda_kinds[0]);
    } else if (kinds != NULL && strcmp(kinds, "plugin") == 0) {
        rig_kinds = plugin_kinds;
        rig_nkinds = sizeof(plugin_kinds) / sizeof(plugin_kinds[0]);
    }
}

static void *agent_main(void *arg)
{
    struct rig *rig = arg;
    pthread_mutex_lock(&rig->lock);
    for (;;) {
        while (rig->count == 0 && !rig->closing) pthread_cond_wait(&rig->change, &rig->lock);
        if (rig->count == 0) break;
        struct rig_job job = rig->jobs[rig->first];
        rig->first = (rig->first + 1) % RIG_QUEUE;
        rig->count--;
        rig->active++;
        pthread_mutex_unlock(&rig->lock);
        job.run(job.arg);
        pthread_mutex_lock(&rig->lock);
        rig->active--;
        pthread_cond_broadcast(&rig->change);
    }
    pthread_mutex_unlock(&rig->lock);
    return NULL;
}

static void *clock_main(void *arg)
{
    struct rig *rig = arg;
    while (!atomic_load_explicit(&rig->clock_stop, memory_order_relaxed)) {
        uint64_t ended = weir__mock_items_ended(rig->mock);
        weir__mock_advance(rig->mock, 1);
        if (weir__mock_items_ended(rig->mock) == ended) usleep(20);
    }
    return NULL;
}

static int open_devices(struct rig *rig)
{
    if (rig->kind->mock_devices > 0) {
        int rc = weir__mock_create(&rig->kind->mock, &rig->mock);
        if (rc != 0) return rc;
        rc = weir__context_add_backend(rig->context, weir__mock_ops(rig->mock), rig->mock);
        if (rc != 0) return rc;
    }
    uint32_t hosts = 0;
    for (int i = 0; i < weir_device_count(rig->context); i++) {
        struct weir_device *device = weir_device_get(rig->context, i);
        const char *name = weir_device_name(device);
        bool is_host = strncmp(name, "host", 4) == 0;
        const char *others = rig->kind->others ? rig->kind->others : "mock";
        bool wanted = strncmp(name, others, strlen(others)) == 0;
        if (is_host) wanted = hosts++ < rig->kind->host_devices;
        if (!wanted || rig->ndevices == RIG_DEVICES) continue;
        rig->is_host[rig->ndevices] = is_host;
        rig->devices[rig->ndevices++] = device;
    }
    return rig->ndevices == 0 ? WEIR_E_NO_DEVICE : 0;
}

int rig_open(struct rig *rig, const struct rig_kind *kind, uint32_t window)
{
    memset(rig, 0, sizeof(*rig));
    rig->kind = kind;
    struct weir_context_options options = {.size = sizeof(options),
                                           .workers = 2,
                                           .host_devices = kind->host_devices ? kind->host_devices : 1,
                                           .window = window,
                                           .streams_per_device = kind->streams};
    int rc = weir_context_create(&options, &rig->context);
    if (rc != 0) return rc;
    rc = open_devices(rig);
    if (rc != 0) return rc;
    pthread_mutex_init(&rig->lock, NULL);
    pthread_cond_init(&rig->change, NULL);
    if (kind->clock_thread && pthread_create(&rig->clock, NULL, clock_main, rig) != 0) return WEIR_E_SYSTEM;
    return pthread_create(&rig->agent, NULL, agent_main, rig) != 0 ? WEIR_E_SYSTEM : 0;
}

int rig_close(struct rig *rig, bool *violations_out)
{
    pthread_mutex_lock(&rig->lock);
    rig->closing = true;
    pthread_cond_broadcast(&rig->change);
    pthread_mutex_unlock(&rig->lock);
    pthread_join(rig->agent, NULL);
    int rc = weir_context_destroy(rig->context);
    /* The clock stops last: destroying waits for work that is still queued. */
    atomic_store(&rig->clock_stop, true);
    if (rig->kind->clock_thread) pthread_join(rig->clock, NULL);
    *violations_out = false;
    if (rig->mock != NULL) {
        const char *text = weir__mock_violations(rig->mock);
        *violations_out = text[0] != '\0' || weir__mock_objects(rig->mock) != 0;
        if (*violations_out)
            fprintf(stderr, "%s: %zu objects left; breaches:\n%s\n", rig->kind->name, weir__mock_objects(rig->mock),
                    text);
        weir__mock_destroy(rig->mock);
    }
    pthread_mutex_destroy(&rig->lock);
    pthread_cond_destroy(&rig->change);
    return rc;
}

void rig_agent_push(struct rig *rig, void (*run)(void *arg), void *arg)
{
    pthread_mutex_lock(&rig->lock);
    while (rig->count == RIG_QUEUE) pthread_cond_wait(&rig->change, &rig->lock);
    rig->jobs[(rig->first + rig->count) % RIG_QUEUE] = (struct rig_job){run, arg};
    rig->count++;
    pthread_cond_broadcast(&rig->change);
    pthread_mutex_unlock(&rig->lock);
}

void rig_agent_drain(struct rig *rig)
{
    pthread_mutex_lock(&rig->lock);
    while (rig->count > 0 || rig->active > 0) pthread_cond_wait(&rig->change, &rig->lock);
    pthread_mutex_unlock(&rig->lock);
}

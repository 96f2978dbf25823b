/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Threads that run what takes time: some for kernels, copies and sets, and others, by default one, for host functions.
 * They are started when all that exist are busy, never end, and sleep while there is nothing to do.
 */
#include "internal.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "emulator.h"

static struct crew {
    pthread_cond_t work;
    struct queue *first, **last;
    unsigned ready, waiting, threads;
} crews[2] = {
    {.work = PTHREAD_COND_INITIALIZER, .last = &crews[0].first},
    {.work = PTHREAD_COND_INITIALIZER, .last = &crews[1].first},
};

static struct queue *take(struct crew *crew)
{
    struct queue **link = &crew->first;
    if (emulator__state.settings.seed && crew->ready > 1)
        for (uint64_t skip = emulator__random(crew->ready); skip; skip--) link = &(*link)->ready_next;
    struct queue *queue = *link;
    *link = queue->ready_next;
    if (!*link) crew->last = link;
    crew->ready--;
    return queue;
}

static int injected_fault(struct device *device)
{
    return device->fault_in && --device->fault_in == 0 ? device->fault_code : 0;
}

static void delay(uint64_t us)
{
    struct timespec time = {.tv_sec = (time_t)(us / 1000000), .tv_nsec = (long)(us % 1000000 * 1000)};
    if (us) nanosleep(&time, NULL);
}

static void run_head(struct queue *queue)
{
    struct device *device = queue->device;
    struct operation *operation = queue->head;
    uint64_t limit = (uint64_t)emulator__state.settings.delay_us;
    uint64_t delay_us = limit ? emulator__random(limit + 1) : 0;
    uint32_t opens = operation->opens;
    bool is_dropped = operation->context->error && !operation->runs_in_error;
    int status = injected_fault(device);
    pthread_mutex_unlock(&emulator__state.lock);
    delay(delay_us);
    if (!status && !is_dropped) status = operation->run(operation);
    pthread_mutex_lock(&emulator__state.lock);
    queue->is_running = false;
    emulator__queue_ran(queue, status);
    emulator__memory_close(opens); /* not between two kernels of a chain: the next one has opened it */
}

static void *work(void *arg)
{
    struct crew *crew = arg;
    pthread_mutex_lock(&emulator__state.lock);
    for (;;) {
        while (!crew->first) {
            crew->waiting++;
            pthread_cond_wait(&crew->work, &emulator__state.lock);
            crew->waiting--;
        }
        struct queue *queue = take(crew);
        queue->is_listed = false;
        queue->is_running = true;
        run_head(queue);
    }
    return NULL;
}

static void start_thread(struct crew *crew)
{
    sigset_t all, before;
    pthread_t thread;
    sigfillset(&all);
    sigdelset(&all, SIGSEGV);
    sigdelset(&all, SIGBUS);
    sigdelset(&all, SIGFPE);
    sigdelset(&all, SIGILL);
    sigdelset(&all, SIGABRT);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failure = pthread_create(&thread, NULL, work, crew);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!failure) {
        pthread_detach(thread);
        crew->threads++;
    } else if (!crew->threads) {
        fprintf(stderr, "emulator: cannot start a thread\n");
        abort();
    }
}

void emulator__worker_wake(struct queue *queue)
{
    const struct settings *settings = &emulator__state.settings;
    bool is_host = queue->head->is_host;
    struct crew *crew = &crews[is_host];
    int64_t limit = is_host ? settings->host_workers : settings->workers;
    emulator__memory_open(queue->head->opens);
    queue->is_listed = true;
    queue->ready_next = NULL;
    *crew->last = queue;
    crew->last = &queue->ready_next;
    crew->ready++;
    if (crew->ready > crew->waiting && crew->threads < (limit > 1 ? limit : 1)) start_thread(crew);
    pthread_cond_signal(&crew->work);
}

/* ---- the clock ---- */

static void set_stopped(int ordinal, bool is_stopped)
{
    pthread_mutex_lock(&emulator__state.lock);
    for (int i = 0; i < MAX_DEVICES; i++) {
        if (ordinal >= 0 && i != ordinal) continue;
        emulator__state.devices[i].is_stopped = is_stopped;
        emulator__state.devices[i].steps = 0;
        emulator__clock_changed(&emulator__state.devices[i]);
    }
    pthread_mutex_unlock(&emulator__state.lock);
}

void emulator_stop(int device)
{
    set_stopped(device, true);
}

void emulator_start(int device)
{
    set_stopped(device, false);
}

void emulator_step(int ordinal, unsigned count)
{
    struct device *device = &emulator__state.devices[ordinal];
    pthread_mutex_lock(&emulator__state.lock);
    device->steps = count;
    emulator__clock_changed(device);
    while (emulator__device_is_busy(device)) emulator__host_wait();
    device->steps = 0;
    pthread_mutex_unlock(&emulator__state.lock);
}

void emulator_fault(int device, uint64_t nth, int code)
{
    pthread_mutex_lock(&emulator__state.lock);
    emulator__state.devices[device].fault_in = nth;
    emulator__state.devices[device].fault_code = code;
    pthread_mutex_unlock(&emulator__state.lock);
}

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <exec/summary.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <exec/context.h>
#include <exec/environment.h>

/* Contexts that have not ended, linked by summary_next. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct weir_context *watched;

static void print(struct weir_context *context)
{
    struct weir_counters c;
    uint64_t             tasks;

    weir_context_counters(context, &c);
    if ((tasks = c.tasks - c.inner) == 0) return;
    flockfile(stderr);
    fprintf(stderr, "weir: %" PRIu64 " task%s (%" PRIu64 " on devices, %" PRIu64 " failed, %" PRIu64 " cancelled)",
            tasks, tasks == 1 ? "" : "s", c.tasks_device, c.failed, c.cancelled);
    if (c.edges != 0) {
        fprintf(stderr, ", %" PRIu64 " edge%s: %" PRIu64 " done before, %" PRIu64 " same stream, %" PRIu64 " implied, ",
                c.edges, c.edges == 1 ? "" : "s", c.edges_done, c.edges_stream, c.edges_implied);
        fprintf(stderr, "%" PRIu64 " by event, %" PRIu64 " by completion, %" PRIu64 " through the host", c.edges_event,
                c.edges_host, c.edges_host_only);
    }
    fprintf(stderr, "; at most %" PRIu64 " in flight\n", c.peak_in_flight);
    funlockfile(stderr);
}

/* In the child of a fork the contexts are the parent's, and so is the lock. */
static void at_exit(void)
{
    struct weir_context *context = watched;

    if (context == NULL || context->generation != atomic_load_explicit(&weir__generation, memory_order_relaxed) /* see there */) return;
    pthread_mutex_lock(&lock);
    for (context = watched; context != NULL; context = context->summary_next) print(context);
    watched = NULL;
    pthread_mutex_unlock(&lock);
}

static void register_exit(void)
{
    (void)atexit(at_exit); /* without it only destroyed contexts are told of */
}

void weir__summary_watch(struct weir_context *context)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    if (weir__environment_number("WEIR_SUMMARY", 0, 0, 1) == 0) return;
    pthread_once(&once, register_exit);
    pthread_mutex_lock(&lock);
    context->summary_next = watched;
    watched = context;
    pthread_mutex_unlock(&lock);
}

void weir__summary_end(struct weir_context *context)
{
    struct weir_context **link = &watched;

    pthread_mutex_lock(&lock);
    while (*link != NULL && *link != context) link = &(*link)->summary_next;
    if (*link != NULL) {
        *link = context->summary_next;
        print(context);
    }
    pthread_mutex_unlock(&lock);
}

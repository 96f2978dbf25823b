/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* docs/graph-api.md 3: host tasks, an exchange of messages and a kernel in one graph. */
#include <pthread.h>
#include <semaphore.h>

#include "check.h"

/* A thread takes MPI's place: it waits for our message, then its own one arrives in buf. */
struct grid {
    double            cells, buf;
    double            sent;
    sem_t             arrived_there;
    struct weir_task *recv;
};

static int pack_and_send(void *arg)
{
    struct grid *g = arg;
    g->sent = g->cells;
    return sem_post(&g->arrived_there);
}

static void *progress(void *arg)
{
    struct grid *g = arg;
    while (sem_wait(&g->arrived_there) != 0)
        ;
    g->buf = 10.0 * g->sent;
    /* [snippet progress] */
    check(weir_task_fulfill(g->recv, 0)); /* progress loop: when MPI_Test says done */
    /* [end] */
    return NULL;
}

static int stencil(void *arg)
{
    struct grid *g = arg;
    g->cells += g->buf;
    return 0;
}

static int issue_stencil(struct weir_task *t, void *native_stream, void *arg)
{
    (void)t;
    return weir_host_enqueue(native_stream, stencil, arg);
}

int main(void)
{
    struct weir_context *context;
    struct weir_scope *scope;
    check(weir_context_create(NULL, &context));
    check(weir_scope_create(context, NULL, &scope));
    struct weir_device *device = weir_device_get(context, 0);
    struct grid grid = { .cells = 1.0 }, *g = &grid;
    sem_init(&grid.arrived_there, 0, 0);
    pthread_t thread;

    /* [snippet] */
    struct weir_access in_cells[] = { WEIR_IN(g->cells) }, inout_buf[] = { WEIR_INOUT(g->buf) };
    struct weir_access in_buf_inout_cells[] = { WEIR_IN(g->buf), WEIR_INOUT(g->cells) };
    check(weir_task_host(scope, pack_and_send, g, in_cells, 1, NULL, NULL));
    check(weir_task_external(scope, inout_buf, 1, NULL, &g->recv));     /* completed by us */
    expect(!pthread_create(&thread, NULL, progress, g), "MPI_Irecv(g->buf, …)");
    check(weir_task_submit(scope, device, in_buf_inout_cells, 2, issue_stencil, g, NULL, NULL));
    check(weir_scope_wait(scope));
    /* [end] */

    pthread_join(thread, NULL);
    sem_destroy(&grid.arrived_there);
    expect(grid.cells == 11.0, "the kernel used what was received");
    check(weir_scope_destroy(scope));
    check(weir_context_destroy(context));
    return 0;
}

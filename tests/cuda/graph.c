/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Graphs that were captured. A launch submits a copy of every node to the stream, one behind the other, which is an
 * order that the graph allows; launches of one executable graph follow each other.
 */
#include "capture.h"

#include <stdlib.h>
#include <string.h>

struct graph {
    struct object object;
    struct graph_body *body;
};

struct graph_exec {
    struct object object;
    struct graph_body *body;
    struct point last;
    uint64_t launcher; /* number of the thread that is launching it; 0: none */
};

void emulator__graph_body_release(struct graph_body *body)
{
    if (--body->references) return;
    for (unsigned i = 0; i < body->count; i++) {
        struct operation *operation = body->nodes[i].operation;
        for (unsigned j = 0; j < operation->held_count; j++) operation->held[j]->pending++;
        operation->over(operation, 0);
        emulator__node_set_release(body->nodes[i].after);
    }
    free(body->nodes);
    free(body);
}

void *emulator__graph_of(struct graph_body *body)
{
    struct graph *graph = emulator__allocate(sizeof *graph);
    graph->object = (struct object){.kind = GRAPH};
    graph->body = body;
    body->references++;
    return emulator__handle_create(&graph->object);
}

int emulator__cuGraphDestroy(void *handle)
{
    struct graph *graph = emulator__handle_find(handle, GRAPH);
    if (!graph) return CUDA_INVALID_HANDLE;
    emulator__handle_destroy(&graph->object);
    emulator__graph_body_release(graph->body);
    free(graph);
    return 0;
}

int emulator__cuGraphInstantiateWithFlags(void **handle, void *graph_handle, uint64_t flags)
{
    struct graph *graph = emulator__handle_find(graph_handle, GRAPH);
    if (!handle || flags) return CUDA_INVALID_VALUE;
    if (!graph) return CUDA_INVALID_HANDLE;
    struct graph_exec *exec = emulator__allocate(sizeof *exec);
    exec->object = (struct object){.kind = GRAPH_EXEC};
    exec->body = graph->body;
    exec->body->references++;
    *handle = emulator__handle_create(&exec->object);
    return *handle ? 0 : CUDA_OUT_OF_MEMORY;
}

/* Graphs have no lock of their own: it is the program's business that one thread at a time uses them. */
static void check_sharing(const struct graph_exec *exec, const char *what)
{
    if (exec->launcher && exec->launcher != emulator__thread_number())
        emulator__report("executable graph %p is %s while another thread launches it",
                         emulator__handle_of(&exec->object), what);
}

int emulator__cuGraphExecDestroy(void *handle)
{
    struct graph_exec *exec = emulator__handle_find(handle, GRAPH_EXEC);
    if (!exec) return CUDA_INVALID_HANDLE;
    check_sharing(exec, "destroyed");
    emulator__handle_destroy(&exec->object); /* what was launched goes on */
    emulator__timeline_release(exec->last.timeline);
    emulator__graph_body_release(exec->body);
    free(exec);
    return 0;
}

static struct operation *copy_of(const struct operation *node)
{
    struct operation *operation = emulator__allocate(node->bytes);
    memcpy(operation, node, node->bytes);
    operation->held = NULL;
    operation->held_count = 0;
    for (unsigned i = 0; i < node->held_count; i++) {
        if (emulator__range_find(node->held[i]->base) != node->held[i])
            emulator__report("the graph uses %#llx, which was freed", (unsigned long long)node->held[i]->base);
        emulator__operation_hold(operation, node->held[i]);
    }
    if (operation->copied) operation->copied(operation);
    return operation;
}

int emulator__cuGraphLaunch(void *handle, void *stream_handle)
{
    int code;
    struct graph_exec *exec = emulator__handle_find(handle, GRAPH_EXEC);
    if (!exec) return CUDA_INVALID_HANDLE;
    struct stream *stream = emulator__stream_find(stream_handle, &code);
    if (!stream) return code;
    code = emulator__capture_forbid(stream);
    if (code) return code;
    struct graph_body *body = exec->body;
    body->references++; /* the lock may be given up, and the handle destroyed */
    check_sharing(exec, "launched");
    exec->launcher = emulator__thread_number();
    emulator__let_others_in();
    struct operation *first = emulator__allocate(sizeof *first);
    emulator__operation_after(first, exec->last);
    struct point last = emulator__submit(stream, first);
    for (unsigned i = 0; i < body->count; i++) last = emulator__submit(stream, copy_of(body->nodes[i].operation));
    emulator__graph_body_release(body);
    exec = emulator__handle_peek(handle, GRAPH_EXEC);
    if (!exec) return 0;
    exec->launcher = 0;
    emulator__timeline_release(exec->last.timeline);
    exec->last = emulator__point_retain(last);
    return 0;
}

int emulator__cuGraphUpload(void *handle, void *stream_handle)
{
    int code;
    if (!emulator__handle_find(handle, GRAPH_EXEC)) return CUDA_INVALID_HANDLE;
    emulator__stream_find(stream_handle, &code);
    return code;
}

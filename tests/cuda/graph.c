/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Graphs: captured, or put together node by node. A launch submits a copy of every node to the stream, one behind the
 * other, which is an order that the graph allows; launches of one executable graph follow each other. A graph and what
 * was made of it share their nodes until one of them is changed.
 */
#include "capture.h"

#include <stdlib.h>
#include <string.h>

struct graph_node {
    struct object object;
    struct graph *graph;
    unsigned index;
    struct graph_node *next; /* of the graph */
};

struct graph {
    struct object object;
    struct graph_body *body;
    struct graph_node *nodes; /* that were added by hand; captured ones have no handles */
    uint64_t id;
};

struct graph_exec {
    struct object object;
    struct graph_body *body;
    struct point last;
    uint64_t graph;    /* id of what it was made of */
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
    graph->id = ++emulator__state.next_id;
    body->references++;
    return emulator__handle_create(&graph->object);
}

int emulator__cuGraphCreate(void **handle, unsigned flags)
{
    if (!handle || flags) return CUDA_INVALID_VALUE;
    struct graph_body *body = emulator__allocate(sizeof *body);
    *handle = emulator__graph_of(body);
    return *handle ? 0 : CUDA_OUT_OF_MEMORY;
}

int emulator__cuGraphDestroy(void *handle)
{
    struct graph *graph = emulator__handle_find(handle, GRAPH);
    if (!graph) return CUDA_INVALID_HANDLE;
    while (graph->nodes) {
        struct graph_node *node = graph->nodes;
        graph->nodes = node->next;
        emulator__handle_destroy(&node->object);
        free(node);
    }
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
    exec->graph = graph->id;
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

/* ---- nodes by hand ---- */

/* It is in no queue: what it names is not in use. */
static struct operation *at_rest(struct operation *operation)
{
    for (unsigned i = 0; i < operation->held_count; i++) operation->held[i]->pending--;
    return operation;
}

/* Its owner is about to change it: from here on it has one for itself. */
static void body_own(struct graph_body **place)
{
    struct graph_body *shared = *place;
    if (shared->references == 1) return;
    struct graph_body *own = emulator__allocate(sizeof *own);
    own->references = 1;
    own->count = shared->count;
    own->nodes = emulator__allocate((own->count + 1) * sizeof *own->nodes);
    for (unsigned i = 0; i < own->count; i++) {
        own->nodes[i] =
            (struct node){.operation = at_rest(copy_of(shared->nodes[i].operation)), .after = shared->nodes[i].after};
        own->nodes[i].after->references++;
    }
    emulator__graph_body_release(shared);
    *place = own;
}

/* NULL if one of them is no node of the graph. */
static struct node_set *predecessors(const struct graph *graph, void *const *after, size_t count)
{
    struct node_set *set = emulator__allocate(sizeof *set + count * sizeof *set->nodes);
    set->references = 1;
    for (; set->count < count; set->count++) {
        struct graph_node *node = emulator__handle_find(after[set->count], GRAPH_NODE);
        if (!node || node->graph != graph) {
            emulator__node_set_release(set);
            return NULL;
        }
        set->nodes[set->count] = node->index;
    }
    return set;
}

static void free_node(struct operation *operation, int status)
{
    (void)status;
    emulator__operation_free(operation);
}

/* Takes @operation over on success. */
static int add(void **handle, void *graph_handle, void *const *after, size_t count, struct operation *operation)
{
    struct graph *graph = emulator__handle_find(graph_handle, GRAPH);
    if (!graph) return CUDA_INVALID_HANDLE;
    if (!handle || (count && !after)) return CUDA_INVALID_VALUE;
    struct node_set *set = predecessors(graph, after, count);
    if (!set) return CUDA_INVALID_VALUE;
    struct graph_node *node = emulator__allocate(sizeof *node);
    body_own(&graph->body);
    *node = (struct graph_node){.object = {.kind = GRAPH_NODE}, .graph = graph, .index = graph->body->count};
    struct node *nodes = realloc(graph->body->nodes, (node->index + 1) * sizeof *nodes);
    if (!nodes || !emulator__handle_create(&node->object)) abort();
    nodes[node->index] = (struct node){.operation = at_rest(operation), .after = set};
    graph->body->nodes = nodes;
    graph->body->count++;
    node->next = graph->nodes;
    graph->nodes = node;
    *handle = emulator__handle_of(&node->object);
    return 0;
}

static int add_or_drop(void **handle, void *graph, void *const *after, size_t count, struct operation *operation)
{
    int code = add(handle, graph, after, count, operation);
    if (code) operation->over(operation, 0);
    return code;
}

int emulator__cuGraphAddKernelNode_v2(void **node, void *graph, void *const *after, size_t count,
                                      const struct cuda_kernel_node *kernel)
{
    struct operation *operation;
    int code = kernel ? emulator__kernel_operation(kernel, &operation) : CUDA_INVALID_VALUE;
    return code ? code : add_or_drop(node, graph, after, count, operation);
}

int emulator__cuGraphAddHostNode(void **node, void *graph, void *const *after, size_t count,
                                 const struct cuda_host_node *host)
{
    if (!host || !host->function) return CUDA_INVALID_VALUE;
    return add_or_drop(node, graph, after, count, emulator__host_operation(host->function, host->arg));
}

int emulator__cuGraphAddEmptyNode(void **node, void *graph, void *const *after, size_t count)
{
    struct operation *operation = emulator__allocate(sizeof *operation);
    operation->bytes = sizeof *operation;
    operation->over = free_node;
    return add_or_drop(node, graph, after, count, operation);
}

/* ---- changes of executable graphs ---- */

static bool is_same_set(const struct node_set *a, const struct node_set *b)
{
    return a->count == b->count && !memcmp(a->nodes, b->nodes, a->count * sizeof *a->nodes);
}

static int difference(const struct graph_body *a, const struct graph_body *b)
{
    if (a->count != b->count) return CUDA_UPDATE_TOPOLOGY_CHANGED;
    for (unsigned i = 0; i < a->count; i++) {
        if (a->nodes[i].operation->run != b->nodes[i].operation->run) return CUDA_UPDATE_NODE_TYPE_CHANGED;
        if (!is_same_set(a->nodes[i].after, b->nodes[i].after)) return CUDA_UPDATE_TOPOLOGY_CHANGED;
    }
    return 0;
}

int emulator__cuGraphExecUpdate_v2(void *handle, void *graph_handle, struct cuda_update_info *info)
{
    struct graph_exec *exec = emulator__handle_find(handle, GRAPH_EXEC);
    struct graph *graph = emulator__handle_find(graph_handle, GRAPH);
    if (!exec || !graph) return CUDA_INVALID_HANDLE;
    if (!info) return CUDA_INVALID_VALUE;
    check_sharing(exec, "changed");
    *info = (struct cuda_update_info){.result = difference(exec->body, graph->body)};
    if (info->result) return CUDA_GRAPH_EXEC_UPDATE_FAILURE;
    graph->body->references++;
    emulator__graph_body_release(exec->body);
    exec->body = graph->body;
    return 0;
}

int emulator__cuGraphExecKernelNodeSetParams_v2(void *handle, void *node_handle, const struct cuda_kernel_node *kernel)
{
    struct graph_exec *exec = emulator__handle_find(handle, GRAPH_EXEC);
    struct graph_node *node = emulator__handle_find(node_handle, GRAPH_NODE);
    struct operation *operation;
    if (!exec || !node) return CUDA_INVALID_HANDLE;
    if (!kernel || node->graph->id != exec->graph || node->index >= exec->body->count) return CUDA_INVALID_VALUE;
    int code = emulator__kernel_operation(kernel, &operation);
    if (code) return code;
    if (operation->run != exec->body->nodes[node->index].operation->run) {
        operation->over(operation, 0);
        return CUDA_INVALID_VALUE;
    }
    check_sharing(exec, "changed");
    body_own(&exec->body);
    struct operation **place = &exec->body->nodes[node->index].operation;
    for (unsigned i = 0; i < (*place)->held_count; i++) (*place)->held[i]->pending++;
    (*place)->over(*place, 0);
    *place = at_rest(operation);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Capture. While a stream captures, what is submitted to it becomes a node behind the nodes that the stream is at; a
 * record remembers these, a wait for it leads another stream there. What a capture cannot contain invalidates it.
 */
#include "capture.h"

#include <stdlib.h>
#include <string.h>

static struct capture *captures; /* active ones */
static _Thread_local int thread_mode __attribute__((tls_model("initial-exec")));

/* ---- sets of nodes ---- */

static struct node_set *single(unsigned node)
{
    struct node_set *set = emulator__allocate(sizeof *set + sizeof *set->nodes);
    set->references = set->count = 1;
    set->nodes[0] = node;
    return set;
}

struct node_set *emulator__node_set_join(const struct node_set *one, const struct node_set *other)
{
    unsigned first = one ? one->count : 0, second = other ? other->count : 0;
    struct node_set *set = emulator__allocate(sizeof *set + (first + second) * sizeof *set->nodes);
    set->references = 1;
    set->count = first + second;
    if (first) memcpy(set->nodes, one->nodes, first * sizeof *set->nodes);
    if (second) memcpy(set->nodes + first, other->nodes, second * sizeof *set->nodes);
    return set;
}

void emulator__node_set_release(struct node_set *set)
{
    if (set && --set->references == 0) free(set);
}

/* ---- captures ---- */

void emulator__capture_release(struct capture *capture)
{
    if (!capture || --capture->references) return;
    emulator__graph_body_release(capture->body);
    free(capture);
}

void emulator__capture_invalidate(struct capture *capture)
{
    capture->is_invalidated = true;
}

void emulator__capture_follow(struct stream *stream, struct capture *capture, const struct node_set *after)
{
    struct node_set *at = emulator__node_set_join(stream->captured_at, after);
    emulator__node_set_release(stream->captured_at);
    stream->captured_at = at;
    if (stream->capture) return;
    stream->capture = capture;
    capture->references++;
}

struct point emulator__capture_add(struct stream *stream, struct operation *operation)
{
    struct graph_body *body = stream->capture->body;
    struct node *nodes = realloc(body->nodes, (body->count + 1) * sizeof *nodes);
    if (!nodes) abort();
    nodes[body->count] = (struct node){.operation = operation, .after = stream->captured_at};
    body->nodes = nodes;
    stream->captured_at = single(body->count++);
    operation->context = stream->object.context;
    for (unsigned i = 0; i < operation->held_count; i++) operation->held[i]->pending--; /* not in flight */
    return (struct point){NULL, 0};
}

/* ---- what a capture forbids ---- */

int emulator__capture_forbid(struct stream *stream)
{
    if (!stream->capture) return 0;
    emulator__capture_invalidate(stream->capture);
    return CUDA_CAPTURE_UNSUPPORTED;
}

int emulator__capture_forbid_context(struct context *context)
{
    int code = 0;
    for (struct stream *stream = context->streams; stream; stream = stream->context_next)
        if (emulator__capture_forbid(stream)) code = CUDA_CAPTURE_UNSUPPORTED;
    return code;
}

int emulator__capture_forbid_legacy(struct context *context)
{
    int code = 0;
    for (struct stream *stream = context->streams; stream; stream = stream->context_next) {
        if (!stream->capture || !stream->is_blocking) continue;
        emulator__capture_invalidate(stream->capture);
        code = CUDA_CAPTURE_IMPLICIT;
    }
    return code;
}

int emulator__capture_forbid_unsafe(void)
{
    int code = 0;
    for (struct capture *capture = captures; capture; capture = capture->next) {
        bool is_own = capture->thread == emulator__thread_number();
        bool is_hurt = capture->mode == CAPTURE_GLOBAL && (thread_mode == CAPTURE_GLOBAL || is_own);
        if (capture->mode == CAPTURE_THREAD_LOCAL) is_hurt = is_own;
        if (!is_hurt || thread_mode == CAPTURE_RELAXED) continue;
        emulator__capture_invalidate(capture);
        code = CUDA_CAPTURE_UNSUPPORTED;
    }
    return code;
}

int emulator__capture_status(const struct stream *stream)
{
    return stream->capture && stream->capture->is_invalidated ? CUDA_CAPTURE_INVALIDATED : 0;
}

/* ---- begin and end ---- */

static struct stream *find_stream(void *handle)
{
    return (uintptr_t)handle > CUDA_STREAM_PER_THREAD ? emulator__handle_find(handle, STREAM) : NULL;
}

int emulator__cuStreamBeginCapture_v2(void *handle, int mode)
{
    if (mode < CAPTURE_GLOBAL || mode > CAPTURE_RELAXED) return CUDA_INVALID_VALUE;
    if ((uintptr_t)handle <= CUDA_STREAM_LEGACY) return CUDA_CAPTURE_UNSUPPORTED;
    int code;
    struct stream *stream = emulator__stream_find(handle, &code);
    if (!stream) return code;
    if (stream->capture) return CUDA_INVALID_VALUE;
    struct capture *capture = emulator__allocate(sizeof *capture);
    *capture = (struct capture){.references = 1, .is_active = true, .mode = (enum capture_mode)mode};
    capture->id = ++emulator__state.next_id;
    capture->thread = emulator__thread_number();
    capture->origin = stream;
    capture->body = emulator__allocate(sizeof *capture->body);
    capture->body->references = 1;
    capture->next = captures;
    captures = capture;
    emulator__capture_follow(stream, capture, NULL);
    return 0;
}

/* All that the other streams of the capture are at must be before what its origin is at. */
static bool is_joined(struct capture *capture)
{
    struct graph_body *body = capture->body;
    const struct node_set *ends = capture->origin->captured_at;
    for (unsigned i = 0; i < body->count; i++) body->nodes[i].is_reached = false;
    for (unsigned i = 0; i < ends->count; i++) body->nodes[ends->nodes[i]].is_reached = true;
    for (unsigned i = body->count; i-- > 0;) {
        if (!body->nodes[i].is_reached) return false;
        const struct node_set *after = body->nodes[i].after;
        for (unsigned j = 0; j < after->count; j++) body->nodes[after->nodes[j]].is_reached = true;
    }
    return true;
}

static void leave(struct capture *capture)
{
    for (struct context *context = emulator__state.contexts; context; context = context->all_next)
        for (struct stream *stream = context->streams; stream; stream = stream->context_next) {
            if (stream->capture != capture) continue;
            stream->capture = NULL;
            emulator__node_set_release(stream->captured_at);
            stream->captured_at = NULL;
            emulator__capture_release(capture);
        }
}

static void end(struct capture *capture)
{
    struct capture **link = &captures;
    while (*link != capture) link = &(*link)->next;
    *link = capture->next;
    capture->is_active = false;
    leave(capture);
    emulator__capture_release(capture);
}

int emulator__cuStreamEndCapture(void *handle, void **graph)
{
    struct stream *stream = find_stream(handle);
    if (!graph) return CUDA_INVALID_VALUE;
    if (!stream) return CUDA_INVALID_HANDLE;
    struct capture *capture = stream->capture;
    *graph = NULL;
    if (!capture) return CUDA_INVALID_VALUE;
    if (capture->origin != stream) {
        emulator__capture_invalidate(capture);
        return CUDA_CAPTURE_UNMATCHED;
    }
    if (capture->mode != CAPTURE_RELAXED && capture->thread != emulator__thread_number()) {
        emulator__capture_invalidate(capture);
        return CUDA_CAPTURE_WRONG_THREAD;
    }
    int code = capture->is_invalidated ? CUDA_CAPTURE_INVALIDATED : is_joined(capture) ? 0 : CUDA_CAPTURE_UNJOINED;
    if (!code) *graph = emulator__graph_of(capture->body);
    end(capture);
    return code;
}

int emulator__cuStreamIsCapturing(void *handle, int *status)
{
    if (!status) return CUDA_INVALID_VALUE;
    struct stream *stream = find_stream(handle);
    if (!stream && (uintptr_t)handle > CUDA_STREAM_PER_THREAD) return CUDA_INVALID_HANDLE;
    /* For the legacy stream: an error, but no harm, while it may not be used. */
    for (struct stream *other = emulator__call.context->streams; other && !stream; other = other->context_next)
        if (other->capture && other->is_blocking && (uintptr_t)handle <= CUDA_STREAM_LEGACY)
            return CUDA_CAPTURE_IMPLICIT;
    *status = !stream || !stream->capture ? 0 : stream->capture->is_invalidated ? 2 : 1;
    return 0;
}

int emulator__cuThreadExchangeStreamCaptureMode(int *mode)
{
    if (!mode || *mode < CAPTURE_GLOBAL || *mode > CAPTURE_RELAXED) return CUDA_INVALID_VALUE;
    int before = thread_mode;
    thread_mode = *mode;
    *mode = before;
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Streams and host functions. */
#include "internal.h"

#include <stdlib.h>

#include "emulator.h"

/* ---- which stream ---- */

uint64_t emulator__thread_number(void)
{
    static uint64_t count;
    static _Thread_local uint64_t number __attribute__((tls_model("initial-exec")));
    if (!number) number = ++count;
    return number;
}

struct stream *emulator__stream_create(struct context *context, unsigned flags, int priority)
{
    struct stream *stream = emulator__allocate(sizeof *stream);
    stream->object = (struct object){.kind = STREAM, .context = context};
    if (!emulator__handle_create(&stream->object)) {
        free(stream);
        return NULL;
    }
    stream->timeline = emulator__timeline_create();
    stream->queue = emulator__queue_assign(context->device);
    stream->flags = flags;
    stream->priority = priority;
    stream->id = ++emulator__state.next_id;
    stream->is_blocking = !(flags & CUDA_STREAM_NON_BLOCKING);
    stream->context_next = context->streams;
    context->streams = stream;
    return stream;
}

static struct stream *per_thread(struct context *context)
{
    uint64_t thread = emulator__thread_number();
    for (struct stream *stream = context->streams; stream; stream = stream->context_next)
        if (stream->thread == thread && !stream->is_destroyed) return stream;
    struct stream *stream = emulator__stream_create(context, 0, 0);
    if (stream) stream->thread = thread;
    return stream;
}

struct stream *emulator__stream_default(struct context *context)
{
    return emulator__call.is_per_thread ? per_thread(context) : context->legacy;
}

struct stream *emulator__stream_find(const void *handle, int *code)
{
    uintptr_t number = (uintptr_t)handle;
    *code = 0;
    if (number > CUDA_STREAM_PER_THREAD) {
        struct stream *stream = emulator__handle_find(handle, STREAM);
        if (!stream)
            *code = CUDA_INVALID_HANDLE;
        else
            *code = emulator__context_status(stream->object.context);
        if (!*code) *code = emulator__capture_status(stream);
        return *code ? NULL : stream;
    }
    if (!number && emulator__state.settings.report_legacy) emulator__report("stream 0 is used");
    if (number == CUDA_STREAM_PER_THREAD || (!number && emulator__call.is_per_thread))
        return per_thread(emulator__call.context);
    *code = emulator__capture_forbid_legacy(emulator__call.context);
    return *code ? NULL : emulator__call.context->legacy;
}

/* ---- calls ---- */

int emulator__cuStreamCreateWithPriority(void **stream, unsigned flags, int priority)
{
    int greatest;
    if (!stream || flags & ~1u) return CUDA_INVALID_VALUE;
    emulator__cuCtxGetStreamPriorityRange(NULL, &greatest);
    priority = priority > 0 ? 0 : priority < greatest ? greatest : priority;
    struct stream *created = emulator__stream_create(emulator__call.context, flags, priority);
    if (!created) return CUDA_OUT_OF_MEMORY;
    *stream = emulator__handle_of(&created->object);
    return 0;
}

int emulator__cuStreamCreate(void **stream, unsigned flags)
{
    return emulator__cuStreamCreateWithPriority(stream, flags, 0);
}

int emulator__cuStreamDestroy_v2(void *handle)
{
    struct stream *stream = (uintptr_t)handle > CUDA_STREAM_PER_THREAD ? emulator__handle_find(handle, STREAM) : NULL;
    if (!stream) return CUDA_INVALID_HANDLE;
    stream->is_destroyed = true; /* what is queued goes on */
    emulator__handle_destroy(&stream->object);
    return 0;
}

struct point emulator__stream_tail(const struct stream *stream)
{
    return (struct point){stream->timeline, stream->timeline->submitted};
}

static bool is_idle(const struct stream *stream)
{
    return emulator__point_is_complete(emulator__stream_tail(stream));
}

int emulator__cuStreamQuery(void *handle)
{
    int code;
    struct stream *stream = emulator__stream_find(handle, &code);
    if (!stream) return code;
    code = emulator__capture_forbid(stream);
    if (code) return code;
    if (!is_idle(stream)) return CUDA_NOT_READY;
    struct context *context = stream->object.context;
    if (stream != context->legacy) return 0;
    for (struct stream *other = context->streams; other; other = other->context_next)
        if (other->is_blocking && !is_idle(other)) return CUDA_NOT_READY;
    return 0;
}

/* Streams are not taken out of the list, so it can be followed while the lock is given up. */
static int drain(struct context *context, bool only_blocking)
{
    int code = context->error;
    for (struct stream *stream = context->streams; stream && !code; stream = stream->context_next)
        if (stream->is_blocking || !only_blocking) code = emulator__point_wait(emulator__stream_tail(stream), context);
    return code;
}

int emulator__stream_drain(struct stream *stream)
{
    struct context *context = stream->object.context;
    /* An action of the legacy stream waits for the blocking ones, of which it is one. */
    if (stream == context->legacy) return drain(context, true);
    return emulator__point_wait(emulator__stream_tail(stream), context);
}

int emulator__context_drain(struct context *context)
{
    return drain(context, false);
}

int emulator__cuStreamSynchronize(void *handle)
{
    int code;
    struct stream *stream = emulator__stream_find(handle, &code);
    if (stream) code = emulator__capture_forbid(stream);
    return code ? code : emulator__stream_drain(stream);
}

int emulator__cuStreamGetPriority(void *handle, int *priority)
{
    int code;
    struct stream *stream = emulator__stream_find(handle, &code);
    if (!priority) return CUDA_INVALID_VALUE;
    if (stream) *priority = stream->priority;
    return code;
}

int emulator__cuStreamGetFlags(void *handle, unsigned *flags)
{
    int code;
    struct stream *stream = emulator__stream_find(handle, &code);
    if (!flags) return CUDA_INVALID_VALUE;
    if (stream) *flags = stream->flags;
    return code;
}

int emulator__cuStreamGetCtx(void *handle, void **context)
{
    int code;
    struct stream *stream = emulator__stream_find(handle, &code);
    if (!context) return CUDA_INVALID_VALUE;
    if (stream) *context = stream->object.context->handle;
    return code;
}

int emulator__cuStreamGetId(void *handle, uint64_t *id)
{
    int code;
    struct stream *stream = emulator__stream_find(handle, &code);
    if (!id) return CUDA_INVALID_VALUE;
    if (stream) *id = stream->id;
    return code;
}

int emulator__cuStreamGetDevice(void *handle, int *device)
{
    int code;
    struct stream *stream = emulator__stream_find(handle, &code);
    if (!device) return CUDA_INVALID_VALUE;
    if (stream) *device = stream->object.context->device->ordinal;
    return code;
}

/* ---- host functions ---- */

struct host_operation {
    struct operation operation;
    void (*function)(void *arg);
    void (*callback)(void *stream, int status, void *arg);
    void *arg, *stream;
};

static int run_host(struct operation *operation)
{
    struct host_operation *host = (struct host_operation *)operation;
    uint64_t start = emulator__now_ns();
    emulator__in_host_function = true;
    if (host->function)
        host->function(host->arg);
    else
        host->callback(host->stream, operation->context->error, host->arg);
    emulator__in_host_function = false;
    uint64_t ms = (emulator__now_ns() - start) / 1000000;
    pthread_mutex_lock(&emulator__state.lock);
    uint64_t limit = (uint64_t)emulator__state.settings.host_limit_ms;
    if (limit && ms > limit) emulator__report("a host function took %llu ms", (unsigned long long)ms);
    pthread_mutex_unlock(&emulator__state.lock);
    return 0;
}

static void host_over(struct operation *operation, int status)
{
    (void)status;
    emulator__state.host_functions--;
    emulator__operation_free(operation);
}

/* A node is one that is queued, too: what it may write is not known as long as it is there. */
static void host_copied(struct operation *operation)
{
    (void)operation;
    emulator__state.host_functions++;
}

static struct operation *new_host(const struct host_operation *what)
{
    struct host_operation *host = emulator__allocate(sizeof *host);
    *host = *what;
    host->operation.bytes = sizeof *host;
    host->operation.is_host = true;
    host->operation.runs_in_error = host->callback != NULL;
    host->operation.run = run_host;
    host->operation.over = host_over;
    host->operation.copied = host_copied;
    emulator__state.host_functions++;
    return &host->operation;
}

struct operation *emulator__host_operation(void (*function)(void *arg), void *arg)
{
    return new_host(&(struct host_operation){.function = function, .arg = arg});
}

static int queue_host(void *handle, struct host_operation what)
{
    int code;
    struct stream *stream = emulator__stream_find(handle, &code);
    if (!stream) return code;
    if (what.callback) code = emulator__capture_forbid(stream);
    if (code) return code;
    what.stream = handle;
    emulator__submit(stream, new_host(&what));
    return 0;
}

int emulator__cuLaunchHostFunc(void *stream, void (*function)(void *), void *arg)
{
    if (!function) return CUDA_INVALID_VALUE;
    return queue_host(stream, (struct host_operation){.function = function, .arg = arg});
}

int emulator__cuStreamAddCallback(void *stream, void (*function)(void *, int, void *), void *arg, unsigned flags)
{
    if (!function || flags) return CUDA_INVALID_VALUE;
    return queue_host(stream, (struct host_operation){.callback = function, .arg = arg});
}

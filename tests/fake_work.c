/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "fake_work.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <exec/stream.h>

enum { GUARD = 64 };

enum op_kind { OP_COPY, OP_FREE, OP_HOST, OP_KERNEL, OP_MARK, OP_WAIT };

struct op {
    enum op_kind kind;
    struct weir__copy copy;
    void *address;
    int (*function)(void *);
    void (*kernel)(void *);
    uint64_t point;
};

struct stream {
    struct weir_task task; /* first: the handle */
    uint32_t id;
    uint64_t position, reached;
    struct op *ops;
    size_t n, capacity, next;
    bool running;
    struct stream *older;
};

struct allocation {
    char *memory;
    size_t bytes;
    bool live;
    struct allocation *older;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct stream *streams;
static struct allocation *allocations;
static struct fake_counts counts;
static unsigned violations, countdown;
static bool queued, failed, can_free_on_stream;
static uint32_t last_id;
static char device[16];

/* ---- memory ---- */

static unsigned memory_countdown;
/* This file allocates. Volatile: compilers know that malloc() does not read it. */
static _Thread_local volatile bool own;

void *__real_malloc(size_t bytes) __attribute__((weak));
void *__real_calloc(size_t n, size_t bytes) __attribute__((weak));
void *__real_realloc(void *old, size_t bytes) __attribute__((weak));
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);

static bool memory_fails(void)
{
    if (own || !memory_countdown || --memory_countdown) return false;
    return failed = true;
}

void *__wrap_malloc(size_t bytes)
{
    return memory_fails() ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t n, size_t bytes)
{
    return memory_fails() ? NULL : __real_calloc(n, bytes);
}

void *__wrap_realloc(void *old, size_t bytes)
{
    return memory_fails() ? NULL : __real_realloc(old, bytes);
}

void fake_fail_memory_at(unsigned n)
{
    memory_countdown = n;
    failed = false;
}

static struct allocation *allocation_of_locked(const void *address, size_t bytes)
{
    for (struct allocation *a = allocations; a; a = a->older)
        if ((const char *)address >= a->memory && (const char *)address + bytes <= a->memory + a->bytes) return a;
    return NULL;
}

static void touch(const void *address, size_t bytes)
{
    pthread_mutex_lock(&lock);
    struct allocation *a = allocation_of_locked(address, bytes);
    if (!a || !a->live) violations++;
    pthread_mutex_unlock(&lock);
}

static bool fails(void)
{
    pthread_mutex_lock(&lock);
    bool now = countdown && --countdown == 0;
    if (now) failed = true;
    pthread_mutex_unlock(&lock);
    return now;
}

static int fake_alloc(void *handle, size_t bytes, void **address_out)
{
    (void)handle;
    if (fails()) return weir__fail(WEIR_E_NO_MEMORY, "injected");
    own = true;
    struct allocation *a = malloc(sizeof *a);
    a->memory = aligned_alloc(GUARD, (bytes + GUARD - 1) / GUARD * GUARD);
    a->bytes = bytes;
    a->live = true;
    memset(a->memory, 0xaa, bytes);
    own = false;
    pthread_mutex_lock(&lock);
    a->older = allocations;
    allocations = a;
    counts.allocs++;
    pthread_mutex_unlock(&lock);
    *address_out = a->memory;
    return WEIR_OK;
}

static void release(void *address)
{
    pthread_mutex_lock(&lock);
    struct allocation *a = allocation_of_locked(address, 1);
    if (!a || !a->live || a->memory != address) {
        violations++;
    } else {
        a->live = false;
        counts.frees++;
        memset(a->memory, 0xdd, a->bytes);
    }
    pthread_mutex_unlock(&lock);
}

static int fake_free(void *handle, void *address)
{
    (void)handle;
    release(address);
    return WEIR_OK;
}

static const char *fake_last_error(void *handle)
{
    (void)handle;
    return "fake";
}

static const struct weir__device_ops ops = {.size = sizeof ops,
                                            .version = WEIR__DEVICE_OPS_VERSION,
                                            .name = "fake",
                                            .alloc = fake_alloc,
                                            .free = fake_free,
                                            .last_error = fake_last_error};

const struct weir__device_ops *weir__device_ops_of(const struct weir_device *which)
{
    (void)which;
    return &ops;
}

void *weir__device_handle_of(const struct weir_device *which)
{
    (void)which;
    return device;
}

const char *weir_device_name(const struct weir_device *which)
{
    (void)which;
    return "fake:0";
}

void weir__log(int level, const char *format, ...)
{
    va_list list;
    if (level > 1) return;
    va_start(list, format);
    vfprintf(stderr, format, list);
    fputc('\n', stderr);
    va_end(list);
}

/* ---- running ---- */

static void copy_run(const struct weir__copy *copy)
{
    size_t rows = copy->count[0] ? copy->count[0] : 1, planes = copy->count[1] ? copy->count[1] : 1;
    for (size_t plane = 0; plane < planes; plane++) {
        for (size_t row = 0; row < rows; row++) {
            char *to = (char *)copy->to + plane * copy->to_pitch[1] + row * copy->to_pitch[0];
            const char *from = (const char *)copy->from + plane * copy->from_pitch[1] + row * copy->from_pitch[0];
            touch(copy->kind == WEIR__COPY_TO_DEVICE ? to : from, copy->bytes);
            memcpy(to, from, copy->bytes);
        }
    }
}

static void run_until(struct stream *stream, uint64_t position);

static void wait_run(uint64_t point)
{
    for (struct stream *stream = streams; stream; stream = stream->older)
        if (stream->id == weir__point_stream(point)) {
            run_until(stream, weir__point_position(point));
            return;
        }
    violations++;
}

static void op_run(struct stream *stream, const struct op *op)
{
    switch (op->kind) {
    case OP_COPY:
        copy_run(&op->copy);
        break;
    case OP_FREE:
        release(op->address);
        break;
    case OP_HOST:
        if (op->function(op->address)) violations++;
        break;
    case OP_KERNEL:
        op->kernel(op->address);
        break;
    case OP_MARK:
        stream->reached = op->point;
        break;
    case OP_WAIT:
        wait_run(op->point);
        break;
    }
}

static void run_until(struct stream *stream, uint64_t position)
{
    if (stream->reached >= position) return;
    if (stream->running) {
        violations++; /* a circle of waits */
        return;
    }
    stream->running = true;
    while (stream->next < stream->n && stream->reached < position) {
        struct op op = stream->ops[stream->next++];
        op_run(stream, &op);
    }
    stream->running = false;
}

void fake_run(struct weir_task *task)
{
    run_until((struct stream *)task, UINT64_MAX);
}

bool fake_step(struct weir_task *task)
{
    struct stream *stream = (struct stream *)task;
    if (stream->next == stream->n) return false;
    struct op op = stream->ops[stream->next++];
    stream->running = true;
    op_run(stream, &op);
    stream->running = false;
    return true;
}

void fake_run_all(void)
{
    for (struct stream *stream = streams; stream; stream = stream->older) run_until(stream, UINT64_MAX);
}

static int queue(struct weir_task *task, const struct op *op, bool may_fail)
{
    struct stream *stream = (struct stream *)task;
    if (may_fail && fails()) return weir__fail(WEIR_E_DEVICE, "injected");
    if (!queued) {
        if (op->kind != OP_WAIT) op_run(stream, op);
        return WEIR_OK;
    }
    if (stream->n == stream->capacity) {
        stream->capacity = stream->capacity ? 2 * stream->capacity : 16;
        own = true;
        stream->ops = realloc(stream->ops, stream->capacity * sizeof *stream->ops);
        own = false;
    }
    stream->ops[stream->n++] = *op;
    return WEIR_OK;
}

static void count(unsigned *counter)
{
    pthread_mutex_lock(&lock);
    (*counter)++;
    pthread_mutex_unlock(&lock);
}

int weir__task_copy(struct weir_task *task, const struct weir__copy *copy)
{
    struct op op = {.kind = OP_COPY, .copy = *copy};
    if (!copy->bytes) violations++;
    int rc = queue(task, &op, true);
    if (!rc) count(copy->kind == WEIR__COPY_TO_DEVICE ? &counts.to : &counts.from);
    return rc;
}

int weir__task_free(struct weir_task *task, void *address)
{
    struct op op = {.kind = OP_FREE, .address = address};
    if (!can_free_on_stream) return weir__fail(WEIR_E_UNSUPPORTED, "fake");
    return queue(task, &op, true);
}

int weir__task_host_function(struct weir_task *task, int (*function)(void *arg), void *arg)
{
    struct op op = {.kind = OP_HOST, .function = function, .address = arg};
    int rc = queue(task, &op, true);
    if (!rc) count(&counts.host_functions);
    return rc;
}

int weir__task_mark(struct weir_task *task, struct weir__point *point_out)
{
    struct stream *stream = (struct stream *)task;
    struct op op = {.kind = OP_MARK, .point = stream->position + 1};
    int rc = queue(task, &op, true);
    if (rc) return rc;
    count(&counts.marks);
    point_out->value = weir__point_pack(stream->id, ++stream->position);
    return WEIR_OK;
}

/* Records it at once: the test's tasks have no end. */
struct weir__point weir__task_next_mark(const struct weir_task *task)
{
    struct stream *stream = (struct stream *)(uintptr_t)task;
    struct op op = {.kind = OP_MARK, .point = stream->position + 1};
    (void)queue(&stream->task, &op, false);
    return (struct weir__point){weir__point_pack(stream->id, ++stream->position)};
}

int weir__task_wait_point(struct weir_task *task, struct weir__point point)
{
    struct op op = {.kind = OP_WAIT, .point = point.value};
    if (!point.value || weir__point_stream(point.value) == ((struct stream *)task)->id) return WEIR_OK;
    int rc = queue(task, &op, true);
    if (!rc) count(&counts.waits);
    return rc;
}

int weir__point_test(struct weir_context *context, struct weir__point point)
{
    (void)context;
    if (!queued) return WEIR_OK;
    for (struct stream *stream = streams; stream; stream = stream->older)
        if (stream->id == weir__point_stream(point.value))
            return stream->reached >= weir__point_position(point.value) ? WEIR_OK : WEIR_E_PENDING;
    violations++;
    return WEIR_OK;
}

/* ---- the test's side ---- */

void fake_kernel(struct weir_task *task, void (*kernel)(void *arg), void *arg)
{
    struct op op = {.kind = OP_KERNEL, .kernel = kernel, .address = arg};
    (void)queue(task, &op, false);
}

void fake_reset(bool queue_work)
{
    for (struct stream *stream = streams, *older; stream; stream = older) {
        older = stream->older;
        free(stream->ops);
        free(stream);
    }
    for (struct allocation *a = allocations, *older; a; a = older) {
        older = a->older;
        free(a->memory);
        free(a);
    }
    streams = NULL;
    allocations = NULL;
    counts = (struct fake_counts){0};
    violations = countdown = 0;
    failed = false;
    queued = queue_work;
    can_free_on_stream = true;
    last_id = 0;
}

struct weir_device *fake_device(void)
{
    return (struct weir_device *)device;
}

struct weir_task *fake_task(void)
{
    struct stream *stream = aligned_alloc(_Alignof(struct stream), sizeof *stream);
    memset(stream, 0, sizeof *stream);
    pthread_mutex_lock(&lock);
    stream->id = ++last_id;
    stream->older = streams;
    streams = stream;
    pthread_mutex_unlock(&lock);
    return &stream->task;
}

struct fake_counts fake_counts(void)
{
    pthread_mutex_lock(&lock);
    struct fake_counts now = counts;
    pthread_mutex_unlock(&lock);
    return now;
}

unsigned fake_live(void)
{
    unsigned n = 0;
    pthread_mutex_lock(&lock);
    for (struct allocation *a = allocations; a; a = a->older) n += a->live;
    pthread_mutex_unlock(&lock);
    return n;
}

unsigned fake_violations(void)
{
    pthread_mutex_lock(&lock);
    unsigned n = violations;
    pthread_mutex_unlock(&lock);
    return n;
}

void fake_fail_at(unsigned n)
{
    countdown = n;
    failed = false;
}

bool fake_failed(void)
{
    return failed;
}

void fake_can(bool free_on_stream)
{
    can_free_on_stream = free_on_stream;
}

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Waits for and writes of values in memory. Whoever changes the value, a kernel, a copy or the host, tells nobody, so
 * a wait looks again and again, and holds back its queue meanwhile.
 */
#include "internal.h"

#include <string.h>
#include <time.h>

#define LOOK_EVERY_NS 50000

struct value_operation {
    struct operation operation;
    struct value_operation *next; /* of the waits that run */
    uint64_t stream;              /* its number */
    uint64_t address, value;
    unsigned bytes, flags;
};

static struct value_operation *waits;

static bool is_reached(const struct value_operation *what)
{
    const void *place = emulator__view(what->address);
    uint64_t now = what->bytes == 8 ? __atomic_load_n((const uint64_t *)place, __ATOMIC_ACQUIRE)
                                    : __atomic_load_n((const uint32_t *)place, __ATOMIC_ACQUIRE);
    uint64_t mask = what->bytes == 8 ? UINT64_MAX : UINT32_MAX;
    switch (what->flags & 3) {
    case CUDA_WAIT_EQ:
        return now == what->value;
    case CUDA_WAIT_AND:
        return now & what->value;
    case CUDA_WAIT_NOR:
        return (~(now | what->value) & mask) != 0;
    default:
        return what->bytes == 8 ? (int64_t)(now - what->value) >= 0 : (int32_t)(uint32_t)(now - what->value) >= 0;
    }
}

static int run_wait(struct operation *operation)
{
    const struct timespec pause = {.tv_nsec = LOOK_EVERY_NS};
    struct value_operation *what = (struct value_operation *)operation;
    pthread_mutex_lock(&emulator__state.lock);
    what->next = waits;
    waits = what;
    while (!operation->context->error && !emulator__state.is_shut_down && !is_reached(what)) {
        pthread_mutex_unlock(&emulator__state.lock);
        nanosleep(&pause, NULL);
        pthread_mutex_lock(&emulator__state.lock);
    }
    struct value_operation **link = &waits;
    while (*link != what) link = &(*link)->next;
    *link = what->next;
    pthread_mutex_unlock(&emulator__state.lock);
    return 0;
}

void emulator__values_report(void)
{
    for (struct value_operation *wait = waits; wait; wait = wait->next)
        emulator__report("at the end stream %llu still waits for a value at %#llx", (unsigned long long)wait->stream,
                         (unsigned long long)wait->address);
}

static int run_write(struct operation *operation)
{
    struct value_operation *what = (struct value_operation *)operation;
    void *place = emulator__view(what->address);
    if (what->bytes == 8)
        __atomic_store_n((uint64_t *)place, what->value, __ATOMIC_RELEASE);
    else
        __atomic_store_n((uint32_t *)place, (uint32_t)what->value, __ATOMIC_RELEASE);
    return 0;
}

static int check(unsigned bytes, uint64_t address, unsigned flags, bool is_wait, struct range **range_out)
{
    const struct settings *settings = &emulator__state.settings;
    unsigned known = is_wait ? 3u | CUDA_WAIT_FLUSH : 1u;
    if (flags & ~known || address % bytes) return CUDA_INVALID_VALUE;
    if (bytes == 8 && !settings->memory_operations_64) return CUDA_NOT_SUPPORTED;
    if (is_wait && (flags & 3) == CUDA_WAIT_NOR && !settings->wait_nor) return CUDA_NOT_SUPPORTED;
    if (is_wait && flags & CUDA_WAIT_FLUSH) return CUDA_NOT_SUPPORTED; /* attribute 98 is 0 */
    return emulator__range_check(address, bytes, range_out);
}

static int submit(void *handle, uint64_t address, uint64_t value, unsigned bytes, unsigned flags, bool is_wait)
{
    int code;
    struct range *range;
    struct stream *stream = emulator__stream_find(handle, &code);
    if (!stream) return code;
    code = check(bytes, address, flags, is_wait, &range);
    if (code) return code;
    struct value_operation *what = emulator__allocate(sizeof *what);
    *what = (struct value_operation){.address = address, .value = value, .bytes = bytes, .flags = flags};
    what->operation.run = is_wait ? run_wait : run_write;
    what->stream = stream->id;
    what->operation.bytes = sizeof *what;
    emulator__operation_hold(&what->operation, range);
    if (range->kind == MODULE_RANGE) what->operation.opens = 1u << range->device->ordinal;
    emulator__submit(stream, &what->operation);
    return 0;
}

int emulator__cuStreamWaitValue32_v2(void *stream, uint64_t address, uint32_t value, unsigned flags)
{
    return submit(stream, address, value, 4, flags, true);
}

int emulator__cuStreamWaitValue64_v2(void *stream, uint64_t address, uint64_t value, unsigned flags)
{
    return submit(stream, address, value, 8, flags, true);
}

int emulator__cuStreamWriteValue32_v2(void *stream, uint64_t address, uint32_t value, unsigned flags)
{
    return submit(stream, address, value, 4, flags, false);
}

int emulator__cuStreamWriteValue64_v2(void *stream, uint64_t address, uint64_t value, unsigned flags)
{
    return submit(stream, address, value, 8, flags, false);
}

/* An operation's size and kind; false for one that is not known. */
static bool decode(const union cuda_memory_operation *operation, unsigned *bytes, bool *is_wait)
{
    int kind = operation->value.operation;
    *bytes = kind == 4 || kind == 5 ? 8 : 4;
    *is_wait = kind == 1 || kind == 4;
    return kind == 1 || kind == 2 || kind == 4 || kind == 5;
}

int emulator__cuStreamBatchMemOp_v2(void *stream, unsigned count, union cuda_memory_operation *operations,
                                    unsigned flags)
{
    unsigned bytes;
    bool is_wait;
    struct range *range;
    if (!operations || !count || count > 256 || flags) return CUDA_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++) { /* all or nothing */
        if (!decode(&operations[i], &bytes, &is_wait)) return CUDA_INVALID_VALUE;
        int code = check(bytes, operations[i].value.address, operations[i].value.flags, is_wait, &range);
        if (code) return code;
    }
    int code = 0;
    for (unsigned i = 0; i < count && !code; i++) {
        decode(&operations[i], &bytes, &is_wait);
        uint64_t value = operations[i].value.value;
        if (bytes == 4) value = (uint32_t)value;
        code = submit(stream, operations[i].value.address, value, bytes, operations[i].value.flags, is_wait);
    }
    return code;
}

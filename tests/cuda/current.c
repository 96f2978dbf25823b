/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The stack of current contexts that each thread has. What a thread has set may stay when it ends; what it has pushed
 * it must have popped.
 */
#include "internal.h"

#include <pthread.h>

#define STACK 64

/* Handles, since a context may be destroyed while it is on somebody's stack. */
static _Thread_local void *stack[STACK] __attribute__((tls_model("initial-exec")));
static _Thread_local uint64_t pushed __attribute__((tls_model("initial-exec"))); /* a bit for each */
static _Thread_local unsigned depth __attribute__((tls_model("initial-exec")));
static pthread_key_t at_end; /* of threads that have pushed */

static void *top(void)
{
    return depth ? stack[depth - 1] : NULL;
}

void emulator__current_check(void)
{
    int left = __builtin_popcountll(pushed);
    if (left) emulator__report("a thread ends with %d contexts that it pushed and did not pop", left);
}

static void thread_ends(void *arg)
{
    (void)arg;
    if (emulator__is_forked()) return;
    pthread_mutex_lock(&emulator__state.lock);
    if (!emulator__state.is_shut_down) emulator__current_check();
    pthread_mutex_unlock(&emulator__state.lock);
}

void emulator__current_watch(void)
{
    pthread_key_create(&at_end, thread_ends);
}

static struct context destroyed = {.is_destroyed = true};

struct context *emulator__current(void)
{
    if (!top()) return NULL;
    struct context *context = emulator__handle_peek(top(), CONTEXT);
    return context ? context : &destroyed;
}

static void put(void *handle, bool is_pushed)
{
    if (is_pushed) pushed |= UINT64_C(1) << depth;
    stack[depth++] = handle;
}

static void *take(void)
{
    void *handle = stack[--depth];
    pushed &= ~(UINT64_C(1) << depth);
    return handle;
}

void emulator__current_drop(void *handle)
{
    if (top() == handle) take();
}

static int check(void *handle)
{
    return emulator__handle_find(handle, CONTEXT) ? 0 : CUDA_INVALID_CONTEXT;
}

int emulator__cuCtxPushCurrent_v2(void *context)
{
    int code = check(context);
    if (code) return code;
    if (depth == STACK) {
        emulator__report("%d contexts were pushed and not popped", STACK);
        return CUDA_INVALID_VALUE;
    }
    if (top() != context) emulator__count_switch();
    put(context, true);
    pthread_setspecific(at_end, stack);
    return 0;
}

int emulator__cuCtxPopCurrent_v2(void **context)
{
    if (!depth) return CUDA_INVALID_CONTEXT;
    void *popped = take();
    if (top() != popped) emulator__count_switch();
    if (context) *context = popped;
    return 0;
}

/* The top becomes another one; NULL pops it. */
int emulator__cuCtxSetCurrent(void *context)
{
    int code = context ? check(context) : 0;
    if (code) return code;
    if (top() != context) emulator__count_switch();
    bool was_pushed = depth && pushed >> (depth - 1) & 1;
    if (depth) take();
    if (context) put(context, was_pushed);
    return 0;
}

int emulator__cuCtxGetCurrent(void **context)
{
    if (!context) return CUDA_INVALID_VALUE;
    *context = top();
    return 0;
}

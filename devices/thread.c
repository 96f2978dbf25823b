/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <devices/thread.h>

#include <signal.h>
#include <stddef.h>
#include <stdlib.h>

/* Of the C++ ABI, in libc: runs when the thread ends, and in exit() for the thread that calls it. */
extern int __cxa_thread_atexit_impl(void (*function)(void *arg), void *arg, void *object);
extern void *__dso_handle __attribute__((visibility("hidden")));

int weir__thread_start(pthread_t *thread, void *(*run)(void *arg), void *arg)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
    sigset_t most, old;
    sigfillset(&most);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) sigdelset(&most, faults[i]);
    pthread_sigmask(SIG_SETMASK, &most, &old);
    int error = pthread_create(thread, NULL, run, arg);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return error;
}

static void memory_free(void *arg)
{
    void **slot = arg;
    free(*slot);
    *slot = NULL;
}

void *weir__thread_memory(void **slot, size_t bytes)
{
    if (*slot) return *slot;
    void *memory = calloc(1, bytes);
    if (memory && __cxa_thread_atexit_impl(memory_free, slot, &__dso_handle)) {
        free(memory);
        memory = NULL;
    }
    return *slot = memory;
}

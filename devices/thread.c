/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <devices/thread.h>

#include <signal.h>
#include <stddef.h>

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

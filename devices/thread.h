/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_DEVICES_THREAD_H
#define WEIR_DEVICES_THREAD_H

#include <pthread.h>
#include <stddef.h>

/*
 * Start a thread of weir's own. Signals are the program's threads' to take, but for the faults of what the program's
 * functions and kernels do on this one. As pthread_create() with default attributes: to be joined; returns 0 or errno's
 * code. Any thread.
 */
int weir__thread_start(pthread_t *thread, void *(*run)(void *arg), void *arg);

/*
 * Memory of the calling thread, zeroed at first: thread-local variables of the library take part of the small reserve that
 * the dynamic linker has for libraries that are opened while the program runs.
 * @slot  thread-local, NULL at first. It is NULL again when the thread ends and the memory is freed.
 * Returns  *slot; NULL: no memory.
 */
void *weir__thread_memory(void **slot, size_t bytes);

#endif

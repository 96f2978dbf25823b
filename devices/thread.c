/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <devices/thread.h>

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

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

/* ---- memory of a thread ---- */

struct block {
    struct block *next; /* of the same thread */
    void **slot;
    _Alignas(max_align_t) unsigned char memory[];
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t blocks;
static bool is_ready;

static void free_all(void *first)
{
    for (struct block *block = first, *next; block; block = next) {
        next = block->next;
        *block->slot = NULL;
        free(block);
    }
}

static void make_key(void)
{
    is_ready = !pthread_key_create(&blocks, free_all);
}

/* Without the dynamic linker's lock, which __cxa_thread_atexit_impl() takes: who unloads a library holds it, and may wait
 * for this thread. */
void *weir__thread_memory(void **slot, size_t bytes)
{
    if (*slot) return *slot;
    pthread_once(&once, make_key);
    struct block *block = is_ready ? calloc(1, sizeof *block + bytes) : NULL;
    if (!block) return NULL;
    block->next = pthread_getspecific(blocks);
    block->slot = slot;
    if (pthread_setspecific(blocks, block)) {
        free(block);
        return NULL;
    }
    return *slot = block->memory;
}

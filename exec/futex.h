/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_EXEC_FUTEX_H
#define WEIR_EXEC_FUTEX_H

#include <linux/futex.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Sleep while *word == @value, at most @limit_ns (0: for ever). May wake early. */
static inline void weir__futex_wait(const _Atomic uint32_t *word, uint32_t value, uint64_t limit_ns)
{
    struct timespec limit = {(time_t)(limit_ns / 1000000000u), (long)(limit_ns % 1000000000u)};

    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, limit_ns != 0 ? &limit : NULL, NULL, 0);
}

static inline void weir__futex_wake(const _Atomic uint32_t *word, int count)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

static inline uint64_t weir__now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#endif

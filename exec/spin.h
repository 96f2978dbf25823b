/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_EXEC_SPIN_H
#define WEIR_EXEC_SPIN_H

/* A lock for a few instructions. Yields when its holder seems to have been preempted (ck_spinlock only spins). */

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

struct weir__spin {
    atomic_bool held;
};

static inline bool weir__spin_try(struct weir__spin *spin)
{
    /* Acquire: pairs with the release in weir__spin_unlock(). */
    return !atomic_exchange_explicit(&spin->held, true, memory_order_acquire);
}

static inline void weir__spin_lock(struct weir__spin *spin)
{
    for (unsigned i = 0; !weir__spin_try(spin); i++) {
        if (i >= 64) sched_yield();
#if defined(__x86_64__)
        else __builtin_ia32_pause();
#endif
    }
}

static inline void weir__spin_unlock(struct weir__spin *spin)
{
    /* Release: pairs with the acquire in weir__spin_try(). */
    atomic_store_explicit(&spin->held, false, memory_order_release);
}

#endif

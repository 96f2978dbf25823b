/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_TESTS_ORACLE_H
#define WEIR_TESTS_ORACLE_H

/*
 * A sequential model of the dependence rules, written from OpenMP 5.2 section 15.9.5 and not from the library: every
 * pair of tasks is compared, access by access. No thread, no allocation; the caller owns all memory.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ORACLE_TASKS = 128, ORACLE_WORDS = ORACLE_TASKS / 64, ORACLE_ACCESSES = 8 };

struct oracle_access {
    uint32_t kind;  /* enum weir_access_kind */
    uint32_t after; /* AFTER: number of the predecessor */
    uintptr_t address;
    size_t bytes; /* read in ranges mode only */
};

struct oracle_task {
    bool absent; /* the library refused it: no node */
    uint32_t naccesses;
    struct oracle_access accesses[ORACLE_ACCESSES];
};

/* Sets of tasks as bits: row j holds the tasks i < j that … */
struct oracle_relation {
    uint32_t n;
    uint64_t direct[ORACLE_TASKS][ORACLE_WORDS];    /* conflict with j: j must start after i ended */
    uint64_t before[ORACLE_TASKS][ORACLE_WORDS];    /* transitive closure of direct */
    uint64_t exclusive[ORACLE_TASKS][ORACLE_WORDS]; /* must not overlap with j, in either order */
};

static inline bool oracle_has(const uint64_t *set, uint32_t i)
{
    return set[i / 64] >> (i % 64) & 1;
}
static inline void oracle_put(uint64_t *set, uint32_t i)
{
    set[i / 64] |= (uint64_t)1 << (i % 64);
}

/* Compare all pairs of tasks[n], n <= ORACLE_TASKS, listed in the order of submission. */
void oracle_relate(const struct oracle_task *tasks, uint32_t n, bool ranges, struct oracle_relation *relation_out);

/* Must a task with these accesses wait for @earlier? Used for waits that are not tasks themselves. */
bool oracle_conflict(const struct oracle_task *earlier, const struct oracle_task *later, bool ranges);

/* The tasks that must be cancelled when those of failed[] fail: their transitive successors. */
void oracle_cancel(const struct oracle_relation *relation, const uint64_t *failed, uint64_t *cancelled_out);

#endif

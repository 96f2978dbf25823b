/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include <weir/task.h>

#include "oracle.h"

static bool same_place(const struct oracle_access *a, const struct oracle_access *b, bool ranges)
{
    if (a->kind == WEIR_ACCESS_ALL_MEMORY || b->kind == WEIR_ACCESS_ALL_MEMORY) return true;
    if (!ranges) return a->address == b->address;
    return a->address < b->address + b->bytes && b->address < a->address + a->bytes;
}

/* Kinds that let neighbours of the same kind run together (mutexinoutset: one at a time, but in any order). */
static bool is_group(uint32_t kind)
{
    return kind == WEIR_ACCESS_IN || kind == WEIR_ACCESS_MUTEXINOUTSET || kind == WEIR_ACCESS_INOUTSET;
}

static bool accesses_conflict(const struct oracle_access *a, const struct oracle_access *b, bool ranges)
{
    return same_place(a, b, ranges) && !(a->kind == b->kind && is_group(a->kind));
}

bool oracle_conflict(const struct oracle_task *earlier, const struct oracle_task *later, bool ranges)
{
    for (uint32_t i = 0; i < earlier->naccesses; i++) {
        if (earlier->accesses[i].kind == WEIR_ACCESS_AFTER) continue;
        for (uint32_t j = 0; j < later->naccesses; j++) {
            if (later->accesses[j].kind == WEIR_ACCESS_AFTER) continue;
            if (accesses_conflict(&earlier->accesses[i], &later->accesses[j], ranges)) return true;
        }
    }
    return false;
}

static bool names(const struct oracle_task *later, uint32_t earlier)
{
    for (uint32_t j = 0; j < later->naccesses; j++)
        if (later->accesses[j].kind == WEIR_ACCESS_AFTER && later->accesses[j].after == earlier) return true;
    return false;
}

static bool excludes(const struct oracle_task *a, const struct oracle_task *b, bool ranges)
{
    for (uint32_t i = 0; i < a->naccesses; i++)
        for (uint32_t j = 0; j < b->naccesses; j++)
            if (a->accesses[i].kind == WEIR_ACCESS_MUTEXINOUTSET && b->accesses[j].kind == WEIR_ACCESS_MUTEXINOUTSET &&
                same_place(&a->accesses[i], &b->accesses[j], ranges))
                return true;
    return false;
}

void oracle_relate(const struct oracle_task *tasks, uint32_t n, bool ranges, struct oracle_relation *relation_out)
{
    memset(relation_out, 0, sizeof(*relation_out));
    relation_out->n = n;
    for (uint32_t j = 0; j < n; j++) {
        if (tasks[j].absent) continue;
        for (uint32_t i = 0; i < j; i++) {
            if (tasks[i].absent) continue;
            if (excludes(&tasks[i], &tasks[j], ranges)) oracle_put(relation_out->exclusive[j], i);
            if (!names(&tasks[j], i) && !oracle_conflict(&tasks[i], &tasks[j], ranges)) continue;
            oracle_put(relation_out->direct[j], i);
            oracle_put(relation_out->before[j], i);
            for (uint32_t w = 0; w < ORACLE_WORDS; w++) relation_out->before[j][w] |= relation_out->before[i][w];
        }
    }
}

void oracle_cancel(const struct oracle_relation *relation, const uint64_t *failed, uint64_t *cancelled_out)
{
    memset(cancelled_out, 0, ORACLE_WORDS * sizeof(*cancelled_out));
    for (uint32_t j = 0; j < relation->n; j++)
        for (uint32_t w = 0; w < ORACLE_WORDS; w++)
            if (relation->before[j][w] & failed[w]) oracle_put(cancelled_out, j);
}

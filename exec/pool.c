/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <exec/pool.h>

#include <stdlib.h>
#include <string.h>

#define FIRST_SLAB 16
#define MAX_SLAB 1024

struct weir__slab {
    struct weir__slab *next;
    uint32_t           count;
    _Alignas(128) struct weir_task tasks[];
};

struct weir__pool *weir__pool_create(struct weir_context *context)
{
    struct weir__pool *pool = aligned_alloc(64, (sizeof *pool + 63) & ~(size_t)63);

    if (pool == NULL) return NULL;
    memset(pool, 0, sizeof *pool);
    pool->context = context;
    return pool;
}

void weir__pool_destroy(struct weir__pool *pool)
{
    struct weir__slab *slab = pool->slabs;

    while (slab != NULL) {
        struct weir__slab *next = slab->next;

        free(slab);
        slab = next;
    }
    weir__extras_fini(&pool->extras);
    free(pool);
}

int weir__pool_grow(struct weir__pool *pool)
{
    uint32_t           count = pool->total < FIRST_SLAB ? FIRST_SLAB : pool->total < MAX_SLAB ? pool->total : MAX_SLAB;
    size_t             bytes = sizeof(struct weir__slab) + count * sizeof(struct weir_task);
    struct weir__slab *slab = aligned_alloc(128, bytes);

    if (slab == NULL) return WEIR_E_NO_MEMORY;
    slab->next = pool->slabs;
    slab->count = count;
    pool->slabs = slab;
    pool->total += count;
    for (uint32_t i = count; i-- > 0;) {
        struct weir_task *task = &slab->tasks[i];

        memset(task, 0, sizeof *task);
        task->pool = pool;
        weir__task_push(&pool->free, task);
    }
    return WEIR_OK;
}

struct weir_task *weir__pool_held(const struct weir__pool *pool)
{
    for (struct weir__slab *slab = pool->slabs; slab != NULL; slab = slab->next) {
        for (uint32_t i = 0; i < slab->count; i++) {
            struct weir_task *task = &slab->tasks[i];

            /* Relaxed: who released a handle before is not waited for here. */
            if (weir__task_flags(task) & WEIR__TASK_HAS_HANDLE && atomic_load_explicit(&task->references, memory_order_relaxed) != 0) {
                return task;
            }
        }
    }
    return NULL;
}

bool weir__pool_collect(struct weir__pool *pool)
{
    struct weir_task *task, *last = NULL;
    uint32_t          count = 0;

    /* Relaxed: only a hint; the exchange decides. */
    if (atomic_load_explicit(&pool->returned, memory_order_relaxed) == NULL) return pool->free != NULL;
    /* Acquire: pairs with the release in weir__pool_return(). */
    task = atomic_exchange_explicit(&pool->returned, NULL, memory_order_acquire);
    for (struct weir_task *each = task; each != NULL; each = weir__task_next(each)) last = each, count++;
    if (last != NULL) {
        last->node.next = (uintptr_t)pool->free;
        pool->free = task;
        pool->used -= count;
    }
    return pool->free != NULL;
}

void weir__pool_return(struct weir__pool *pool, struct weir_task *first, struct weir_task *last)
{
    struct weir_task *head = atomic_load_explicit(&pool->returned, memory_order_relaxed);

    do {
        last->node.next = (uintptr_t)head;
        /* Release: the owner sees the tasks as we left them; pairs with the acquire in weir__pool_collect(). */
    } while (!atomic_compare_exchange_weak_explicit(&pool->returned, &head, first, memory_order_release, memory_order_relaxed));
}

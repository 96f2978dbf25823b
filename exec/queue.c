/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <exec/queue.h>

bool weir__queue_push(struct weir__queue *queue, struct weir_task *task)
{
    uint32_t count;
    bool     list;

    weir__spin_lock(&queue->lock);
    /* Relaxed: written under the lock only; readers outside take it as a hint. */
    count = atomic_load_explicit(&queue->count, memory_order_relaxed);
    if (count == 0) {
        task->node.next = 0;
        queue->head = queue->tail = task;
    } else if (task->priority > 0) {
        weir__task_push(&queue->head, task);
    } else {
        task->node.next = 0;
        queue->tail->node.next = (uintptr_t)task;
        queue->tail = task;
    }
    atomic_store_explicit(&queue->count, count + 1, memory_order_relaxed);
    list = !queue->listed;
    queue->listed = true;
    weir__spin_unlock(&queue->lock);
    return list;
}

struct weir_task *weir__queue_pop(struct weir__queue *queue)
{
    struct weir_task *task;

    /* Relaxed: a hint; a push by this thread is seen, one by another is found by its waker. */
    if (atomic_load_explicit(&queue->count, memory_order_relaxed) == 0) return NULL;
    weir__spin_lock(&queue->lock);
    task = queue->head;
    if (task != NULL) {
        queue->head = weir__task_next(task);
        atomic_store_explicit(&queue->count, atomic_load_explicit(&queue->count, memory_order_relaxed) - 1,
                              memory_order_relaxed);
    }
    weir__spin_unlock(&queue->lock);
    return task;
}

struct weir_task *weir__queue_steal(struct weir__queue *queue, uint32_t most)
{
    struct weir_task *head, *last;
    uint32_t          count, n;

    weir__spin_lock(&queue->lock);
    count = atomic_load_explicit(&queue->count, memory_order_relaxed);
    n = (count + 1) / 2 < most ? (count + 1) / 2 : most;
    head = last = queue->head;
    if (n != 0) {
        for (uint32_t i = 1; i < n; i++) last = weir__task_next(last);
        queue->head = weir__task_next(last);
        last->node.next = 0;
        atomic_store_explicit(&queue->count, count - n, memory_order_relaxed);
    } else {
        head = NULL;
    }
    weir__spin_unlock(&queue->lock);
    return head;
}

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "interop/priority.h"

#include <stdatomic.h>
#include <stdbool.h>

#include "interop/abi.h"
#include "interop/entries.h"
#include "interop/libomp.h"
#include "interop/runtime.h"

/*
 * Why. A gate is finished by any thread of the team, and what it held back goes on top of that thread's queue. A thread
 * that waits inside a tied task may run that task's children only and takes from the top of its own queue only; what is
 * on top is then another task's child, which may be run by the thread alone that waits in this other task. If that one
 * waits inside a third task by then, for a child that lies in its own queue below one of the first thread's, neither
 * goes on. Every thread looks through all of the list of a priority for a task that it may run.
 */
static _Atomic bool is_mute; /* the program's priorities have no effect; relaxed: set before its first task */

void weir__priority_enable(void)
{
    const struct weir__libomp *libomp = weir__libomp();
    if (libomp->max_task_priority() > 0) return;
    libomp->set_defaults("OMP_MAX_TASK_PRIORITY=1");
    if (libomp->max_task_priority() <= 0)
        weir__warn("this libomp takes no priorities: host tasks behind target tasks can block nested waits");
    atomic_store_explicit(&is_mute, true, memory_order_relaxed);
}

void weir__priority_keep(struct weir__abi_task *task)
{
    if (atomic_load_explicit(&is_mute, memory_order_relaxed)) task->priority = 0;
}

void weir__priority_raise(struct weir__abi_task *task)
{
    weir__priority_keep(task);
    if (task->priority <= 0) task->priority = 1;
}

/* What the program has set, not what is set for it. */
WEIR__EXPORT int omp_get_max_task_priority(void)
{
    return atomic_load_explicit(&is_mute, memory_order_relaxed) ? 0 : weir__libomp()->max_task_priority();
}

WEIR__EXPORT int omp_get_max_task_priority_(void)
{
    return omp_get_max_task_priority();
}

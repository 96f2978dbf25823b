/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Two threads wait inside a task each, for a child in their own queue, while what the other's gate held back has come to
 * lie on top of it: only this other thread may run that, once its own wait is over. Each is shown to the thread that it
 * hinders while nothing else is there for it.
 */
// preload only: OMP_TARGET_OFFLOAD=MANDATORY OMP_NUM_THREADS=2 => PASS
// preload only: OMP_NUM_THREADS=2 KMP_BLOCKTIME=0 => PASS
// preload only: OMP_NUM_THREADS=2 OMP_MAX_TASK_PRIORITY=4 => PASS
#include "task_check.h"

enum { ROUNDS = 4, LITTLE = 20000 /* us, for libomp to do something */ };

static int created, opened[2], looked, waiting; /* flags of one round */
static int ran;

static void count(void)
{
    __atomic_add_fetch(&ran, 1, __ATOMIC_RELAXED);
}

/* The other thread takes the end of this one's gate while it is in look(); this one that of the other's in its taskwait. */
static void inner_task_a(void)
{
    add_flag((uintptr_t)&opened[0]);
    usleep(LITTLE);
    add_flag((uintptr_t)&looked);
    CHECK(wait_flag((uintptr_t)&waiting, 1));
    add_flag((uintptr_t)&opened[1]);
    usleep(LITTLE);
    add_flag((uintptr_t)&waiting);
}

/* Its thread looks for tasks, but may not run those of the task around it. */
static void look(void)
{
    uintptr_t flag = (uintptr_t)&looked;
#pragma omp target nowait
    CHECK(wait_flag(flag, 1));
#pragma omp taskwait
}

static void inner_task_b(void)
{
#pragma omp task if (0)
    look();
    add_flag((uintptr_t)&waiting);
    CHECK(wait_flag((uintptr_t)&waiting, 2));
    usleep(LITTLE);
}

static void outer_task(int is_b)
{
    int cell = 0;
    uintptr_t gate = (uintptr_t)&opened[is_b];
#pragma omp target nowait depend(out : cell)
    CHECK(wait_flag(gate, 1));
#pragma omp task depend(in : cell) shared(cell)
    count();
#pragma omp task firstprivate(is_b)
    {
#pragma omp task
        count();
        add_flag((uintptr_t)&created);
        CHECK(wait_flag((uintptr_t)&created, 2));
        if (is_b)
            inner_task_b();
        else
            inner_task_a();
#pragma omp taskwait
    }
#pragma omp taskyield
#pragma omp taskwait
}

int main(void)
{
    for (int i = 0; i < rounds(ROUNDS); i++) {
        created = opened[0] = opened[1] = looked = waiting = 0;
#pragma omp parallel num_threads(2)
        {
            if (omp_get_num_threads() == 2)
                outer_task(omp_get_thread_num() ^ (i & 1)); /* libomp gives ends of gates to one thread first */
            else
                __atomic_add_fetch(&ran, 4, __ATOMIC_RELAXED);
        }
    }
    CHECK(ran == 4 * rounds(ROUNDS));
    const char *most = getenv("OMP_MAX_TASK_PRIORITY");
    CHECK(omp_get_max_task_priority() == (most ? atoi(most) : 0));
    return finish();
}

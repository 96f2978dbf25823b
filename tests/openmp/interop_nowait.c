/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Interop constructs with nowait do not block, and nothing is lost: foreign work is waited for where OpenMP waits for
 * tasks. What they do behind a task of the host is in interop_gates.c.
 */
// flags: -ldl
// preload only: OMP_TARGET_OFFLOAD=MANDATORY => PASS
// preload only: WEIR_HOST_DELAY_US=300 => PASS
// preload only: WEIR_STREAMS=1 WEIR_HOST_DEVICES=1 => PASS
#include "foreign.h"

static void destroy_while_pending(void)
{
    struct foreign_gate gate = {0};
    omp_interop_t o = omp_interop_none;
#pragma omp interop init(targetsync : o) nowait
    foreign_enqueue(o, foreign_pass, &gate);
#pragma omp interop destroy(o) nowait
    CHECK(o == omp_interop_none && !has_passed(&gate));
    add_flag((uintptr_t)&gate.flag);
#pragma omp taskwait
    CHECK(has_passed(&gate));
}

/* Taskwait, taskgroup and barrier wait for constructs with nowait, since these are tasks. */
static void waits(void)
{
    struct foreign_gate gates[3] = {{.flag = 1}, {.flag = 1}, {.flag = 1}};
    omp_interop_t o = omp_interop_none;
#pragma omp interop init(targetsync : o)
    foreign_enqueue(o, foreign_pass, &gates[0]);
#pragma omp interop use(o) nowait
#pragma omp taskwait
    CHECK(has_passed(&gates[0]));
#pragma omp taskgroup
    {
        foreign_enqueue(o, foreign_pass, &gates[1]);
#pragma omp interop use(o) nowait
    }
    CHECK(has_passed(&gates[1]));
#pragma omp parallel num_threads(3)
    {
#pragma omp single nowait
        {
            foreign_enqueue(o, foreign_pass, &gates[2]);
#pragma omp interop destroy(o) nowait
        }
#pragma omp barrier
        CHECK(has_passed(&gates[2]));
    }
}

/* Without nowait the host waits, and runs what it waits for: the detached task's event is another task's to fulfil. */
static void included_behind_a_task_of_the_host(void)
{
    int x = 0, z = 0;
    struct foreign_gate gates[2] = {{.flag = 1, .value = &x}, {.flag = 1, .value = &x}};
    omp_event_handle_t event;
    omp_interop_t o = omp_interop_none;
#pragma omp task detach(event) depend(out : x) shared(x)
    x = 1;
#pragma omp target nowait depend(out : z)
    usleep(1000);
#pragma omp task depend(in : z) firstprivate(event)
    omp_fulfill_event(event);
#pragma omp interop init(targetsync : o) depend(inout : x) nowait
    foreign_enqueue(o, foreign_pass, &gates[0]);
#pragma omp interop use(o)
    CHECK(has_passed(&gates[0]) && gates[0].seen == 1);
    foreign_enqueue(o, foreign_pass, &gates[1]);
#pragma omp interop destroy(o)
    CHECK(has_passed(&gates[1]));
#pragma omp taskwait
}

/* Tasks of final ones are included, whatever they say. */
static void in_a_final_task(void)
{
    struct foreign_gate gate = {.flag = 1};
#pragma omp task final(1) shared(gate)
    {
        omp_interop_t o = omp_interop_none;
#pragma omp interop init(targetsync : o)
        foreign_enqueue(o, foreign_pass, &gate);
#pragma omp interop destroy(o) nowait
        CHECK(has_passed(&gate));
    }
#pragma omp taskwait
}

/* One object, two generating tasks. */
static void across_tasks(void)
{
    struct foreign_gate gates[2] = {{0}, {.flag = 1}};
    omp_interop_t o = omp_interop_none;
#pragma omp interop init(targetsync : o)
    foreign_enqueue(o, foreign_pass, &gates[0]);
#pragma omp interop use(o) nowait
#pragma omp task shared(o, gates)
    {
        foreign_enqueue(o, foreign_pass, &gates[1]);
#pragma omp interop destroy(o) nowait
        CHECK(!has_passed(&gates[1]));
        add_flag((uintptr_t)&gates[0].flag);
#pragma omp taskwait
        CHECK(has_passed(&gates[0]) && has_passed(&gates[1]));
    }
#pragma omp taskwait
}

static void all(void)
{
    destroy_while_pending();
    waits();
    included_behind_a_task_of_the_host();
    in_a_final_task();
    across_tasks();
}

int main(void)
{
    return everywhere(all, 10, 3);
}

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
// not on cuda: it queues on streams of the CPU devices
/*
 * Interop constructs with nowait do not block, whatever they come behind, and nothing is lost: foreign work that waits
 * for a task of the host is held, holds nobody else up, and is waited for where OpenMP waits for tasks.
 */
// flags: -ldl
// preload only: OMP_TARGET_OFFLOAD=MANDATORY => PASS
// preload only: WEIR_HOST_DELAY_US=300 => PASS
// preload only: WEIR_STREAMS=1 WEIR_HOST_DEVICES=1 => PASS
#include "foreign.h"

/* Foreign work that waits for a flag of the host, and then notes what it saw. */
struct gate {
    int flag, passed, seen;
    int *value;
};

static int pass(void *arg)
{
    struct gate *gate = arg;
    wait_flag((uintptr_t)&gate->flag, 1);
    if (gate->value) gate->seen = *gate->value;
    __atomic_store_n(&gate->passed, 1, __ATOMIC_RELEASE);
    return 0;
}

static int has_passed(const struct gate *gate)
{
    return __atomic_load_n(&gate->passed, __ATOMIC_ACQUIRE);
}

static void destroy_while_pending(void)
{
    struct gate gate = {0};
    omp_interop_t o = omp_interop_none;
#pragma omp interop init(targetsync : o) nowait
    foreign_enqueue(o, pass, &gate);
#pragma omp interop destroy(o) nowait
    CHECK(o == omp_interop_none && !has_passed(&gate));
    add_flag((uintptr_t)&gate.flag);
#pragma omp taskwait
    CHECK(has_passed(&gate));
}

/* Taskwait, taskgroup and barrier wait for constructs with nowait, since these are tasks. */
static void waits(void)
{
    struct gate gates[3] = {{.flag = 1}, {.flag = 1}, {.flag = 1}};
    omp_interop_t o = omp_interop_none;
#pragma omp interop init(targetsync : o)
    foreign_enqueue(o, pass, &gates[0]);
#pragma omp interop use(o) nowait
#pragma omp taskwait
    CHECK(has_passed(&gates[0]));
#pragma omp taskgroup
    {
        foreign_enqueue(o, pass, &gates[1]);
#pragma omp interop use(o) nowait
    }
    CHECK(has_passed(&gates[1]));
#pragma omp parallel num_threads(3)
    {
#pragma omp single nowait
        {
            foreign_enqueue(o, pass, &gates[2]);
#pragma omp interop destroy(o) nowait
        }
#pragma omp barrier
        CHECK(has_passed(&gates[2]));
    }
}

/* Behind a detached task: nothing is issued before its event is fulfilled, and the host goes on. */
static void behind_a_task_of_the_host(void)
{
    int x = 0, y = 0;
    struct gate gates[3] = {{.flag = 1, .value = &x}, {.flag = 1, .value = &x}, {.flag = 1, .value = &x}};
    omp_event_handle_t event;
    omp_interop_t o = omp_interop_none;
#pragma omp task detach(event) depend(out : x) shared(x)
    x = 1;
#pragma omp interop init(targetsync : o) depend(inout : x) nowait
    foreign_enqueue(o, pass, &gates[0]);
#pragma omp interop use(o) depend(inout : x) nowait
    foreign_enqueue(o, pass, &gates[1]);
    CHECK(omp_get_interop_int(o, 2, NULL) == 2); /* both constructs wait */
#pragma omp interop use(o) nowait
    foreign_enqueue(o, pass, &gates[2]);
#pragma omp interop destroy(o) depend(inout : x) nowait
#pragma omp target nowait depend(inout : x) map(tofrom : x)
    x = x * 10 + 2;
    CHECK(!has_passed(&gates[0]) && !has_passed(&gates[1]) && !has_passed(&gates[2]));
    /* Whatever is queued elsewhere meanwhile is not held up: its stream is not the object's. */
#pragma omp target map(tofrom : y)
    y = 7;
    omp_interop_t other = omp_interop_none;
    struct gate gate = {.flag = 1};
#pragma omp interop init(targetsync : other)
    foreign_enqueue(other, pass, &gate);
#pragma omp interop destroy(other)
    CHECK(y == 7 && has_passed(&gate) && !has_passed(&gates[0]));
    omp_fulfill_event(event);
#pragma omp taskwait
    CHECK(x == 12);
    for (int i = 0; i < 3; i++) CHECK(has_passed(&gates[i]) && gates[i].seen == 1);
}

/* Without nowait the host waits, and runs what it waits for: the detached task's event is another task's to fulfil. */
static void included_behind_a_task_of_the_host(void)
{
    int x = 0, z = 0;
    struct gate gates[2] = {{.flag = 1, .value = &x}, {.flag = 1, .value = &x}};
    omp_event_handle_t event;
    omp_interop_t o = omp_interop_none;
#pragma omp task detach(event) depend(out : x) shared(x)
    x = 1;
#pragma omp target nowait depend(out : z)
    usleep(1000);
#pragma omp task depend(in : z) firstprivate(event)
    omp_fulfill_event(event);
#pragma omp interop init(targetsync : o) depend(inout : x) nowait
    foreign_enqueue(o, pass, &gates[0]);
#pragma omp interop use(o)
    CHECK(has_passed(&gates[0]) && gates[0].seen == 1);
    foreign_enqueue(o, pass, &gates[1]);
#pragma omp interop destroy(o)
    CHECK(has_passed(&gates[1]));
#pragma omp taskwait
}

/* Tasks of final ones are included, whatever they say. */
static void in_a_final_task(void)
{
    struct gate gate = {.flag = 1};
#pragma omp task final(1) shared(gate)
    {
        omp_interop_t o = omp_interop_none;
#pragma omp interop init(targetsync : o)
        foreign_enqueue(o, pass, &gate);
#pragma omp interop destroy(o) nowait
        CHECK(has_passed(&gate));
    }
#pragma omp taskwait
}

/* One object, two generating tasks. */
static void across_tasks(void)
{
    struct gate gates[2] = {{0}, {.flag = 1}};
    omp_interop_t o = omp_interop_none;
#pragma omp interop init(targetsync : o)
    foreign_enqueue(o, pass, &gates[0]);
#pragma omp interop use(o) nowait
#pragma omp task shared(o, gates)
    {
        foreign_enqueue(o, pass, &gates[1]);
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
    behind_a_task_of_the_host();
    included_behind_a_task_of_the_host();
    in_a_final_task();
    across_tasks();
}

int main(void)
{
    return everywhere(all, 10, 3);
}

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
// not on cuda: its streams cannot be held without a thread, so the host waits there for a task of the host
/*
 * Interop constructs with nowait do not block behind a task of the host: the foreign work that comes behind is held, and
 * holds nobody else up.
 */
// flags: -ldl
// preload only: OMP_TARGET_OFFLOAD=MANDATORY => PASS
// preload only: WEIR_HOST_DELAY_US=300 => PASS
// preload only: WEIR_STREAMS=1 WEIR_HOST_DEVICES=1 => PASS
#include "foreign.h"

/* Behind a detached task: nothing is issued before its event is fulfilled, and the host goes on. */
static void behind_a_task_of_the_host(void)
{
    int x = 0, y = 0;
    struct foreign_gate gates[3] = {{.flag = 1, .value = &x}, {.flag = 1, .value = &x}, {.flag = 1, .value = &x}};
    omp_event_handle_t event;
    omp_interop_t o = omp_interop_none;
#pragma omp task detach(event) depend(out : x) shared(x)
    x = 1;
#pragma omp interop init(targetsync : o) depend(inout : x) nowait
    foreign_enqueue(o, foreign_pass, &gates[0]);
#pragma omp interop use(o) depend(inout : x) nowait
    foreign_enqueue(o, foreign_pass, &gates[1]);
    CHECK(omp_get_interop_int(o, 2, NULL) == 2); /* both constructs wait */
#pragma omp interop use(o) nowait
    foreign_enqueue(o, foreign_pass, &gates[2]);
#pragma omp interop destroy(o) depend(inout : x) nowait
#pragma omp target nowait depend(inout : x) map(tofrom : x)
    x = x * 10 + 2;
    CHECK(!has_passed(&gates[0]) && !has_passed(&gates[1]) && !has_passed(&gates[2]));
    /* Whatever is queued elsewhere meanwhile is not held up: its stream is not the object's. */
#pragma omp target map(tofrom : y)
    y = 7;
    omp_interop_t other = omp_interop_none;
    struct foreign_gate gate = {.flag = 1};
#pragma omp interop init(targetsync : other)
    foreign_enqueue(other, foreign_pass, &gate);
#pragma omp interop destroy(other)
    CHECK(y == 7 && has_passed(&gate) && !has_passed(&gates[0]));
    omp_fulfill_event(event);
#pragma omp taskwait
    CHECK(x == 12);
    for (int i = 0; i < 3; i++) CHECK(has_passed(&gates[i]) && gates[i].seen == 1);
}

int main(void)
{
    return everywhere(behind_a_task_of_the_host, 10, 3);
}

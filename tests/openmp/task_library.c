/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * A library with target code leaves while its tasks run. By itself libomp would still need the library's code for tasks
 * that it has not started; weir has started what depends on target tasks only, or starts it before the code goes.
 */
// lib: yes
// flags: -ldl
// preload only: OMP_TARGET_OFFLOAD=MANDATORY => PASS
// preload only: OMP_NUM_THREADS=1 => PASS
// preload only: OMP_THREAD_LIMIT=4 => PASS
#include "task_check.h"

enum { TASKS = 20 };

#ifdef CASE_LIB
#pragma omp begin declare target
int library_value = 10;
#pragma omp end declare target

/* A chain on @cell and results in @out; nothing of it is waited for. */
void library_start(unsigned *cell, unsigned *out)
{
    for (unsigned i = 0; i < TASKS; i++) {
        unsigned z = draw();
        uintptr_t at = (uintptr_t)cell;
#pragma omp target nowait depend(inout : cell[0]) device(i % 4)
        touch(at, INOUT, i + (unsigned)library_value, z, 0);
#pragma omp target nowait depend(in : cell[0]) map(from : out[i : 1])
        out[i] = *(unsigned *)at;
    }
}
#else
#include <dlfcn.h>

typedef void (*start_function)(unsigned *cell, unsigned *out);

static void once(void)
{
    unsigned cell = 1, want = 1, out[TASKS], z = draw();
    uintptr_t at = (uintptr_t)&cell;
    void *library = dlopen(getenv("CASE_LIB"), RTLD_NOW | RTLD_LOCAL);
    CHECK(library != NULL);
    start_function start = library ? (start_function)dlsym(library, "library_start") : NULL;
    CHECK(start != NULL);
    if (!start) return;
#pragma omp target nowait depend(inout : cell)
    touch(at, INOUT, 3, z, 0);
    start(&cell, out);
    CHECK(!dlclose(library));
#pragma omp target nowait depend(inout : cell)
    touch(at, INOUT, 4, z, 0);
#pragma omp taskwait
    model(&want, INOUT, 3, NULL);
    for (unsigned i = 0; i < TASKS; i++) {
        model(&want, INOUT, i + 10, NULL);
        CHECK(out[i] == want);
    }
    model(&want, INOUT, 4, NULL);
    CHECK(cell == want);
}

/* Its tasks belong to a task of another thread of the team than the one that unloads it. */
static void by_another_thread(void)
{
    unsigned cell = 1, want = 1, out[TASKS] = {0};
    void *library = dlopen(getenv("CASE_LIB"), RTLD_NOW | RTLD_LOCAL);
    CHECK(library != NULL);
    start_function start = library ? (start_function)dlsym(library, "library_start") : NULL;
    if (!start) return;
#pragma omp parallel num_threads(2)
    {
#pragma omp single
        start(&cell, out);
#pragma omp sections
        {
#pragma omp section
            nap(draw());
#pragma omp section
            CHECK(!dlclose(library));
        }
    }
    for (unsigned i = 0; i < TASKS; i++) {
        model(&want, INOUT, i + 10, NULL);
        CHECK(out[i] == want);
    }
    CHECK(cell == want);
}

int main(void)
{
#pragma omp target
    usleep(1);
    for (int round = 0; round < rounds(5); round++) {
        once();
#pragma omp parallel num_threads(3)
#pragma omp single
        once();
        by_another_thread();
    }
    return finish();
}
#endif

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_TESTS_OPENMP_CHECK_H
#define WEIR_TESTS_OPENMP_CHECK_H

/*
 * Programs for clang -fopenmp -fopenmp-targets=x86_64-pc-linux-gnu. Each prints PASS or FAIL last. Lines of the source
 * that tests/run_openmp.sh reads:
 *   // flags: more compiler flags
 *   // lib: yes                      compile again with -DCASE_LIB -shared -fPIC; its path is in CASE_LIB
 *   // run: VARIABLE=value … => PASS            one run; none of these lines: OMP_TARGET_OFFLOAD=MANDATORY => PASS
 *   // run: VARIABLE=value … => ABORT words     the program ends with abort() and says these words
 *   // not on cuda: reason           skipped on CUDA devices
 *   // preload only: VARIABLE=value … => PASS   as run, but only preloaded: what libomp alone gets wrong
 * Kernels of a CPU device may use host addresses (as integers): that is how the programs order things without clocks.
 */

#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int failures;

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            printf("%s:%d: %s\n", __FILE__, __LINE__, #condition);                                                     \
            __atomic_add_fetch(&failures, 1, __ATOMIC_RELAXED);                                                        \
        }                                                                                                              \
    } while (0)

static inline int finish(void)
{
    puts(failures ? "FAIL" : "PASS");
    fflush(stdout);
    return failures != 0;
}

#pragma omp begin declare target
/* Wait for a flag in host memory; 0: it was not set within ten seconds. */
static inline int wait_flag(uintptr_t flag, int at_least)
{
    for (int i = 0; i < 10000; i++) {
        if (__atomic_load_n((int *)flag, __ATOMIC_ACQUIRE) >= at_least) return 1;
        usleep(1000);
    }
    return 0;
}

static inline void add_flag(uintptr_t flag)
{
    __atomic_add_fetch((int *)flag, 1, __ATOMIC_ACQ_REL);
}
#pragma omp end declare target

#endif

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* A kernel that faults on a CPU device raises the signal in the program, which may have a handler. */
// run: OMP_TARGET_OFFLOAD=MANDATORY => PASS
// run: WEIR_HOST_SHORT_NS=0 => PASS
// not on cuda: a fault of a kernel is not the host's
#include <signal.h>

#include "check.h"

static void handler(int number)
{
    static const char pass[] = "PASS\n", fail[] = "FAIL\n";
    ssize_t n = write(STDOUT_FILENO, number == SIGFPE ? pass : fail, sizeof pass - 1);
    _exit(number != SIGFPE || n < 0);
}

int main(void)
{
    volatile int zero = 0;
    int device = omp_get_num_devices() > 1, x = 1;
    signal(SIGFPE, handler);
    signal(SIGSEGV, handler);
#pragma omp target nowait depend(out : x) map(tofrom : x) device(device)
    x /= zero;
#pragma omp taskwait
    puts("FAIL");
    return 1;
}

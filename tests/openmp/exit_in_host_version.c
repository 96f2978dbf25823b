/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The host's version of a target task ends the process, at once or behind another task. Where libomp runs target tasks it
 * waits for this one at the end, for ever. */
// preload only: OMP_TARGET_OFFLOAD=MANDATORY => PASS
// preload only: OMP_NUM_THREADS=1 => PASS
#include <sys/wait.h>

#include "check.h"

static void child(int behind)
{
    int x = 0, never = getenv("NEVER") != NULL;
    if (behind) {
#pragma omp target nowait map(tofrom : x) depend(inout : x)
        x++;
    }
#pragma omp target nowait depend(inout : x) if (never)
    if (omp_is_initial_device()) exit(7);
#pragma omp target nowait depend(inout : x)
    x++;
#pragma omp taskwait
    _exit(1);
}

int main(int argc, char **argv)
{
    if (argc > 1) child(argv[1][0] == 'b');
    for (int round = 0; round < 6; round++) {
        int status;
        pid_t pid = fork();
        if (!pid) execl("/proc/self/exe", argv[0], round % 2 ? "behind" : "first", (char *)NULL), _exit(9);
        waitpid(pid, &status, 0);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    }
    return finish();
}

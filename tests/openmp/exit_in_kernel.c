/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* A kernel of the CPU device ends the process. */
// not on cuda: a kernel of a GPU cannot end the program
#include <sys/wait.h>

#include "check.h"

int main(int argc, char **argv)
{
    int status, a[4] = {0};
    if (argc > 1) {
#pragma omp target map(tofrom : a)
        exit(7);
        _exit(1);
    }
    for (int round = 0; round < 4; round++) {
        pid_t pid = fork();
        if (!pid) execl("/proc/self/exe", argv[0], "child", (char *)NULL), _exit(9);
        waitpid(pid, &status, 0);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    }
    return finish();
}

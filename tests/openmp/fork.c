/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* A child of a process that offloads can leave, and runs its regions on the host. */
#include <signal.h>
#include <sys/wait.h>

#include "check.h"

static int child_failed(pid_t pid)
{
    int status;
    for (int i = 0; i < 10000; i++) {
        if (waitpid(pid, &status, WNOHANG) == pid) return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
        usleep(1000);
    }
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    return 1;
}

int main(void)
{
    int x = 0, gate = 0;
    uintptr_t flag = (uintptr_t)&gate;
#pragma omp target map(tofrom : x)
    x++;
    CHECK(x == 1);
#pragma omp target nowait map(tofrom : x)
    x += wait_flag(flag, 1);
    pid_t leaves = fork();
    if (!leaves) _exit(0);
    pid_t exits = fork();
    if (!exits) exit(0);
    pid_t falls_back = fork();
    if (!falls_back) {
        int y = 1;
        if (omp_get_num_devices() != 0) _exit(1);
#pragma omp target map(tofrom : y)
        y++;
        exit(y == 2 ? 0 : 2);
    }
    CHECK(!child_failed(leaves));
    CHECK(!child_failed(exits));
    CHECK(!child_failed(falls_back));
    add_flag(flag);
#pragma omp taskwait
    CHECK(x == 2);
    return finish();
}

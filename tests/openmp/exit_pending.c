/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The process ends while regions are pending, by return or by exit(), from the initial thread or another one. */
// flags: -pthread
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "check.h"

static void *sync_user(void *arg)
{
    int x = (int)(intptr_t)arg;
#pragma omp target map(tofrom : x)
    x++;
    return NULL;
}

static int child(int how, int *seen)
{
    static int x, a[4];
    uintptr_t flag = (uintptr_t)seen;
    pthread_t thread;
    if (how == 2) {
        pthread_create(&thread, NULL, sync_user, NULL);
        pthread_join(thread, NULL);
    }
    for (int i = 0; i < 10; i++) {
#pragma omp target nowait depend(inout : x)
        {
            usleep(2000);
            add_flag(flag);
        }
    }
#pragma omp target nowait depend(in : x) map(tofrom : a)
    a[0] = 1;
    if (how) exit(0);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 2) { /* the process under test */
        FILE *f = fopen(argv[2], "r+");
        return child(atoi(argv[1]), mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(f), 0));
    }
    char name[] = "/tmp/weir-exit-XXXXXX", how[2] = "0";
    int fd = mkstemp(name), status;
    CHECK(fd >= 0 && !ftruncate(fd, 4096));
    int *seen = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    for (int round = 0; round < 9; round++) {
        how[0] = (char)('0' + round % 3);
        *seen = 0;
        pid_t pid = fork();
        if (!pid) execl("/proc/self/exe", "child", how, name, (char *)NULL), _exit(9);
        waitpid(pid, &status, 0);
        CHECK(WIFEXITED(status) && !WEXITSTATUS(status));
        CHECK(*seen == 10);
    }
    unlink(name);
    return finish();
}

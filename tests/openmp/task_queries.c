/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * A target task's routine, written by hand, asks about its predecessors, its queue, and waits for what it queued. What
 * libomp runs is no target task of weir's: nothing to ask.
 */
// flags: -ldl
// run: OMP_TARGET_OFFLOAD=MANDATORY => PASS
// preload only: WEIR_HOST_DELAY_US=300 STRICT=1 => PASS
#include <dlfcn.h>

#include "task_check.h"

struct waiting {
    void *queue;
    uint64_t position;
};
struct depend {
    intptr_t base;
    size_t bytes;
    unsigned char flags;
};
extern int __kmpc_global_thread_num(void *where);
extern void *__kmpc_omp_target_task_alloc(void *where, int gtid, int flags, size_t bytes, size_t shareds,
                                          int (*routine)(int gtid, void *task), long device);
extern int __kmpc_omp_task_with_deps(void *where, int gtid, void *task, int n, void *depends, int nnoalias,
                                     void *noalias);
extern void __tgt_target_data_update_nowait_mapper(void *where, long device, int n, void **bases, void **begins,
                                                   long *sizes, long *types, void **names, void **mappers);
/* Weir's alone: the program is linked with LLVM's library. */
static int (*npredecessors)(void *where, int gtid);
static int (*waiting_list)(void *where, int gtid, int n, struct waiting *list);
static int (*set_async_info)(void *where, int gtid, void *info);
static int (*yield)(void *where, int gtid);

static void look_up(void)
{
    *(void **)&npredecessors = dlsym(RTLD_DEFAULT, "__kmpc_get_target_task_npredecessors");
    *(void **)&waiting_list = dlsym(RTLD_DEFAULT, "__kmpc_get_target_task_waiting_list");
    *(void **)&set_async_info = dlsym(RTLD_DEFAULT, "__kmpc_set_async_info");
    *(void **)&yield = dlsym(RTLD_DEFAULT, "__kmpc_target_task_yield");
    if (!npredecessors || !waiting_list || !set_async_info || !yield) abort();
}

static int x, y;
static struct {
    int npredecessors, nlisted, published, again, foreign, yielded, ran, ask_to_yield, seen;
    struct waiting list[4];
    void *queue;
} got;

/* Copies y back from device 0, as the routine of "target update from(y) nowait" does. */
static int routine(int gtid, void *task)
{
    void *at[1] = {&y}, *other = &x;
    long bytes[1] = {sizeof y}, types[1] = {2};
    (void)task;
    got.npredecessors = npredecessors(NULL, gtid);
    got.nlisted = waiting_list(NULL, gtid, 4, got.list);
    got.queue = NULL;
    got.published = set_async_info(NULL, gtid, &got.queue);
    __tgt_target_data_update_nowait_mapper(NULL, 0, 1, at, at, bytes, types, NULL, NULL);
    got.again = set_async_info(NULL, gtid, &got.queue);
    got.foreign = set_async_info(NULL, gtid, &other);
    got.yielded = got.ask_to_yield ? yield(NULL, gtid) : 99;
    got.seen = y;
    got.ran++;
    return 0;
}

static void submit(int *first, int *second)
{
    struct depend depends[2] = {{(intptr_t)first, 4, 3}, {(intptr_t)second, 4, 3}};
    int gtid = __kmpc_global_thread_num(NULL);
    void *task = __kmpc_omp_target_task_alloc(NULL, gtid, 1, 64, 0, routine, 0);
    CHECK(task && !__kmpc_omp_task_with_deps(NULL, gtid, task, 2, depends, 0, NULL));
}

static void set_on_device(int value)
{
#pragma omp target map(alloc : y) device(0)
    y = value;
}

/* Two target tasks that end when the flag is set, one of them on another device. */
static void predecessors(int *flag)
{
    uintptr_t at = (uintptr_t)flag;
#pragma omp target nowait depend(out : x) device(0)
    wait_flag(at, 1);
#pragma omp target nowait depend(out : y) device(1)
    wait_flag(at, 1);
}

int main(void)
{
    int flag = 0, set = 1, ask = strict();
    look_up();
#pragma omp target
    {
    }
    CHECK(npredecessors(NULL, 0) == 0);
    CHECK(waiting_list(NULL, 0, 4, got.list) == 0);
    CHECK(set_async_info(NULL, 0, &got.queue) == -1 && yield(NULL, 0) == -1);
#pragma omp target enter data map(to : y) device(0)
    /* The first run of an entry waits until its predecessors are complete. */
    submit(&x, &y);
#pragma omp taskwait
    CHECK(got.ran == 1 && got.npredecessors == 0);
    if (ask) {
        predecessors(&set);
#pragma omp taskwait
        predecessors(&flag);
        submit(&x, &y);
        CHECK(got.ran == 2 && got.npredecessors == 2 && got.nlisted == 2);
        CHECK(got.list[0].queue && got.list[1].queue && got.list[0].queue != got.list[1].queue);
        CHECK(got.list[0].position && got.list[1].position);
        CHECK(got.published == 0 && got.queue && got.again == 0 && got.foreign == -1);
        add_flag((uintptr_t)&flag);
#pragma omp taskwait
        /* Nothing before it: what was queued is there when it has yielded. */
        set_on_device(42);
        got.ask_to_yield = 1;
        submit(&x, &y);
#pragma omp taskwait
        CHECK(got.ran == 3 && got.npredecessors == 0 && got.yielded == 0 && got.seen == 42);
    }
#pragma omp target exit data map(release : y) device(0)
    return finish();
}

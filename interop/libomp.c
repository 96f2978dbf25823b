/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "interop/libomp.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "interop/runtime.h"
#include "interop/shim.h"

static struct weir__libomp table;
static const char *missing; /* written once, before `state` */
static pthread_once_t filled = PTHREAD_ONCE_INIT;
/* R1 release after the table is written, A1 acquire in weir__libomp_find(): 0 not looked up, 1 complete, -1 missing. */
static _Atomic int state;

/* Behind this library first: it may itself stand in front of libomp with functions of the same names. */
static void *find(const char *name)
{
    void *address = dlsym(RTLD_NEXT, name);
    if (!address) address = dlsym(RTLD_DEFAULT, name);
    return weir__shim_is_own(address) ? NULL : address;
}

#define FIELD(field, symbol) {symbol, offsetof(struct weir__libomp, field)}
static const struct {
    const char *name;
    size_t at;
} in_front[] = {
    FIELD(task_alloc, "__kmpc_omp_task_alloc"),
    FIELD(task, "__kmpc_omp_task"),
    FIELD(taskgroup, "__kmpc_taskgroup"),
    FIELD(end_taskgroup, "__kmpc_end_taskgroup"),
    FIELD(barrier, "__kmpc_barrier"),
    FIELD(cancel_barrier, "__kmpc_cancel_barrier"),
    FIELD(taskyield, "__kmpc_omp_taskyield"),
    FIELD(task_begin_if0, "__kmpc_omp_task_begin_if0"),
    FIELD(task_complete_if0, "__kmpc_omp_task_complete_if0"),
    FIELD(proxy_completed, "__kmpc_proxy_task_completed_ooo"),
    FIELD(own_proxy_completed, "__kmpc_proxy_task_completed"),
    FIELD(fork_call, "__kmpc_fork_call"),
    FIELD(reduce, "__kmpc_reduce"),
    FIELD(end_reduce, "__kmpc_end_reduce"),
    FIELD(barrier_master, "__kmpc_barrier_master"),
    FIELD(barrier_master_nowait, "__kmpc_barrier_master_nowait"),
    FIELD(end_barrier_master, "__kmpc_end_barrier_master"),
    FIELD(copyprivate, "__kmpc_copyprivate"),
    FIELD(set_thread_limit, "__kmpc_set_thread_limit"),
    FIELD(taskred_init, "__kmpc_taskred_init"),
    FIELD(taskred_modifier_init, "__kmpc_taskred_modifier_init"),
    FIELD(task_reduction_modifier_fini, "__kmpc_task_reduction_modifier_fini"),
    FIELD(completion_event, "__kmpc_task_allow_completion_event"),
    FIELD(fulfill_event, "omp_fulfill_event"),
    FIELD(set_defaults, "kmp_set_defaults"),
    FIELD(max_task_priority, "omp_get_max_task_priority"),
    FIELD(in_final, "omp_in_final"),
    FIELD(in_explicit_task, "omp_in_explicit_task"),
    FIELD(num_threads, "omp_get_num_threads"),
    /* In the first table too, where they may be missing. */
    FIELD(target_task_alloc, "__kmpc_omp_target_task_alloc"),
    FIELD(task_with_deps, "__kmpc_omp_task_with_deps"),
    FIELD(taskwait, "__kmpc_omp_taskwait"),
    FIELD(taskwait_deps, "__kmpc_omp_taskwait_deps_51"),
    FIELD(wait_deps, "__kmpc_omp_wait_deps"),
    FIELD(async_handle, "__kmpc_omp_get_target_async_handle_ptr"),
};
#undef FIELD

/* The functions behind those that this library may stand in front of, of the node that programs are linked with. */
static void fill_in_front(void)
{
    for (size_t i = 0; i < sizeof in_front / sizeof in_front[0]; i++) {
        void *address = dlvsym(RTLD_NEXT, in_front[i].name, "VERSION");
        if (!address && !table.missing) table.missing = in_front[i].name;
        /* As above; where weir does not stand in front the first table's finds stay. */
        if (address) *(void **)((char *)&table + in_front[i].at) = address;
    }
}

static void fill(void)
{
    static const struct {
        const char *name;
        size_t at;
        bool mandatory;
    } names[] = {
#define NAME(field, symbol, mandatory) {symbol, offsetof(struct weir__libomp, field), mandatory}
        NAME(global_thread_num, "__kmpc_global_thread_num", true),
        NAME(default_device, "omp_get_default_device", true),
        NAME(target_offload, "__kmpc_get_target_offload", false),
        NAME(async_handle, "__kmpc_omp_get_target_async_handle_ptr", false),
        NAME(has_task_team, "__kmpc_omp_has_task_team", false),
        NAME(taskwait, "__kmpc_omp_taskwait", false),
        NAME(num_threads, "omp_get_num_threads", false),
        NAME(in_final, "omp_in_final", false),
        NAME(target_task_alloc, "__kmpc_omp_target_task_alloc", false),
        NAME(task_with_deps, "__kmpc_omp_task_with_deps", false),
        NAME(taskwait_deps, "__kmpc_omp_taskwait_deps_51", false),
        NAME(wait_deps, "__kmpc_omp_wait_deps", false),
#undef NAME
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        void *address = find(names[i].name);
        if (!address && names[i].mandatory && !missing) missing = names[i].name;
        /* POSIX lets an object pointer of dlsym() be read back as a function pointer. */
        *(void **)((char *)&table + names[i].at) = address;
    }
    fill_in_front();
    atomic_store_explicit(&state, missing ? -1 : 1, memory_order_release); /* R1 */
}

const struct weir__libomp *weir__libomp_find(void)
{
    int now = atomic_load_explicit(&state, memory_order_acquire); /* A1 */
    if (!now) {
        pthread_once(&filled, fill);
        now = atomic_load_explicit(&state, memory_order_acquire); /* A1 */
    }
    return now > 0 ? &table : NULL;
}

const struct weir__libomp *weir__libomp(void)
{
    const struct weir__libomp *libomp = weir__libomp_find();
    if (!libomp)
        weir__fatal("no OpenMP host runtime in this process (%s is missing): link the program with -fopenmp, "
                    "or put libomp.so.5 where it can be found",
                    missing);
    return libomp;
}

int32_t weir__libomp_nothing(int32_t gtid, void *task)
{
    (void)gtid, (void)task;
    return 0;
}

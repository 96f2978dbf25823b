/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_INTEROP_LIBOMP_H
#define WEIR_INTEROP_LIBOMP_H

/*
 * libomp, the host's OpenMP runtime, as far as the façade needs it. This library must also load into programs that have
 * no libomp, so nothing of it is linked: the addresses are looked up once, at the first use by the façade.
 */

#include <stddef.h>
#include <stdint.h>

struct weir__abi_ident;
struct weir__abi_depend;
struct weir__abi_task;

struct weir__libomp {
    /* always there */
    int32_t (*global_thread_num)(struct weir__abi_ident *where);
    int (*default_device)(void);
    /* Each of these may be NULL: what needs it is then done the other way that the caller has. */
    int (*target_offload)(void);            /* 0 disabled, 1 default, 2 mandatory */
    void **(*async_handle)(int32_t gtid);   /* slot of the current task; NULL for gtid -2 */
    uint8_t (*has_task_team)(int32_t gtid); /* a C++ bool; the slot may be used only if it is true */
    int32_t (*taskwait)(struct weir__abi_ident *where, int32_t gtid);
    struct weir__abi_task *(*target_task_alloc)(struct weir__abi_ident *where, int32_t gtid, int32_t flags,
                                                size_t task_bytes, size_t shareds_bytes,
                                                int32_t (*routine)(int32_t gtid, void *task), int64_t device);
    int32_t (*task_with_deps)(struct weir__abi_ident *where, int32_t gtid, struct weir__abi_task *task, int32_t n,
                              struct weir__abi_depend *deps, int32_t nnoalias, struct weir__abi_depend *noalias);
    void (*taskwait_deps)(struct weir__abi_ident *where, int32_t gtid, int32_t n, struct weir__abi_depend *deps,
                          int32_t nnoalias, struct weir__abi_depend *noalias, int32_t nowait);
    void (*wait_deps)(struct weir__abi_ident *where, int32_t gtid, int32_t n, struct weir__abi_depend *deps,
                      int32_t nnoalias, struct weir__abi_depend *noalias);
    /* What weir needs to stand in front of libomp: all of them are there, or .missing names one that is not. */
    const char *missing;
    struct weir__abi_task *(*task_alloc)(struct weir__abi_ident *where, int32_t gtid, int32_t flags, size_t task_bytes,
                                         size_t shareds_bytes, int32_t (*routine)(int32_t gtid, void *task));
    int32_t (*task)(struct weir__abi_ident *where, int32_t gtid, struct weir__abi_task *task);
    void (*taskgroup)(struct weir__abi_ident *where, int32_t gtid);
    void (*end_taskgroup)(struct weir__abi_ident *where, int32_t gtid);
    void (*barrier)(struct weir__abi_ident *where, int32_t gtid);
    int32_t (*cancel_barrier)(struct weir__abi_ident *where, int32_t gtid);
    int32_t (*taskyield)(struct weir__abi_ident *where, int32_t gtid, int end_part);
    void (*task_begin_if0)(struct weir__abi_ident *where, int32_t gtid, struct weir__abi_task *task);
    void (*task_complete_if0)(struct weir__abi_ident *where, int32_t gtid, struct weir__abi_task *task);
    void (*proxy_completed)(struct weir__abi_task *task);                   /* from any thread */
    void (*own_proxy_completed)(int32_t gtid, struct weir__abi_task *task); /* from a thread of its team */
    void (*fork_call)(struct weir__abi_ident *where, int32_t n, void (*microtask)(int32_t *gtid, int32_t *tid, ...),
                      ...);
    int32_t (*reduce)(struct weir__abi_ident *where, int32_t gtid, int32_t n, size_t bytes, void *data,
                      void (*function)(void *to, void *from), void *lock);
    void (*end_reduce)(struct weir__abi_ident *where, int32_t gtid, void *lock);
    int32_t (*barrier_master)(struct weir__abi_ident *where, int32_t gtid);
    int32_t (*barrier_master_nowait)(struct weir__abi_ident *where, int32_t gtid);
    void (*end_barrier_master)(struct weir__abi_ident *where, int32_t gtid);
    void (*copyprivate)(struct weir__abi_ident *where, int32_t gtid, size_t bytes, void *data,
                        void (*function)(void *to, void *from), int32_t did_it);
    void (*set_thread_limit)(struct weir__abi_ident *where, int32_t gtid, int32_t limit);
    void *(*taskred_init)(int32_t gtid, int32_t n, void *data);
    void *(*taskred_modifier_init)(struct weir__abi_ident *where, int32_t gtid, int32_t is_worksharing, int32_t n,
                                   void *data);
    void (*task_reduction_modifier_fini)(struct weir__abi_ident *where, int32_t gtid, int32_t is_worksharing);
    void *(*completion_event)(struct weir__abi_ident *where, int32_t gtid, struct weir__abi_task *task);
    void (*fulfill_event)(void *event); /* from any thread */
    void (*set_defaults)(const char *settings); /* as the environment would */
    int (*max_task_priority)(void);
    int (*in_final)(void);
    int (*in_explicit_task)(void);
    int (*num_threads)(void);
};

/*
 * The table. The first call from any thread fills it; every later one is a load.
 * Ends the program with a message if there is no libomp: nothing that a compiled program asks for works without.
 */
const struct weir__libomp *weir__libomp(void);
/* The same, or NULL: for those who can do without. */
const struct weir__libomp *weir__libomp_find(void);
/* The routine of a task that only stands for something: a proxy, a bracket. Returns 0. */
int32_t weir__libomp_nothing(int32_t gtid, void *task);

#endif

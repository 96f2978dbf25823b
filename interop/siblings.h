/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_INTEROP_SIBLINGS_H
#define WEIR_INTEROP_SIBLINGS_H

/*
 * The tasks that one OpenMP task generates: dependences exist among them only (OpenMP 5.2 section 15.9.5), so each
 * generating task has a scope. It is known by its slot in libomp for an asynchronous handle, whose address no other
 * task has while it lives. When a slot is used again by a later task, all that is left in the scope is complete.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/task.h>

struct weir__anchor;
struct weir__abi_depend;
struct weir__abi_ident;

struct weir__siblings {
    _Atomic(void *) slot; /* of the generating task; NULL: of none now */
    /* Who uses it. SIBLINGS_TAKEN below 0: somebody gives it to another generating task. */
    _Atomic int32_t pins;
    struct weir_scope *scope;
    struct weir__anchor *anchor; /* the generating thread's: of the innermost taskgroup */
    bool let_go;                 /* the generating thread's: others complete, or have completed, one of its proxies */
    _Atomic uint32_t closed;     /* gates of host_task.c that libomp still waits for */
    _Atomic uint32_t hosted;     /* tasks of libomp in the scope that have not finished */
    uint64_t token, first_token; /* the generating thread's: see weir__siblings_token() */
    /* Gates of host_task.c that the generating task, which waits, is to open; WEIR__GATES_CLOSED: it does not wait. */
    _Atomic(void *) gates;
    bool has_all_memory;          /* the generating thread's: one of them had omp_all_memory */
    _Atomic uint32_t opened;      /* counts gates of host_task.c that were opened */
    struct weir__siblings *next;  /* all, under the list's lock */
    struct weir__siblings *chain; /* of one hash bucket, under the list's lock */
};

#define WEIR__GATES_CLOSED ((void *)1)

/* Those of the task that the calling thread executes, pinned. NULL: it has not generated tasks with dependences or for
 * a device, as far as it is known here. Never blocks. */
struct weir__siblings *weir__siblings_find(int32_t gtid);
/* The same, made if there are none. NULL without memory. */
struct weir__siblings *weir__siblings_get(int32_t gtid);
void weir__siblings_leave(struct weir__siblings *siblings);

/*
 * An address for a dependence of libomp's that no program has and that has not been used since the generating task last
 * waited for all its tasks: two tasks with the same one would be ordered. libomp keeps all it has seen, so after such a
 * wait they are used again.
 */
intptr_t weir__siblings_token(struct weir__siblings *siblings);
void weir__siblings_waited(struct weir__siblings *siblings);

/* Wait for the tasks of all generating tasks, but not for those that only libomp can run. Any thread. BLOCKS. */
void weir__siblings_drain(void);

/* ---- depend clauses ---- */

/* A list of dependences as accesses. */
struct weir__depends {
    struct weir_access *at;
    size_t n;
    bool is_heap;
    struct weir_access few[16];
};
/* What for: it decides what mutexinoutset becomes. */
enum weir__depends_use {
    WEIR__DEPENDS_DEVICE,  /* a device task takes the lock of the scope */
    WEIR__DEPENDS_WAITING, /* as inout: what waits here takes no locks */
    WEIR__DEPENDS_HOSTED,  /* libomp sees to it among its own tasks */
};
/* WEIR_E_NO_MEMORY. */
WEIR_MUST_CHECK int weir__depends_decode(struct weir__depends *depends, int32_t n, const struct weir__abi_depend *list,
                                         int32_t nnoalias, const struct weir__abi_depend *noalias,
                                         enum weir__depends_use use);
/* One more: behind @task, of any generating task. There is room for two. */
void weir__depends_after(struct weir__depends *depends, struct weir_task *task);
void weir__depends_fini(struct weir__depends *depends);

#endif

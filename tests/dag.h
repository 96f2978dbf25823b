/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_TESTS_DAG_H
#define WEIR_TESTS_DAG_H

/*
 * Random lists of tasks for the property test: made from a seed, run by exec_property_test.c, judged with oracle.h.
 * One struct dag is used by one test at a time; its tasks' results are written by whoever runs them and read after
 * weir_scope_wait().
 */

#include <stdatomic.h>
#include <stdio.h>

#include <weir/task.h>

#include "oracle.h"

enum { DAG_SCOPES = 3, DAG_CELLS = 64 };

enum dag_form {
    DAG_HOST = 1,
    DAG_SUBMIT,
    DAG_BEGIN, /* may be refused */
    DAG_BEGIN_BLOCK,
    DAG_EXTERNAL,
    DAG_WAIT_FOR, /* weir_scope_wait_for(): no task */
};

enum dag_fault {
    DAG_FINE = 0,
    DAG_BODY_FAILS,  /* known at completion */
    DAG_QUEUE_FAILS, /* issue returns a failure, or weir_task_fail() instead of weir_task_end() */
};

struct dag_scope;

struct dag_task {
    struct dag_scope *scope;
    uint32_t index;
    uint32_t form, fault;
    uint32_t device; /* taken modulo the number of devices */
    uint32_t body_delay, agent_delay;
    bool by_agent; /* another thread ends or fulfils it */
    bool keeps_handle;
    bool has_callback;

    int submit_status; /* what the submission returned */
    struct weir_task *handle;
    uint64_t submitted;  /* sequence numbers */
    uint64_t start, end; /* 0: the body did not run */
    _Atomic uint32_t runs, callbacks;
    int callback_status;
    int status; /* final, by handle */
};

struct dag_scope {
    uint32_t n;
    uint32_t naddresses;
    uint32_t window;
    bool ranges;
    struct oracle_task shape[ORACLE_TASKS];
    struct dag_task tasks[ORACLE_TASKS];
    uint8_t cells[DAG_CELLS];
};

struct dag {
    uint64_t seed;
    uint32_t nscopes;
    bool has_faults;
    struct dag_scope scopes[DAG_SCOPES];
};

/* Counts starts and ends of bodies. Relaxed throughout: it orders nothing, so it hides no race from a sanitizer; its
 * modification order agrees with whatever order the library makes. */
extern _Atomic uint64_t dag_sequence;
static inline uint64_t dag_tick(void)
{
    return atomic_fetch_add_explicit(&dag_sequence, 1, memory_order_relaxed) + 1;
}

/* Fill @dag from @seed. No device: only host and external tasks. */
void dag_make(struct dag *dag, uint64_t seed, bool with_devices);

/* The body of every task, as host function or queued on a stream. @arg is the struct dag_task. */
int dag_body(void *arg);
/* What the body does to cells[DAG_CELLS], without log and delay: the sequential model of the contents. */
void dag_compute(const struct dag_task *task, uint8_t *cells);
/* The status a task with a fault reports: unique in its scope. */
int dag_fault_status(const struct dag_task *task);

void dag_delay(uint32_t amount);
void dag_print_task(FILE *to, const struct dag_task *task);

#endif

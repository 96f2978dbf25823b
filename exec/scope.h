/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_EXEC_SCOPE_H
#define WEIR_EXEC_SCOPE_H

#include <exec/context.h>

#define WEIR__FAILURE_TOLD 0x80000000u /* in .nparked: a wait has returned what failed */

/* The first failure of a scope since the last wait. */
struct weir__failure {
    int      status;
    char     text[160];
};

struct weir_scope {
    struct weir_context *context;
    struct weir__pool   *pool;
    struct weir__depend  depend;
    struct weir__fencer  fencer;
    struct weir__runner  runner; /* the submitter's */
    struct weir__queue   queue;
    uint32_t             window;
    uint32_t             limit;     /* tasks in flight now allowed: the window, more after it was exceeded */
    uint64_t             next_id, end_id;
    _Atomic(void *)      owner;     /* names the thread that submitted last */
    uint64_t             recent[4]; /* newest points issued by the submitter, by stream id modulo 4 */
    bool                 never_waits; /* weir__scope_never_wait() */
    bool                 traced;      /* the submitter's: trace/ knows the scope */
    uint32_t             number;      /* in records of trace/ */
    uint64_t             patience_ns; /* how long a full window is waited for without progress */
    uint64_t             base;      /* pool->completed when the scope was created */
    _Atomic uint64_t     submitted; /* written by the submitter */
    struct weir_counters counters;  /* the submitter's share */
    struct weir_scope   *next, *prev; /* in the context's list */

    /* Written by whoever finishes tasks. */
    pthread_mutex_t      failure_lock;
    struct weir__failure failure;    /* .status is 0 if there is none */
    struct weir_task    *parked;     /* failed tasks that the access table may still name */
    _Atomic uint32_t     nparked;    /* written under failure_lock; see WEIR__FAILURE_TOLD */
    uint32_t             sweep_at;   /* the submitter's */
    _Atomic bool         failed;     /* a failure that no wait has returned yet */
    _Atomic uint64_t     nfailed, ncancelled;
    _Atomic uint64_t     since_cancelled; /* tasks since the last wait, without those that users do not see */
    _Atomic uint64_t     cancelled_by;    /* id of what the first of these is behind; 0: not known */
    /* Edges of tasks that were issued by others than the submitter. */
    _Atomic uint64_t     late, late_done, late_stream, late_implied, late_event, late_waits;
    _Atomic uint64_t     copies[WEIR__WAY_KINDS], copied[WEIR__WAY_KINDS]; /* by enum weir__copy_way; bytes */
};

/* The submitter's way to a task: memory (waits or helps when the window is full, unless @force), identity, entry. */
struct weir_task *weir__scope_take_task(struct weir_scope *scope, bool force);
/* Memory for one more, after back-pressure unless @force. The submitter; may wait. 0 or WEIR_E_NO_MEMORY. */
int weir__scope_make_room(struct weir_scope *scope, bool force);
void weir__task_open(struct weir_scope *scope, struct weir_task *task, uint8_t kind, uint8_t domain);
/* All edges are made: count it; if nothing is outstanding, deal with it now. */
void weir__scope_enter(struct weir_scope *scope, struct weir__linking *linking);
/* The calling thread is the scope's submitter from here on. */
void weir__scope_own(struct weir_scope *scope);
/* Is the calling thread the scope's submitter? */
bool weir__scope_is_own(const struct weir_scope *scope);
/* Run or wait for the scope's newest device work on this thread where the backend can. */
void weir__scope_sync_recent(struct weir_scope *scope, struct weir__runner *runner);
/* The first failure since the last call, or that tasks were cancelled, as the return value and text of a wait. What failed
 * until then is forgotten by the next submission, if nothing is in flight. */
int weir__scope_take_failure(struct weir_scope *scope);
void weir__counters_add(struct weir_counters *sum, const struct weir_counters *more);

/* Note a task's failure: text, parking until the table forgets it. Called once per failed or cancelled task. */
void weir__scope_note_failure(struct weir_scope *scope, struct weir_task *task, int status);
/* Keep a failed task's memory while the table may name it. True: the scope has it now. */
bool weir__scope_park(struct weir_scope *scope, struct weir_task *task);
/* The submitter: give parked tasks back that the table does not name. @all, or all failures are told, and nothing is in
 * flight: the table forgets everything, so that no failure is left. */
void weir__scope_sweep(struct weir_scope *scope, bool all);
/* Add up what the scope's counters are now. */
void weir__scope_count(struct weir_scope *scope, struct weir_counters *sum);

#endif

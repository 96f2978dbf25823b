/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_TASK_H
#define WEIR_TASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/context.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/** One set of sibling tasks: owns the access table in which their dependences are found. */
struct weir_scope;
/** A node of the graph. A handle is valid until weir_task_release(). */
struct weir_task;

/* ---- accesses ---------------------------------------------------------------------------------- */

/** What a task does with an address: the dependence types of OpenMP 5.2 section 15.9.5, by base address. */
enum weir_access_kind {
    WEIR_ACCESS_IN = 1,            /* after the last out/inout/set; concurrent with other in */
    WEIR_ACCESS_OUT = 2,           /* after everything before on this address */
    WEIR_ACCESS_INOUT = 3,         /* the same as out */
    WEIR_ACCESS_MUTEXINOUTSET = 4, /* mutually exclusive with its neighbours of the same kind, in any order */
    WEIR_ACCESS_INOUTSET = 5,      /* concurrent with its neighbours of the same kind */
    WEIR_ACCESS_ALL_MEMORY = 6,    /* inout on every address of the scope (omp_all_memory) */
    WEIR_ACCESS_AFTER = 7,         /* .address is a handle of a task of any scope of the context: an explicit edge */
};

/** One access. The array that holds them is read before the call returns and may live on the stack. */
struct weir_access {
    const void *address;
    size_t      bytes; /* used by scopes with .ranges only */
    uint32_t    kind;  /* enum weir_access_kind */
};

/* An lvalue in C and C++: WEIR_IN(tile[k][k]), WEIR_INOUT(*buffer). */
#define WEIR_ACCESS(object, kind_) { (const void *)&(object), sizeof(object), (kind_) }
#define WEIR_IN(object)            WEIR_ACCESS(object, WEIR_ACCESS_IN)
#define WEIR_OUT(object)           WEIR_ACCESS(object, WEIR_ACCESS_OUT)
#define WEIR_INOUT(object)         WEIR_ACCESS(object, WEIR_ACCESS_INOUT)
#define WEIR_MUTEXINOUTSET(object) WEIR_ACCESS(object, WEIR_ACCESS_MUTEXINOUTSET)
#define WEIR_INOUTSET(object)      WEIR_ACCESS(object, WEIR_ACCESS_INOUTSET)
/* By address and length, for arrays behind a pointer. */
#define WEIR_RANGE(address_, bytes_, kind_) { (const void *)(address_), (bytes_), (kind_) }
#define WEIR_ALL_MEMORY                     { NULL, 0, WEIR_ACCESS_ALL_MEMORY }
#define WEIR_AFTER(task_)                   { (const void *)(task_), 0, WEIR_ACCESS_AFTER }

/* ---- scopes ------------------------------------------------------------------------------------ */

/** All zero is the default; set .size to sizeof(struct weir_scope_options). */
struct weir_scope_options {
    size_t   size;
    uint32_t window; /* tasks in flight before back-pressure, up to 2^24; 0: the context's */
    bool     ranges; /* accesses conflict when their bytes overlap, not only when their addresses are equal */
};

/**
 * Make a scope. Cheaper than a few tasks, so each submitting thread has its own.
 * @options  borrowed for the call; NULL: all defaults.
 * @scope_out  set on success only; destroy with weir_scope_destroy().
 * Returns  WEIR_OK; WEIR_E_INVALID; WEIR_E_VERSION; WEIR_E_NO_MEMORY; WEIR_E_FORKED.
 * Threads  any thread. Never blocks.
 */
WEIR_MUST_CHECK int weir_scope_create(struct weir_context *context, const struct weir_scope_options *options,
                                      struct weir_scope **scope_out);

/**
 * Wait for every task of the scope, then free it. Handles of its tasks stay valid until they are released.
 * Returns  what weir_scope_wait() returns; WEIR_E_INVALID (NULL), WEIR_E_FORKED. In all other cases the scope is freed.
 * Threads  the thread that submits into the scope. Blocks; runs host tasks meanwhile.
 */
int weir_scope_destroy(struct weir_scope *scope);

/**
 * Wait until every task submitted into the scope so far is complete.
 * Returns  WEIR_OK; the first failure since the last call (text names the task and what was cancelled);
 *          WEIR_E_PREDECESSOR if tasks were cancelled and no failure is new: they are behind one that was told before, or
 *          that belongs to another scope; WEIR_E_FORKED.
 *          A failure is told once. Told, and with nothing in flight, it is forgotten: tasks submitted later are not
 *          behind it, except through WEIR_AFTER().
 * Threads  any thread. Blocks; the waiting thread runs ready host tasks and device work that needs no other thread.
 * Source   OpenMP 5.2 section 15.5 taskwait construct.
 */
WEIR_MUST_CHECK int weir_scope_wait(struct weir_scope *scope);

/**
 * Wait until a task with these accesses could run: every conflicting task submitted so far is complete.
 * Leaves no trace: later tasks do not depend on the call, and a failure stays to be told by weir_scope_wait(). Behind a
 * failure it may return while tasks before the cancelled ones are still at work on their devices.
 * Returns  WEIR_OK; WEIR_E_PREDECESSOR if one failed; what weir_task_host() returns for bad accesses.
 * Threads  the thread that submits into the scope. Blocks; runs ready work meanwhile.
 * Source   OpenMP 5.2 section 15.5, taskwait with the depend clause.
 */
WEIR_MUST_CHECK int weir_scope_wait_for(struct weir_scope *scope, const struct weir_access *accesses, size_t naccesses);

/** WEIR_OK when every task submitted so far is complete (failed or not), else WEIR_E_PENDING; WEIR_E_FORKED. Any thread.
 *  Never blocks. */
WEIR_MUST_CHECK int weir_scope_test(struct weir_scope *scope);

/** Snapshot of the scope's counters. NULL is allowed. The thread that submits, or any thread while nobody submits. */
void weir_scope_counters(struct weir_scope *scope, struct weir_counters *counters_out);

/* ---- tasks ------------------------------------------------------------------------------------- */

/** A host task's function. @return 0 or a failure that becomes the task's status (negative is kept, positive: WEIR_E_TASK). */
typedef int (*weir_host_function)(void *arg);
/**
 * Queues a device task's work. Called once, on the submitting thread if every predecessor is issued, else on the
 * thread that makes the task launchable. @native_stream is ordered behind the task's dependences; queue on it,
 * do not wait for it. @return 0, or a failure: the task fails, its successors are cancelled.
 */
typedef int (*weir_issue_function)(struct weir_task *task, void *native_stream, void *arg);
/** Runs once when the task is complete, on the thread that noticed; must not block. The handle is valid in it. */
typedef void (*weir_complete_function)(struct weir_task *task, int status, void *arg);

/** All zero is the default; set .size, or use WEIR_TASK("name", .priority = 1). */
struct weir_task_options {
    size_t                 size;
    const char            *name; /* borrowed until the task is complete and its handles are released; so is file */
    const char            *file;
    uint32_t               line;
    int32_t                priority; /* a hint, larger first, 0 normal */
    bool                   block;    /* begin only: wait for predecessors that are not issued instead of failing */
    weir_complete_function complete; /* may be NULL */
    void                  *complete_arg;
};

#ifdef __cplusplus
}
/* The temporary lives until the end of the full expression that submits the task. */
static inline const struct weir_task_options *weir__options(const struct weir_task_options &options) { return &options; }
static inline struct weir_task_options weir__named(const char *name, const char *file, uint32_t line) {
    struct weir_task_options options = {};
    options.size = sizeof options;
    options.name = name;
    options.file = file;
    options.line = line;
    return options;
}
#define WEIR_TASK(label) weir__options(weir__named((label), __FILE__, __LINE__))
extern "C" {
#else
/* Options that carry a name and the place in the source; more members may follow: WEIR_TASK("trsm", .priority = 2). */
#define WEIR_TASK(...) WEIR_TASK_(__VA_ARGS__, )
#define WEIR_TASK_(label, ...)                                                                                         \
    (&(const struct weir_task_options){                                                                                \
        .size = sizeof(struct weir_task_options), .name = (label), .file = __FILE__, .line = __LINE__, __VA_ARGS__ })
#endif

/**
 * Submit a function of the host, run on a worker (or on a waiting thread) after its predecessors are complete.
 * @accesses  accesses[naccesses], read before return.
 * @options   borrowed for the call; NULL: defaults.
 * @task_out  NULL: the scope owns the task; else set on success, release with weir_task_release().
 * Returns  WEIR_OK; WEIR_E_INVALID; WEIR_E_VERSION; WEIR_E_NO_MEMORY; WEIR_E_FORKED. After an error nothing has changed
 *          and the function will not run. A failed predecessor is not an error here: the task is cancelled.
 * Threads  one thread at a time per scope; different scopes are independent. Never blocks except for
 *          back-pressure: past the window it runs ready host tasks, or waits while work in flight is sure to finish
 *          without the calling thread, else it goes on and counts window_exceeded.
 * Source   OpenMP 5.2 section 12.5 task construct, section 15.9.5 depend clause.
 */
WEIR_MUST_CHECK int weir_task_host(struct weir_scope *scope, weir_host_function function, void *arg,
                                   const struct weir_access *accesses, size_t naccesses,
                                   const struct weir_task_options *options, struct weir_task **task_out);

/**
 * Submit device work: @issue queues it on a stream that is ordered behind the accesses. Never blocks on predecessors.
 * Otherwise as weir_task_host(); also WEIR_E_NO_DEVICE and, if issue ran at once and failed, its status is the task's
 * (this call still returns WEIR_OK).
 */
WEIR_MUST_CHECK int weir_task_submit(struct weir_scope *scope, struct weir_device *device, const struct weir_access *accesses,
                                     size_t naccesses, weir_issue_function issue, void *arg,
                                     const struct weir_task_options *options, struct weir_task **task_out);

/**
 * Open a device task on the calling thread: weir_task_stream() of the result is ordered behind the accesses.
 * Enqueue anything on that stream, then call weir_task_end().
 * Returns  WEIR_OK; WEIR_E_NOT_ISSUED if a predecessor has not been issued (a host task that has not run, or an open
 *          task) and options->block is not set: nothing has changed; WEIR_E_PREDECESSOR if a predecessor failed: nothing
 *          has changed; otherwise as weir_task_submit().
 *          A mutexinoutset neighbour that is ready and not issued yet is waited for in either case.
 * Threads  as weir_task_host(); begin and end of one task may be on different threads. With block it waits and runs
 *          ready work meanwhile.
 */
WEIR_MUST_CHECK int weir_task_begin(struct weir_scope *scope, struct weir_device *device, const struct weir_access *accesses,
                                    size_t naccesses, const struct weir_task_options *options, struct weir_task **task_out);
/** The native stream of an open task (CUstream; on the CPU device for weir/host.h). Borrowed until weir_task_end(). */
void *weir_task_stream(struct weir_task *task);
/**
 * The work of an open task is queued: its point on the stream is recorded, successors may be issued from here on.
 * Also gives the handle back (a caller who needs it afterwards retains it first).
 * Returns  WEIR_OK; WEIR_E_STATE; WEIR_E_DEVICE (the record failed: the task fails, successors are cancelled).
 * Threads  any one thread. Never blocks.
 */
WEIR_MUST_CHECK int weir_task_end(struct weir_task *task);
/** As weir_task_end() for work that could not be queued: the task fails with @status (negative). */
WEIR_MUST_CHECK int weir_task_fail(struct weir_task *task, int status);

/**
 * A node that somebody else completes with weir_task_fulfill(): a message, an I/O, another runtime.
 * Its predecessors only order it; fulfilling before they are complete is allowed and completes it when they are.
 * If the last handle is released before, the task fails with WEIR_E_STATE.
 * Otherwise as weir_task_host(). @task_out must not be NULL.
 */
WEIR_MUST_CHECK int weir_task_external(struct weir_scope *scope, const struct weir_access *accesses, size_t naccesses,
                                       const struct weir_task_options *options, struct weir_task **task_out);
/**
 * Complete an external task. Gives the handle back, as weir_task_end() does.
 * @status  0, or negative: it failed, its successors are cancelled.
 * Returns  WEIR_OK; WEIR_E_STATE (not external, or fulfilled already); WEIR_E_INVALID; WEIR_E_FORKED.
 * Threads  any thread. Never blocks.
 * Source   OpenMP 5.2 section 18.11.1 omp_fulfill_event.
 */
WEIR_MUST_CHECK int weir_task_fulfill(struct weir_task *task, int status);

/**
 * Make foreign work a node: everything queued before the record of @native_event on a stream of @device. An event tells
 * that work is over and not how: the task succeeds also where that work failed, which its own stream tells
 * (weir_host_stream_wait() on the CPU device).
 * @native_event  borrowed for the call (CUevent; on the CPU device what weir_host_event_record() gave); NULL is WEIR_E_INVALID.
 * Otherwise as weir_task_submit(); WEIR_E_UNSUPPORTED if the backend has no events to import.
 */
WEIR_MUST_CHECK int weir_task_import(struct weir_scope *scope, struct weir_device *device, void *native_event,
                                     const struct weir_access *accesses, size_t naccesses,
                                     const struct weir_task_options *options, struct weir_task **task_out);
/**
 * Make a foreign stream of the task's device wait for the task, on the device.
 * Returns  WEIR_OK; WEIR_E_NOT_ISSUED; WEIR_E_UNSUPPORTED; WEIR_E_STATE (the stream captures a graph, which goes on);
 *          WEIR_E_DEVICE.
 * Threads  any thread. Never blocks.
 */
WEIR_MUST_CHECK int weir_task_export(struct weir_task *task, void *native_stream);

/** Copy on the stream of an open task, after what was queued before. Directions are found from the two devices
 *  (NULL: the host). Memory must stay valid until the task is complete. Between begin and end, or in issue.
 *  Returns WEIR_OK; WEIR_E_STATE (the task is not open); WEIR_E_INVALID (NULL, 0 bytes, the target on another device than
 *  the task, no device on either side); WEIR_E_UNSUPPORTED (between two backends); WEIR_E_NO_MEMORY; WEIR_E_DEVICE. After
 *  an error nothing was queued. Calls on one task must not overlap. Never blocks. */
WEIR_MUST_CHECK int weir_task_copy(struct weir_task *task, void *to, struct weir_device *to_device, const void *from,
                                   struct weir_device *from_device, size_t bytes);

/** One more reference to a handle. Any thread. Never blocks. */
struct weir_task *weir_task_retain(struct weir_task *task);
/** Give a reference back; the task goes on. NULL is allowed. The last one of a task that is still open, or external and
 *  not fulfilled, makes it fail with WEIR_E_STATE: nobody could end it. Any thread. Never blocks. */
void weir_task_release(struct weir_task *task);

/** Wait until the task is complete. Returns its status. Any thread that holds a reference. Blocks; runs ready work. */
WEIR_MUST_CHECK int weir_task_wait(struct weir_task *task);
/** The task's status if complete, else WEIR_E_PENDING; WEIR_E_FORKED. Any thread that holds a reference. Never blocks. */
WEIR_MUST_CHECK int weir_task_test(struct weir_task *task);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif

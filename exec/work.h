/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_EXEC_WORK_H
#define WEIR_EXEC_WORK_H

/*
 * What the façade in interop/ (and nobody outside the library) uses beyond the public headers: work on the stream of an
 * open device task (between weir_task_begin() and weir_task_end(), or inside an issue function), and points.
 */

#include <stdatomic.h>

#include <devices/device.h>
#include <graph/error.h>
#include <weir/task.h>

#define WEIR__MAX_DEVICES 254 /* of a context: domains are device numbers + 1, and WEIR__DOMAIN_FOREIGN */

/* A point in time: (stream id, position), packed; ids are not reused, positions only grow. 0: "before everything". */
struct weir__point {
    uint64_t value;
};

/* The backend's table and its handle of a device, for alloc, module_load and module_symbol. Borrowed. */
const struct weir__device_ops *weir__device_ops_of(const struct weir_device *device);
void *weir__device_handle_of(const struct weir_device *device);
/* Why there are no devices but those of the CPU: static text; NULL: there are, or nobody wanted them. */
const char *weir__context_absence(const struct weir_context *context);
/* Copy of what the backend said about the device. */
const struct weir__device_info *weir__device_info_of(const struct weir_device *device);

/* Calls on one open task must not overlap. None blocks. On failure nothing was queued and weir_error_text() tells. */
WEIR_MUST_CHECK int weir__task_launch(struct weir_task *task, const struct weir__launch *launch);
WEIR_MUST_CHECK int weir__task_copy(struct weir_task *task, const struct weir__copy *copy);
WEIR_MUST_CHECK int weir__task_fill(struct weir_task *task, void *to, uint8_t value, size_t bytes);
WEIR_MUST_CHECK int weir__task_host_function(struct weir_task *task, int (*function)(void *arg), void *arg);
/* Give device memory back once the stream has come to this place. */
WEIR_MUST_CHECK int weir__task_free(struct weir_task *task, void *address);

/* Record a point on the task's stream behind the work queued so far; others may wait for it at once. */
WEIR_MUST_CHECK int weir__task_mark(struct weir_task *task, struct weir__point *point_out);
/* The point that the next record on the task's stream will be: of weir__task_mark(), or of the task's end. A thread that
 * gets to know of it may spin in weir__task_wait_point() until it is recorded, so the caller comes to that without waiting
 * for anybody. 0: the task is not open. Cannot fail, queues nothing. */
struct weir__point weir__task_next_mark(const struct weir_task *task);
/* The task's later work waits for @point, on the device where that is possible, else the calling thread waits. Points
 * that are reached or known to the stream cost nothing. */
WEIR_MUST_CHECK int weir__task_wait_point(struct weir_task *task, struct weir__point point);

/* Predecessors of an open device task that are not reached on their devices: how many, a stream counted once, and the first
 * @most of their points. NULL: 0. Never blocks. */
size_t weir__task_pending(const struct weir_task *task, struct weir__point *points, size_t most);
/* The native stream that a point lies on. */
void *weir__point_native(const struct weir_context *context, struct weir__point point);

/* ---- streams that others queue on for a while (exec/lease.c) ---- */

/*
 * weir_task_end() and weir_task_begin() of another task without accesses in one: the stream stays the same, and nobody
 * else's work comes in between. Gives the handle of @task back.
 * @next_out  open; set on success only.
 * Returns  WEIR_OK; WEIR_E_NO_MEMORY, WEIR_E_DEVICE: nothing has changed.
 * Threads  the one that submits into the task's scope. Never blocks, if the scope never waits.
 */
WEIR_MUST_CHECK int weir__task_renew(struct weir_task *task, struct weir_task **next_out);
/* Somebody else queues on the open task's native stream from here on (@on), or does no more. */
void weir__task_lend(struct weir_task *task, bool on);

/* A place where a stream stays until somebody says so. */
struct weir__gate {
    const struct weir__device_ops *ops;
    void *handle;
};
/* WEIR_E_UNSUPPORTED: the device has none. Any thread. Never blocks. */
WEIR_MUST_CHECK int weir__gate_create(const struct weir_device *device, struct weir__gate *gate_out);
/* The open task's later work waits until the gate is open. Before it is opened. Never blocks. */
WEIR_MUST_CHECK int weir__task_wait_gate(struct weir_task *task, const struct weir__gate *gate);
/* The gate is opened when the open task's stream has come to this place. @gate stays until then. Never blocks. */
WEIR_MUST_CHECK int weir__task_open_gate(struct weir_task *task, struct weir__gate *gate);
/* It is open, and gone. Once. Any thread. Never blocks. */
void weir__gate_open(struct weir__gate *gate);

/* The two numbers of a point. */
void weir__point_unpack(struct weir__point point, uint32_t *stream_out, uint64_t *position_out);

/* 0 when reached, else WEIR_E_PENDING. Any thread. Never blocks. */
WEIR_MUST_CHECK int weir__point_test(struct weir_context *context, struct weir__point point);
/* BLOCKS until reached; runs the stream's work on the calling thread where the backend can. Any thread. */
WEIR_MUST_CHECK int weir__point_wait(struct weir_context *context, struct weir__point point);

/* weir_task_end() and weir_task_wait() in one, without waking a thread of the device for work that the caller can run:
 * the cheap way to do something synchronously. Gives the handle back. Returns the task's status. BLOCKS. */
WEIR_MUST_CHECK int weir__task_end_and_wait(struct weir_task *task);

/* ---- beside another runtime that runs tasks and resolves dependences (exec/foreign.c) ---- */

/*
 * A task that the other runtime runs: the caller says with weir_task_fulfill() that it has finished. Edges between two
 * such tasks are the other runtime's and are not made here; device tasks wait for it, and weir__task_behind() tells when
 * it may start. Otherwise as weir_task_external().
 */
WEIR_MUST_CHECK int weir__task_foreign(struct weir_scope *scope, const struct weir_access *accesses, size_t naccesses,
                                       const struct weir_task_options *options, struct weir_task **task_out);
/* As weir_task_submit() with a name and a completion callback that has time: it runs when the stream is looked at, which
 * happens some time after the task is complete, without a notice from the device for each task. @issue gets no native
 * stream. */
WEIR_MUST_CHECK int weir__task_submit_quiet(struct weir_scope *scope, struct weir_device *device,
                                            const struct weir_access *accesses, size_t naccesses, weir_issue_function issue,
                                            void *arg, const char *name, weir_complete_function complete,
                                            void *complete_arg, struct weir_task **task_out);
/* In the issue function of such a task: its name (borrowed) is another, another function is called when it is complete. */
void weir__task_rename(struct weir_task *task, const char *name);
void weir__task_hand_over(struct weir_task *task, weir_complete_function complete, void *complete_arg);
/* "name at file:line", or "task #id". Where the task is alive: in its issue function or completion, or with a handle. */
void weir__task_describe(const struct weir_task *task, char *text, size_t bytes);
/* The calling thread has waited for device work, or would have if it had not been complete: weir__task_submit_quiet()'s
 * short kernels run on the thread only where it submits many without a wait. weir_task_wait() says so itself. */
void weir__submitter_waits(void);
/* Is everything complete that a task with these accesses would wait for here? @foreign: for a foreign task. The thread
 * that submits. Never blocks. */
bool weir__scope_is_clear(struct weir_scope *scope, const struct weir_access *accesses, size_t naccesses, bool foreign);
/*
 * A host task behind what the accesses name, which nothing will be ordered behind: not entered in the table.
 * @function  run on a worker or a waiting thread; NULL: only options->complete is wanted.
 * Otherwise as weir_task_host().
 */
WEIR_MUST_CHECK int weir__task_behind(struct weir_scope *scope, const struct weir_access *accesses, size_t naccesses,
                                      bool foreign, weir_host_function function, void *arg,
                                      const struct weir_task_options *options);
/* A task without accesses that is none of the program's and in no recording; others are named behind it with WEIR_AFTER
 * until the caller fulfills it. Otherwise as weir_task_external(). */
WEIR_MUST_CHECK int weir__task_switch(struct weir_scope *scope, struct weir_task **task_out);
/* The newest task is a part of another one. The submitter. */
void weir__scope_count_inner(struct weir_scope *scope);
/* The scope's submitter never waits for room: past the window it collects what is done and goes on. Before the first task. */
void weir__scope_never_wait(struct weir_scope *scope);
/* Is nothing of the scope in flight, as far as that was noticed? Any thread. Never blocks. */
bool weir__scope_is_idle(const struct weir_scope *scope);
/*
 * Wait until @done says so: run ready host tasks, else sleep until tasks of the scope complete; with a limit, return after
 * one sleep of that length. @whole: it waits for all that is in flight, so that device work may be run here where the
 * backend can. The thread that submits. Returns what @done said last. BLOCKS.
 */
bool weir__scope_wait_until(struct weir_scope *scope, bool (*done)(void *arg), void *arg, uint64_t limit_ns, bool whole);

/* Add a backend's devices to a context, behind those it has; before the first scope. @backend is borrowed and must
 * outlive the context. Used by tests and benchmarks (mock) and by the context itself. */
WEIR_MUST_CHECK int weir__context_add_backend(struct weir_context *context, const struct weir__device_ops *ops, void *backend);

/* Write every decision about device edges down (graph/certificate.h), before the first task. @certificate is borrowed and
 * must outlive the context. For tests. */
struct weir__certificate;
void weir__context_certify(struct weir_context *context, struct weir__certificate *certificate);

/* One line on stderr when WEIR_LOG's level is at least @level: 1 errors, 2 warnings, 3 information (devices, streams,
 * libraries), 4 every piece of work. Any thread. */
void weir__log(int level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* WEIR_LOG's level, negative before the first context or message. Changes no more. */
extern _Atomic int weir__log_level;

/* Would a message of @level be printed? For places where many come by. */
static inline bool weir__log_is(int level)
{
    /* Relaxed: a stale value loses a message. */
    return __builtin_expect(atomic_load_explicit(&weir__log_level, memory_order_relaxed) >= level, 0);
}

#endif

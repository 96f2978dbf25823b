/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "interop/frame.h"

#include <stdatomic.h>
#include <stddef.h>

#include "interop/abi.h"
#include "interop/anchor.h"
#include "interop/libomp.h"
#include "interop/runtime.h"
#include "interop/shim.h"
#include "interop/siblings.h"
#include "interop/target_task.h"

static _Thread_local struct {
    struct weir__frame *innermost;
    bool is_known; /* the end of the thread will be noticed */
} frames __attribute__((tls_model("initial-exec")));

/* Of the C++ ABI, in libc: runs before the destructors of thread-specific data, of which libomp has one, and in exit().
 */
extern int __cxa_thread_atexit_impl(void (*function)(void *arg), void *arg, void *object);
extern void *__dso_handle __attribute__((visibility("hidden")));

void weir__frame_enter(struct weir__frame *frame, int32_t gtid, bool is_implicit)
{
    frame->slot = weir__libomp()->async_handle(gtid);
    frame->outer = frames.innermost;
    frame->is_implicit = is_implicit;
    frames.innermost = frame;
}

/*
 * In a team of one thread libomp does not count a task among its parent's, but when the last proxy of a task ends
 * behind it it frees the task and goes on to the parent as if it did, and frees that while it runs. A child that is
 * counted, and not taken away again, keeps the task, and with it the parent.
 */
static void keep_task(int32_t gtid)
{
    const struct weir__libomp *libomp = weir__libomp();
    struct weir__abi_task *child = libomp->task_alloc(NULL, gtid, WEIR__ABI_TASK_TIED | WEIR__ABI_TASK_DETACHABLE,
                                                      sizeof *child, 0, weir__libomp_nothing);
    if (!child) weir__fatal("out of memory");
    libomp->task_begin_if0(NULL, gtid, child);
    libomp->task_complete_if0(NULL, gtid, child);
}

void weir__frame_leave(struct weir__frame *frame, int32_t gtid)
{
    if (frame->is_implicit) weir__shim_settle(NULL, gtid);
    frames.innermost = frame->outer;
    struct weir__siblings *siblings = weir__siblings_find(gtid);
    if (!siblings) return;
    bool is_nested = weir__target_task_current() || (frame->outer && !frame->outer->is_implicit);
    weir__anchor_release(siblings, gtid, true);
    if (siblings->let_go && !frame->is_implicit && is_nested && weir__libomp()->num_threads() == 1) keep_task(gtid);
    siblings->let_go = false;
    weir__siblings_leave(siblings);
}

/* A thread ends, outside of any region. */
static void thread_ends(void *arg)
{
    (void)arg;
    if (!weir__shim_is_on()) return;
    int32_t gtid = weir__libomp()->global_thread_num(NULL);
    weir__shim_settle(NULL, gtid);
}

bool weir__frame_covers(const struct weir__siblings *siblings)
{
    /* Relaxed: it is the slot of the task that this thread executes. */
    if (frames.innermost) return frames.innermost->slot == atomic_load_explicit(&siblings->slot, memory_order_relaxed);
    if (weir__libomp()->in_explicit_task()) return false;
    if (!frames.is_known) frames.is_known = !__cxa_thread_atexit_impl(thread_ends, NULL, &__dso_handle);
    return frames.is_known;
}

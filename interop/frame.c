/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "interop/frame.h"

#include <stdatomic.h>
#include <stddef.h>

#include "interop/anchor.h"
#include "interop/libomp.h"
#include "interop/runtime.h"
#include "interop/shim.h"
#include "interop/siblings.h"

static _Thread_local struct {
    struct weir__frame *innermost;
    bool is_known; /* the end of the thread will be noticed */
} frames __attribute__((tls_model("initial-exec")));

/* Of the C++ ABI, in libc: runs before the destructors of thread-specific data, of which libomp has one, and in exit().
 */
extern int __cxa_thread_atexit_impl(void (*function)(void *arg), void *arg, void *object);
extern void *__dso_handle __attribute__((visibility("hidden")));

void weir__frame_enter(struct weir__frame *frame, int32_t gtid)
{
    frame->slot = weir__libomp()->async_handle(gtid);
    frame->outer = frames.innermost;
    frames.innermost = frame;
}

void weir__frame_leave(struct weir__frame *frame, int32_t gtid, bool wait)
{
    if (wait) weir__shim_settle(NULL, gtid);
    frames.innermost = frame->outer;
    struct weir__siblings *siblings = weir__siblings_find(gtid);
    if (!siblings) return;
    weir__anchor_release(siblings, gtid, true);
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

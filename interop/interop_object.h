/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_INTEROP_INTEROP_OBJECT_H
#define WEIR_INTEROP_INTEROP_OBJECT_H

/*
 * Interoperability objects (OpenMP 5.2 section 14.1): what an omp_interop_t points to, how it comes and goes, and the
 * stream that it has.
 *
 * The stream is a lease for the object's life: an open task, the *batch*, in a scope that only the object has, so that
 * no drain waits for it. What the program's foreign runtime queues on the native stream belongs to the batch. An
 * interop construct ends the batch and begins the next one on the same stream (interop_order.h).
 *
 * Structures are used again and never freed: a program that asks a destroyed object gets a code, not a crash, as long
 * as no later object has taken its place.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <devices/device.h>
#include <weir/task.h>

struct weir__abi_interop_prefer;
struct weir__target;

/* The modifiers of init. Compilers up to clang 22 send TARGET for init(target, targetsync:). */
enum weir__interop_type { WEIR__INTEROP_TARGET = 1, WEIR__INTEROP_TARGETSYNC = 2 };

struct weir__interop;

/* Runs once when the foreign work queued before the object's next construct is complete. */
struct weir__interop_callback {
    struct weir__interop_callback *next;
    void (*function)(struct weir__interop *object, void *arg);
    void *arg;
};

struct weir__interop {
    uint64_t magic; /* WEIR__INTEROP_MAGIC */
    _Atomic bool is_live;
    /* The program's own reference, and one for each of its tasks in flight. */
    _Atomic uint32_t users;
    struct weir__target *target;
    const struct weir__native *native; /* of the foreign runtime that it speaks to */
    enum weir__interop_type type;

    /* Who asks for the first time makes the lease; afterwards, and all else below, constructs only, one at a time. */
    pthread_mutex_t lock;
    struct weir_scope *scope;
    struct weir_task *batch;       /* open; NULL: no stream */
    _Atomic(void *) native_stream; /* NULL: no stream yet; written under @lock, behind @stream_id */
    uint32_t stream_id;
    _Atomic uint64_t event; /* newest point of the stream that a construct has recorded; 0: none */
    struct weir_task *last; /* handle of its newest task, or NULL */
    bool is_last_late;      /* that one was not issued when it was made */
    struct weir__interop_callback *callbacks;

    int32_t owner;              /* gtid whose implicit object it is; -1: it is the program's */
    bool is_dirty;              /* implicit: handed out since its owner last waited */
    struct weir__interop *next; /* unused, or implicit ones: under the list's lock */
};

#define WEIR__INTEROP_MAGIC 0x7765697220696f70u

/*
 * Make an object for a device.
 * @device   as the program names it; -1: the default device.
 * @prefers  prefers[nprefers], foreign runtimes, the first that the device has is taken; if none is, its first.
 * @object_out  set on success only; weir__interop_end() gives it back.
 * Returns  WEIR_OK; WEIR_E_NO_DEVICE (there is none, it is the host, or nothing to interoperate with),
 *          WEIR_E_NO_MEMORY; weir__interop_reason() tells why.
 * Threads  any thread of libomp. May wait for images that another thread loads.
 */
WEIR_MUST_CHECK int weir__interop_create(int64_t device, enum weir__interop_type type, int32_t nprefers,
                                         const struct weir__abi_interop_prefer *prefers,
                                         struct weir__interop **object_out);
/* The device and the foreign runtime of an object that weir__interop_create() would make. Its arguments, results and
 * threads. */
WEIR_MUST_CHECK int weir__interop_choose(int64_t device, int32_t nprefers,
                                         const struct weir__abi_interop_prefer *prefers,
                                         struct weir__target **target_out, const struct weir__native **native_out);
/* See that it has a stream. WEIR_E_NO_MEMORY, WEIR_E_DEVICE, WEIR_E_BUSY (too many), WEIR_E_FORKED. Any thread. */
WEIR_MUST_CHECK int weir__interop_need_stream(struct weir__interop *object);
void weir__interop_retain(struct weir__interop *object);
/* One reference less; the last one ends the lease: what is queued on the stream still runs. Any thread. Never blocks.
 */
void weir__interop_release(struct weir__interop *object);
/* The program's no more: its queries say so, and its reference is gone. As release(). */
void weir__interop_end(struct weir__interop *object);

/* The object that a program's pointer names. NULL: none, or none that lives. Never crashes for what was once one. */
struct weir__interop *weir__interop_of(const void *pointer);

/* The calling thread's newest failure with an interop construct or query, or NULL; and say it. */
const char *weir__interop_reason(void);
int weir__interop_fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_DEVICES_HOST_INTERNAL_H
#define WEIR_DEVICES_HOST_INTERNAL_H

/*
 * The CPU backend from inside: queue.c (commands of one stream), stream.c (who runs a stream), sync.c (the caller runs
 * it), worker.c (threads of a device), pool.c (devices and streams made and kept), work.c (what commands do), module.c
 * (images), native.c (include/weir/host.h), backend.c (the ops table).
 *
 * The argument of the concurrent part
 *
 * A stream's commands are written by one thread at a time (the submitter, who holds the stream's lease) and run by one
 * thread at a time (the runner, who has claimed it). `state` says who may claim:
 *
 *        flush, waiter           worker takes it
 *   IDLE ------------> QUEUED ---------------------> RUNNING ---------> BLOCKED  (on a position of another stream)
 *    ^ \                  \  sync() takes it out       ^ | ^                |
 *    |  `------------------`---------------------------' | |   drained      |
 *    |            sync() runs it inline                  v |                |
 *    `------------------------------------------------ LINGER    QUEUED <---'  position reached
 *
 *  - Claim. IDLE and LINGER are left by compare-and-swap, QUEUED only under the device's lock by whoever unlinks
 *    the stream from the run queue, BLOCKED only by the runner of the producer that took the stream's waiter off
 *    the producer's list. So exactly one thread becomes runner (or destroyer: DEAD), and the runner's fields need
 *    no lock; they travel with the state word (release on leaving, acquire on claiming).
 *  - No lost start. The submitter stores `flushed` and then loads `state`; a runner stores IDLE and then loads
 *    `flushed`; all four sequentially consistent. Either the submitter sees IDLE and queues the stream, or the
 *    runner sees the new commands and does. LINGER, RUNNING, QUEUED and BLOCKED all lead to such a check later, so
 *    the submitter has nothing to do in them. A lingering worker that is robbed of its stream by sync() loses the
 *    duty with it.
 *  - No lost wake-up. A waiter is put on the producer's list, lowers `interest` (the lowest position that anybody
 *    waits for) and then loads `completed`; a runner stores `completed` and then loads `interest`; again all
 *    sequentially consistent. Either the waiter sees the position reached and goes on, or the runner sees the
 *    interest and, under the stream's lock, takes the waiter off. The waiter then loads `state` and queues an idle
 *    producer; a runner that leaves loads `interest` behind its store of IDLE. So a producer that was never flushed
 *    starts when somebody waits for it.
 *  - No deadlock. A wait names a position that was recorded before the wait was queued; edges go from older to
 *    newer commands. A thread in sync() may sleep while it holds claims, but only of streams whose next command
 *    really has to wait: each for the next held one, the last for what the thread sleeps for. It runs no stream
 *    past the position that it needs there, since the work behind may wait for a held stream.
 *  - Late looks. A thread may look at a stream after it stopped waiting for it, when the stream is destroyed
 *    already. Therefore streams and devices are never given back to the allocator: they are kept and used again, a
 *    stream always by its device, and positions and command counts go on instead of starting again. Whatever such a
 *    thread reads says "reached", and whatever it claims it may run.
 *
 * Costs that the design avoids: sequentially consistent stores are one locked instruction on a line that the thread
 * owns anyway (the state, tail and completed words lie on lines of their own; nobody polls them except a short, bounded
 * spin). A thread is woken only if nobody is awake to find the work: not while another one lingers or is on its way.
 *
 * Lock order: none of the locks here is taken while another one is held.
 */

#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <devices/device.h>
#include <devices/host/host.h>

#define HOST_CHUNK_BYTES  4096u
#define HOST_CHUNKS_KEPT  32u
#define HOST_INLINE_ARGS  64u /* more arguments, or points to wait for, than this lie in a block of their own */
#define HOST_WORKERS_MAX  64u
#define HOST_SPINS        200u
#define HOST_SHORT_BYTES  4096u  /* a copy of so much takes less than handing it over */
#define HOST_SHORT_FREE   65536u /* the allocator keeps as much: nothing is unmapped */
#define HOST_STREAM_MAGIC 0x77656972686f7374u
#define HOST_NO_INTEREST  UINT64_MAX

/* ---- commands ---- */

enum host_command_kind {
    HOST_NEXT = 1, /* the next command is in the next chunk; not counted */
    HOST_RECORD,   /* ends a stretch */
    HOST_MARK,     /* a position inside a stretch: native events */
    HOST_WAIT,
    HOST_WAIT_MANY,
    HOST_FUNCTION,
    HOST_LAUNCH,
    HOST_LAUNCH_MEASURED, /* the kernel may be a short one */
    HOST_LAUNCH_MANY,
    HOST_COPY,
    HOST_COPY_BLOCK,
    HOST_FILL,
    HOST_FREE,
};

/* The first word of every command; `words` counts it too. */
struct host_command {
    uint16_t kind;
    uint16_t words;
    uint32_t count; /* arguments, points, or the byte to fill with */
};

struct host_point {
    struct host_stream *stream;
    uint64_t position;
};

struct host_chunk {
    struct host_chunk *next;
    uint64_t depth; /* of the stack of returned chunks; only the runner touches it */
    uint64_t words[HOST_CHUNK_BYTES / sizeof(uint64_t) - 2];
};

/* ---- streams ---- */

enum host_state { HOST_DEAD, HOST_IDLE, HOST_QUEUED, HOST_RUNNING, HOST_LINGER, HOST_BLOCKED };

/* On the list of a stream whose position somebody waits for. */
struct host_waiter {
    struct host_waiter *next;
    uint64_t position;
    struct host_stream *stream; /* parked on it; NULL: a thread sleeps on @word */
    _Atomic uint32_t word;
};

/* Positions first..last failed with @status; more than one only when there was no memory for two entries. */
struct host_failure {
    uint64_t first, last;
    int status;
};

struct host_writer { /* submitter only */
    uint64_t *write, *end;
    struct host_chunk *chunk;
    struct host_chunk *spare;
    uint64_t queued;   /* commands */
    uint64_t recorded; /* positions */
    const void *kernel; /* the newest launched since the last flush, or NULL */
    bool is_short;      /* what was queued since may run where it is queued: it is short, waits aside */
};

struct host_reader { /* runner only */
    uint64_t *read;
    struct host_chunk *chunk;
    uint64_t done;     /* commands */
    uint64_t position; /* the newest one reached */
    uint32_t point;    /* first point of the current wait that is not known to be reached */
    uint64_t began;    /* when the first work of the stretch did, if that is wanted; 0: none yet */
    uint64_t random;
    struct host_point wanted; /* what a held stream waits for */
    struct host_stream *held_below;
    uint64_t held_until;
};

struct host_stream {
    /* Constant while the stream lives. */
    uint64_t magic;
    struct host_device *device; /* constant for ever */
    void *owner;
    uint64_t base; /* positions of former lives: outside = inside - base */
    uint32_t generation;
    int32_t priority;
    bool own;  /* opened by the user: starts without flush */
    bool lent; /* the submitter's: the user queues on it, so it does, too */

    alignas(64) struct host_writer writer;

    alignas(64) _Atomic uint64_t tail;     /* commands that the runner may read */
    _Atomic uint64_t flushed;              /* commands that must start by themselves */
    _Atomic(struct host_chunk *) returned; /* chunks for the submitter to use again */

    alignas(64) struct host_reader reader;
    _Atomic int failure; /* of the current stretch; written by the runner */

    alignas(64) _Atomic uint64_t completed;

    alignas(64) _Atomic uint32_t state;
    _Atomic uint64_t interest;
    _Atomic(struct host_stream *) blocked_on; /* hints for those who want to help, valid in BLOCKED */
    _Atomic uint64_t blocked_position;
    struct host_waiter waiter; /* own place on the producer's list */

    /* Run queue, under the device's lock. */
    alignas(64) struct host_stream *queue_next;
    struct host_stream *queue_previous;
    bool listed;

    /* Under `lock`. */
    pthread_mutex_t lock;
    struct host_waiter *waiters;
    uint64_t *notices; /* positions asked for by notify(), ascending */
    uint32_t nnotices, notices_capacity;
    struct host_failure *failures; /* oldest first */
    struct host_failure failures_few[4];
    uint32_t failures_capacity;
    _Atomic uint32_t nfailures; /* read without the lock to see that there is none */
};

/* ---- devices ---- */

struct host_backend {
    uint32_t devices;
    struct weir__host_options options;
    uint32_t generation;
};

struct host_worker {
    struct host_device *device;
    pthread_t thread;
    struct host_worker *parked_below;
    _Atomic uint32_t word; /* 0: asleep or about to be */
};

struct host_device {
    const struct weir__device_notice *notice;
    struct host_device *pool_next;
    uint32_t number;
    uint32_t generation;
    uint32_t delay_us;
    uint64_t delay_seed;
    uint32_t short_ns;

    _Atomic uint64_t failures; /* stretches that failed; only grows */

    alignas(64) _Atomic uint32_t queued; /* streams in the run queue */
    _Atomic bool lingering;
    _Atomic uint32_t nworkers;

    /* Under `lock`. */
    alignas(64) pthread_mutex_t lock;
    struct host_stream *queue_first, *queue_last;
    struct host_stream *dead; /* streams to use again, by queue_next */
    struct host_worker *parked;
    uint32_t nparked;
    bool waking;       /* a worker was woken or started and has not looked at the queue yet */
    uint32_t starting; /* calls of pthread_create() that have not returned */
    bool closing;
    uint64_t wakes;
    struct host_worker workers[HOST_WORKERS_MAX];
};

/* ---- backend.c ---- */

extern _Atomic uint32_t weir__host_generation; /* +1 in each child of a fork */

/* Set the calling thread's last_error text; returns @code. */
int weir__host_fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char *weir__host_error_text(void);
void *weir__host_allocate(size_t bytes); /* 64-byte aligned, not cleared; NULL and a text; release with free() */

static inline bool weir__host_is_foreign_process(uint32_t generation)
{
    /* Relaxed: it changes in a child of fork only, where there is one thread. */
    return generation != atomic_load_explicit(&weir__host_generation, memory_order_relaxed);
}
/* Is there a thread that runs queued work? Waits for a start that is under way on another thread. */
bool weir__host_device_has_threads(struct host_device *device);
int weir__host_fail_forked(void);

/* ---- queue.c ---- */

int weir__host_queue_init(struct host_stream *stream);
void weir__host_queue_fini(struct host_stream *stream);
/* After a flush: nothing queued since. */
static inline void weir__host_queue_restart(struct host_stream *stream)
{
    stream->writer.kernel = NULL;
    stream->writer.is_short = stream->device->short_ns != 0;
}
/* A new chunk for the writer. Returns its first word, or NULL (text set, nothing changed). */
uint64_t *weir__host_queue_grow(struct host_stream *stream);
/* Go on to the next chunk; there is one. Runner only. */
struct host_command *weir__host_queue_jump(struct host_stream *stream);

/* The next command; there is one. Runner only. */
static inline struct host_command *weir__host_queue_next(struct host_stream *stream)
{
    struct host_command *command = (struct host_command *)stream->reader.read;
    return command->kind == HOST_NEXT ? weir__host_queue_jump(stream) : command;
}

/* Room for a command. Always leaves a word for a record and one for HOST_NEXT, so the record behind it cannot fail. */
static inline void *weir__host_queue_claim(struct host_stream *stream, uint16_t kind, uint16_t words, uint32_t count)
{
    struct host_writer *writer = &stream->writer;
    uint64_t *at = writer->write;
    if (writer->end - at < words + 2 && !(at = weir__host_queue_grow(stream))) return NULL;
    writer->write = at + words;
    writer->queued++;
    *(struct host_command *)at = (struct host_command){.kind = kind, .words = words, .count = count};
    return at;
}

static inline int weir__host_queue_reserve(struct host_stream *stream)
{
    return stream->writer.end - stream->writer.write >= 2 || weir__host_queue_grow(stream) ? WEIR_OK : WEIR_E_NO_MEMORY;
}

/* ---- stream.c ---- */

enum host_run {
    HOST_RUN_DRAINED, /* nothing left to read; still claimed */
    HOST_RUN_REACHED, /* the asked position; still claimed */
    HOST_RUN_WAITING, /* reader.wanted is not reached; still claimed (HOST_HOLD) */
    HOST_RUN_BLOCKED, /* parked on the producer; no longer the caller's */
};
enum host_run_flag {
    HOST_HOLD = 1u << 0,   /* do not park */
    HOST_WORKER = 1u << 1, /* the caller takes the next stream of the device's queue itself when it is done */
};

/* Submitter. Write a record (kind HOST_RECORD or HOST_MARK) and let the runner see everything up to it. */
static inline int weir__host_stream_record(struct host_stream *stream, uint16_t kind, uint64_t *position_out)
{
    if (weir__host_queue_reserve(stream)) return WEIR_E_NO_MEMORY;
    struct host_writer *writer = &stream->writer;
    *(struct host_command *)writer->write++ = (struct host_command){.kind = kind, .words = 1};
    *position_out = ++writer->recorded;
    /* P1 release: publishes the commands; pairs with the acquire loads of tail in stream.c and worker.c. */
    atomic_store_explicit(&stream->tail, ++writer->queued, memory_order_release);
    return WEIR_OK;
}
void weir__host_stream_flush(struct host_stream *stream);
/* Let a runner see everything that is queued, which must start by itself: the first half of a flush. */
static inline void weir__host_stream_publish(struct host_stream *stream)
{
    uint64_t queued = stream->writer.queued;
    /* Relaxed: own store. Work behind the last record is started as well. */
    if (atomic_load_explicit(&stream->tail, memory_order_relaxed) != queued)
        atomic_store_explicit(&stream->tail, queued, memory_order_release); /* P1 */
    atomic_store_explicit(&stream->flushed, queued, memory_order_seq_cst);  /* S1: pairs with S4 */
}
/* Make sure that somebody runs an idle stream. Any thread. */
void weir__host_stream_kick(struct host_stream *stream);
/* Become the runner if nobody is. Any thread. */
bool weir__host_stream_claim(struct host_stream *stream);
/* Run a claimed stream until @until is reached or it is drained or has to wait. */
enum host_run weir__host_stream_run(struct host_stream *stream, uint64_t until, uint32_t flags);
/* Runner. The next position is reached without a command. */
void weir__host_stream_reach(struct host_stream *stream);
/* Give a claim (state @from: RUNNING or LINGER) back. @done: the reader's when it was last seen. */
void weir__host_stream_leave(struct host_stream *stream, uint32_t from, uint64_t done);
/* false: reached already, the waiter is not on the list. */
bool weir__host_stream_add_waiter(struct host_stream *stream, struct host_waiter *waiter);
int weir__host_stream_notify(struct host_stream *stream, uint64_t position);
/* Failure noted for a position, 0 if none. */
int weir__host_stream_status(struct host_stream *stream, uint64_t position);
void weir__host_stream_forget(struct host_stream *stream, uint64_t position);
/* The oldest failure not forgotten, 0 if none. */
int weir__host_stream_first_failure(struct host_stream *stream);

static inline bool weir__host_stream_reached(struct host_stream *stream, uint64_t position)
{
    /* A1 acquire: sees what the commands did; pairs with the store C1 in stream.c. */
    return atomic_load_explicit(&stream->completed, memory_order_acquire) >= position;
}

/* ---- short.c ---- */

/* As flush(), but work that is measured to be short runs on the calling thread. True: all of it has. */
bool weir__host_stream_flush_here(struct host_stream *stream);
bool weir__host_kernel_is_short(const void *kernel);
void weir__host_kernel_measured(const void *kernel, uint64_t ns, uint32_t short_ns);
/* A module is unloaded: other kernels may come to the same addresses. */
void weir__host_kernels_forget(void);
uint64_t weir__host_now_ns(void);

/* ---- pool.c ---- */

/* A device that is open, without threads and streams. NULL: no memory. weir__host_device_put() stops its threads first.
 */
struct host_device *weir__host_device_get(const struct host_backend *backend, uint32_t number,
                                          const struct weir__device_notice *notice);
void weir__host_device_put(struct host_device *device);
void weir__host_pool_forked(void);
int weir__host_stream_make(struct host_device *device, void *owner, int32_t priority, bool own,
                           struct host_stream **stream_out);
/* Runs what is left and puts the stream away. BLOCKS. */
void weir__host_stream_end(struct host_stream *stream);

/* ---- sync.c ---- */

/* BLOCKS until the position is reached; runs the stream, and what it waits for, on the calling thread if nobody does.
 */
void weir__host_sync(struct host_stream *stream, uint64_t position);

/* ---- worker.c ---- */

/* Put a stream (state QUEUED) into its device's run queue and see to it that a worker looks. */
void weir__host_device_push(struct host_stream *stream);
/* The run queue of this device needs no wake-up now: the calling worker looks itself, or calls weir__host_device_wake()
 * before anything that may take long. NULL: none. Returns the former one. */
struct host_device *weir__host_device_defer(struct host_device *device);
/* Take a stream out of the run queue; the caller becomes its runner. false: it is not there. */
bool weir__host_device_unlist(struct host_stream *stream);
/* Wake or start one worker if there is work that nobody is awake for. */
void weir__host_device_wake(struct host_device *device);
void weir__host_device_stop(struct host_device *device);
void weir__host_futex_wait(_Atomic uint32_t *word, uint32_t value);
void weir__host_futex_wake(_Atomic uint32_t *word);

static inline void weir__host_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* ---- work.c ---- */

int weir__host_work_init(void); /* once per process; WEIR_E_SYSTEM */
void weir__host_execute(struct host_stream *stream, struct host_command *command);
void weir__host_delay(struct host_stream *stream);
int weir__host_queue_copy(struct host_stream *stream, const struct weir__copy *copy);
int weir__host_queue_fill(struct host_stream *stream, void *to, uint8_t value, size_t bytes);
int weir__host_queue_launch(struct host_stream *stream, const struct weir__launch *launch);
int weir__host_queue_function(struct host_stream *stream, int (*function)(void *arg), void *arg);
int weir__host_queue_free(struct host_stream *stream, void *address);
/* Inside positions. Points that are reached already cost nothing. */
int weir__host_queue_wait(struct host_stream *stream, const struct host_point *points, size_t n);
/* The points of a HOST_WAIT or HOST_WAIT_MANY. */
const struct host_point *weir__host_wait_points(const struct host_command *command);

/* ---- native.c ---- */

int weir__host_foreign_wait(void *stream, void *native_event);
int weir__host_foreign_signal(void *stream, uint64_t position, void *native_stream);
void weir__host_lend(void *stream, bool on);
int weir__host_gate_create(void *device, void **gate_out);
int weir__host_gate_wait(void *stream, void *gate);
void weir__host_gate_open(void *gate);

/* ---- module.c ---- */

int weir__host_module_load(void *device, const void *image, size_t bytes, void **module_out);
void weir__host_module_unload(void *module);
int weir__host_module_symbol(void *module, const char *name, void **address_out, size_t *bytes_out);

#endif

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_DEVICES_CUDA_INTERNAL_H
#define WEIR_DEVICES_CUDA_INTERNAL_H

/*
 * Private to devices/cuda.
 *
 * Locks: of a stream, and inside it pinned_lock or memory_lock of the device; lost_lock of a device inside any. The
 * others stand alone. A stream's lock and those inside it are what functions in stream order take (call.c), so no call
 * of the driver is made with one of them held: the driver may hold a lock of its own while it runs such a function.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <devices/cuda/cuda.h>
#include <devices/cuda/driver.h>

enum {
    STAGE_BYTES = 64 * 1024,    /* a slot of pinned memory; larger copies go through a bounce buffer */
    STAGE_SLAB_SLOTS = 16,      /* slots that are allocated at once */
    STAGE_SLABS_MOST = 64,      /* per device */
    BOUNCE_BYTES = 1024 * 1024, /* of a stream, pinned, allocated when it is first needed */
    WRITERS = 8,                /* ranges of the host that a stream keeps in mind */
    ARGUMENTS_ON_STACK = 64,
    ASK_AGAIN_NS = 20000, /* who asks an event sooner than this gets the answer of the last time */
};

struct cuda_counts {
#define WEIR_X(field, text) _Atomic uint64_t field;
    WEIR__CUDA_COUNTERS(WEIR_X)
#undef WEIR_X
};

/* Relaxed: nothing is ordered by a counter. */
#define COUNT(device, field) atomic_fetch_add_explicit(&(device)->counts.field, 1, memory_order_relaxed)

struct cuda_backend {
    uint32_t count;
    pthread_mutex_t lock;     /* of .open, and while a context is made */
    struct cuda_device *open; /* all of them, newest first; a number may be opened twice */
};

/* A block of device memory: in use, or on the list of its size. */
struct cuda_block {
    struct cuda_block *next;  /* of the same size, unused */
    struct cuda_block *chain; /* in the table of addresses */
    WEIR__DRIVER_ADDRESS address;
    uint32_t size; /* index of size class */
    bool used;
};

enum { SIZE_CLASSES = 8 * 34, BLOCK_CHAINS = 1024 };

/* A piece of pinned memory that a stream fills with small copies one after another. */
struct cuda_slot {
    struct cuda_slot *next;
    unsigned char *memory; /* STAGE_BYTES */
    uint32_t uses;         /* items of the stream; under its lock */
};

struct cuda_slab {
    struct cuda_slab *next;
    void *memory;
    struct cuda_slot slots[STAGE_SLAB_SLOTS];
};

struct cuda_device {
    struct cuda_backend *backend;
    struct cuda_device *next_open;
    int ordinal;
    int max_pitch, shared_most;
    int priority_least, priority_greatest;
    bool reads_host; /* kernels can use pageable memory of the host */
    size_t memory_bytes;

    struct weir__native natives[2];

    /* NULL until somebody needs it. Release under the backend's lock, acquire in weir__cuda_context(). */
    _Atomic(struct driver_context *) context;

    /* Sticky. The text is written before it, once, under lost_lock. */
    atomic_bool lost;
    pthread_mutex_t lost_lock;
    char lost_text[192];

    pthread_mutex_t memory_lock;
    struct cuda_block *unused[SIZE_CLASSES];
    struct cuda_block *blocks[BLOCK_CHAINS];
    size_t unused_bytes;

    pthread_mutex_t pinned_lock;
    struct cuda_slot *slots;
    struct cuda_slab *slabs;
    uint32_t nslabs;

    pthread_mutex_t stream_lock;
    struct cuda_stream *streams;      /* in use */
    struct cuda_stream *idle_streams; /* destroyed by exec/, to be used again */
    struct cuda_item *foreign;        /* functions on streams of others */

    pthread_mutex_t waiter_lock;
    pthread_cond_t waiter_wake;
    struct cuda_stream *notified, **notified_tail; /* with notices, and no waiter at them */
    pthread_t *waiters;
    uint32_t nwaiters, idle_waiters;
    bool closing;

    struct cuda_counts counts;
};

/*
 * Something of a stream that is kept until a position is seen done. A stream's items are in order of their numbers, and
 * so of their positions.
 */
enum cuda_item_kind {
    ITEM_STAGED = 1, /* pinned memory that a copy to the device reads */
    ITEM_LATE,       /* pinned memory whose content the host gets when the position is seen done, or before (item.c) */
    ITEM_FREE,       /* device memory to give back */
    ITEM_CALL,       /* a function in stream order (call.c) */
};

/* Rows of the host's memory, and the same without gaps in pinned memory. */
struct cuda_rows {
    unsigned char *host, *pinned;
    size_t bytes, rows, planes, pitch[2];
};

struct cuda_item {
    struct cuda_item *next;
    enum cuda_item_kind kind;
    uint64_t number, position;
    struct cuda_slot *slot;              /* STAGED, LATE */
    void *address;                       /* FREE */
    struct cuda_rows rows;               /* LATE, CALL */
    bool copied;                         /* LATE */
    void (*run)(struct cuda_item *item); /* CALL */
    _Atomic int state;                   /* CALL, see call.c */
    int (*function)(void *arg);
    void *arg;
    struct cuda_stream *settled; /* whose late copies up to .until are done */
    uint64_t until;
};

/* Memory of the host that work of a stream writes. */
struct cuda_writer {
    uintptr_t begin, end;
    uint64_t position;
};

struct cuda_notice {
    struct cuda_notice *next;
    struct cuda_event *event;
    uint64_t position;
    void (*done)(void *arg, int status);
    void *arg;
};

/* Freed with the device only: others may look at it longer than it is used. Its counters go on when it is used anew. */
struct cuda_stream {
    struct cuda_device *device;
    struct driver_stream *handle;
    int priority;
    struct cuda_stream *next;  /* of the device's list */
    _Atomic uint64_t recorded; /* newest position; written by stream calls, release: memory.c */
    /* Of stream calls alone. */
    uint64_t numbered; /* newest item */
    uint64_t late;     /* number of the newest late copy */
    uint64_t late_position;
    uint64_t opaque; /* work up to this position may write anything of the host */
    bool lent;       /* somebody else queues on the handle */
    struct cuda_writer writers[WRITERS];
    unsigned char *bounce;
    struct cuda_slot *slot; /* the one in use, and how much of it */
    size_t slot_used;

    _Atomic uint64_t done; /* newest position seen done and settled (item.c) */
    pthread_mutex_t lock;  /* of what follows */
    struct cuda_item *first, **last;
    struct cuda_item *free_items;
    struct cuda_item *grave; /* functions that never ran, or only now */
    /* Under waiter_lock of the device. */
    struct cuda_stream *next_notified;
    struct cuda_notice *notices;
    struct cuda_notice *free_notices;
    bool served; /* a waiter is at it, or it is on the list for one */
};

/* The position that work queued now belongs to. Stream calls. */
static inline uint64_t weir__cuda_next_position(const struct cuda_stream *stream)
{
    return atomic_load_explicit(&stream->recorded, memory_order_relaxed) + 1; /* written by the same */
}

struct cuda_event {
    struct driver_event *handle;
    struct cuda_device *device;
    /* Of the newest record. */
    struct cuda_stream *stream;
    uint64_t position;
    bool writes_host; /* work before it that may write memory of the host was not seen done */
    uint64_t late;    /* number of a late copy before it that was not seen done; 0: none */
    _Atomic uint64_t asked_ns; /* when the driver said that it is pending */
};

struct cuda_module {
    struct cuda_device *device;
    struct driver_module *handle;
    pthread_mutex_t lock;
    struct cuda_kernel *kernels;
};

struct cuda_kernel {
    struct cuda_kernel *next;
    struct cuda_module *module;
    struct driver_function *function;
    int static_bytes;
    _Atomic uint32_t dynamic_bytes; /* asked for so far; grows under the module's lock */
    char name[];
};

/* ---- error.c ---- */
int weir__cuda_fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* What a call of the driver said, as a code of weir's; a sticky one loses the device. */
int weir__cuda_result(struct cuda_device *device, enum driver_result result, enum weir__driver_call call);
int weir__cuda_lost(struct cuda_device *device);
/* A device whose work cannot be waited for is lost, whatever the driver called it. Returns the code that is left. */
int weir__cuda_distrust(struct cuda_device *device, int rc);
const char *weir__cuda_last_error(void *device);
#define DRIVER(device, call, ...) weir__cuda_result(device, weir__cuda_driver->call(__VA_ARGS__), WEIR__DRIVER_##call)

static inline bool weir__cuda_is_lost(const struct cuda_device *device)
{
    /* Acquire: the text is there; pairs with the release in error.c. */
    return atomic_load_explicit(&device->lost, memory_order_acquire);
}

/* NULL if nobody has needed it yet. */
static inline struct driver_context *weir__cuda_context(const struct cuda_device *device)
{
    return atomic_load_explicit(&device->context, memory_order_acquire); /* pairs with the release in context.c */
}

/* ---- context.c ---- */

/* The device's primary context is current between enter and leave; then what was current is so again. */
struct cuda_guard {
    bool pushed;
};
/* May the driver be asked for it? 0 or a code, with a text: the process was forked, the device is lost. */
int weir__cuda_check(struct cuda_device *device);
/* Returns 0 or a code, with a text; first what weir__cuda_check() says. */
WEIR_MUST_CHECK int weir__cuda_enter(struct cuda_device *device, struct cuda_guard *guard);
/* To give something back: also where the device is lost, as far as it lets us. */
void weir__cuda_enter_anyway(struct cuda_device *device, struct cuda_guard *guard);
void weir__cuda_leave(const struct cuda_guard *guard);
bool weir__cuda_is_forked(void);
/* The same as a code, with a text. */
int weir__cuda_check_fork(void);
void weir__cuda_watch_forks(void);
/* A thread of ours: current for ever, and of no concern to captures of others. */
void weir__cuda_settle_thread(struct cuda_device *device);
int weir__cuda_device_count(void *backend, uint32_t *count_out);
int weir__cuda_device_open(void *backend, uint32_t number, const struct weir__device_notice *notice,
                           struct weir__device_info *info_out, void **device_out);
void weir__cuda_device_close(void *device);

/* ---- memory.c ---- */
int weir__cuda_alloc(void *device, size_t bytes, void **address_out);
int weir__cuda_free(void *device, void *address);
int weir__cuda_free_on_stream(void *stream, void *address);
/* Back to the list of its size. False: it is no block in use. Takes memory_lock. */
bool weir__cuda_block_put(struct cuda_device *device, void *address);
void weir__cuda_memory_close(struct cuda_device *device);

/* ---- staging.c ---- */
/* Pinned memory for @bytes ≤ STAGE_BYTES, noted in @item. False: none to be had now. */
bool weir__cuda_stage(struct cuda_stream *stream, struct cuda_item *item, size_t bytes);
WEIR_MUST_CHECK int weir__cuda_bounce(struct cuda_stream *stream);
/* With the stream's lock: @item does not use its slot any more. */
void weir__cuda_unstage_locked(struct cuda_stream *stream, struct cuda_item *item);
void weir__cuda_staging_close(struct cuda_device *device);

/* ---- item.c ---- */
struct cuda_item *weir__cuda_item_get(struct cuda_stream *stream, enum cuda_item_kind kind);
/* It belongs to the stream's next position. */
void weir__cuda_item_put(struct cuda_stream *stream, struct cuda_item *item);
/* Not used after all. */
void weir__cuda_item_drop(struct cuda_stream *stream, struct cuda_item *item);
/* Between the host's rows and pinned memory. */
void weir__cuda_rows_in(const struct cuda_rows *rows);
void weir__cuda_rows_out(const struct cuda_rows *rows);
/* The stream was seen done up to @position: do late copies, give back what was kept. */
void weir__cuda_settle(struct cuda_stream *stream, uint64_t position);
/* Late copies up to item @number, which the device has done. */
void weir__cuda_settle_late(struct cuda_stream *stream, uint64_t number);
/* Nothing of the stream runs any more, or its device is lost. */
void weir__cuda_settle_end(struct cuda_stream *stream);

/* ---- call.c: functions in stream order. The context is current. ---- */
/* Takes @item over, also on failure. */
WEIR_MUST_CHECK int weir__cuda_call(struct cuda_stream *stream, struct cuda_item *item);
/* Is the driver through with it, or sure not to begin any more? Waits for one that runs. */
void weir__cuda_call_end(struct cuda_item *item);
int weir__cuda_host_function(void *stream, int (*function)(void *arg), void *arg);
/* In the stream's order from here on, late copies of @from up to item @number are done. */
WEIR_MUST_CHECK int weir__cuda_call_settle(struct cuda_stream *stream, struct cuda_stream *from, uint64_t number);
/* The same on a stream of somebody else. Any thread. */
WEIR_MUST_CHECK int weir__cuda_call_settle_foreign(struct driver_stream *native, struct cuda_stream *from,
                                                   uint64_t number);
/* The stream's own, if there are any: later work of the stream reads what they write. */
WEIR_MUST_CHECK int weir__cuda_call_settle_own(struct cuda_stream *stream);

/* ---- writer.c: what the host may not read at the call ---- */
void weir__cuda_writes(struct cuda_stream *stream, const void *begin, size_t bytes);
void weir__cuda_writes_anything(struct cuda_stream *stream);
/* NULL and SIZE_MAX: is anything? */
bool weir__cuda_is_written(const struct cuda_stream *stream, const void *begin, size_t bytes);

/* ---- the rest, as devices/device.h says ---- */
int weir__cuda_stream_create(void *device, void *owner, int32_t priority, void **stream_out);
void weir__cuda_stream_destroy(void *stream);
void *weir__cuda_stream_native(void *stream);
void weir__cuda_stream_lend(void *stream, bool on);
int weir__cuda_stream_sync(void *stream);
void weir__cuda_streams_close(struct cuda_device *device);
/* Wait for all work, also of a device that is lost: at its end what it uses is given back. */
void weir__cuda_streams_drain(struct cuda_device *device);
int weir__cuda_event_create(void *device, void **event_out);
int weir__cuda_event_record(void *stream, void *event);
int weir__cuda_event_wait(void *stream, void *const *events, size_t n);
int weir__cuda_event_query(void *event);
int weir__cuda_event_sync(void *event);
void weir__cuda_event_destroy(void *event);
int weir__cuda_event_notify(void *event, void (*done)(void *arg, int status), void *arg);
int weir__cuda_event_signal(void *event, void *native_stream);
int weir__cuda_foreign_wait(void *stream, void *native_event);
void weir__cuda_waiters_close(struct cuda_device *device);
void weir__cuda_notices_free(struct cuda_stream *stream);
int weir__cuda_copy(void *stream, const struct weir__copy *copy);
int weir__cuda_fill(void *stream, void *to, uint8_t value, size_t bytes);
int weir__cuda_launch(void *stream, const struct weir__launch *launch);
int weir__cuda_module_load(void *device, const void *image, size_t bytes, void **module_out);
void weir__cuda_module_unload(void *module);
int weir__cuda_module_symbol(void *module, const char *name, void **address_out, size_t *bytes_out);

#endif

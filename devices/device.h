/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_DEVICES_DEVICE_H
#define WEIR_DEVICES_DEVICE_H

/*
 * The table that a backend fills. exec/ is its only caller; a backend includes this header and nothing of graph/ or
 * exec/. weir__device_ops_check() turns the promises below into a check at registration.
 *
 * Words: a *backend* is one library of devices (host, mock, cuda); a *device* is opened by number; a *stream* is an
 * in-order queue of one device; a *position* counts the records of one stream, 1, 2, 3, …; position p is *reached*
 * when everything queued before the p-th record has finished.
 *
 * Rules that hold for every slot
 *  - Returns 0 or WEIR_E_*; outputs are set on success only; on failure nothing was queued and `last_error` has a text.
 *  - "Stream calls" of one stream never overlap (exec/ holds the stream's lease); different streams are concurrent.
 *  - A slot must not block unless its comment says that it may. Work that was queued need not start before flush(),
 *    sync() or notify() of its stream or of a stream that waits for it; it must have started by itself after them.
 *  - Arrays and descriptions are read before return.
 *  - After the device has failed, queued work counts as reached, so that nobody waits for ever.
 *  - The calling thread's state (current CUDA context and the like) is the same after every call.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/error.h>

#define WEIR__DEVICE_OPS_VERSION 1u

enum weir__device_feature {
    /* A stream can wait for a position of another stream of the same device. Without it every edge between streams goes
     * through the host. */
    WEIR__DEVICE_WAIT = 1u << 0,
    /* …and of a stream of another device of the same backend. */
    WEIR__DEVICE_CROSS_WAIT = 1u << 1,
    /* sync() runs queued work of an otherwise idle stream on the calling thread: no thread is woken for it. */
    WEIR__DEVICE_INLINE_SYNC = 1u << 2,
    /* A native event can be waited for, and a native stream can be made to wait (import, export). */
    WEIR__DEVICE_FOREIGN = 1u << 3,
};

enum weir__copy_kind { WEIR__COPY_TO_DEVICE = 1, WEIR__COPY_TO_HOST, WEIR__COPY_ON_DEVICE, WEIR__COPY_PEER };

/* The way that the bytes of a copy take. */
enum weir__copy_way {
    WEIR__WAY_DIRECT = 1, /* the device moves them from where they are to where they are wanted */
    WEIR__WAY_STAGED,     /* through other memory; the host's step is done at the call or when completion is seen */
    WEIR__WAY_BOUNCED,    /* the same, with the host's steps in the order of the stream */
    WEIR__WAY_KINDS
};

/* One contiguous piece, or a block of up to three dimensions (rows of @bytes, then @count[0] rows, @count[1] planes). */
struct weir__copy {
    uint32_t    kind; /* enum weir__copy_kind; PEER: @from lies on @peer */
    void       *to;
    const void *from;
    size_t      bytes;       /* of one row; > 0 */
    size_t      count[2];    /* rows, planes; 0 reads as 1 */
    size_t      to_pitch[2]; /* bytes from row to row, plane to plane; ignored where count is 1 */
    size_t      from_pitch[2];
    void       *peer; /* device of @from (PEER only), of the same backend */
    /* NULL, or DIRECT before the call: enum weir__copy_way, written by a backend that takes another one. */
    uint32_t   *way_out;
};

/* A kernel launch; one to one a kernel node of a device graph. */
struct weir__launch {
    void           *kernel; /* of module_symbol() */
    uint32_t        grid[3], block[3]; /* 0 reads as 1; the host backend ignores them */
    uint32_t        shared_bytes;
    uint32_t        nargs;
    const uint64_t *args; /* args[nargs], each a pointer or a scalar of up to 8 bytes */
};

/* A handle of a foreign runtime for a device: a number, a pointer, or one of weir's own. */
enum weir__native_kind {
    WEIR__NATIVE_NONE, /* that runtime has no such thing */
    WEIR__NATIVE_INT,
    WEIR__NATIVE_POINTER,
    WEIR__NATIVE_DEVICE,  /* the struct weir_device of this device */
    WEIR__NATIVE_CONTEXT, /* the struct weir_context that it belongs to */
};
struct weir__native_value {
    uint32_t    kind; /* enum weir__native_kind */
    const char *type; /* in C; NULL for NONE */
    intptr_t    value; /* INT and POINTER; 0 is a value as good as any other */
};

/* What others who speak that runtime's language need to work on the device. */
struct weir__native {
    int32_t     runtime; /* id of OpenMP's Additional Definitions document, or an own one far above them */
    const char *name;
    struct weir__native_value platform, device, context;
    const char *stream_type; /* of stream_native(), in C */
};

struct weir__device_info {
    char     name[64];          /* "host:0" */
    char     text[128];         /* what `weir info` prints behind the name */
    uint32_t features;          /* of this device, may be fewer than the backend's */
    uint32_t advised_streams;   /* how many streams exec/ should open at most on its own; > 0 */
    uint64_t memory_bytes;      /* 0: unknown */
    /* What weir__launch.grid and .block can be; all 0: they are ignored. */
    uint32_t team_threads;      /* most threads of a block */
    uint32_t team_step;         /* threads that run in step: blocks are best multiples of it */
    uint32_t processors;        /* that blocks run on */
    uint32_t teams;             /* most blocks of a launch */
    /* Counts failed stretches of the device; grows (release) before the position of the failed stretch is published as
     * completed. Borrowed until device_close. NULL: unknown, exec/ asks status() for every position. */
    const _Atomic uint64_t *failures;
    /* natives[nnatives]: the foreign runtimes whose handles can be had, the preferred one first. Borrowed until
     * device_close. None: the device is nothing to interoperate with. */
    const struct weir__native *natives;
    uint32_t nnatives;
};

/* Given to device_open(): how a backend tells exec/ that a stream has reached a position. */
struct weir__device_notice {
    /* Called on a thread of the backend, without locks of the backend held, once for each notify(); @reached is the
     * stream's position now (≥ the asked one). @owner is what stream_create() got. Does not block and may queue work
     * on other streams. After the device has failed it is called too, so that nobody waits for ever. */
    void (*reached)(void *owner, uint64_t reached);
    /* Times of work, for pictures: wanted while *timing is not 0, which a backend may look at when it likes (NULL: never).
     * ran() tells that the stretch which ends with the record of @position was worked at from @begin to @end, as the
     * device's own clock says, put on the time line of now(): a CPU device reads now() where the work is done; others
     * convert. @begin 0: not known, but not before the stretch before it had ended and its waits were over. Called before
     * the position is published as completed, on any thread, with or without locks; does not block and calls nobody. A
     * backend without such a clock leaves it: exec/ then takes the time at which it gets to know. */
    const _Atomic uint32_t *timing;
    uint64_t (*now)(void);
    void (*ran)(void *owner, uint64_t position, uint64_t begin, uint64_t end);
};

struct weir__device_ops {
    size_t      size;    /* sizeof(struct weir__device_ops) */
    uint32_t    version; /* WEIR__DEVICE_OPS_VERSION */
    const char *name;    /* "host" */

    /* ---- device: mandatory, any thread, may block ---- */
    int (*device_count)(void *backend, uint32_t *count_out);
    int (*device_open)(void *backend, uint32_t number, const struct weir__device_notice *notice,
                       struct weir__device_info *info_out, void **device_out);
    /* Every stream is destroyed before. Blocks until the device's threads are gone. */
    void (*device_close)(void *device);
    /* The calling thread's newest failure on this device: static or thread-local text, never NULL. Never blocks. */
    const char *(*last_error)(void *device);

    /* ---- memory: mandatory, any thread, may block ---- */
    int (*alloc)(void *device, size_t bytes, void **address_out);
    int (*free)(void *device, void *address);
    /* Optional (NULL: exec/ frees at completion). Stream call. Free when the stream gets there. */
    int (*free_on_stream)(void *stream, void *address);

    /* ---- streams ---- */
    /* Mandatory, any thread. @owner comes back in notice->reached(). @priority: larger first, a hint. */
    int (*stream_create)(void *device, void *owner, int32_t priority, void **stream_out);
    /* Mandatory. Every position is reached or the device failed; work behind the last record may be queued and is waited
     * for. May block. */
    void (*stream_destroy)(void *stream);
    /* Mandatory. Stream call. The handle that users enqueue on (CUstream); asked for each time a user gets it. Never NULL. */
    void *(*stream_native)(void *stream);
    /* Optional (NULL: work starts by itself). Stream call. Queued work may start now. */
    void (*flush)(void *stream);
    /* Optional (NULL: flush). Stream call. The same, but runs what is queued in here if it is shorter than handing it to
     * another thread, as far as the backend has measured, and nothing has to be waited for. BLOCKS for that long. Returns
     * true if the newest record is reached. */
    bool (*flush_here)(void *stream);

    /* ---- positions: a backend has all of these, or the event group below and weir__device_adapt() supplies them.
     * exec/ calls positions only. ---- */
    /* Stream call. Ends a stretch of work: the stream's next position. Cannot fail for want of memory after a
     * successful reserve(). */
    int (*record)(void *stream, uint64_t *position_out);
    /* Optional. Stream call. Make sure that one record and its flush cannot fail for want of memory. */
    int (*reserve)(void *stream);
    /* Stream call on @stream. Its later work waits for streams[i] to reach positions[i]; each has been recorded.
     * The streams are of the same device or, with CROSS_WAIT, of the same backend. NULL without WAIT. */
    int (*position_wait)(void *stream, void *const *streams, const uint64_t *positions, size_t n);
    /* Any thread. Newest position known to be reached: the backend may get to know of one later than of another, on another
     * stream, that is behind it. *status_out (may be NULL): 0, or the device's sticky failure. */
    uint64_t (*completed)(void *stream, int *status_out);
    /* Optional. Where the backend counts: a load (acquire) of the counter less *base_out is what completed() returns,
     * without a call. Both stay as they are while the stream lives. */
    const _Atomic uint64_t *(*counter)(void *stream, uint64_t *base_out);
    /* Any thread. Status of the stretch between the records position - 1 and position (reached): 0, or the failure of
     * a function queued there. Kept until forget() is called with the same or a newer position. */
    int (*status)(void *stream, uint64_t position);
    void (*forget)(void *stream, uint64_t position);
    /* Any thread. notice->reached(owner, …) once the position is reached; possibly before notify returns. Several may
     * be pending; one call of reached() may answer all that its position covers. Fails if nobody would keep the promise
     * (no memory, no thread): the work must then be run by sync(). */
    int (*notify)(void *stream, uint64_t position);
    /* Any thread, BLOCKS the caller until the position is reached; overlaps with stream calls. 0, or the device's
     * sticky failure. */
    int (*sync)(void *stream, uint64_t position);

    /* ---- events: for backends without positions. (Review D108528: create returns a status, record and wait take the
     * queue, sync and destroy do not, wait takes a list, destroy never blocks and is legal while pending.) A device
     * without events leaves all but stream_sync NULL and has no WAIT feature. ---- */
    int (*event_create)(void *device, void **event_out);            /* without timing; any thread */
    int (*event_record)(void *stream, void *event);                 /* stream call; not while a former record is pending */
    /* Stream call; each has been recorded. The wait is for the newest record at the time of the call. */
    int (*event_wait)(void *stream, void *const *events, size_t n);
    /* Any thread. 0 done; WEIR_E_PENDING; WEIR_E_DEVICE: the device is lost (sticky); another failure: done, but work
     * between the stream's record before and this one failed. event_sync() and done() below say the same. Where events tell
     * of no failure but the device's, what was pending may be called so for a moment longer. */
    int (*event_query)(void *event);
    int (*event_sync)(void *event);                                 /* BLOCKS; any thread */
    void (*event_destroy)(void *event);                             /* any thread */
    /* Optional (NULL: the adapter's waiter thread uses event_sync). done(arg, status) once, when the event is done;
     * possibly before this returns; same rules as notice->reached(). Any thread. */
    int (*event_notify)(void *event, void (*done)(void *arg, int status), void *arg);
    /* FOREIGN only. Call on @native_stream: it waits for the event, which has been recorded. */
    int (*event_signal)(void *event, void *native_stream);
    /* BLOCKS until all work queued so far is done; any thread. 0; WEIR_E_DEVICE: the device is lost (sticky); without
     * events also the first failure of queued work since the last call. */
    int (*stream_sync)(void *stream);

    /* ---- FOREIGN ---- */
    int (*foreign_wait)(void *stream, void *native_event);              /* stream call: @stream waits */
    /* @native_stream waits for @stream. Backends with events have event_signal instead. */
    int (*foreign_signal)(void *stream, uint64_t position, void *native_stream);
    /* Optional (NULL: it is always so). Stream call. From here on, until it is called again with false, somebody queues on the
     * native stream who knows of no flush: what he queues starts by itself. */
    void (*lend)(void *stream, bool on);

    /* ---- gates: optional, all or none, and with host_function. A place where a stream stays until somebody says so; it
     * holds no thread and no other stream meanwhile. NULL: the host waits instead. ---- */
    int (*gate_create)(void *device, void **gate_out); /* closed; any thread */
    int (*gate_wait)(void *stream, void *gate);        /* stream call; before it is opened */
    /* Once; what waits goes on, and the gate is gone. Any thread, also from a host function. Never fails. */
    void (*gate_open)(void *gate);

    /* ---- work: mandatory unless said, stream calls ---- */
    int (*copy)(void *stream, const struct weir__copy *copy);
    int (*fill)(void *stream, void *to, uint8_t value, size_t bytes);
    int (*launch)(void *stream, const struct weir__launch *launch);
    /* Optional (NULL: WEIR_E_UNSUPPORTED). A function of the host in stream order; non-zero: that stretch failed. */
    int (*host_function)(void *stream, int (*function)(void *arg), void *arg);

    /* ---- modules: mandatory, any thread, may block ---- */
    int (*module_load)(void *device, const void *image, size_t bytes, void **module_out); /* image is copied */
    void (*module_unload)(void *module);
    /* A kernel (for launch) or a variable's device address. WEIR_E_NOT_FOUND. @bytes_out may be NULL; 0 if unknown. */
    int (*module_symbol)(void *module, const char *name, void **address_out, size_t *bytes_out);
};

/*
 * Check a table once, at registration.
 * @missing_out  on failure the name of the first slot that is wrong (static text); may be NULL.
 * Returns  WEIR_OK; WEIR_E_VERSION (size or version); WEIR_E_INVALID (a mandatory slot is NULL, or a group is present
 *          in part: a partial backend is never called through NULL).
 */
WEIR_MUST_CHECK int weir__device_ops_check(const struct weir__device_ops *ops, const char **missing_out);

/*
 * Make a table that has positions out of one that has events (devices/events.c): pooled events, re-recorded only after
 * completion and the last waiter, created in batches; a waiter thread only if the backend has no event_notify. A table
 * that has positions comes back unchanged (*adapted_out = ops, *adapted_backend_out = backend).
 * weir__device_unadapt() frees what adapt made; any table is allowed.
 */
WEIR_MUST_CHECK int weir__device_adapt(const struct weir__device_ops *ops, void *backend,
                                       const struct weir__device_ops **adapted_out, void **adapted_backend_out);
void weir__device_unadapt(const struct weir__device_ops *adapted, void *adapted_backend);

/* What is to be set of CPU devices; the variables WEIR_HOST_SHORT_NS, _DELAY_US and _DELAY_SEED. */
struct weir__host_options {
    uint32_t short_ns;   /* kernels that take less run where they are queued; 0: none */
    uint32_t delay_us;   /* longest random delay before a piece of work */
    uint64_t delay_seed; /* of those delays */
};
#define WEIR__HOST_SHORT_NS 1000 /* where nothing is set */

/* The embedded CPU backend (devices/host). @devices: how many it shows; @options is copied. WEIR_E_INVALID: no devices;
 * WEIR_E_NO_MEMORY. */
extern const struct weir__device_ops weir__host_ops;
WEIR_MUST_CHECK int weir__host_backend_create(uint32_t devices, const struct weir__host_options *options,
                                              void **backend_out);
void weir__host_backend_destroy(void *backend);

/*
 * The devices of NVIDIA's driver (devices/cuda), none of them opened. The driver is loaded and initialised once in a
 * process, and kept.
 * @reason_out  on WEIR_E_NO_DEVICE and WEIR_E_FORKED why there is none: static text.
 * Returns  WEIR_OK (one device at least); WEIR_E_NO_DEVICE; WEIR_E_NO_MEMORY; WEIR_E_FORKED. Any thread. BLOCKS while the
 *          driver initialises itself.
 */
extern const struct weir__device_ops weir__cuda_ops;
WEIR_MUST_CHECK int weir__cuda_backend_create(void **backend_out, const char **reason_out);
void weir__cuda_backend_destroy(void *backend);

/*
 * The devices of a plugin of LLVM's (devices/plugin): a library with the functions `__tgt_rtl_*` of LLVM 14 to 16. It is
 * opened and initialised once in a process, and kept; what it gives needs not be given back.
 * @reason  @size bytes; on failure why it cannot be used, such as the name of the first function that is missing.
 * Returns  WEIR_OK (one device at least); WEIR_E_NO_DEVICE. Any thread. BLOCKS while the plugin initialises itself.
 */
extern const struct weir__device_ops weir__plugin_ops;
WEIR_MUST_CHECK int weir__plugin_backend_open(const char *file, void **backend_out, char *reason, size_t size);

#endif

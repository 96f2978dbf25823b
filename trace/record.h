/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_TRACE_RECORD_H
#define WEIR_TRACE_RECORD_H

/*
 * Recording: what happens is written down as short records of 8-byte words, each thread into a *slot* of its own, and
 * full slots are appended to a file as *blocks*. The slots are mapped from the same file: it can be read by another
 * process when this one is gone, however it ended. trace/read.c makes sense of it; nothing here knows what a task is.
 * (Memory that is written once is dear, a page fault for each page; a slot stays in the cache, and the kernel copies a
 * block for less.)
 *
 * Argument. A slot has one writer, the thread that has taken it. It writes a record behind .used and then raises .used
 * (R1 release); a reader loads .used (A1 acquire) and looks at nothing behind it. The writer empties its slot only
 * under the slot's lock, after the block is in the file, and then counts .sequence up; a reader of this process has all
 * locks meanwhile. Slots stay mapped until the process ends, so that a thread that is late with a record, behind a
 * stop, writes where only it writes. A thread that ends leaves its slot to the next one that needs one. A reader of
 * another process takes a block for nothing whose slot still has its number: it may be there in part.
 *
 * When there is no room for more blocks, records are dropped and counted.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include <weir/error.h>

#define WEIR__ARENA_MAGIC   0x3165636172746577u /* "wetrace1" */
#define WEIR__ARENA_VERSION 3
#define WEIR__ARENA_BYTES   4096u
#define WEIR__SLOT_BYTES    (64u << 10)
#define WEIR__SLOT_WORDS    (WEIR__SLOT_BYTES / 8 - 4)
#define WEIR__SLOTS         1024u
#define WEIR__RECORD_WORDS  255u  /* of one record at most */
#define WEIR__RECORD_STRING 1000u /* longer texts are cut */

/* Word 0 of a record: kind, number of words, .a and .b. What the other words are stands behind each kind. */
enum weir__record_kind {
    WEIR__RECORD_THREAD = 1,  /* b: system's number; [16 bytes of name] */
    WEIR__RECORD_STRING_TEXT, /* a: bytes; b: number; the text */
    WEIR__RECORD_STREAM, /* a: context; b: stream; [device | domain << 32] [name of the device] [position before its
                            first task since the recording began or went on] */
    WEIR__RECORD_SCOPE,  /* a: context; b: scope; [1: by ranges] */
    /* a: kind | enum weir__record_task | device << 8; b: scope; [id] [ticks]
     * if it has a name: [name, file] [line], else [function]; if it has a token: [token]; then two words an access, to
     * the record's end: address (AFTER: id of the predecessor), bytes << 4 | enum weir_access_kind */
    WEIR__RECORD_TASK,
    WEIR__RECORD_ACCESSES, /* of the task recorded before on this thread: more of them */
    WEIR__RECORD_FORGET, /* b: scope; [ticks]: failures are told, later tasks have no predecessors among earlier ones */
    /* a: context; b: stream | WEIR__RECORD_EARLY; [id] [begin], then two words for each predecessor's point that had not
     * been reached: the point, enum weir__record_how << 60 | point of the wait that implies it; more of them: another
     * one */
    WEIR__RECORD_OPEN,
    WEIR__RECORD_ISSUED,  /* a: context; [id] [ticks] [point] */
    WEIR__RECORD_HERE,    /* a: context; [point]: the thread that issued the task has run it */
    WEIR__RECORD_RUN,     /* b: ticks it took; [id] [begin] [end, if it took more than 32 bits of ticks] */
    WEIR__RECORD_STRETCH, /* a: context; b: stream; [position] [begin, 0: not known] [end] */
    WEIR__RECORD_DONE,    /* b: status; [id] [ticks] [id of the origin] */
    WEIR__RECORD_WAIT,    /* a: enum weir__record_wait; b: scope, 0: none; [id of a task, or 0] [begin] [end] [place, 0]
                             [address in the program] */
    WEIR__RECORD_FALLBACK, /* a: enum weir__record_fallback; [id of a task, or 0] [ticks] [place, 0] */
    WEIR__RECORD_COPY,     /* a: enum weir__copy_kind, 0: fill; b: enum weir__record_way, 0: fill; [id] [ticks] [bytes] */
    WEIR__RECORD_LABEL,    /* a: 1: of an interop construct; [id] [name, place] */
    WEIR__RECORD_MEMORY,   /* [address] [bytes] [name, 0] */
    WEIR__RECORD_KINDS
};

enum weir__record_task {
    WEIR__RECORD_TASK_KIND = 0x0f,  /* enum weir__trace_kind */
    WEIR__RECORD_TASK_PEEK = 0x10,  /* not entered: nothing depends on it */
    WEIR__RECORD_TASK_NAME = 0x40,  /* it has a name */
    WEIR__RECORD_TASK_TOKEN = 0x80, /* it has a token */
};

enum weir__trace_kind {
    WEIR__TRACE_HOST = 1,
    WEIR__TRACE_EXTERNAL,
    WEIR__TRACE_EMPTY,
    WEIR__TRACE_DEVICE,
    WEIR__TRACE_BEGIN,
    WEIR__TRACE_FENCE,
    WEIR__TRACE_IMPORT,
    WEIR__TRACE_FOREIGN,
};

#define WEIR__RECORD_EARLY      0x80000000u
#define WEIR__RECORD_POINT_BITS 44 /* of a point: the position; the stream is above */

/* How an edge was realised. */
enum weir__record_how {
    WEIR__HOW_DONE = 1, /* the predecessor was complete: never needed */
    WEIR__HOW_STREAM,   /* same stream */
    WEIR__HOW_KNOWN,    /* the stream was behind it already */
    WEIR__HOW_IMPLIED,  /* by another wait of the same task */
    WEIR__HOW_EVENT,    /* a wait on the device */
    WEIR__HOW_HOST,     /* the host waited: one side is no device task */
    WEIR__HOW_DOMAIN,   /* the host waited: two devices that cannot wait for each other */
    WEIR__HOW_FOREIGN,  /* left to the other runtime: both sides are its tasks */
    WEIR__HOW_OPEN,     /* not realised yet */
    WEIR__HOW_KINDS
};

enum weir__record_wait {
    WEIR__WAIT_SCOPE = 1,
    WEIR__WAIT_TASK,
    WEIR__WAIT_BEGIN,
    WEIR__WAIT_WINDOW,
    WEIR__WAIT_POINT,
    WEIR__WAIT_CONSTRUCT,
    WEIR__WAIT_TASKWAIT,
    WEIR__WAIT_GROUP,
    WEIR__WAIT_BARRIER,
    WEIR__WAIT_DEPEND,
    WEIR__WAIT_ENDING,
    WEIR__WAIT_KINDS
};

/* As enum weir__copy_way of the devices. */
enum weir__record_way { WEIR__RECORD_DIRECT = 1, WEIR__RECORD_STAGED, WEIR__RECORD_BOUNCED, WEIR__RECORD_WAYS };

enum weir__record_fallback {
    WEIR__FALLBACK_FIRST = 1,
    WEIR__FALLBACK_HOST_CODE,
    WEIR__FALLBACK_MAPPER,
    WEIR__FALLBACK_FINAL,
    WEIR__FALLBACK_REDUCTION,
    WEIR__FALLBACK_REFUSED,
    WEIR__FALLBACK_NO_IMAGE,
    WEIR__FALLBACK_WINDOW,
    WEIR__FALLBACK_NO_NOTICE,
    WEIR__FALLBACK_LIBOMP,
    WEIR__FALLBACK_NOT_HELD,
    WEIR__FALLBACK_KINDS
};

/* A reading of the clock, and the same moment in CLOCK_MONOTONIC. */
struct weir__moment {
    uint64_t ticks, ns;
};

/* The first page of the file; WEIR__SLOTS slots and then the blocks follow. All numbers are of this machine. */
struct weir__arena {
    uint64_t magic;
    uint32_t version; /* WEIR__ARENA_VERSION */
    uint32_t pid;
    uint64_t nblocks;         /* room */
    _Atomic uint64_t taken;   /* blocks */
    _Atomic uint64_t dropped; /* records */
    struct weir__moment begin;
    struct weir__moment newest; /* of whoever wrote a block last */
    _Atomic uint64_t cpu_ns;    /* of weir's own threads, as far as it is known */
    _Atomic uint64_t peak_kb;   /* resident memory at most, 0: not known */
    uint64_t counter;           /* 1: ticks are the processor's */
    char program[256];
};

/* In the map, and as a block. */
struct weir__slot {
    _Atomic uint64_t used;     /* words */
    uint64_t number;           /* of the slot, from 1; 0: never used */
    _Atomic uint64_t sequence; /* blocks written before */
    _Atomic uint64_t running;  /* id of the task whose function its thread is in, 0: none */
    uint64_t words[WEIR__SLOT_WORDS];
};

_Static_assert(sizeof(struct weir__arena) <= WEIR__ARENA_BYTES, "the first page");
_Static_assert(sizeof(struct weir__slot) == WEIR__SLOT_BYTES, "a slot");

/* What a thread needs to write. */
struct weir__writer {
    uint64_t *at, *end;
    struct weir__slot *slot;
    uint64_t began; /* when the issue of a task was begun, 0: none is */
    uint64_t token; /* tasks made meanwhile are parts of what has it */
    struct weir__writer *next, *next_unused;
    void *signal_stack; /* for handlers, NULL: its threads have their own */
    pthread_mutex_t lock; /* the slot is emptied, or read by another thread */
    struct weir__text {
        const char *key;
        const char *text; /* a copy */
        uint32_t number;
    } texts[256];
};

/* 0: recording is off; else how many times it was begun or went on. Hidden, as all that is internal; said here so that
 * the load needs no table. */
extern _Atomic uint32_t weir__record_on __attribute__((visibility("hidden")));
extern _Thread_local struct weir__writer *weir__record_writer __attribute__((tls_model("initial-exec")));

static inline uint32_t weir__record_round(void)
{
    /* Acquire: pairs with the release in weir__record_start(): which clock it is. */
    return atomic_load_explicit(&weir__record_on, memory_order_acquire);
}

static inline bool weir__record_is_on(void)
{
    return __builtin_expect(weir__record_round() != 0, 0);
}

/* The time line's clock: the processor's counter where it is one clock for all cores, else CLOCK_MONOTONIC. */
extern bool weir__record_counter __attribute__((visibility("hidden")));

static inline uint64_t weir__record_now(void)
{
#if defined(__x86_64__)
    if (weir__record_counter) return __rdtsc();
#endif
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Room for a record of so many words; NULL: dropped and counted. The calling thread's. */
uint64_t *weir__record_room(unsigned words);

static inline uint64_t *weir__record_claim(unsigned words)
{
    struct weir__writer *writer = weir__record_writer;
    if (__builtin_expect(writer && (size_t)(writer->end - writer->at) >= words, 1)) return writer->at;
    return weir__record_room(words);
}

static inline void weir__record_head(uint64_t *at, enum weir__record_kind kind, unsigned words, unsigned a, uint32_t b)
{
    at[0] = kind | words << 8 | a << 16 | (uint64_t)b << 32;
}

static inline void weir__record_commit(unsigned words)
{
    struct weir__writer *writer = weir__record_writer;
    writer->at += words;
    /* R1: pairs with A1 in read.c. */
    atomic_store_explicit(&writer->slot->used, (uint64_t)(writer->at - writer->slot->words), memory_order_release);
}

/* Tasks that the calling thread makes are parts of what has the token, until it is set to 0. Returns the one before. */
uint64_t weir__record_set_token(uint64_t token);
/* A token that was not used before. */
uint64_t weir__record_new_token(void);
/* Number of a text, 0 for NULL and where there is no room. Equal texts may get several. The calling thread's. */
uint32_t weir__record_text(const char *text);
/* The calling thread runs that task from now on (0: none), for those who look at the recording meanwhile. Returns the
 * one before. */
static inline uint64_t weir__record_running(uint64_t id)
{
    if (!weir__record_writer) return 0;
    _Atomic uint64_t *running = &weir__record_writer->slot->running;
    uint64_t before = atomic_load_explicit(running, memory_order_relaxed); /* own; readers take what they see */
    atomic_store_explicit(running, id, memory_order_relaxed);
    return before;
}

/* Begin, with records in memory of at most @limit bytes (0: the usual), in @file if it is not NULL. Nothing if it is
 * on. If there was a recording before, its file stays, and either it goes on (@resume) with its limit, or what happened
 * before is forgotten. WEIR_E_NO_MEMORY, WEIR_E_SYSTEM, WEIR_E_BUSY (the file is another process's) with a text. Any
 * thread. */
WEIR_MUST_CHECK int weir__record_start(size_t limit, const char *file, bool resume);
/* Any thread. Records of those who are in the middle of one may follow. */
void weir__record_stop(void);
/* From now on a thread that begins to record gets a stack for handlers of signals, unless it has one: its own may be what
 * has overflowed. */
void weir__record_signal_stacks(void);
/* The file and the first page of the records so far; NULL: none. */
const struct weir__arena *weir__record_arena(int *fd_out);
/* In between no recording is begun: what is in the blocks stays. */
void weir__record_read_begin(void);
void weir__record_read_end(void);
/* In between nobody empties a slot: what .used says stays. Short. */
void weir__record_hold(void);
void weir__record_let_go(void);
/* Note what the system knows of the process, for the report. */
void weir__record_resources(void);
struct weir__moment weir__record_moment(void);
/* The calling thread is weir's own and ends: count its processor time. */
void weir__record_thread_ends(void);

#endif

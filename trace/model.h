/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_TRACE_MODEL_H
#define WEIR_TRACE_MODEL_H

/*
 * What the records say, put together: tasks with their times, the edges between them, lanes, waits. Made by one thread
 * for itself from a recording that may still go on or whose process is gone; nobody else sees it. All times are
 * nanoseconds since the recording began; NEVER is "has not happened".
 */

#include <stdio.h>

#include <trace/record.h>

#define WEIR__NEVER UINT64_MAX
#define WEIR__NONE  UINT32_MAX

enum weir__edge_kind {
    WEIR__EDGE_RAW = 1, /* the predecessor writes, the task reads */
    WEIR__EDGE_WAR,
    WEIR__EDGE_WAW,
    WEIR__EDGE_AFTER, /* named by the program */
    WEIR__EDGE_ALL,   /* one side is omp_all_memory */
    WEIR__EDGE_TURN,  /* both are mutexinoutset: in either order, one after the other */
};

enum weir__node_status {
    WEIR__NODE_WAITING = 1, /* for its predecessors */
    WEIR__NODE_ISSUED,
    WEIR__NODE_RUNNING,
    WEIR__NODE_COMPLETE,
    WEIR__NODE_FAILED,
    WEIR__NODE_CANCELLED,
};

struct weir__trace_edge {
    uint32_t from, to; /* index of tasks */
    uint8_t kind;      /* enum weir__edge_kind */
    uint8_t how;       /* enum weir__record_how */
    bool critical;
    uint32_t more; /* further addresses that say the same */
    uint32_t by;   /* the task whose wait covers it, NONE: its own, or none */
    uint64_t address;
};

struct weir__trace_task {
    uint64_t id, function, token; /* function: of tasks without a name */
    uint32_t scope;               /* index */
    uint8_t kind;                 /* enum weir__trace_kind */
    uint8_t status;               /* enum weir__node_status */
    uint8_t device;
    bool peek, inner; /* inner: no node of its own in a picture */
    bool early;       /* issued in the call that made it; else when what it was behind had come so far */
    bool here;        /* run by the thread that issued it */
    bool interop;     /* of an interop construct with nowait */
    bool critical, estimated;
    int32_t code;    /* of a failure */
    uint32_t root;   /* index of the task whose failure it is, or NONE */
    uint32_t whole;  /* it is part of this task, NONE: of none */
    uint32_t stream; /* index, NONE */
    uint32_t opener; /* index of the thread that issued it */
    uint32_t ran_on; /* index of a thread, NONE */
    uint32_t phase, line;
    const char *name, *file;
    uint64_t made, open, issued, begin, end, done;
    uint64_t point; /* 0: not issued */
    uint64_t copied;
    uint32_t ncopies;
    uint32_t first_access, naccesses;
    uint32_t first_point, npoints; /* by point, when the edges are known */
    uint32_t first_edge, nedges;   /* of those that lead to it */
    uint32_t before;               /* on the critical path, NONE */
};

struct weir__trace_access {
    uint64_t address, bytes;
    uint32_t kind; /* enum weir_access_kind */
};

/* A task of a mutexinoutset group. */
struct weir__trace_member {
    uint32_t group, task;
    uint64_t address;
};

struct weir__trace_point {
    uint64_t point, by; /* by: of the wait */
    uint32_t task;      /* that was opened */
    uint8_t how;
};

struct weir__trace_run {
    uint32_t task, thread;
    uint64_t begin, end;
};

struct weir__trace_stretch {
    uint32_t stream;
    uint64_t position, begin, end;
};

struct weir__trace_scope {
    uint32_t number;
    uint16_t context;
    bool ranges;
};

struct weir__trace_stream {
    uint32_t number;
    uint16_t context;
    uint8_t device, domain;
    const char *device_name;
};

/* What a stream had done up to there was not recorded. */
struct weir__trace_mark {
    uint32_t stream; /* index */
    uint64_t position;
};

struct weir__trace_thread {
    uint32_t number;
    char name[17];
};

struct weir__trace_wait {
    uint8_t why;                  /* enum weir__record_wait */
    uint32_t scope, task, thread; /* index or NONE */
    uint64_t begin, end, caller;
    const char *place;
};

struct weir__trace_fallback {
    uint8_t why;
    uint32_t task, thread;
    uint64_t at;
    const char *place;
};

struct weir__trace_copy {
    uint32_t task;
    uint8_t kind;
    uint8_t way; /* enum weir__record_way, 0: none or unknown */
    uint64_t at, bytes;
};

struct weir__trace_memory {
    uint64_t address, bytes;
    size_t order; /* in which it was named */
    const char *name;
};

struct weir__trace_forget {
    uint32_t scope; /* number */
    uint64_t at;
};

struct weir__trace_text {
    uint32_t number;
    char *text;
};

/* An array that grows. */
#define WEIR__LIST(type, name)                                                                                         \
    struct type *name;                                                                                                 \
    size_t n##name, room_##name

struct weir__trace {
    uint64_t begin_ns; /* CLOCK_MONOTONIC */
    uint64_t end;      /* of the newest thing that happened */
    uint64_t dropped, limit_bytes, cpu_ns, peak_kb;
    bool full; /* the limit was reached */
    uint32_t pid;
    char program[256];
    WEIR__LIST(weir__trace_task, tasks); /* in the order in which they were made */
    WEIR__LIST(weir__trace_edge, edges); /* by .to */
    WEIR__LIST(weir__trace_edge, turns); /* of mutexinoutset neighbours, as they ran; may lead to an earlier task */
    WEIR__LIST(weir__trace_member, members);
    WEIR__LIST(weir__trace_access, accesses);
    WEIR__LIST(weir__trace_point, points);
    WEIR__LIST(weir__trace_run, runs);
    WEIR__LIST(weir__trace_stretch, stretches);
    WEIR__LIST(weir__trace_scope, scopes);
    WEIR__LIST(weir__trace_stream, streams);
    WEIR__LIST(weir__trace_mark, marks);
    WEIR__LIST(weir__trace_thread, threads);
    WEIR__LIST(weir__trace_wait, waits);
    WEIR__LIST(weir__trace_fallback, fallbacks);
    WEIR__LIST(weir__trace_copy, copies);
    WEIR__LIST(weir__trace_memory, memory);
    WEIR__LIST(weir__trace_forget, forgets);
    WEIR__LIST(weir__trace_text, texts);
    struct weir__index *index; /* read.c: ids and points */
    /* The critical path. */
    uint32_t last; /* task, NONE */
    uint64_t path_ns, path_ran_ns;
    size_t path_tasks;
};

/* Room for one more of a list: a pointer to it, zero, or NULL without memory. */
#define WEIR__MORE(trace, list)                                                                                        \
    ((__typeof__((trace)->list))weir__list_more((void **)&(trace)->list, &(trace)->n##list, &(trace)->room_##list,     \
                                                sizeof *(trace)->list))
void *weir__list_more(void **list, size_t *n, size_t *room, size_t size);

/* The recording of this process (@file NULL) or of a file. *trace_out is to be freed. WEIR_E_NOT_FOUND: nothing was
 * recorded; WEIR_E_INVALID: no recording; WEIR_E_NO_MEMORY; WEIR_E_SYSTEM; each with a text. */
WEIR_MUST_CHECK int weir__trace_read(const char *file, struct weir__trace **trace_out);
void weir__trace_free(struct weir__trace *trace);

/* ---- steps of weir__trace_read() ---- */

/* records.c: records into lists; not sorted, nothing is joined. */
struct weir__records;
WEIR_MUST_CHECK int weir__trace_collect(struct weir__trace *trace, const struct weir__records *records);
/* edges.c: dependences, from the accesses, by the rules of OpenMP; and how each was realised. */
WEIR_MUST_CHECK int weir__trace_find_edges(struct weir__trace *trace);
/* how.c: of each edge. */
WEIR_MUST_CHECK int weir__trace_find_how(struct weir__trace *trace);
/* Of one, which goes through no fence. */
void weir__trace_decide(const struct weir__trace *trace, struct weir__trace_edge *edge);
/* turns.c: when all times are known. */
WEIR_MUST_CHECK int weir__trace_find_turns(struct weir__trace *trace);
/* times.c, path.c: when each task ran, phases; the critical path. */
void weir__trace_find_times(struct weir__trace *trace);
void weir__trace_find_path(struct weir__trace *trace);

/* ---- looking up ---- */

/* Index of the task with that id, or of the one issued at a point of a context; NONE. */
uint32_t weir__trace_task_by_id(const struct weir__trace *trace, uint64_t id);
uint32_t weir__trace_task_by_point(const struct weir__trace *trace, uint16_t context, uint64_t point);
/* The node that stands for a task: itself, or what it is a part of. */
static inline uint32_t weir__trace_node(const struct weir__trace *trace, uint32_t task)
{
    return task != WEIR__NONE && trace->tasks[task].whole != WEIR__NONE ? trace->tasks[task].whole : task;
}
/* Is it a node of a picture? */
static inline bool weir__trace_is_node(const struct weir__trace_task *task)
{
    return !task->inner && task->whole == WEIR__NONE;
}

/* ---- words ---- */

const char *weir__edge_kind_name(unsigned kind); /* "read after write" */
const char *weir__how_name(unsigned how);        /* "event on the device" */
const char *weir__wait_name(unsigned why);
const char *weir__fallback_name(unsigned why);
const char *weir__node_status_name(unsigned status);
const char *weir__node_kind_name(unsigned kind);
/* "potrf", or "task 12"; "function:line" of a compiler's kernel; never longer than @bytes. Returns @text. */
const char *weir__task_name(const struct weir__trace_task *task, char *text, size_t bytes);
/* "file:line", "" if it is not known; from file and line, or from a compiler's ";file;function;line;column;;". */
const char *weir__place_name(const char *file, uint32_t line, char *text, size_t bytes);
/* The variable of an edge, as the compiler or the program named it, else the address. */
const char *weir__address_name(const struct weir__trace *trace, uint64_t address, char *text, size_t bytes);
/* Why the edge was realised as it was, in a sentence. */
const char *weir__edge_story(const struct weir__trace *trace, const struct weir__trace_edge *edge, char *text,
                             size_t bytes);
/* Where somebody waited: a place in the source, the task waited for, or the caller's function. "": not known. */
const char *weir__wait_place(const struct weir__trace *trace, const struct weir__trace_wait *wait, char *text,
                             size_t bytes);
/* What is missing if records were dropped, and how to get it; "": nothing is. */
const char *weir__trace_cut(const struct weir__trace *trace, char *text, size_t bytes);
/* "1.234 ms" */
const char *weir__time_name(uint64_t ns, char *text, size_t bytes);

#endif

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_INTEROP_DATA_H
#define WEIR_INTEROP_DATA_H

/*
 * The rules of map clauses: what a target construct does with data before and after its kernel. All work is queued on
 * the construct's open task; nothing here waits for the device. The only wait is for another thread that is just
 * queueing the first transfer of the same data.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/task.h>

struct weir__table;
struct weir__mapped;

/* The bits of an entry in the arrays. */
enum weir__map_type {
    WEIR__MAP_TO = 0x1,
    WEIR__MAP_FROM = 0x2,
    WEIR__MAP_ALWAYS = 0x4,
    WEIR__MAP_DELETE = 0x8,
    WEIR__MAP_PTR_AND_OBJ = 0x10,  /* base is the address of a pointer to begin (clang <= 19) */
    WEIR__MAP_TARGET_PARAM = 0x20, /* one kernel parameter */
    WEIR__MAP_RETURN_PARAM = 0x40, /* the program wants the device address in bases[] */
    WEIR__MAP_PRIVATE = 0x80,
    WEIR__MAP_LITERAL = 0x100,
    WEIR__MAP_IMPLICIT = 0x200,
    WEIR__MAP_CLOSE = 0x400,
    WEIR__MAP_PRESENT = 0x1000,
    WEIR__MAP_HOLD = 0x2000,
    WEIR__MAP_ATTACH = 0x4000,  /* base is the address of a pointer to begin (clang >= 22) */
    WEIR__MAP_NULLIFY = 0x8000, /* with RETURN_PARAM: null where nothing is mapped */
};
#define WEIR__MAP_NON_CONTIGUOUS 0x100000000000u
#define WEIR__MAP_MEMBER_SHIFT   48 /* 1-based index of the parent entry; 0: none */

/* The arrays of one construct, the compiler's. bases[] is written where the program asked for it. */
struct weir__map_args {
    uint32_t n;
    void **bases, **begins;
    int64_t *sizes;
    const uint64_t *types;
    void **names, **mappers; /* either may be NULL */
};

/* What one construct did, to be undone on failure: private to data*.c. */
struct weir__region_step {
    struct weir__mapped *entry;
    uint64_t state;
    uint8_t kind;
    bool hold;
};
struct weir__region_block;
struct weir__region_attach;

/*
 * One construct on its open task. Memory of the caller, may be used for many constructs one after the other:
 *   init ─► open ─► begin, arguments, end, update ─► (the task is complete) ─► finish ─► open … ─► fini
 * One thread at a time.
 */
struct weir__region {
    struct weir_task *task;
    struct weir_device *device;
    struct weir__table *table;
    /* private */
    struct weir__region_block *blocks; /* memory until finish, newest first */
    struct weir__region_step *steps;
    uint32_t nsteps, csteps;
    struct weir__region_attach *attaches, **attaches_tail;
    void *privates;   /* device memory of private copies, until end */
    void **leftovers; /* device memory to be given back by finish: a list */
    uint64_t mark;    /* point behind all work so far, if marked */
    bool marked;
    bool wrote;  /* something was queued that writes device memory */
    bool needed; /* work that is queued reads scratch memory, or finish has something to give back */
};

void weir__region_init(struct weir__region *region);
/* Start a construct; everything is borrowed until finish. */
void weir__region_open(struct weir__region *region, struct weir_task *task, struct weir_device *device,
                       struct weir__table *table);
/* The task is complete, or will never run: free what its work needed. Never blocks (but in a device's free). */
void weir__region_finish(struct weir__region *region);
void weir__region_fini(struct weir__region *region);

/* Memory that lives until finish, aligned for anything; NULL if there is none. */
void *weir__region_scratch(struct weir__region *region, size_t bytes);
/* The same for what queued work reads: sets .needed. Without it finish may follow as soon as everything is queued. */
void *weir__region_keep(struct weir__region *region, size_t bytes);

/*
 * Returns  WEIR_OK; WEIR_E_NOT_FOUND (present, but it is not); WEIR_E_BUSY (a mapped range cannot be extended);
 *          WEIR_E_NO_MEMORY; WEIR_E_DEVICE. After a failure of begin nothing is mapped by it; after one of end what it
 *          ended is not mapped any more, its copies may be missing. weir_error_text() has the story.
 * Threads  the one that has the region; any number of regions at once. After end the thread records a point on the task
 *          (it ends it) before it waits for anybody: who maps the data again may wait for that.
 */
WEIR_MUST_CHECK int weir__data_begin(struct weir__region *region, const struct weir__map_args *args);
WEIR_MUST_CHECK int weir__data_end(struct weir__region *region, const struct weir__map_args *args);
WEIR_MUST_CHECK int weir__data_update(struct weir__region *region, const struct weir__map_args *args);

/*
 * The kernel's parameters, after begin and before the launch; end gives private copies back, so it follows the launch.
 * What is private is read before this returns.
 * @values  values[args->n], filled from the front. @count_out: how many.
 */
WEIR_MUST_CHECK int weir__data_arguments(struct weir__region *region, const struct weir__map_args *args,
                                         uint64_t *values, uint32_t *count_out);

/* What a compiled mapper calls with the handle that it got: number of components so far, and one more. */
int64_t weir__mapper_count(void *handle);
void weir__mapper_push(void *handle, void *base, void *begin, int64_t bytes, uint64_t type, void *name);

#endif

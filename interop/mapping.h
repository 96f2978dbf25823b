/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_INTEROP_MAPPING_H
#define WEIR_INTEROP_MAPPING_H

/*
 * What of the host's memory has a copy on one device: ranges that do not overlap, each with its place on the device and
 * its reference counts. One table per device. The rules of map clauses are in data*.c; here is structure and counting.
 *
 * Look-ups take no lock and do not write; a look-up of what the same thread found a moment ago costs a few
 * instructions. A count is changed by compare and exchange on the entry's state. Entries are never given back to the
 * allocator while the table lives, so a stale pointer to one is harmless: its serial tells.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <exec/work.h>

struct weir__mapped;

/* ---- for the routines of OpenMP and the registry ---- */

struct weir__table;

/* Returns WEIR_OK; WEIR_E_NO_MEMORY. The table has no entries and starts nothing. */
WEIR_MUST_CHECK int weir__table_create(struct weir_context *context, struct weir_device *device,
                                       struct weir__table **table_out);
/* Forget everything and give the device memory back that mapping allocated. Nothing uses the table any more. NULL is
 * allowed. May block in the device's driver. */
void weir__table_destroy(struct weir__table *table);

/* The program requires unified shared memory: what is not mapped is used where it is. Any thread. */
void weir__table_set_unified(struct weir__table *table);

/*
 * Say that @bytes of @host are at @memory + @offset of the device, with an infinite count: variables of an image,
 * omp_target_associate_ptr(). The memory stays the caller's.
 * Returns  WEIR_OK, also if exactly this is known; WEIR_E_BUSY (part of it is mapped otherwise); WEIR_E_INVALID;
 *          WEIR_E_NO_MEMORY.
 * Threads  any. Never blocks.
 */
WEIR_MUST_CHECK int weir__table_associate(struct weir__table *table, const void *host, void *memory, size_t bytes,
                                          size_t offset);
/* Take back what associate said about the range that has @host. WEIR_OK; WEIR_E_NOT_FOUND; WEIR_E_BUSY (mapped by a
 * map clause, or held). Any thread. Never blocks. */
WEIR_MUST_CHECK int weir__table_disassociate(struct weir__table *table, const void *host);

/* Where the byte at @host is on the device, or NULL. Any thread. Never blocks. */
void *weir__table_lookup(struct weir__table *table, const void *host);
/* May the device use @bytes at @host: mapped as a whole, or unified shared memory? Any thread. Never blocks. */
bool weir__table_is_accessible(struct weir__table *table, const void *host, size_t bytes);
/* One line per entry. Any thread. Holds the table's lock while it writes. */
void weir__table_dump(struct weir__table *table, FILE *file);

/* ---- for data*.c and tests ---- */

/*
 * The state of an entry: serial (28 bits), hold count (10), dynamic count (26, all ones: infinite). Both counts 0:
 * dead, it cannot be found and its serial is about to change.
 */
#define WEIR__COUNT_INFINITE 0x3ffffffu
#define WEIR__HOLD_MOST      0x3ffu

static inline uint32_t weir__state_dynamic(uint64_t state)
{
    return (uint32_t)(state & WEIR__COUNT_INFINITE);
}
static inline uint32_t weir__state_hold(uint64_t state)
{
    return (uint32_t)(state >> 26 & WEIR__HOLD_MOST);
}
static inline uint64_t weir__state_serial(uint64_t state)
{
    return state >> 36;
}
static inline bool weir__state_alive(uint64_t state)
{
    return (state & 0xfffffffffu) != 0;
}

/* Values of .transfer that are not points. */
#define WEIR__TRANSFER_PENDING UINT64_MAX       /* the first transfer is being queued */
#define WEIR__TRANSFER_FAILED  (UINT64_MAX - 1) /* … could not be queued */

/* A pointer in mapped memory that refers to other mapped memory: it differs between host and device. */
struct weir__shadow {
    uintptr_t host; /* address of the pointer */
    uint64_t host_value;
    uint64_t device_value;
    uint32_t bytes; /* 8, or more: a descriptor that begins with the pointer */
    void *rest;     /* host's content of its bytes behind the pointer; owned */
};

struct weir__mapped {
    _Atomic uint64_t state;
    /* Written under the table's lock before the entry gets its counts. */
    _Atomic uintptr_t begin, end, base, device;
    _Atomic(struct weir__mapped *) left, right; /* the tree, under the table's lock; look-ups read them */
    uint32_t priority;
    bool linked;      /* table's lock */
    uint64_t follows; /* insert tells: 0, or as weir__table_ended() with the cursor behind it in … */
    uintptr_t followed;
    _Atomic bool home;         /* the host's memory was written from it */
    void *memory;              /* allocated for it, or NULL */
    struct weir__mapped *next; /* unused entries, table's lock; or what one construct ended */
    struct weir__mapped *next_all;
    _Atomic uint64_t since;      /* point of the construct that made it, or 0 */
    _Atomic uint64_t transfer;   /* newest point that wrote it, 0, or WEIR__TRANSFER_* */
    uint64_t point;              /* tombstone: behind the last copy back; table's lock */
    _Atomic(const void *) owner; /* region that made it while .transfer is pending; region that ended it once dead */

    pthread_mutex_t lock; /* for the rest: never held while another lock is taken or anything is waited for */
    uint64_t *users;      /* points behind which the memory may be given back, one per stream */
    uint32_t nusers, cusers;
    struct weir__shadow *shadows; /* by address */
    uint32_t nshadows, cshadows;
};

enum weir__relation {
    WEIR__FOUND_NONE,
    WEIR__FOUND_CONTAINED,
    WEIR__FOUND_BEFORE, /* the asked range overlaps and begins before the entry */
    WEIR__FOUND_AFTER,  /* …or begins inside and ends behind it */
};

struct weir__found {
    enum weir__relation relation;
    struct weir__mapped *entry; /* NULL: NONE */
    uint64_t state;             /* at the time of the look-up */
    uintptr_t begin, end, base, device;
};

/* Look a range up; @bytes 0 follows the rule for zero-length sections. Any thread. Never blocks for long. */
void weir__table_find(struct weir__table *table, uintptr_t host, size_t bytes, struct weir__found *found);
/* Where @host is on the device, if the range was found. */
static inline uintptr_t weir__found_address(const struct weir__found *found, uintptr_t host)
{
    return found->device + (host - found->begin);
}

/*
 * One reference more. WEIR_OK; WEIR_E_STATE: the entry is not what was found any more, look it up again;
 * WEIR_E_INVALID: the count is at its limit. found->state is updated.
 */
WEIR_MUST_CHECK int weir__mapped_retain(struct weir__found *found, bool hold);

/* What taking one reference away (@all: every one of that kind) makes of a state; dead if it was the last. */
uint64_t weir__state_dropped(uint64_t state, bool hold, bool all);
/* Try to go from @state to weir__state_dropped(): false and *state is refreshed if somebody was faster. */
bool weir__mapped_try_drop(struct weir__mapped *entry, uint64_t *state, uint64_t dropped);

/* An entry for a range, to be inserted or put back; NULL without memory. */
struct weir__mapped *weir__table_take(struct weir__table *table, uintptr_t begin, size_t bytes, uintptr_t base,
                                      uintptr_t device);
/* Insert with these counts. WEIR_E_BUSY: something overlaps it, the caller still has the entry. Else @state_out.
 * BLOCKS while another thread is about to bury something that overlaps it: who buries waits for nobody meanwhile. */
WEIR_MUST_CHECK int weir__table_insert(struct weir__table *table, struct weir__mapped *entry, uint32_t dynamic,
                                       uint32_t hold, uint64_t *state_out);
/*
 * Give a dead entry back. @point: behind the work that copies from it to the host, or 0: who maps some of the range
 * later has to follow that. Only for who took the last reference. .memory is not freed here.
 * WEIR_E_NO_MEMORY, not with 0: it is buried, but nobody will know of the point.
 */
WEIR_MUST_CHECK int weir__table_bury(struct weir__table *table, struct weir__mapped *entry, uint64_t point);
/* A point that work has to follow which copies the range from or to the host; 0: no more. *@cursor goes from the
 * range's begin to its @end. Points that were reached may be left out. */
uint64_t weir__table_ended(struct weir__table *table, uintptr_t *cursor, uintptr_t end);
/* An entry that is not in the table can be used for something else. .memory is not freed here. */
void weir__table_put(struct weir__table *table, struct weir__mapped *entry);

/* The first transfer is queued (@point) or failed: whoever waits for that goes on. @since: where its construct stands.
 */
void weir__table_publish(struct weir__table *table, struct weir__mapped *entry, uint64_t point, uint64_t since);
/* The newest transfer's point, after waiting until it is known. BLOCKS while another thread queues it: the caller has
 * nothing unpublished itself. */
uint64_t weir__table_transfer(struct weir__table *table, struct weir__mapped *entry);

/* Around writes to what other constructs created, from following the newest transfer to noting the own one: each such
 * write follows the one before. The caller has nothing unpublished. */
void weir__table_lock_writes(struct weir__table *table);
void weir__table_unlock_writes(struct weir__table *table);

/* Remember that work up to @point uses the entry. WEIR_E_NO_MEMORY: nothing remembered. */
WEIR_MUST_CHECK int weir__mapped_add_user(struct weir__mapped *entry, uint64_t point);

bool weir__table_is_unified(const struct weir__table *table);
/* Attach also where the construct made neither side (LIBOMPTARGET_TREAT_ATTACH_AUTO_AS_ALWAYS). */
bool weir__table_attaches_always(const struct weir__table *table);
/* How many entries a look-up of @host visits. */
size_t weir__table_steps(struct weir__table *table, uintptr_t host);
size_t weir__table_count(struct weir__table *table);
/* How many ranges the table knows that ended. */
size_t weir__table_tombstones(struct weir__table *table);

#endif

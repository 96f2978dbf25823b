/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <trace/read.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <graph/error.h>
#include <trace/model.h>

void *weir__list_more(void **list, size_t *n, size_t *room, size_t size)
{
    if (*n == *room) {
        size_t more = *room ? 2 * *room : 64;
        void *larger = realloc(*list, more * size);
        if (!larger) return NULL;
        *list = larger;
        *room = more;
    }
    void *item = (char *)*list + (*n)++ * size;
    memset(item, 0, size);
    return item;
}

/* ---- pieces of the file ---- */

static struct weir__piece *piece_more(struct weir__records *records)
{
    void **list = (void **)&records->pieces;
    return weir__list_more(list, &records->npieces, &records->room_pieces, sizeof *records->pieces);
}

static const struct weir__slot *block_at(const struct weir__records *records, uint64_t index)
{
    return (const struct weir__slot *)((const char *)records->map + WEIR__ARENA_BYTES + index * WEIR__SLOT_BYTES);
}

/* The rest of each slot; those of a living process are copied, nobody empties them meanwhile. */
static int add_slots(struct weir__records *records)
{
    for (uint32_t i = 0; i < WEIR__SLOTS; i++) {
        const struct weir__slot *slot =
            records->live ? (const struct weir__slot *)((const char *)records->live + WEIR__ARENA_BYTES) + i
                          : block_at(records, i);
        if (!slot->number) return WEIR_OK; /* they are used one after the other */
        /* A1 acquire: pairs with R1 in record.h. Relaxed: held, or nobody is left. */
        uint64_t used = atomic_load_explicit(&slot->used, memory_order_acquire);
        uint64_t sequence = atomic_load_explicit(&slot->sequence, memory_order_relaxed);
        if (used > WEIR__SLOT_WORDS) used = 0; /* a damaged file */
        uint64_t *words = malloc((used + 1) * sizeof *words);
        struct weir__piece *piece = words ? piece_more(records) : NULL;
        if (!piece) {
            free(words);
            return WEIR_E_NO_MEMORY;
        }
        memcpy(words, slot->words, used * sizeof *words);
        *piece = (struct weir__piece){words,    used, slot->number,
                                      sequence, true, atomic_load_explicit(&slot->running, memory_order_relaxed)};
    }
    return WEIR_OK;
}

/* Blocks whose slot has gone on; one that a process was about to write when it died is in the slot, too. */
static int add_blocks(struct weir__records *records, uint64_t taken)
{
    size_t nslots = records->npieces;
    for (uint64_t i = 0; i < taken; i++) {
        size_t at = WEIR__ARENA_BYTES + (WEIR__SLOTS + i) * (size_t)WEIR__SLOT_BYTES;
        if (at + offsetof(struct weir__slot, words) > records->bytes) break;
        const struct weir__slot *block = block_at(records, WEIR__SLOTS + i);
        /* Relaxed, here and below: nobody writes to it any more. */
        uint64_t used = atomic_load_explicit(&block->used, memory_order_relaxed);
        uint64_t sequence = atomic_load_explicit(&block->sequence, memory_order_relaxed);
        if (block->number == 0 || block->number > nslots || used > WEIR__SLOT_WORDS) continue;
        if (at + offsetof(struct weir__slot, words) + used * 8 > records->bytes) continue;
        if (sequence >= records->pieces[block->number - 1].sequence) continue;
        struct weir__piece *piece = piece_more(records);
        if (!piece) return WEIR_E_NO_MEMORY;
        *piece = (struct weir__piece){(uint64_t *)(uintptr_t)block->words, used, block->number, sequence, false, 0};
    }
    return WEIR_OK;
}

static int by_slot(const void *a, const void *b)
{
    const struct weir__piece *x = a, *y = b;
    if (x->slot != y->slot) return x->slot < y->slot ? -1 : 1;
    return x->sequence < y->sequence ? -1 : x->sequence > y->sequence;
}

static void records_close(struct weir__records *records)
{
    for (size_t i = 0; i < records->npieces; i++)
        if (records->pieces[i].own) free(records->pieces[i].words);
    free(records->pieces);
    if (records->map) munmap((void *)(uintptr_t)records->map, records->bytes);
    if (records->live) weir__record_read_end();
    memset(records, 0, sizeof *records);
}

static int map_file(struct weir__records *records, int fd, const char *file)
{
    struct stat status;
    if (fstat(fd, &status)) return weir__fail(WEIR_E_SYSTEM, "%s: %s", file, strerror(errno));
    records->bytes = (size_t)status.st_size;
    if (records->bytes < WEIR__ARENA_BYTES + (size_t)WEIR__SLOTS * WEIR__SLOT_BYTES)
        return weir__fail(WEIR_E_INVALID, "%s is no recording of weir's", file);
    void *map = mmap(NULL, records->bytes, PROT_READ, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED) return weir__fail(WEIR_E_NO_MEMORY, "%s: %s", file, strerror(errno));
    records->map = map;
    if (records->map->magic != WEIR__ARENA_MAGIC || records->map->version != WEIR__ARENA_VERSION)
        return weir__fail(WEIR_E_INVALID, "%s is no recording of this version of weir's", file);
    records->begin = records->map->begin;
    records->newest = records->map->newest;
    return WEIR_OK;
}

static int open_own(struct weir__records *records)
{
    int fd;
    const struct weir__arena *arena = weir__record_arena(&fd);
    if (!arena) return weir__fail(WEIR_E_NOT_FOUND, "nothing was recorded");
    records->live = arena;
    weir__record_read_begin();
    weir__record_hold();
    int rc = map_file(records, fd, "the recording");
    uint64_t taken = atomic_load_explicit(&arena->taken, memory_order_relaxed); /* blocks are written under the locks */
    if (!rc) rc = add_slots(records);
    weir__record_let_go();
    if (!rc) rc = add_blocks(records, taken);
    return rc;
}

static int open_file(struct weir__records *records, const char *file)
{
    int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe is no recording */
    if (fd < 0) return weir__fail(errno == ENOENT ? WEIR_E_NOT_FOUND : WEIR_E_SYSTEM, "%s: %s", file, strerror(errno));
    int rc = map_file(records, fd, file);
    close(fd);
    if (!rc) rc = add_slots(records);
    if (!rc) rc = add_blocks(records, atomic_load_explicit(&records->map->taken, memory_order_relaxed)); /* see above */
    return rc;
}

/* ---- the clock ---- */

/* Two moments that are far enough from each other; a process that ran for a moment only borrows the present one. */
static void clock_set(struct weir__records *records)
{
    const struct weir__arena *arena = records->map;
    struct weir__moment from = records->begin, to = records->newest, now = weir__record_moment();
    records->rate = 1;
    if (!arena->counter) return;
    if (to.ns - from.ns < 10000000 && weir__record_counter && now.ns > to.ns && now.ticks > to.ticks) to = now;
    if (to.ticks > from.ticks && to.ns > from.ns)
        records->rate = (double)(to.ns - from.ns) / (double)(to.ticks - from.ticks);
}

/* ---- all of it ---- */

static int trace_make(const struct weir__records *records, struct weir__trace *trace)
{
    const struct weir__arena *arena = records->map;
    trace->begin_ns = records->begin.ns;
    trace->pid = arena->pid;
    /* Relaxed: counts. */
    trace->dropped = atomic_load_explicit(&arena->dropped, memory_order_relaxed);
    trace->limit_bytes = arena->nblocks * WEIR__SLOT_BYTES;
    trace->full = atomic_load_explicit(&arena->taken, memory_order_relaxed) >= arena->nblocks;
    trace->cpu_ns = atomic_load_explicit(&arena->cpu_ns, memory_order_relaxed);
    trace->peak_kb = atomic_load_explicit(&arena->peak_kb, memory_order_relaxed);
    memcpy(trace->program, arena->program, sizeof trace->program);
    trace->program[sizeof trace->program - 1] = '\0';
    int rc = weir__trace_collect(trace, records);
    if (!rc) weir__trace_find_times(trace);
    if (!rc) rc = weir__trace_find_edges(trace);
    if (!rc) weir__trace_find_path(trace);
    if (!rc) rc = weir__trace_find_turns(trace);
    return rc == WEIR_E_NO_MEMORY ? weir__fail(rc, "no memory for the records") : rc;
}

int weir__trace_read(const char *file, struct weir__trace **trace_out)
{
    struct weir__records records = {0};
    struct weir__trace *trace = calloc(1, sizeof *trace);
    if (!trace) return weir__fail(WEIR_E_NO_MEMORY, "no memory for the records");
    int rc = file ? open_file(&records, file) : open_own(&records);
    if (!rc) {
        if (records.npieces) qsort(records.pieces, records.npieces, sizeof *records.pieces, by_slot);
        clock_set(&records);
        rc = trace_make(&records, trace);
    } else if (rc == WEIR_E_NO_MEMORY) {
        weir__fail(rc, "no memory for the records");
    }
    records_close(&records);
    if (rc)
        weir__trace_free(trace);
    else
        *trace_out = trace;
    return rc;
}

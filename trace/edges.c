/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/*
 * The edges of the graph, found from the accesses in the order in which the tasks were made, by the rules that
 * graph/group.h states: every access joins the newest group of its address or starts one. So they are all here, also
 * those to predecessors that had completed, which the scheduler may have forgotten by then. How each was realised is
 * looked up in what the scheduler wrote down when it issued the task, or follows from the times where the host was in
 * between.
 *
 * The rules are written a second time because graph/'s groups hold the nodes of a running program and pass over
 * complete ones, while a group here is indices into a recording, perhaps another process's. tests/dag_trace.c holds
 * what comes of it against the same oracle as graph/.
 */

#include <stdlib.h>
#include <string.h>

#include <trace/index.h>
#include <trace/model.h>
#include <weir/task.h>

/* ---- groups ---- */

struct link {
    uint32_t task;
    uint32_t next; /* index, NONE */
};

struct group {
    uint32_t first; /* of links */
    uint32_t kind;  /* enum weir_access_kind; that of .base and of what came before is OUT */
};

struct cell {
    uint64_t begin, end; /* ranges: bytes; else .begin alone */
    uint32_t scope;
    uint32_t generation; /* of the scope when it was written */
    struct group now, before;
    uint32_t lock; /* number of .now if it is a mutexinoutset group */
};

struct table {
    uint32_t generation; /* counts what empties it */
    uint32_t base;       /* the newest all-memory task, NONE */
    bool ranges;
    /* Cells: all of the scope, and those of a scope with ranges by address. */
    WEIR__LIST(own, own);
    size_t forget; /* next of trace->forgets to look at */
};

struct own {
    uint32_t cell;
};

struct finder {
    struct weir__trace *trace;
    struct table *tables;
    struct weir__map cells_by_address;
    uint32_t *newest_edge; /* from each task, NONE */
    WEIR__LIST(link, links);
    WEIR__LIST(cell, cells);
    uint32_t task;
    const struct weir__trace_access *access;
    uint32_t nlocks;
    int rc;
};

static bool writes(uint32_t kind)
{
    return kind == WEIR_ACCESS_OUT || kind == WEIR_ACCESS_INOUT;
}

static unsigned edge_kind(uint32_t from, uint32_t to)
{
    if (to == WEIR_ACCESS_AFTER) return WEIR__EDGE_AFTER;
    if (from == WEIR_ACCESS_ALL_MEMORY || to == WEIR_ACCESS_ALL_MEMORY) return WEIR__EDGE_ALL;
    if (from == WEIR_ACCESS_IN) return WEIR__EDGE_WAR;
    return to == WEIR_ACCESS_IN ? WEIR__EDGE_RAW : WEIR__EDGE_WAW;
}

static void add_edge(struct finder *finder, uint32_t from, uint32_t from_kind)
{
    struct weir__trace *trace = finder->trace;
    struct weir__trace_task *to = &trace->tasks[finder->task];
    uint32_t newest = finder->newest_edge[from];
    if (from == finder->task) return;
    if (newest != WEIR__NONE && trace->edges[newest].to == finder->task) {
        if (trace->edges[newest].address != finder->access->address) trace->edges[newest].more++;
        return;
    }
    struct weir__trace_edge *edge = WEIR__MORE(trace, edges);
    if (!edge) {
        finder->rc = WEIR_E_NO_MEMORY;
        return;
    }
    finder->newest_edge[from] = (uint32_t)trace->nedges - 1;
    *edge = (struct weir__trace_edge){.from = from,
                                      .to = finder->task,
                                      .by = WEIR__NONE,
                                      .address = finder->access->address,
                                      .how = WEIR__HOW_OPEN,
                                      .kind = (uint8_t)edge_kind(from_kind, finder->access->kind)};
    to->nedges++;
}

static void add_edges(struct finder *finder, struct group group)
{
    for (uint32_t i = group.first; i != WEIR__NONE && !finder->rc; i = finder->links[i].next)
        add_edge(finder, finder->links[i].task, group.kind);
}

static void join(struct finder *finder, struct group *group)
{
    struct link *link = WEIR__MORE(finder, links);
    if (!link) {
        finder->rc = WEIR_E_NO_MEMORY;
        return;
    }
    *link = (struct link){finder->task, group->first};
    group->first = (uint32_t)finder->nlinks - 1;
}

static void join_lock(struct finder *finder, uint32_t lock)
{
    struct weir__trace_member *member = WEIR__MORE(finder->trace, members);
    if (member)
        *member = (struct weir__trace_member){lock, finder->task, finder->access->address};
    else
        finder->rc = WEIR_E_NO_MEMORY;
}

/* One access of one cell. @peek: nothing is entered. */
static void visit(struct finder *finder, uint32_t index, bool peek)
{
    struct cell *cell = &finder->cells[index];
    uint32_t kind = finder->access->kind;
    bool joins = kind == cell->now.kind && !writes(kind);
    add_edges(finder, joins ? cell->before : cell->now);
    if (peek || finder->rc) return;
    if (!joins) {
        cell->before = cell->now;
        cell->now = (struct group){WEIR__NONE, kind};
        if (kind == WEIR_ACCESS_MUTEXINOUTSET) cell->lock = finder->nlocks++;
    }
    join(finder, &cell->now);
    if (kind == WEIR_ACCESS_MUTEXINOUTSET && !finder->rc) join_lock(finder, cell->lock);
}

/* ---- cells of a scope ---- */

static void cell_reset(struct finder *finder, struct cell *cell)
{
    const struct table *table = &finder->tables[cell->scope];
    cell->generation = table->generation;
    cell->before = cell->now = (struct group){WEIR__NONE, WEIR_ACCESS_OUT};
    if (table->base == WEIR__NONE) return;
    struct link *link = WEIR__MORE(finder, links);
    if (!link) {
        finder->rc = WEIR_E_NO_MEMORY;
        return;
    }
    *link = (struct link){table->base, WEIR__NONE};
    cell->now = (struct group){(uint32_t)finder->nlinks - 1, WEIR_ACCESS_ALL_MEMORY};
}

static uint32_t cell_make(struct finder *finder, uint32_t scope, uint64_t begin, uint64_t end, size_t place)
{
    struct table *table = &finder->tables[scope];
    struct cell *cell = WEIR__MORE(finder, cells);
    struct own *own = cell ? WEIR__MORE(table, own) : NULL;
    if (!own) {
        finder->rc = WEIR_E_NO_MEMORY;
        return WEIR__NONE;
    }
    memmove(table->own + place + 1, table->own + place, (table->nown - 1 - place) * sizeof *table->own);
    table->own[place].cell = (uint32_t)finder->ncells - 1;
    cell->begin = begin;
    cell->end = end;
    cell->scope = scope;
    cell_reset(finder, cell);
    return (uint32_t)finder->ncells - 1;
}

static uint32_t cell_of_address(struct finder *finder, uint32_t scope, uint64_t address)
{
    uint64_t key = (address ^ (uint64_t)scope * UINT64_C(0xD6E8FEB86659FD93)) | 1u << 31;
    struct weir__map_slot *slot;
    /* Two addresses may have one key: the next key is tried. */
    for (;; key = key * 3 + 1) {
        slot = weir__map_put(&finder->cells_by_address, key, WEIR__NONE);
        if (!slot || slot->value == WEIR__NONE) break;
        struct cell *cell = &finder->cells[slot->value];
        if (cell->scope != scope || cell->begin != address) continue;
        if (cell->generation != finder->tables[scope].generation) cell_reset(finder, cell);
        return slot->value;
    }
    if (!slot) {
        finder->rc = WEIR_E_NO_MEMORY;
        return WEIR__NONE;
    }
    return slot->value = cell_make(finder, scope, address, address + 1, finder->tables[scope].nown);
}

/* First place whose cell ends behind @address. */
static size_t place_of(const struct finder *finder, const struct table *table, uint64_t address)
{
    size_t low = 0, high = table->nown;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (finder->cells[table->own[middle].cell].end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Make @address the border of two cells. */
static void cut(struct finder *finder, uint32_t scope, uint64_t address)
{
    struct table *table = &finder->tables[scope];
    size_t place = place_of(finder, table, address);
    if (place == table->nown || finder->cells[table->own[place].cell].begin >= address) return;
    uint32_t left = table->own[place].cell,
             right = cell_make(finder, scope, address, finder->cells[left].end, place + 1);
    if (right == WEIR__NONE) return;
    finder->cells[right].now = finder->cells[left].now; /* lists are only added to in front: both go on from here */
    finder->cells[right].before = finder->cells[left].before;
    finder->cells[right].lock = finder->cells[left].lock;
    finder->cells[right].generation = finder->cells[left].generation;
    finder->cells[left].end = address;
}

static void visit_range(struct finder *finder, uint32_t scope, bool peek)
{
    uint64_t begin = finder->access->address, end = begin + (finder->access->bytes ? finder->access->bytes : 1);
    struct table *table = &finder->tables[scope];
    cut(finder, scope, begin);
    cut(finder, scope, end);
    for (size_t place = place_of(finder, table, begin); begin < end && !finder->rc; place++) {
        uint64_t next = place < table->nown ? finder->cells[table->own[place].cell].begin : end;
        if (next > begin) { /* nobody was here */
            uint64_t until = next < end ? next : end;
            if (cell_make(finder, scope, begin, until, place) == WEIR__NONE) return;
        }
        uint32_t index = table->own[place].cell;
        struct cell *cell = &finder->cells[index];
        if (cell->generation != table->generation) cell_reset(finder, cell);
        begin = finder->cells[index].end;
        if (!finder->rc) visit(finder, index, peek);
    }
}

/* omp_all_memory: behind everything, in front of everything. */
static void visit_all(struct finder *finder, uint32_t scope, bool peek)
{
    struct table *table = &finder->tables[scope];
    if (table->base != WEIR__NONE) add_edge(finder, table->base, WEIR_ACCESS_ALL_MEMORY);
    for (size_t i = 0; i < table->nown && !finder->rc; i++) {
        const struct cell *cell = &finder->cells[table->own[i].cell];
        if (cell->generation == table->generation) add_edges(finder, cell->now);
    }
    if (peek) return;
    table->generation++;
    table->base = finder->task;
}

static void forget(struct finder *finder, const struct weir__trace_task *task)
{
    struct weir__trace *trace = finder->trace;
    struct table *table = &finder->tables[task->scope];
    for (; table->forget < trace->nforgets && trace->forgets[table->forget].at <= task->made; table->forget++) {
        if (trace->forgets[table->forget].scope != trace->scopes[task->scope].number) continue;
        table->generation++;
        table->base = WEIR__NONE;
    }
}

static void enter_task(struct finder *finder, uint32_t index)
{
    struct weir__trace *trace = finder->trace;
    struct weir__trace_task *task = &trace->tasks[index];
    bool all = false;
    finder->task = index;
    task->first_edge = (uint32_t)trace->nedges;
    forget(finder, task);
    for (uint32_t i = 0; i < task->naccesses && !finder->rc; i++) {
        finder->access = &trace->accesses[task->first_access + i];
        all |= finder->access->kind == WEIR_ACCESS_ALL_MEMORY;
        if (finder->access->kind != WEIR_ACCESS_AFTER) continue;
        uint32_t from = weir__trace_node(trace, weir__trace_task_by_id(trace, finder->access->address));
        if (from != WEIR__NONE) add_edge(finder, from, WEIR_ACCESS_AFTER);
    }
    for (uint32_t i = 0; i < task->naccesses && !finder->rc; i++) {
        finder->access = &trace->accesses[task->first_access + i];
        uint32_t kind = finder->access->kind;
        if (kind == WEIR_ACCESS_AFTER || (all && kind != WEIR_ACCESS_ALL_MEMORY)) continue;
        if (kind == WEIR_ACCESS_ALL_MEMORY) {
            visit_all(finder, task->scope, task->peek);
            return;
        }
        if (trace->scopes[task->scope].ranges) {
            visit_range(finder, task->scope, task->peek);
        } else {
            uint32_t cell = cell_of_address(finder, task->scope, finder->access->address);
            if (!finder->rc) visit(finder, cell, task->peek);
        }
    }
}

int weir__trace_find_edges(struct weir__trace *trace)
{
    struct finder finder = {.trace = trace,
                            .tables = calloc(trace->nscopes + 1, sizeof *finder.tables),
                            .newest_edge = malloc((trace->ntasks + 1) * sizeof *finder.newest_edge)};
    if (!finder.tables || !finder.newest_edge) finder.rc = WEIR_E_NO_MEMORY;
    for (size_t i = 0; i < trace->nscopes && !finder.rc; i++) finder.tables[i].base = WEIR__NONE;
    for (size_t i = 0; i < trace->ntasks && !finder.rc; i++) finder.newest_edge[i] = WEIR__NONE;
    for (uint32_t i = 0; i < trace->ntasks && !finder.rc; i++) enter_task(&finder, i);
    for (size_t i = 0; finder.tables && i < trace->nscopes; i++) free(finder.tables[i].own);
    free(finder.tables);
    free(finder.newest_edge);
    free(finder.cells_by_address.slots);
    free(finder.links);
    free(finder.cells);
    return finder.rc ? finder.rc : weir__trace_find_how(trace);
}

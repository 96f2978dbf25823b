/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "dag_trace.h"
#include "fault.h"

struct judge {
    const struct weir__trace *trace;
    const struct dag_scope *scope;
    const struct oracle_relation *relation;
    uint32_t node[ORACLE_TASKS];                 /* index of the dag's task in the trace, NONE */
    uint64_t before[ORACLE_TASKS][ORACLE_WORDS]; /* by the trace's edges, transitive */
    uint64_t how[WEIR__HOW_KINDS];
};

/* The tasks carry their number as their line. */
static const char *find_nodes(struct judge *judge, uint32_t scope_number)
{
    for (uint32_t i = 0; i < ORACLE_TASKS; i++) judge->node[i] = WEIR__NONE;
    for (uint32_t t = 0; t < judge->trace->ntasks; t++) {
        const struct weir__trace_task *task = &judge->trace->tasks[t];
        if (judge->trace->scopes[task->scope].number != scope_number || !task->name) continue;
        if (task->line >= judge->scope->n) return fault("a task with number %u", task->line);
        if (judge->node[task->line] != WEIR__NONE) return fault("task %u is there twice", task->line);
        judge->node[task->line] = t;
    }
    for (uint32_t i = 0; i < judge->scope->n; i++)
        if (judge->node[i] == WEIR__NONE && !judge->scope->shape[i].absent) return fault("task %u is missing", i);
    return "";
}

static bool has_ended(const struct weir__trace_task *task)
{
    return task->status == WEIR__NODE_COMPLETE && task->begin != WEIR__NEVER && task->end != WEIR__NEVER;
}

static const char *check_edge(struct judge *judge, const struct weir__trace_edge *edge)
{
    const struct weir__trace_task *from = &judge->trace->tasks[edge->from], *to = &judge->trace->tasks[edge->to];
    if (edge->how == WEIR__HOW_OPEN && to->status != WEIR__NODE_CANCELLED && to->status != WEIR__NODE_FAILED)
        return fault("the edge %u -> %u of a finished task is open", from->line, to->line);
    if (edge->how == WEIR__HOW_STREAM && edge->by == WEIR__NONE &&
        (from->stream != to->stream || from->point >= to->point))
        return fault("%u -> %u: not on one stream, or not in order", from->line, to->line);
    if (edge->how == WEIR__HOW_EVENT && edge->by == WEIR__NONE && (from->stream == to->stream || !from->point))
        return fault("%u -> %u: a wait on its own stream, or for nothing", from->line, to->line);
    if (edge->how == WEIR__HOW_IMPLIED && edge->by == WEIR__NONE)
        return fault("%u -> %u: implied by nothing", from->line, to->line);
    if (has_ended(from) && has_ended(to) && to->kind != WEIR__TRACE_EXTERNAL && from->end > to->begin)
        return fault("%u ended at %llu, its consumer %u began at %llu (%s)", from->line, (unsigned long long)from->end,
                     to->line, (unsigned long long)to->begin, weir__how_name(edge->how));
    judge->how[edge->how]++;
    return "";
}

static const char *check_edges(struct judge *judge)
{
    for (uint32_t j = 0; j < judge->scope->n; j++) {
        if (judge->node[j] == WEIR__NONE) continue;
        const struct weir__trace_task *task = &judge->trace->tasks[judge->node[j]];
        for (uint32_t e = 0; e < task->nedges; e++) {
            const struct weir__trace_edge *edge = &judge->trace->edges[task->first_edge + e];
            uint32_t i = judge->trace->tasks[edge->from].line;
            if (i >= j || judge->node[i] != edge->from) return fault("an edge from nowhere to %u", j);
            if (!oracle_has(judge->relation->before[j], i) && !judge->scope->shape[j].absent)
                return fault("%u -> %u is no dependence", i, j);
            oracle_put(judge->before[j], i);
            for (uint32_t w = 0; w < ORACLE_WORDS; w++) judge->before[j][w] |= judge->before[i][w];
            const char *wrong = check_edge(judge, edge);
            if (wrong[0]) return wrong;
        }
        if (judge->scope->shape[j].absent) continue;
        for (uint32_t i = 0; i < j; i++)
            if (oracle_has(judge->relation->before[j], i) && !oracle_has(judge->before[j], i))
                return fault("no path from %u to %u", i, j);
    }
    return "";
}

static bool was_seen_running(const struct weir__trace_task *task)
{
    return has_ended(task) && !task->estimated && task->kind != WEIR__TRACE_EXTERNAL;
}

/* Neighbours of a mutexinoutset group did not run at once, and how they were kept apart is known. */
static const char *check_turns(const struct judge *judge, uint32_t scope_number)
{
    for (size_t i = 0; i < judge->trace->nturns; i++) {
        const struct weir__trace_edge *turn = &judge->trace->turns[i];
        const struct weir__trace_task *from = &judge->trace->tasks[turn->from], *to = &judge->trace->tasks[turn->to];
        if (judge->trace->scopes[from->scope].number != scope_number) continue;
        if (from->scope != to->scope || from == to) return fault("%u and %u have no turns", from->line, to->line);
        if (was_seen_running(from) && was_seen_running(to) && from->end > to->begin)
            return fault("%u and %u ran at once", from->line, to->line);
        if (was_seen_running(to) && turn->how == WEIR__HOW_OPEN)
            return fault("%u ran, but was not yet behind %u", to->line, from->line);
    }
    return "";
}

static bool has_locks(const struct dag_scope *scope)
{
    for (uint32_t i = 0; i < scope->n; i++)
        for (uint32_t a = 0; a < scope->shape[i].naccesses; a++)
            if (scope->shape[i].accesses[a].kind == WEIR_ACCESS_MUTEXINOUTSET) return true;
    return false;
}

const char *dag_trace_fault(const struct weir__trace *trace, uint32_t scope_number, const struct dag_scope *scope,
                            const struct oracle_relation *relation, const struct weir_counters *counters)
{
    static struct judge judge;
    memset(&judge, 0, sizeof judge);
    judge.trace = trace;
    judge.scope = scope;
    judge.relation = relation;
    const char *wrong = find_nodes(&judge, scope_number);
    if (!wrong[0]) wrong = check_edges(&judge);
    if (!wrong[0]) wrong = check_turns(&judge, scope_number);
    if (wrong[0] || counters->fences || counters->failed || has_locks(scope)) return wrong;
    /* Without fences and locks the scheduler has counted the same edges, but knows of two addresses of one pair. */
    if (judge.how[WEIR__HOW_EVENT] > counters->edges_event || judge.how[WEIR__HOW_STREAM] > counters->edges_stream)
        return fault("more edges than were counted: %llu by event of %llu, %llu on a stream of %llu",
                     (unsigned long long)judge.how[WEIR__HOW_EVENT], (unsigned long long)counters->edges_event,
                     (unsigned long long)judge.how[WEIR__HOW_STREAM], (unsigned long long)counters->edges_stream);
    /* That the host was in between follows from the times. A predecessor that ended after the task was made and before
     * it was linked is one of these, and complete for the scheduler. */
    uint64_t most = counters->edges_host_only + counters->edges_done;
    if (judge.how[WEIR__HOW_DOMAIN] > most)
        return fault("more edges through the host than were counted: %llu of %llu",
                     (unsigned long long)judge.how[WEIR__HOW_DOMAIN], (unsigned long long)most);
    return "";
}

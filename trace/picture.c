/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <trace/picture.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <trace/index.h>
#include <trace/out.h>

/* ---- nodes and edges ---- */

static uint64_t hash_text(const char *text)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *text; text++) hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return hash;
}

/* What tasks of one node have in common. */
static uint64_t key_of(const struct weir__picture *picture, uint32_t task)
{
    const struct weir__trace_task *t = &picture->trace->tasks[task];
    char name[256];
    if (!picture->summary) return task + UINT64_C(1);
    uint64_t key = t->name ? hash_text(weir__task_name(t, name, sizeof name)) : 17;
    key = (key ^ (t->token ? WEIR__TRACE_DEVICE : t->kind)) * UINT64_C(0x9E3779B97F4A7C15);
    if (!t->name) key ^= t->function * UINT64_C(0xD6E8FEB86659FD93);
    if (picture->by_phase) key = (key ^ t->phase) * UINT64_C(0x9E3779B97F4A7C15);
    return key | 1;
}

static void node_add(struct weir__picture_node *node, const struct weir__trace_task *task)
{
    node->count++;
    node->failed += task->status == WEIR__NODE_FAILED;
    node->cancelled += task->status == WEIR__NODE_CANCELLED;
    node->pending += task->status < WEIR__NODE_COMPLETE;
    node->critical |= task->critical;
    if (task->begin == WEIR__NEVER || task->end == WEIR__NEVER) return;
    uint64_t took = task->end - task->begin;
    node->total_ns += took;
    if (took > node->longest_ns) node->longest_ns = took;
    if (took < node->shortest_ns) node->shortest_ns = took;
}

static int make_nodes(struct weir__picture *picture, struct weir__map *map, uint32_t *node_of)
{
    const struct weir__trace *trace = picture->trace;
    for (uint32_t i = 0; i < trace->ntasks; i++) {
        if (!weir__trace_is_node(&trace->tasks[i]) || trace->tasks[i].peek) continue;
        struct weir__map_slot *slot = weir__map_put(map, key_of(picture, i), WEIR__NONE);
        if (!slot) return WEIR_E_NO_MEMORY;
        if (slot->value == WEIR__NONE) {
            struct weir__picture_node *node = WEIR__MORE(picture, nodes);
            if (!node) return WEIR_E_NO_MEMORY;
            slot->value = (uint32_t)picture->nnodes - 1;
            *node = (struct weir__picture_node){.task = i, .phase = trace->tasks[i].phase, .shortest_ns = WEIR__NEVER};
        }
        node_of[i] = slot->value;
        node_add(&picture->nodes[slot->value], &trace->tasks[i]);
    }
    return WEIR_OK;
}

static int add_edge(struct weir__picture *picture, struct weir__map *map, uint32_t from, uint32_t to,
                    const struct weir__trace_edge *edge)
{
    struct weir__map_slot *slot = weir__map_put(map, ((uint64_t)from << 32 | to) + 1, WEIR__NONE);
    if (!slot) return WEIR_E_NO_MEMORY;
    if (slot->value == WEIR__NONE) {
        struct weir__picture_edge *more = WEIR__MORE(picture, edges);
        if (!more) return WEIR_E_NO_MEMORY;
        slot->value = (uint32_t)picture->nedges - 1;
        *more = (struct weir__picture_edge){.from = from, .to = to, .edge = edge};
        picture->nodes[to].nfrom++;
    }
    struct weir__picture_edge *drawn = &picture->edges[slot->value];
    drawn->count++;
    drawn->how[edge->how]++;
    drawn->critical |= edge->critical;
    return WEIR_OK;
}

static int make_edges(struct weir__picture *picture, struct weir__map *map, const uint32_t *node_of)
{
    const struct weir__trace *trace = picture->trace;
    int rc = WEIR_OK;
    for (size_t i = 0; i < trace->nedges + trace->nturns && !rc; i++) {
        const struct weir__trace_edge *edge =
            i < trace->nedges ? &trace->edges[i] : &trace->turns[i - trace->nedges];
        uint32_t from = node_of[edge->from], to = node_of[edge->to];
        if (from == WEIR__NONE || to == WEIR__NONE) continue;
        picture->task_edges += i < trace->nedges;
        rc = add_edge(picture, map, from, to, edge);
    }
    return rc;
}

static int make(struct weir__picture *picture)
{
    struct weir__map nodes = {0}, edges = {0};
    uint32_t *node_of = malloc((picture->trace->ntasks + 1) * sizeof *node_of);
    int rc = node_of ? WEIR_OK : WEIR_E_NO_MEMORY;
    for (size_t i = 0; node_of && i < picture->trace->ntasks; i++) node_of[i] = WEIR__NONE;
    picture->nnodes = picture->nedges = picture->task_edges = 0;
    if (!rc) rc = make_nodes(picture, &nodes, node_of);
    if (!rc && picture->nnodes <= WEIR__PICTURE_NODES) rc = make_edges(picture, &edges, node_of);
    free(node_of);
    free(nodes.slots);
    free(edges.slots);
    return rc;
}

int weir__picture_make(const struct weir__trace *trace, struct weir__picture *picture_out)
{
    *picture_out = (struct weir__picture){.trace = trace};
    for (size_t i = 0; i < trace->ntasks; i++)
        picture_out->tasks += weir__trace_is_node(&trace->tasks[i]) && !trace->tasks[i].peek;
    picture_out->summary = picture_out->tasks > WEIR__PICTURE_NODES;
    picture_out->by_phase = picture_out->summary;
    int rc = make(picture_out);
    if (!rc && picture_out->nnodes > WEIR__PICTURE_NODES / 10 && picture_out->by_phase) {
        picture_out->by_phase = false;
        rc = make(picture_out);
    }
    if (rc) weir__picture_fini(picture_out);
    return rc;
}

void weir__picture_fini(struct weir__picture *picture)
{
    free(picture->nodes);
    free(picture->edges);
    picture->nodes = NULL;
    picture->edges = NULL;
}

/* ---- texts ---- */

const char *weir__picture_title(const struct weir__picture *picture, char *text, size_t bytes)
{
    const struct weir__trace *trace = picture->trace;
    struct weir__room room = {text, bytes};
    char took[32], cut[256];
    const char *program = strrchr(trace->program, '/');
    weir__room_add(&room, "%s: %zu task%s, %zu edge%s, %s", program ? program + 1 : trace->program, picture->tasks,
                   picture->tasks == 1 ? "" : "s", picture->task_edges, picture->task_edges == 1 ? "" : "s",
                   weir__time_name(trace->end, took, sizeof took));
    if (picture->summary)
        weir__room_add(&room, "; summarised by name%s: a node stands for all tasks of that name",
                       picture->by_phase ? " and phase" : "");
    if (weir__trace_cut(trace, cut, sizeof cut)[0]) weir__room_add(&room, "; %s", cut);
    return text;
}

static void add_place(struct weir__room *room, const struct weir__picture *picture, const struct weir__trace_task *task)
{
    const struct weir__trace *trace = picture->trace;
    if (task->stream != WEIR__NONE) {
        const struct weir__trace_stream *stream = &trace->streams[task->stream];
        weir__room_add(room, "%s stream %u", stream->device_name ? stream->device_name : "device", stream->number);
    } else if (task->ran_on != WEIR__NONE) {
        const struct weir__trace_thread *thread = &trace->threads[task->ran_on];
        weir__room_add(room, "thread %s %u", thread->name, thread->number);
    } else {
        weir__room_add(room, "%s", weir__node_kind_name(task->kind));
    }
}

const char *weir__picture_node_line(const struct weir__picture *picture, const struct weir__picture_node *node,
                                    char *text, size_t bytes)
{
    const struct weir__trace_task *task = &picture->trace->tasks[node->task];
    struct weir__room room = {text, bytes};
    char took[32];
    text[0] = '\0';
    if (picture->summary) {
        weir__room_add(&room, "%u task%s", node->count, node->count == 1 ? "" : "s");
        if (node->total_ns) weir__room_add(&room, ", %s", weir__time_name(node->total_ns, took, sizeof took));
        if (node->failed) weir__room_add(&room, ", %u failed", node->failed);
        if (node->cancelled) weir__room_add(&room, ", %u cancelled", node->cancelled);
        if (node->pending) weir__room_add(&room, ", %u not complete", node->pending);
        return text;
    }
    if (task->status != WEIR__NODE_COMPLETE) weir__room_add(&room, "%s, ", weir__node_status_name(task->status));
    if (task->stream != WEIR__NONE)
        weir__room_add(&room, "stream %u", picture->trace->streams[task->stream].number);
    else if (task->kind == WEIR__TRACE_EXTERNAL)
        weir__room_add(&room, "external");
    else
        weir__room_add(&room, "host");
    if (task->begin != WEIR__NEVER && task->end != WEIR__NEVER && task->end > task->begin)
        weir__room_add(&room, ", %s", weir__time_name(task->end - task->begin, took, sizeof took));
    return text;
}

static void add_status(struct weir__room *room, const struct weir__trace *trace, const struct weir__trace_task *task)
{
    char name[160];
    weir__room_add(room, "\n%s", weir__node_status_name(task->status));
    if (task->status == WEIR__NODE_FAILED)
        weir__room_add(room, ": %s (%s)", weir_error_name(task->code), weir_error_string(task->code));
    if (task->status == WEIR__NODE_CANCELLED && task->root != WEIR__NONE)
        weir__room_add(room, ": %s failed", weir__task_name(&trace->tasks[task->root], name, sizeof name));
}

const char *weir__picture_node_details(const struct weir__picture *picture, const struct weir__picture_node *node,
                                       char *text, size_t bytes)
{
    const struct weir__trace *trace = picture->trace;
    const struct weir__trace_task *task = &trace->tasks[node->task];
    struct weir__room room = {text, bytes};
    char name[256], at[32];
    weir__room_add(&room, "%s", weir__task_name(task, name, sizeof name));
    if (weir__place_name(task->file, task->line, name, sizeof name)[0]) weir__room_add(&room, "\n%s", name);
    if (picture->summary) {
        weir__room_add(&room, "\n%s; %u task%s", weir__node_kind_name(task->token ? WEIR__TRACE_DEVICE : task->kind),
                       node->count, node->count == 1 ? "" : "s");
        if (picture->by_phase) weir__room_add(&room, "\nphase %u", node->phase);
        if (node->shortest_ns != WEIR__NEVER) {
            weir__room_add(&room, "\nin all %s", weir__time_name(node->total_ns, at, sizeof at));
            weir__room_add(&room, ", shortest %s", weir__time_name(node->shortest_ns, at, sizeof at));
            weir__room_add(&room, ", longest %s", weir__time_name(node->longest_ns, at, sizeof at));
        }
        if (node->failed || node->cancelled || node->pending)
            weir__room_add(&room, "\n%u failed, %u cancelled, %u not complete", node->failed, node->cancelled,
                           node->pending);
        return text;
    }
    weir__room_add(&room, "\n%s %" PRIu64 ", ", task->token ? "target task" : weir__node_kind_name(task->kind),
                   task->id);
    add_place(&room, picture, task);
    add_status(&room, trace, task);
    weir__room_add(&room, "\nmade %s", weir__time_name(task->made, at, sizeof at));
    if (task->open != WEIR__NEVER)
        weir__room_add(&room, "\nissued %s%s", weir__time_name(task->open, at, sizeof at),
                       task->early || task->kind == WEIR__TRACE_BEGIN ? "" : ", when a predecessor had come so far");
    if (task->begin != WEIR__NEVER) weir__room_add(&room, "\nbegan %s", weir__time_name(task->begin, at, sizeof at));
    if (task->end != WEIR__NEVER) weir__room_add(&room, "\nended %s", weir__time_name(task->end, at, sizeof at));
    if (task->begin != WEIR__NEVER && task->end != WEIR__NEVER)
        weir__room_add(&room, " (took %s%s)", weir__time_name(task->end - task->begin, at, sizeof at),
                       task->estimated ? " at most, as the host saw it" : "");
    if (task->ncopies) weir__room_add(&room, "\n%u copies, %" PRIu64 " bytes", task->ncopies, task->copied);
    if (task->critical) weir__room_add(&room, "\non the critical path");
    return text;
}

const char *weir__picture_edge_details(const struct weir__picture *picture, const struct weir__picture_edge *edge,
                                       char *text, size_t bytes)
{
    const struct weir__trace *trace = picture->trace;
    struct weir__room room = {text, bytes};
    char name[256];
    weir__room_add(&room, "%s -> ", weir__task_name(&trace->tasks[picture->nodes[edge->from].task], name, sizeof name));
    weir__room_add(&room, "%s\n", weir__task_name(&trace->tasks[picture->nodes[edge->to].task], name, sizeof name));
    if (!picture->summary) {
        weir__edge_story(trace, edge->edge, room.at, room.left);
        return text;
    }
    weir__room_add(&room, "%u edge%s", edge->count, edge->count == 1 ? "" : "s");
    for (unsigned how = 1; how < WEIR__HOW_KINDS; how++)
        if (edge->how[how]) weir__room_add(&room, "\n%u %s", edge->how[how], weir__how_name(how));
    return text;
}

unsigned weir__picture_edge_how(const struct weir__picture_edge *edge)
{
    unsigned most = WEIR__HOW_OPEN;
    for (unsigned how = 1; how < WEIR__HOW_KINDS; how++)
        if (edge->how[how] > edge->how[most]) most = how;
    return most;
}

bool weir__picture_has_how(const struct weir__picture *picture, unsigned how)
{
    for (size_t i = 0; i < picture->nedges; i++)
        if (picture->edges[i].how[how]) return true;
    return false;
}

/* ---- colours ---- */

const char *weir__picture_node_colour(const struct weir__picture *picture, const struct weir__picture_node *node)
{
    static const char *const streams[] = {"#d0ebff", "#d3f9d8", "#fff3bf", "#e5dbff", "#ffdeeb", "#c5f6fa",
                                          "#ffe8cc", "#e9fac8", "#dbe4ff", "#f3d9fa", "#c3fae8", "#eebefa"};
    const struct weir__trace_task *task = &picture->trace->tasks[node->task];
    if (node->failed) return "#ffa8a8";
    if (node->cancelled) return "#dee2e6";
    if (node->pending && node->pending == node->count) return "#ffffff";
    if (task->stream == WEIR__NONE) return "#f1f3f5";
    if (picture->summary) return streams[0];
    return streams[task->stream % (sizeof streams / sizeof streams[0])];
}

const char *weir__picture_edge_colour(unsigned how)
{
    switch (how) {
    case WEIR__HOW_DONE:
        return "#ced4da";
    case WEIR__HOW_STREAM:
        return "#868e96";
    case WEIR__HOW_KNOWN:
    case WEIR__HOW_IMPLIED:
        return "#74c0fc";
    case WEIR__HOW_EVENT:
        return "#1971c2";
    case WEIR__HOW_HOST:
    case WEIR__HOW_FOREIGN:
        return "#2f9e44";
    case WEIR__HOW_DOMAIN:
        return "#9c36b5";
    default:
        return "#adb5bd";
    }
}

bool weir__picture_edge_is_dashed(unsigned how)
{
    return how == WEIR__HOW_DONE || how == WEIR__HOW_KNOWN || how == WEIR__HOW_IMPLIED || how == WEIR__HOW_OPEN;
}

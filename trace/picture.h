/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_TRACE_PICTURE_H
#define WEIR_TRACE_PICTURE_H

/*
 * What a picture of the graph shows: a node a task, or, where there are too many, a node for all tasks of one name in
 * one phase and an edge for all edges between two of these, with counts. Borrows from the trace.
 */

#include <trace/model.h>

#define WEIR__PICTURE_NODES 2000u /* more tasks are summarised */

struct weir__picture_node {
    uint32_t task;  /* the first one, for what it says of all */
    uint32_t count; /* tasks */
    uint32_t failed, cancelled, pending;
    bool critical;
    uint64_t total_ns, shortest_ns, longest_ns; /* of those that ran */
    uint32_t phase;
    uint32_t nfrom; /* edges that lead to it */
};

struct weir__picture_edge {
    uint32_t from, to;                   /* index of nodes */
    const struct weir__trace_edge *edge; /* the first one */
    uint32_t count;
    uint32_t how[WEIR__HOW_KINDS];
    bool critical;
};

struct weir__picture {
    const struct weir__trace *trace;
    bool summary;
    bool by_phase; /* of a summary */
    size_t tasks, task_edges;
    WEIR__LIST(weir__picture_node, nodes);
    WEIR__LIST(weir__picture_edge, edges);
};

/* WEIR_E_NO_MEMORY. */
WEIR_MUST_CHECK int weir__picture_make(const struct weir__trace *trace, struct weir__picture *picture_out);
void weir__picture_fini(struct weir__picture *picture);
/* One line that says what the picture is of. */
const char *weir__picture_title(const struct weir__picture *picture, char *text, size_t bytes);
/* The details of a node and of an edge, lines separated by '\n'. */
const char *weir__picture_node_details(const struct weir__picture *picture, const struct weir__picture_node *node,
                                       char *text, size_t bytes);
const char *weir__picture_edge_details(const struct weir__picture *picture, const struct weir__picture_edge *edge,
                                       char *text, size_t bytes);
/* Second line of a node: "stream 2, 31 us". */
const char *weir__picture_node_line(const struct weir__picture *picture, const struct weir__picture_node *node,
                                    char *text, size_t bytes);
/* The realisation that most of the edge's edges have. */
unsigned weir__picture_edge_how(const struct weir__picture_edge *edge);
/* Is one of the edges realised so? For the legend. */
bool weir__picture_has_how(const struct weir__picture *picture, unsigned how);

/* Colours: of a node by where it runs and how it ended, of an edge by how it was realised. */
const char *weir__picture_node_colour(const struct weir__picture *picture, const struct weir__picture_node *node);
const char *weir__picture_edge_colour(unsigned how);
bool weir__picture_edge_is_dashed(unsigned how);
#define WEIR__PICTURE_CRITICAL "#d9480f"
#define WEIR__PICTURE_FAILED   "#c92a2a"

/* dot.c, html.c: write it. @file is looked at for errors by the caller. */
void weir__picture_dot(const struct weir__picture *picture, FILE *file);
WEIR_MUST_CHECK int weir__picture_html(const struct weir__picture *picture, FILE *file);

/* page.c: what the page of html.c has in front of the data, and behind. */
extern const char weir__page_head[], weir__page_tail[];

/* layout.c: places for the nodes, layer by layer from top to bottom. */
struct weir__spot {
    double x, y; /* of the middle */
};
struct weir__bend {
    uint32_t edge;
    double x, y;
};
struct weir__layout {
    struct weir__spot *spots; /* of the nodes */
    struct weir__bend *bends; /* where edges pass layers, by edge and from top to bottom */
    size_t nbends;
    double width, height;
};
#define WEIR__LAYOUT_WIDTH  158.0 /* of a node and its distance */
#define WEIR__LAYOUT_HEIGHT 96.0
WEIR_MUST_CHECK int weir__layout_make(const struct weir__picture *picture, struct weir__layout *layout_out);
void weir__layout_fini(struct weir__layout *layout);

#endif

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Stream capture, and the graphs that it makes. */
#ifndef WEIR_EMULATOR_CAPTURE_H
#define WEIR_EMULATOR_CAPTURE_H

#include "internal.h"

struct node {
    struct operation *operation;
    struct node_set *after;
    bool is_reached; /* while the end of a capture looks for what is not joined */
};

struct node_set {
    unsigned references, count;
    unsigned nodes[];
};

/* Nodes in an order in which they may run. Shared by a graph and what was instantiated from it. */
struct graph_body {
    unsigned references, count;
    struct node *nodes;
};

enum capture_mode { CAPTURE_GLOBAL, CAPTURE_THREAD_LOCAL, CAPTURE_RELAXED };

/* Kept by its streams and by the events that were recorded in it. */
struct capture {
    unsigned references;
    bool is_active, is_invalidated;
    enum capture_mode mode;
    uint64_t id, thread;
    struct stream *origin;
    struct graph_body *body;
    struct capture *next;
};

struct node_set *emulator__node_set_join(const struct node_set *one, const struct node_set *other);
void emulator__node_set_release(struct node_set *set);
void emulator__capture_release(struct capture *capture);
void emulator__capture_invalidate(struct capture *capture);
void emulator__graph_body_release(struct graph_body *body);

/* @stream becomes part of @capture, behind @after too. */
void emulator__capture_follow(struct stream *stream, struct capture *capture, const struct node_set *after);

#endif

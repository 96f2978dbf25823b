/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <exec/certify.h>

#include <stdlib.h>

#include <graph/certificate.h>

/* Index among the queued waits of candidate @of. */
static uint32_t wait_index(const struct weir__clock_candidate *candidates, size_t of)
{
    uint32_t index = 0;

    for (size_t i = 0; i < of; i++) index += candidates[i].verdict == WEIR__CLOCK_NEEDED;
    return index;
}

static struct weir__certificate_edge edge_of(const struct weir__clock_candidate *candidates, size_t all, uint64_t point)
{
    struct weir__certificate_edge edge = {weir__point_stream(point), WEIR__CERTIFICATE_DONE, weir__point_position(point), 0};

    for (size_t i = 0; i < all; i++) {
        if (candidates[i].stream != edge.stream || candidates[i].position < edge.position) continue;
        switch (candidates[i].verdict) {
        case WEIR__VERDICT_STREAM: edge.how = WEIR__CERTIFICATE_STREAM; break;
        case WEIR__CLOCK_KNOWN: edge.how = WEIR__CERTIFICATE_KNOWN; break;
        case WEIR__CLOCK_IMPLIED:
            edge.how = WEIR__CERTIFICATE_IMPLIED;
            edge.wait = wait_index(candidates, candidates[i].by);
            break;
        default:
            edge.how = WEIR__CERTIFICATE_EVENT;
            edge.wait = wait_index(candidates, i);
            break;
        }
        break;
    }
    return edge;
}

static size_t edges_of(const struct weir_task *task, const struct weir__clock_candidate *candidates, size_t all,
                       struct weir__certificate_edge *edges)
{
    const struct weir__node *node = &task->node;
    size_t                   n = 0;

    for (unsigned i = 0; i < node->nslots; i++) {
        if (node->slot[i] == 0) continue;
        if (edges != NULL) edges[n] = edge_of(candidates, all, node->slot[i]);
        n++;
    }
    for (uintptr_t e = (uintptr_t)node->extra; e != 0; e = weir__extra_of(e)->next) {
        if (((e & 7) != WEIR__EXTRA_EDGE && (e & 7) != WEIR__EXTRA_ORDER) || weir__extra_of(e)->link == 0) continue;
        if (edges != NULL) edges[n] = edge_of(candidates, all, weir__extra_of(e)->link);
        n++;
    }
    return n;
}

/* The waits that were queued. A point beyond what its stream's clock remembers is marked. */
static size_t waits_of(struct weir_context *context, const struct weir__clock_candidate *candidates, size_t n,
                       struct weir__certificate_wait *waits)
{
    size_t nwaits = 0;

    for (size_t i = 0; i < n; i++) {
        struct weir__stream *other = context->streams[candidates[i].stream];

        if (candidates[i].verdict != WEIR__CLOCK_NEEDED) continue;
        weir__spin_lock(&other->clock_lock);
        waits[nwaits++] = (struct weir__certificate_wait){candidates[i].stream, candidates[i].position <= other->clock.forgotten,
                                                          candidates[i].position};
        weir__spin_unlock(&other->clock_lock);
    }
    return nwaits;
}

void weir__certify(struct weir__stream *stream, const struct weir_task *task, const struct weir__clock_candidate *candidates,
                   size_t n, size_t all)
{
    struct weir_context           *context = stream->device->context;
    size_t                         nedges = task != NULL ? edges_of(task, candidates, all, NULL) : 0;
    struct weir__certificate_edge *edges = malloc((nedges + 1) * sizeof edges[0]);
    struct weir__certificate_wait *waits = malloc((n + 1) * sizeof waits[0]);
    int                            rc = WEIR_E_NO_MEMORY;

    if (edges != NULL && waits != NULL) {
        struct weir__certificate_record record = {
            .task = task != NULL ? task->node.id : 0,
            .stream = stream->id,
            .again = stream->certified == stream->recorded + 1,
            .position = stream->recorded + 1,
            .nedges = nedges,
            .nwaits = waits_of(context, candidates, n, waits),
            .edges = edges,
            .waits = waits,
        };

        if (task != NULL) edges_of(task, candidates, all, edges);
        pthread_mutex_lock(&context->certificate_lock);
        rc = weir__certificate_add(context->certificate, &record);
        pthread_mutex_unlock(&context->certificate_lock);
        stream->certified = record.position;
    }
    free(edges);
    free(waits);
    if (rc != WEIR_OK) weir__log(1, "no memory for a record of the certificate: it is not complete");
}

void weir__context_certify(struct weir_context *context, struct weir__certificate *certificate)
{
    context->certificate = certificate;
}

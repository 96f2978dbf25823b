/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <trace/picture.h>

#include <stdlib.h>
#include <string.h>

/*
 * A layered drawing: each node lies one layer below the lowest of its predecessors, an edge that is longer passes the
 * layers between through places of its own. Places are ordered within a layer by the middle of their neighbours, up and
 * down some times, and then moved as near to it as their distance and order allow (the least squares solution, by
 * pooling adjacent ones that are too near to each other). Edges of a summary that lead back are drawn and not counted.
 */

enum { SWEEPS = 10 };

struct spot {
    uint32_t layer, order;
    uint32_t up, nup, down, ndown; /* of links */
    double x, wanted;
    double weight; /* half of the width */
};

struct maker {
    const struct weir__picture *picture;
    struct spot *spots; /* nodes, then the places of edges */
    size_t nspots;
    uint32_t *edge_of;   /* of a place: its edge */
    uint32_t (*ends)[2]; /* links between neighbouring layers */
    uint32_t *links;     /* neighbours, by spot */
    size_t nends;
    uint32_t *order; /* spots by layer and order */
    uint32_t *first; /* of each layer, in .order */
    uint32_t nlayers;
    double *pool;
};

/* ---- layers ---- */

/* Nodes are numbered in the order of their first tasks: nearly all edges go up. Others are left out. */
static bool counts(const struct weir__picture_edge *edge)
{
    return edge->from < edge->to;
}

static int by_target(const void *a, const void *b)
{
    const struct weir__picture_edge *x = *(struct weir__picture_edge *const *)a,
                                    *y = *(struct weir__picture_edge *const *)b;
    return x->to < y->to ? -1 : x->to > y->to;
}

static bool leads_from_source(const struct weir__picture *picture, const struct weir__picture_edge *edge)
{
    return counts(edge) && !picture->nodes[edge->from].nfrom;
}

/* Sources lie directly above the first node that needs them, which is no source and stays where it is. */
static void lower_sources(struct maker *maker)
{
    const struct weir__picture *picture = maker->picture;
    for (size_t i = 0; i < picture->nedges; i++)
        if (leads_from_source(picture, &picture->edges[i])) maker->spots[picture->edges[i].from].layer = UINT32_MAX;
    for (size_t i = 0; i < picture->nedges; i++) {
        const struct weir__picture_edge *edge = &picture->edges[i];
        uint32_t above = maker->spots[edge->to].layer - 1;
        if (leads_from_source(picture, edge) && above < maker->spots[edge->from].layer)
            maker->spots[edge->from].layer = above;
    }
}

static int find_layers(struct maker *maker)
{
    const struct weir__picture *picture = maker->picture;
    struct weir__picture_edge **edges = malloc((picture->nedges + 1) * sizeof(struct weir__picture_edge *));
    if (!edges) return WEIR_E_NO_MEMORY;
    for (size_t i = 0; i < picture->nedges; i++) edges[i] = &picture->edges[i];
    qsort(edges, picture->nedges, sizeof(struct weir__picture_edge *), by_target);
    for (size_t i = 0; i < picture->nedges; i++) {
        if (!counts(edges[i])) continue;
        uint32_t below = maker->spots[edges[i]->from].layer + 1;
        if (maker->spots[edges[i]->to].layer < below) maker->spots[edges[i]->to].layer = below;
    }
    free(edges);
    lower_sources(maker);
    for (size_t n = 0; n < picture->nnodes; n++)
        if (maker->spots[n].layer >= maker->nlayers) maker->nlayers = maker->spots[n].layer + 1;
    return WEIR_OK;
}

/* ---- places of long edges, links between layers ---- */

static int make_places(struct maker *maker)
{
    const struct weir__picture *picture = maker->picture;
    size_t places = 0;
    for (size_t i = 0; i < picture->nedges; i++) {
        const struct weir__picture_edge *edge = &picture->edges[i];
        if (counts(edge)) places += maker->spots[edge->to].layer - maker->spots[edge->from].layer - 1;
    }
    struct spot *spots = realloc(maker->spots, (picture->nnodes + places + 1) * sizeof *spots);
    maker->edge_of = malloc((places + 1) * sizeof *maker->edge_of);
    maker->ends = malloc((picture->nedges + places + 1) * sizeof *maker->ends);
    if (spots) maker->spots = spots;
    if (!spots || !maker->edge_of || !maker->ends) return WEIR_E_NO_MEMORY;
    for (uint32_t i = 0; i < picture->nedges; i++) {
        const struct weir__picture_edge *edge = &picture->edges[i];
        uint32_t at = edge->from;
        if (!counts(edge)) continue;
        for (uint32_t layer = spots[edge->from].layer + 1; layer < spots[edge->to].layer; layer++) {
            uint32_t place = (uint32_t)maker->nspots++;
            spots[place] = (struct spot){.layer = layer, .weight = 0.12};
            maker->edge_of[place - picture->nnodes] = i;
            maker->ends[maker->nends][0] = at;
            maker->ends[maker->nends++][1] = place;
            at = place;
        }
        maker->ends[maker->nends][0] = at;
        maker->ends[maker->nends++][1] = edge->to;
    }
    return WEIR_OK;
}

static int make_links(struct maker *maker)
{
    maker->links = malloc((2 * maker->nends + 1) * sizeof *maker->links);
    if (!maker->links) return WEIR_E_NO_MEMORY;
    for (size_t i = 0; i < maker->nends; i++) {
        maker->spots[maker->ends[i][0]].ndown++;
        maker->spots[maker->ends[i][1]].nup++;
    }
    uint32_t at = 0;
    for (size_t i = 0; i < maker->nspots; i++) {
        struct spot *spot = &maker->spots[i];
        spot->up = at;
        at += spot->nup;
        spot->down = at;
        at += spot->ndown;
        spot->nup = spot->ndown = 0;
    }
    for (size_t i = 0; i < maker->nends; i++) {
        struct spot *above = &maker->spots[maker->ends[i][0]], *below = &maker->spots[maker->ends[i][1]];
        maker->links[above->down + above->ndown++] = maker->ends[i][1];
        maker->links[below->up + below->nup++] = maker->ends[i][0];
    }
    return WEIR_OK;
}

/* ---- order ---- */

static int make_order(struct maker *maker)
{
    maker->order = malloc((maker->nspots + 1) * sizeof *maker->order);
    maker->first = calloc(maker->nlayers + 2u, sizeof *maker->first);
    maker->pool = malloc((3 * maker->nspots + 3) * sizeof *maker->pool);
    if (!maker->order || !maker->first || !maker->pool) return WEIR_E_NO_MEMORY;
    for (size_t i = 0; i < maker->nspots; i++) maker->first[maker->spots[i].layer + 1]++;
    for (uint32_t layer = 0; layer < maker->nlayers; layer++) maker->first[layer + 1] += maker->first[layer];
    uint32_t *next = (uint32_t *)maker->pool;
    memcpy(next, maker->first, (maker->nlayers + 1u) * sizeof *next);
    for (uint32_t i = 0; i < maker->nspots; i++) maker->order[next[maker->spots[i].layer]++] = i;
    return WEIR_OK;
}

static int by_wanted(const void *a, const void *b, void *spots)
{
    const struct spot *spot = spots;
    uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    if (spot[i].wanted != spot[j].wanted) return spot[i].wanted < spot[j].wanted ? -1 : 1;
    return spot[i].order < spot[j].order ? -1 : spot[i].order > spot[j].order;
}

/* The middle of the neighbours on one side; without any, where it is. */
static void want(struct maker *maker, struct spot *spot, bool up)
{
    uint32_t n = up ? spot->nup : spot->ndown, first = up ? spot->up : spot->down;
    double sum = 0;
    spot->wanted = spot->x;
    if (!n) return;
    for (uint32_t i = 0; i < n; i++) sum += maker->spots[maker->links[first + i]].x;
    spot->wanted = sum / n;
}

/* Places as near to the wanted ones as order and distances allow: too near ones are pooled and share their mean. */
static void place_layer(struct maker *maker, uint32_t layer)
{
    uint32_t first = maker->first[layer], n = maker->first[layer + 1] - first;
    double *sum = maker->pool, *count = sum + maker->nspots + 1, offset = 0;
    uint32_t *size = (uint32_t *)(count + maker->nspots + 1), npools = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct spot *spot = &maker->spots[maker->order[first + i]];
        offset += i ? spot->weight + maker->spots[maker->order[first + i - 1]].weight : 0;
        spot->x = offset; /* distance from the first one at least */
        sum[npools] = spot->wanted - offset;
        count[npools] = 1;
        size[npools++] = 1;
        while (npools > 1 && sum[npools - 2] / count[npools - 2] > sum[npools - 1] / count[npools - 1]) {
            npools--;
            sum[npools - 1] += sum[npools];
            count[npools - 1] += count[npools];
            size[npools - 1] += size[npools];
        }
    }
    for (uint32_t p = 0, i = 0; p < npools; p++)
        for (uint32_t k = 0; k < size[p]; k++, i++) maker->spots[maker->order[first + i]].x += sum[p] / count[p];
}

static void sweep(struct maker *maker, bool down, bool reorder)
{
    for (uint32_t k = 0; k < maker->nlayers; k++) {
        uint32_t layer = down ? k : maker->nlayers - 1 - k, first = maker->first[layer],
                 n = maker->first[layer + 1] - first;
        for (uint32_t i = 0; i < n; i++) want(maker, &maker->spots[maker->order[first + i]], down);
        if (reorder) qsort_r(maker->order + first, n, sizeof *maker->order, by_wanted, maker->spots);
        for (uint32_t i = 0; i < n; i++) maker->spots[maker->order[first + i]].order = i;
        place_layer(maker, layer);
    }
}

/* ---- all of it ---- */

static int put_out(struct maker *maker, struct weir__layout *layout)
{
    size_t nnodes = maker->picture->nnodes;
    double least = 0, most = 0;
    layout->spots = malloc((nnodes + 1) * sizeof *layout->spots);
    layout->bends = malloc((maker->nspots - nnodes + 1) * sizeof *layout->bends);
    if (!layout->spots || !layout->bends) return WEIR_E_NO_MEMORY;
    for (size_t i = 0; i < maker->nspots; i++) {
        if (i == 0 || maker->spots[i].x < least) least = maker->spots[i].x;
        if (i == 0 || maker->spots[i].x > most) most = maker->spots[i].x;
    }
    for (size_t i = 0; i < maker->nspots; i++) {
        double x = (maker->spots[i].x - least + 0.6) * WEIR__LAYOUT_WIDTH,
               y = (maker->spots[i].layer + 0.6) * WEIR__LAYOUT_HEIGHT;
        if (i < nnodes)
            layout->spots[i] = (struct weir__spot){x, y};
        else
            layout->bends[layout->nbends++] = (struct weir__bend){maker->edge_of[i - nnodes], x, y};
    }
    layout->width = (most - least + 1.2) * WEIR__LAYOUT_WIDTH;
    layout->height = (maker->nlayers + 0.2) * WEIR__LAYOUT_HEIGHT;
    return WEIR_OK;
}

int weir__layout_make(const struct weir__picture *picture, struct weir__layout *layout_out)
{
    struct maker maker = {.picture = picture, .nspots = picture->nnodes};
    *layout_out = (struct weir__layout){0};
    maker.spots = calloc(picture->nnodes + 1, sizeof *maker.spots);
    int rc = maker.spots ? WEIR_OK : WEIR_E_NO_MEMORY;
    for (size_t i = 0; maker.spots && i < picture->nnodes; i++) maker.spots[i].weight = 0.5;
    if (!rc) rc = find_layers(&maker);
    if (!rc) rc = make_places(&maker);
    if (!rc) rc = make_links(&maker);
    if (!rc) rc = make_order(&maker);
    for (int i = 0; !rc && i < SWEEPS; i++) sweep(&maker, i % 2 == 0, true);
    for (int i = 0; !rc && i < SWEEPS; i++) sweep(&maker, i % 2 == 1, false);
    if (!rc) rc = put_out(&maker, layout_out);
    free(maker.spots);
    free(maker.edge_of);
    free(maker.ends);
    free(maker.links);
    free(maker.order);
    free(maker.first);
    free(maker.pool);
    if (rc) weir__layout_fini(layout_out);
    return rc;
}

void weir__layout_fini(struct weir__layout *layout)
{
    free(layout->spots);
    free(layout->bends);
    *layout = (struct weir__layout){0};
}

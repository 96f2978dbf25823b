/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <trace/picture.h>

#include <trace/out.h>

/* The picture as one page that refers to nothing outside of itself: places from layout.c, the rest is the page's
 * script. */

static void number_pair(FILE *file, double x, double y)
{
    fprintf(file, "%.1f,%.1f", x, y);
}

static void nodes(const struct weir__picture *picture, const struct weir__layout *layout, FILE *file)
{
    char text[1024];
    fputs("\"nodes\":[", file);
    for (size_t i = 0; i < picture->nnodes; i++) {
        const struct weir__picture_node *node = &picture->nodes[i];
        fputs(i ? ",\n[" : "\n[", file);
        number_pair(file, layout->spots[i].x, layout->spots[i].y);
        fputs(",", file);
        weir__out_json(file, weir__task_name(&picture->trace->tasks[node->task], text, sizeof text));
        fputs(",", file);
        weir__out_json(file, weir__picture_node_line(picture, node, text, sizeof text));
        fputs(",", file);
        weir__out_json(file, weir__picture_node_details(picture, node, text, sizeof text));
        fprintf(file, ",\"%s\",%d]", weir__picture_node_colour(picture, node),
                node->critical | (node->failed ? 2 : 0) | (node->cancelled || node->pending ? 4 : 0));
    }
    fputs("],\n", file);
}

static void edges(const struct weir__picture *picture, const struct weir__layout *layout, FILE *file)
{
    size_t bend = 0;
    char text[1024];
    fputs("\"edges\":[", file);
    for (uint32_t i = 0; i < picture->nedges; i++) {
        const struct weir__picture_edge *edge = &picture->edges[i];
        unsigned how = weir__picture_edge_how(edge);
        fprintf(file, "%s[%u,%u,[", i ? ",\n" : "\n", edge->from, edge->to);
        for (bool first = true; bend < layout->nbends && layout->bends[bend].edge == i; bend++, first = false) {
            if (!first) fputs(",", file);
            number_pair(file, layout->bends[bend].x, layout->bends[bend].y);
        }
        fprintf(file, "],\"%s\",%d,", weir__picture_edge_colour(how),
                (weir__picture_edge_is_dashed(how) ? 1 : 0) | (edge->critical ? 2 : 0) |
                    (how == WEIR__HOW_EVENT ? 4 : 0));
        weir__out_json(file, weir__picture_edge_details(picture, edge, text, sizeof text));
        if (picture->summary) fprintf(file, ",\"%u\"", edge->count);
        fputs("]", file);
    }
    fputs("],\n", file);
}

static void legend(const struct weir__picture *picture, FILE *file)
{
    bool first = true;
    fputs("\"legend\":[", file);
    for (unsigned how = 1; how < WEIR__HOW_KINDS; how++) {
        if (!weir__picture_has_how(picture, how)) continue;
        fprintf(file, "%s[\"%s\",%d,", first ? "" : ",", weir__picture_edge_colour(how),
                weir__picture_edge_is_dashed(how));
        weir__out_json(file, weir__how_name(how));
        fputs("]", file);
        first = false;
    }
    fputs("]", file);
}

int weir__picture_html(const struct weir__picture *picture, FILE *file)
{
    struct weir__layout layout;
    char title[512];
    int rc = weir__layout_make(picture, &layout);
    if (rc) return rc;
    weir__picture_title(picture, title, sizeof title);
    fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>", file);
    weir__out_xml(file, title);
    fputs("</title>", file);
    fputs(weir__page_head, file);
    fputs("<script>\nconst graph = {\"title\":", file);
    weir__out_json(file, title);
    fprintf(file, ",\"width\":%.1f,\"height\":%.1f,\n", layout.width, layout.height);
    nodes(picture, &layout, file);
    edges(picture, &layout, file);
    legend(picture, file);
    fputs("};\n", file);
    fputs(weir__page_tail, file);
    weir__layout_fini(&layout);
    return WEIR_OK;
}

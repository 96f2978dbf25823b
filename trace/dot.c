/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <trace/picture.h>

#include <trace/out.h>

/* The picture in Graphviz's language. */

enum { LABELS_UP_TO = 150, TIGHT_FROM = 400 };

static void node(const struct weir__picture *picture, size_t i, FILE *file)
{
    const struct weir__picture_node *n = &picture->nodes[i];
    const struct weir__trace_task *task = &picture->trace->tasks[n->task];
    char text[1024];
    fprintf(file, "  n%zu [label=<<b>", i);
    weir__out_xml(file, weir__task_name(task, text, sizeof text));
    fputs("</b>", file);
    if (picture->by_phase) fprintf(file, "<br/><font point-size=\"9\" color=\"#495057\">phase %u</font>", n->phase);
    fputs("<br/><font point-size=\"9\" color=\"#495057\">", file);
    weir__out_xml(file, weir__picture_node_line(picture, n, text, sizeof text));
    fprintf(file, "</font>> fillcolor=\"%s\"", weir__picture_node_colour(picture, n));
    if (n->failed)
        fprintf(file, " color=\"%s\" penwidth=3", WEIR__PICTURE_FAILED);
    else if (n->critical)
        fprintf(file, " color=\"%s\" penwidth=2.5", WEIR__PICTURE_CRITICAL);
    if (n->cancelled || n->pending) fputs(" style=\"rounded,filled,dashed\"", file);
    fputs(" tooltip=", file);
    weir__out_dot(file, weir__picture_node_details(picture, n, text, sizeof text));
    fputs("];\n", file);
}

/* The variable and the kind in a word. */
static void edge_label(const struct weir__picture *picture, const struct weir__picture_edge *e, FILE *file)
{
    static const char *const kinds[] = {NULL, "RAW", "WAR", "WAW", "after", "all memory", "mutex"};
    const struct weir__trace_edge *edge = e->edge;
    char text[256], name[128];
    if (picture->summary)
        snprintf(text, sizeof text, "%u", e->count);
    else if (edge->kind == WEIR__EDGE_AFTER || edge->kind == WEIR__EDGE_ALL)
        snprintf(text, sizeof text, "%s", kinds[edge->kind]);
    else
        snprintf(text, sizeof text, "%s %s", weir__address_name(picture->trace, edge->address, name, sizeof name),
                 kinds[edge->kind]);
    fputs(" label=", file);
    weir__out_dot(file, text);
}

static void edge(const struct weir__picture *picture, size_t i, FILE *file)
{
    const struct weir__picture_edge *e = &picture->edges[i];
    unsigned how = weir__picture_edge_how(e);
    char text[1024];
    fprintf(file, "  n%u -> n%u [color=\"%s\"", e->from, e->to,
            e->critical ? WEIR__PICTURE_CRITICAL : weir__picture_edge_colour(how));
    if (weir__picture_edge_is_dashed(how) && !e->critical) fputs(" style=dashed", file);
    if (e->critical)
        fputs(" penwidth=2.5", file);
    else if (how == WEIR__HOW_EVENT)
        fputs(" penwidth=1.6", file);
    if (picture->nedges <= LABELS_UP_TO) edge_label(picture, e, file);
    fputs(" edgetooltip=", file);
    weir__out_dot(file, weir__picture_edge_details(picture, e, text, sizeof text));
    fputs(" labeltooltip=", file);
    weir__out_dot(file, text);
    fputs("];\n", file);
}

/* What the colours mean: only those that are there. */
static void legend(const struct weir__picture *picture, FILE *file)
{
    bool critical = false, failed = false, cancelled = false;
    for (size_t i = 0; i < picture->nnodes; i++) {
        critical |= picture->nodes[i].critical;
        failed |= picture->nodes[i].failed != 0;
        cancelled |= picture->nodes[i].cancelled != 0;
    }
    fputs("  legend [shape=plain style=\"\" margin=0.1 label=<<table border=\"0\" cellborder=\"0\" cellspacing=\"1\" "
          "cellpadding=\"1\">\n",
          file);
    for (unsigned how = 1; how < WEIR__HOW_KINDS; how++) {
        if (!weir__picture_has_how(picture, how)) continue;
        fprintf(file, "    <tr><td align=\"right\"><font color=\"%s\"><b>%s</b></font></td><td align=\"left\">",
                weir__picture_edge_colour(how),
                weir__picture_edge_is_dashed(how) ? "- - \xe2\x96\xb6" : "\xe2\x94\x80\xe2\x94\x80\xe2\x96\xb6");
        weir__out_xml(file, weir__how_name(how));
        fputs("</td></tr>\n", file);
    }
    if (critical)
        fprintf(
            file,
            "    <tr><td align=\"right\"><font color=\"%s\"><b>\xe2\x94\x81\xe2\x94\x81\xe2\x96\xb6</b></font></td><td "
            "align=\"left\">critical path</td></tr>\n",
            WEIR__PICTURE_CRITICAL);
    if (failed) fputs("    <tr><td bgcolor=\"#ffa8a8\"> </td><td align=\"left\">failed</td></tr>\n", file);
    if (cancelled)
        fputs("    <tr><td bgcolor=\"#dee2e6\"> </td><td align=\"left\">cancelled, or behind a failure</td></tr>\n",
              file);
    if (!picture->summary)
        fputs("    <tr><td align=\"right\">colour</td><td align=\"left\">the stream of a device task; grey: "
              "host</td></tr>\n",
              file);
    fputs("  </table>>];\n", file);
}

void weir__picture_dot(const struct weir__picture *picture, FILE *file)
{
    char title[512];
    fputs("digraph weir {\n  graph [labelloc=t fontname=\"Helvetica\" fontsize=13 nodesep=0.25 ranksep=0.45 "
          "bgcolor=white label=",
          file);
    weir__out_dot(file, weir__picture_title(picture, title, sizeof title));
    if (picture->nnodes > TIGHT_FROM || picture->nedges > 4 * TIGHT_FROM)
        fputs(" splines=line nslimit=2 nslimit1=2 mclimit=0.5", file);
    fputs("];\n  node [shape=box style=\"rounded,filled\" fontname=\"Helvetica\" fontsize=11 margin=\"0.12,0.06\" "
          "color=\"#868e96\"];\n",
          file);
    fputs("  edge [fontname=\"Helvetica\" fontsize=8 fontcolor=\"#495057\" arrowsize=0.6];\n", file);
    for (size_t i = 0; i < picture->nnodes; i++) node(picture, i, file);
    for (size_t i = 0; i < picture->nedges; i++) edge(picture, i, file);
    if (picture->nnodes) legend(picture, file);
    fputs("}\n", file);
}

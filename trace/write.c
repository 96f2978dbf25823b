/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <trace/write.h>

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <graph/error.h>
#include <trace/model.h>
#include <trace/picture.h>
#include <trace/report.h>
#include <trace/timeline.h>

extern char **environ;

static bool ends_with(const char *file, const char *end)
{
    size_t n = strlen(file), m = strlen(end);
    return n > m && !strcmp(file + n - m, end);
}

static enum weir_trace_format format_of(const char *file)
{
    static const struct {
        const char *end;
        enum weir_trace_format format;
    } formats[] = {{".dot", WEIR_TRACE_DOT},   {".gv", WEIR_TRACE_DOT},        {".svg", WEIR_TRACE_SVG},
                   {".html", WEIR_TRACE_HTML}, {".json", WEIR_TRACE_TIMELINE}, {".txt", WEIR_TRACE_REPORT}};
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        if (ends_with(file, formats[i].end)) return formats[i].format;
    return WEIR_TRACE_BY_NAME;
}

/* ---- one file ---- */

static int content(const struct weir__trace *trace, enum weir_trace_format format, FILE *file)
{
    struct weir__picture picture;
    int rc = WEIR_OK;
    if (format == WEIR_TRACE_TIMELINE)
        weir__timeline_write(trace, file);
    else if (format == WEIR_TRACE_REPORT || format == WEIR_TRACE_REPORT_JSON)
        weir__report_write(trace, format == WEIR_TRACE_REPORT_JSON, file);
    else {
        rc = weir__picture_make(trace, &picture);
        if (rc) return weir__fail(rc, "no memory for a picture");
        if (format == WEIR_TRACE_HTML)
            rc = weir__picture_html(&picture, file);
        else
            weir__picture_dot(&picture, file);
        weir__picture_fini(&picture);
        if (rc) weir__fail(rc, "no memory for a picture");
    }
    return rc;
}

/* Written beside it and then put in its place: nobody sees half of it. */
static int write_file(const struct weir__trace *trace, const char *name, enum weir_trace_format format)
{
    char *half = malloc(strlen(name) + 32);
    if (!half) return weir__fail(WEIR_E_NO_MEMORY, "no memory for a file name");
    sprintf(half, "%s.%ld~", name, (long)getpid());
    FILE *file = fopen(half, "we");
    int rc = file ? content(trace, format, file) : WEIR_OK;
    if (!file || fflush(file) || ferror(file) || (!rc && rename(half, name)))
        rc = rc ? rc : weir__fail(WEIR_E_SYSTEM, "%s cannot be written: %s", name, strerror(errno));
    if (file) fclose(file);
    if (file && rc) unlink(half);
    free(half);
    return rc;
}

/* ---- Graphviz ---- */

/* What dot is to see of our environment: not that it be preloaded with weir, or traced. NULL: no memory. */
static char **plain_environment(void)
{
    size_t n = 0, m = 0;
    while (environ[n]) n++;
    char **result = malloc((n + 1) * sizeof *result);
    for (size_t i = 0; result && i < n; i++)
        if (strncmp(environ[i], "LD_PRELOAD=", 11) && strncmp(environ[i], "WEIR_", 5)) result[m++] = environ[i];
    if (result) result[m] = NULL;
    return result;
}

/* 0; WEIR_E_UNSUPPORTED: there is no such program; WEIR_E_SYSTEM. */
static int run_dot(const char *dot, const char *svg)
{
    char *arguments[] = {"dot", "-Tsvg", "-o", (char *)(uintptr_t)svg, (char *)(uintptr_t)dot, NULL};
    char **environment = plain_environment();
    pid_t child;
    int status = 0, error = environment ? posix_spawnp(&child, "dot", NULL, NULL, arguments, environment) : ENOMEM;
    free(environment);
    if (error) return error == ENOENT ? WEIR_E_UNSUPPORTED : WEIR_E_SYSTEM;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return access(svg, R_OK) ? WEIR_E_SYSTEM : WEIR_OK; /* the program does not want to know of its children */
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127) return WEIR_E_UNSUPPORTED;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? WEIR_OK : WEIR_E_SYSTEM;
}

static int write_svg(const struct weir__trace *trace, const char *name)
{
    size_t n = strlen(name);
    char *dot = malloc(n + 8);
    if (!dot) return weir__fail(WEIR_E_NO_MEMORY, "no memory for a file name");
    sprintf(dot, "%.*s.dot", (int)(ends_with(name, ".svg") ? n - 4 : n), name);
    int rc = write_file(trace, dot, WEIR_TRACE_DOT);
    if (!rc) {
        rc = run_dot(dot, name);
        if (!rc)
            unlink(dot);
        else if (rc == WEIR_E_UNSUPPORTED)
            weir__fail(rc,
                       "Graphviz is not installed: the graph is in %s; to draw it: dot -Tsvg -o %s %s (or ask for "
                       ".html, which needs nothing)",
                       dot, name, dot);
        else
            weir__fail(rc, "Graphviz could not draw %s", dot);
    }
    free(dot);
    return rc;
}

int weir__trace_write(const struct weir__trace *trace, const char *file, enum weir_trace_format format)
{
    bool report = format == WEIR_TRACE_REPORT || format == WEIR_TRACE_REPORT_JSON;
    if (file && format == WEIR_TRACE_BY_NAME && (format = format_of(file)) == WEIR_TRACE_BY_NAME)
        return weir__fail(WEIR_E_INVALID, "%s: the name must end in .dot, .svg, .html, .json or .txt", file);
    if ((unsigned)format > WEIR_TRACE_REPORT_JSON || (!file && !report))
        return weir__fail(WEIR_E_INVALID, "weir_trace_write: no such format, or no file for it");
    if (!file) {
        flockfile(stderr);
        int rc = content(trace, format, stderr);
        funlockfile(stderr);
        return rc;
    }
    return format == WEIR_TRACE_SVG ? write_svg(trace, file) : write_file(trace, file, format);
}

/* ---- what a program asks for by its environment ---- */

static enum weir_trace_format report_format(const char *report)
{
    return !strcmp(report, "json") || ends_with(report, ".json") ? WEIR_TRACE_REPORT_JSON : WEIR_TRACE_REPORT;
}

bool weir__report_is_stream(const char *report)
{
    return !strcmp(report, "1") || !strcmp(report, "json");
}

int weir__outputs_check(const struct weir__outputs *outputs)
{
    enum weir_trace_format graph = outputs->graph ? format_of(outputs->graph) : WEIR_TRACE_DOT;
    if (graph != WEIR_TRACE_DOT && graph != WEIR_TRACE_SVG && graph != WEIR_TRACE_HTML)
        return weir__fail(WEIR_E_INVALID, "a graph's name ends in .svg, .dot or .html, not as '%s'", outputs->graph);
    return WEIR_OK;
}

int weir__outputs_write(const struct weir__trace *trace, const struct weir__outputs *outputs,
                        void (*tell)(const char *text))
{
    int first = WEIR_OK;
    for (int i = 0; i < 3; i++) {
        const char *name = i == 0 ? outputs->graph : i == 1 ? outputs->timeline : outputs->report;
        if (!name) continue;
        int rc = i == 0   ? weir__trace_write(trace, name, WEIR_TRACE_BY_NAME)
                 : i == 1 ? weir__trace_write(trace, name, WEIR_TRACE_TIMELINE)
                          : weir__trace_write(trace, weir__report_is_stream(name) ? NULL : name, report_format(name));
        if (rc) tell(weir_error_text());
        if (!first) first = rc;
    }
    return first;
}

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <trace/write.h>

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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

bool weir__output_is_special(const char *name)
{
    struct stat status;
    return !stat(name, &status) && !S_ISREG(status.st_mode);
}

static int cannot_write(const char *name, int error)
{
    return weir__fail(WEIR_E_SYSTEM, "%s cannot be written: %s", name, strerror(error));
}

static int write_special(const struct weir__trace *trace, const char *name, enum weir_trace_format format)
{
    FILE *file = fopen(name, "we");
    int rc = file ? content(trace, format, file) : cannot_write(name, errno);
    if (file && (fflush(file) || ferror(file)) && !rc) rc = cannot_write(name, errno);
    if (file) fclose(file);
    return rc;
}

/* Written beside it and then put in its place: nobody sees half of it. */
static int write_file(const struct weir__trace *trace, const char *name, enum weir_trace_format format)
{
    if (weir__output_is_special(name)) return write_special(trace, name, format);
    char *half = malloc(strlen(name) + 32);
    if (!half) return weir__fail(WEIR_E_NO_MEMORY, "no memory for a file name");
    sprintf(half, "%s.%ld~", name, (long)getpid());
    FILE *file = fopen(half, "we");
    int rc = file ? content(trace, format, file) : WEIR_OK;
    if (!file || fflush(file) || ferror(file) || (!rc && rename(half, name)))
        rc = rc ? rc : cannot_write(name, errno);
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

/* May a file of that name be made? Not asked where the folder's name is not known yet. */
static int folder_check(const char *name)
{
    const char *slash = strrchr(name, '/');
    char *folder = slash ? strndup(name, (size_t)(slash - name) + 1) : NULL;
    struct stat status;
    int rc = WEIR_OK;
    if (slash && !folder) return weir__fail(WEIR_E_NO_MEMORY, "no memory for a file name");
    if (!stat(name, &status) && S_ISDIR(status.st_mode))
        rc = cannot_write(name, EISDIR);
    else if (weir__output_is_special(name) ? access(name, W_OK)
                                           : !(folder && strchr(folder, '%')) && access(folder ? folder : ".", W_OK | X_OK))
        rc = cannot_write(name, errno);
    free(folder);
    return rc;
}

int weir__output_check(enum weir__output what, const char *name)
{
    enum weir_trace_format format = format_of(name);
    bool picture = format == WEIR_TRACE_DOT || format == WEIR_TRACE_SVG || format == WEIR_TRACE_HTML;
    if (what == WEIR__OUTPUT_REPORT && weir__report_is_stream(name)) return WEIR_OK;
    if (what == WEIR__OUTPUT_GRAPH && !picture)
        return weir__fail(WEIR_E_INVALID, "a graph's name ends in .svg, .dot or .html, not as '%s'", name);
    if (what == WEIR__OUTPUT_TIMELINE && (picture || format == WEIR_TRACE_REPORT))
        return weir__fail(WEIR_E_INVALID, "a timeline is JSON: its name ends in .json, not as '%s'", name);
    if (what == WEIR__OUTPUT_REPORT && picture)
        return weir__fail(WEIR_E_INVALID, "a report is text, or JSON in .json: its name does not end as '%s'", name);
    return folder_check(name);
}

int weir__outputs_write(const struct weir__trace *trace, const struct weir__outputs *outputs,
                        void (*tell)(const char *text))
{
    const char *report = outputs->name[WEIR__OUTPUT_REPORT];
    char cut[256];
    int first = WEIR_OK;
    /* A report on stderr says it by itself. */
    if (weir__trace_cut(trace, cut, sizeof cut)[0] && !(report && weir__report_is_stream(report))) tell(cut);
    for (int i = 0; i < WEIR__OUTPUTS; i++) {
        const char *name = outputs->name[i];
        if (!name) continue;
        int rc = i == WEIR__OUTPUT_GRAPH      ? weir__trace_write(trace, name, WEIR_TRACE_BY_NAME)
                 : i == WEIR__OUTPUT_TIMELINE ? weir__trace_write(trace, name, WEIR_TRACE_TIMELINE)
                 : weir__trace_write(trace, weir__report_is_stream(name) ? NULL : name, report_format(name));
        if (rc) tell(weir_error_text());
        if (!first) first = rc;
    }
    return first;
}

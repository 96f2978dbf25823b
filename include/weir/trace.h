/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_TRACE_H
#define WEIR_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/error.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/*
 * What waited for what and why, and where the time went: record what all contexts of the process do, and draw it. The
 * environment (WEIR_GRAPH, WEIR_TRACE, WEIR_REPORT) does the same for a whole program without a change to it.
 */

/** All zero is the default; set .size to sizeof(struct weir_trace_options). */
struct weir_trace_options {
    size_t size;
    size_t limit_bytes; /* of records; more are dropped and counted. 0: 256 MiB, whatever WEIR_TRACE_LIMIT says */
    /* A file that keeps the records, for `weir draw` when the process is gone; it is overwritten. NULL: memory. */
    const char *file;
    bool resume; /* go on where weir_trace_stop() ended, instead of discarding what was recorded before */
};

/**
 * Begin a recording. What an earlier one of the process holds is discarded, unless .resume is set; while one goes on nothing
 * changes. Tasks that were made before, or while nothing was recorded, are not in it. All recordings of a process lie in the
 * same file, that of the first call; with .resume the limit, too, is that of before.
 * @options  borrowed for the call; NULL: all defaults.
 * Returns  WEIR_OK (also if it is on); WEIR_E_VERSION; WEIR_E_NO_MEMORY; WEIR_E_SYSTEM; WEIR_E_BUSY (another process writes
 *          to the file).
 * Threads  any thread. Does not wait for work. A child of a fork records nothing until it calls this itself.
 */
WEIR_MUST_CHECK int weir_trace_start(const struct weir_trace_options *options);
/** Record no more; what there is stays. Any thread. Never blocks. */
void weir_trace_stop(void);

/** What weir_trace_write() makes. */
enum weir_trace_format {
    WEIR_TRACE_BY_NAME = 0,     /* by the end of the name: .dot, .svg, .html, .json (a timeline), .txt (a report) */
    WEIR_TRACE_DOT = 1,         /* the graph for Graphviz */
    WEIR_TRACE_SVG = 2,         /* drawn by Graphviz's program dot, which must be installed */
    WEIR_TRACE_HTML = 3,        /* one page to look at: pan, zoom, details, search */
    WEIR_TRACE_TIMELINE = 4,    /* JSON for Perfetto (ui.perfetto.dev) or chrome://tracing */
    WEIR_TRACE_REPORT = 5,      /* one screen of text */
    WEIR_TRACE_REPORT_JSON = 6, /* the same for programs */
};

/**
 * Write what was recorded so far; recording may go on. Graphs of more than 2000 tasks are summarised by name and phase, and
 * say so.
 * @file  is replaced when all is written; NULL: stderr, for the two reports.
 * Returns  WEIR_OK; WEIR_E_INVALID (no such format, or none by that name); WEIR_E_NOT_FOUND (nothing was recorded);
 *          WEIR_E_UNSUPPORTED (SVG without Graphviz: the graph is in a .dot file beside it, and the text says how to draw
 *          it); WEIR_E_NO_MEMORY; WEIR_E_SYSTEM (the file cannot be written).
 * Threads  any thread. Blocks for the files and for Graphviz, not for work.
 */
WEIR_MUST_CHECK int weir_trace_write(const char *file, enum weir_trace_format format);

/**
 * Say what memory is called, for edges over its addresses: weir_trace_name(tile[i][j], bytes, "tile[2][3]"). The newest name
 * counts. Costs nothing but a branch while nothing is recorded.
 * @name  copied; NULL is ignored.
 * Threads  any thread. Never blocks for work.
 */
void weir_trace_name(const void *address, size_t bytes, const char *name);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif

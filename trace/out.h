/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_TRACE_OUT_H
#define WEIR_TRACE_OUT_H

/* Text for the formats that are written. One thread; whoever opened the file looks at ferror() at the end. */

#include <stddef.h>
#include <stdio.h>

/* Text in pieces, cut where the room ends. */
struct weir__room {
    char *at;
    size_t left; /* 1 at least */
};
__attribute__((format(printf, 2, 3))) void weir__room_add(struct weir__room *room, const char *format, ...);

/* A string of JSON, quotes included. Bytes that are no UTF-8 become U+FFFD; what HTML could take for a tag is escaped.
 */
void weir__out_json(FILE *file, const char *text);
/* Text of XML and of Graphviz's HTML-like labels. */
void weir__out_xml(FILE *file, const char *text);
/* A string of DOT, quotes included. */
void weir__out_dot(FILE *file, const char *text);

#endif

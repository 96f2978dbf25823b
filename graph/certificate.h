/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_GRAPH_CERTIFICATE_H
#define WEIR_GRAPH_CERTIFICATE_H

/*
 * What was decided for each device task: an append-only list that weir__certificate_check() (graph/check.h) replays.
 *
 * Order: records of one stream in the order of its leases, and a record before anything that waits for its task. Adding
 * it when the waits are queued, before the task's point is recorded, gives both.
 *
 * Threads: the caller serialises. Nothing blocks.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <weir/error.h>

enum weir__certificate_how {
    WEIR__CERTIFICATE_DONE = 1, /* the predecessor had completed */
    WEIR__CERTIFICATE_STREAM,   /* the same stream */
    WEIR__CERTIFICATE_KNOWN,    /* the stream was ordered behind it before */
    WEIR__CERTIFICATE_IMPLIED,  /* wait .wait is for a point that is ordered behind it, or for the same point */
    WEIR__CERTIFICATE_EVENT,    /* wait .wait is for this stream, at this position or a newer one */
    WEIR__CERTIFICATE_HOST,     /* the host waited for it */
};

struct weir__certificate_edge {
    uint32_t stream;
    uint32_t how; /* enum weir__certificate_how */
    uint64_t position;
    uint32_t wait; /* index of the record's waits; IMPLIED and EVENT only */
};

struct weir__certificate_wait {
    uint32_t stream;
    /* The point was complete and what it is behind was forgotten (position <= weir__clock.forgotten) when its snapshot
     * was asked for: the stream could not know what the wait implies, so a later wait may look needless. */
    bool blind;
    uint64_t position;
};

struct weir__certificate_record {
    uint64_t task;
    uint32_t stream;
    /* The position was announced by an earlier record of the stream: the same task waits again, or the earlier one was
     * given up. Otherwise positions of a stream grow. */
    bool again;
    uint64_t
        position; /* the next one of the stream when the waits were queued: it and all later ones are behind them */
    size_t nedges, nwaits;
    const struct weir__certificate_edge *edges; /* edges[nedges] */
    const struct weir__certificate_wait *waits; /* waits[nwaits], as queued */
};

struct weir__certificate;

WEIR_MUST_CHECK int weir__certificate_create(struct weir__certificate **certificate_out);
/* NULL is allowed. */
void weir__certificate_destroy(struct weir__certificate *certificate);
/* Append a copy, arrays included. Returns WEIR_OK; WEIR_E_NO_MEMORY: nothing has changed. */
WEIR_MUST_CHECK int weir__certificate_add(struct weir__certificate *certificate,
                                          const struct weir__certificate_record *record);
size_t weir__certificate_count(const struct weir__certificate *certificate);
/* @index < count. The arrays are the certificate's, valid until the next add. */
struct weir__certificate_record weir__certificate_get(const struct weir__certificate *certificate, size_t index);
/* "done", "stream", …; static text. */
const char *weir__certificate_how_name(uint32_t how);
/* A line a record, for people: task 7 on 2:5 | edges 1:3 event 0, 0:9 known | waits 1:3. Points are stream:position. */
void weir__certificate_print(const struct weir__certificate *certificate, FILE *file);

#endif

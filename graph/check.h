/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_GRAPH_CHECK_H
#define WEIR_GRAPH_CHECK_H

/*
 * An independent judge of a certificate. It shares no code with graph/clock.c, keeps the whole past, and derives what a
 * stream is behind from two facts only: streams are in order, and the waits that were queued.
 */

#include <graph/certificate.h>

struct weir__check_fault {
    size_t record; /* index in the certificate */
    uint64_t task;
    char text[240]; /* "task 7 on 2:5: edge 1 (from 1:3, event): …" */
};

/*
 * Replay a certificate. It is good if
 *  - every edge that is not done or realised by the host is covered by stream order and waits, in the way it says;
 *  - every wait realises an edge, is for a point the stream did not know, and is not implied by the record's other
 * waits;
 *  - the positions of a stream grow.
 * @fault_out  the first fault found, set on WEIR_E_INVALID only; may be NULL.
 * Returns  WEIR_OK; WEIR_E_INVALID; WEIR_E_NO_MEMORY.
 * Threads  nobody adds meanwhile. Memory: a vector of all streams for each record that waits.
 */
WEIR_MUST_CHECK int weir__certificate_check(const struct weir__certificate *certificate,
                                            struct weir__check_fault *fault_out);

#endif

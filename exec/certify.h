/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_EXEC_CERTIFY_H
#define WEIR_EXEC_CERTIFY_H

#include <exec/stream.h>

/* Verdict of a candidate on the consumer's own stream, beside enum weir__clock_verdict. */
#define WEIR__VERDICT_STREAM 4u

/*
 * Write down what was decided for @task on the leased @stream, whose waits are queued: candidates[all] with verdicts, the
 * first n of them were looked at by weir__clock_select(). Without memory the certificate is given up, with a message.
 */
void weir__certify(struct weir__stream *stream, const struct weir_task *task, const struct weir__clock_candidate *candidates,
                   size_t n, size_t all);

#endif

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_EXEC_SUMMARY_H
#define WEIR_EXEC_SUMMARY_H

/*
 * WEIR_SUMMARY=1: one line on stderr for each context, when it is destroyed or when the process exits, that tells
 * its tasks and how their edges were realised. Contexts without a task say nothing.
 */

struct weir_context;

/* The context is made. An exit handler of the caller that is to run before the summary is registered after this. */
void weir__summary_watch(struct weir_context *context);
/* All its work is finished and it goes away. */
void weir__summary_end(struct weir_context *context);

#endif

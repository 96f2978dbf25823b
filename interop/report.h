/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_INTEROP_REPORT_H
#define WEIR_INTEROP_REPORT_H

/* What became of a program's target tasks, on stderr when it ends, if WEIR_REPORT is 1: in front of what trace/ tells. */

/* The context exists: print at the end of the process. */
void weir__report_watch(void);

#endif

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_INTEROP_PLUGIN_REPORT_H
#define WEIR_INTEROP_PLUGIN_REPORT_H

/*
 * What the plugin tells about itself: counts, a line of them at exit with WEIR_SUMMARY=1, and a line for each call that
 * queues or ends something with WEIR_LOG=4. Queues and events appear there by their handles, which are never used
 * twice, so that all lines with one handle are the life of one event. Any thread; never blocks.
 */

#include <stdbool.h>
#include <stdint.h>

enum weir__plugin_count {
    WEIR__PLUGIN_IMAGES, /* loaded */
    WEIR__PLUGIN_KERNELS,
    WEIR__PLUGIN_COPIES,
    WEIR__PLUGIN_RECORDS,
    WEIR__PLUGIN_WAITS,      /* queued */
    WEIR__PLUGIN_WAITS_NONE, /* for what the queue is behind of anyway, or for nothing */
    WEIR__PLUGIN_FAILURES,   /* calls that were refused */
    WEIR__PLUGIN_COUNTS,
};

void weir__plugin_count(enum weir__plugin_count what);

/* Levels of information of LLVM (LIBOMPTARGET_INFO, set_info_flag): does a plugin tell of kernels? */
bool weir__plugin_tells_kernels(void);

#endif

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_TESTS_TIMELINE_RULES_H
#define WEIR_TESTS_TIMELINE_RULES_H

/* What viewers of Chrome's trace events (JSON Object Format) demand of a file, and what they leave out in silence. */

#include "json.h"

struct timeline_counts {
    size_t slices, device, host, issue, waits, arrows, asynchronous, counters, instants;
};

/* What is wrong with the timeline: "" if nothing is. The text is static. *counts_out is what was seen until then. */
const char *timeline_fault(const struct json *timeline, struct timeline_counts *counts_out);

#endif

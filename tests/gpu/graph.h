/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_TESTS_GPU_GRAPH_H
#define WEIR_TESTS_GPU_GRAPH_H

#include <stdint.h>

/* By hand, on the driver: the other side of the comparison. Each prints, and needs the kernel of check.c. */

/* Microseconds for a record, a wait and a query of events of both kinds. */
void gpu_costs(const char *ptx);
/* Launches a second of a chain and of 16 chains, with streams and events, and as a CUDA graph. */
void gpu_rates(const char *ptx, uint64_t *cells, uint64_t *stamps);

#endif

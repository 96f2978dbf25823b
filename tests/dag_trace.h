/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef WEIR_TESTS_DAG_TRACE_H
#define WEIR_TESTS_DAG_TRACE_H

/* A recording held against the oracle. */

#include <trace/model.h>

#include "dag.h"
#include "oracle.h"

/* What is not true of the tasks of one scope: "" if all is. The text is static. */
const char *dag_trace_fault(const struct weir__trace *trace, uint32_t scope_number, const struct dag_scope *scope,
                            const struct oracle_relation *relation, const struct weir_counters *counters);

#endif

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
weir_test(graph_clock_test LIBRARIES weir_graph)
weir_test(graph_certificate_test LIBRARIES weir_graph)
# group.c is a part of the test itself, which counts in it.
set(weir_group_parts depend.c error.c extra.c node.c ranges.c)
list(TRANSFORM weir_group_parts PREPEND ${PROJECT_SOURCE_DIR}/graph/)
weir_test(graph_group_test SOURCES ${weir_group_parts})

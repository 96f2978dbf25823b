# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
weir_test(graph_clock_test LIBRARIES weir_graph)
weir_test(graph_certificate_test LIBRARIES weir_graph)

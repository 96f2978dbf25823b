# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Random graphs against the oracle; fewer under a sanitizer, where each is slower.
set(weir_exec_parts weir_exec weir_graph weir_devices weir_mock)
if(WEIR_SANITIZER)
  set(weir_test_dags 500)
else()
  set(weir_test_dags 10000)
endif()
weir_test(exec_property_test SOURCES dag.c oracle.c rig.c LIBRARIES ${weir_exec_parts} TIMEOUT 600)
target_compile_definitions(exec_property_test PRIVATE WEIR_TEST_DAGS=${weir_test_dags})
weir_test(exec_threads_test SOURCES rig.c LIBRARIES ${weir_exec_parts} TIMEOUT 600)
weir_test(exec_input_test LIBRARIES ${weir_exec_parts})
weir_test(exec_edges_test SOURCES oracle.c rig.c LIBRARIES ${weir_exec_parts})
weir_test(exec_wait_test LIBRARIES ${weir_exec_parts})
weir_test(exec_recovery_test LIBRARIES ${weir_exec_parts})
weir_test(exec_idle_test LIBRARIES ${weir_exec_parts})
# Allocations of the library's objects go through the test.
weir_test(exec_memory_test LIBRARIES ${weir_exec_parts} TIMEOUT 600)
foreach(function malloc calloc realloc aligned_alloc posix_memalign free pthread_create)
  target_link_options(exec_memory_test PRIVATE -Wl,--wrap=${function})
endforeach()
if(WEIR_SANITIZER)
  foreach(test exec_memory_test exec_idle_test)
    target_compile_definitions(${test} PRIVATE WEIR_TEST_SANITIZED)
  endforeach()
endif()

# The access table alone, against the same oracle.
weir_test(graph_depend_test SOURCES dag.c oracle.c LIBRARIES weir_graph)

# What is decided about device edges, judged by the checker of certificates.
weir_test(exec_certificate_test LIBRARIES ${weir_exec_parts})

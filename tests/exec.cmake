# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Random graphs against the oracle; fewer under a sanitizer, where each is slower.
set(weir_exec_parts weir_exec weir_trace weir_graph weir_devices weir_mock)
if(WEIR_SANITIZER)
  set(weir_test_dags 500)
else()
  set(weir_test_dags 10000)
endif()
weir_test(exec_property_test SOURCES dag.c dag_trace.c oracle.c rig.c LIBRARIES ${weir_exec_parts} TIMEOUT 600)
target_compile_definitions(exec_property_test PRIVATE WEIR_TEST_DAGS=${weir_test_dags})
weir_test(exec_threads_test SOURCES rig.c LIBRARIES ${weir_exec_parts} TIMEOUT 600)
weir_test(exec_input_test LIBRARIES ${weir_exec_parts})
weir_test(exec_edges_test SOURCES oracle.c rig.c LIBRARIES ${weir_exec_parts})
weir_test(exec_wait_test LIBRARIES ${weir_exec_parts})
weir_test(exec_recovery_test LIBRARIES ${weir_exec_parts})
weir_test(exec_idle_test LIBRARIES ${weir_exec_parts})
weir_test(exec_lease_test LIBRARIES ${weir_exec_parts})
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

# What has a rig, on the devices of the emulated CUDA driver, which fails the test for what it reports.
set(weir_cuda_environment "LD_LIBRARY_PATH=$<TARGET_FILE_DIR:emulator>" WEIR_TEST_KINDS=cuda WEIR_CUDA_EMULATOR_DEVICES=2
  WEIR_CUDA_EMULATOR_STRICT=1 WEIR_CUDA_EMULATOR_REPORT_HIDDEN_SYNC=1 WEIR_CUDA_EMULATOR_REPORT_LEGACY=1
  WEIR_CUDA_EMULATOR_REPORT_RERECORD=1)
function(weir_cuda_variant test variant)
  add_test(NAME ${test}_${variant} COMMAND ${test} --jobs 1)
  set_tests_properties(${test}_${variant} PROPERTIES TIMEOUT 300 SKIP_RETURN_CODE 77
    ENVIRONMENT "${weir_cuda_environment};${ARGN}")
endfunction()
weir_cuda_variant(exec_edges_test cuda)
weir_cuda_variant(exec_threads_test cuda)
weir_cuda_variant(exec_property_test cuda WEIR_TEST_DAGS=600)
# One hardware queue, calls that block when 16 operations are queued, and handles that come back at once.
weir_cuda_variant(exec_property_test cuda_narrow WEIR_TEST_DAGS=200 WEIR_CUDA_EMULATOR_QUEUES=1
  WEIR_CUDA_EMULATOR_LAUNCH_QUEUE=16 WEIR_CUDA_EMULATOR_REUSE_HANDLES=1)
# Operations of several streams in random order, with random delays.
weir_cuda_variant(exec_property_test cuda_random WEIR_TEST_DAGS=200 WEIR_CUDA_EMULATOR_SEED=3
  WEIR_CUDA_EMULATOR_DELAY_US=30)

# The same on the devices of plugins: weir's own, which has events, and one that has none.
if(WEIR_OPENMP)
  foreach(plugin events complete)
    set(file ${CMAKE_CURRENT_BINARY_DIR}/fakes/${plugin}.so)
    if(plugin STREQUAL events)
      set(file $<TARGET_FILE:weir_plugin>)
    endif()
    foreach(test exec_threads_test exec_property_test)
      add_test(NAME ${test}_plugin_${plugin} COMMAND ${test} --jobs 1)
      set_tests_properties(${test}_plugin_${plugin} PROPERTIES TIMEOUT 300 SKIP_RETURN_CODE 77
        ENVIRONMENT "WEIR_TEST_KINDS=plugin;WEIR_DEVICE=plugin;WEIR_PLUGIN=${file};WEIR_TEST_DAGS=200")
    endforeach()
  endforeach()
  add_dependencies(exec_property_test weir_plugin devices_fake_complete)
endif()

# Copies of pageable memory, users of the driver beside weir, how many calls of the driver a task costs, and what happens if each of them fails.
foreach(test exec_cuda_copies_test exec_cuda_counts_test exec_cuda_failures_test exec_cuda_foreign_test)
  weir_test(${test} LIBRARIES weir_exec weir_trace weir_graph weir_devices emulator TIMEOUT 300)
  add_dependencies(${test} emulator_kernels)
  target_compile_definitions(${test} PRIVATE EMULATOR_IMAGE="$<TARGET_FILE:emulator_kernels>")
  target_include_directories(${test} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
endforeach()

# On a machine with a GPU; see tests/gpu/run.
add_executable(gpu_check gpu/check.c gpu/graph.c)
target_link_libraries(gpu_check PRIVATE weir_build ${weir_exec_parts} PkgConfig::FFI ${CMAKE_DL_LIBS})
add_test(NAME gpu COMMAND gpu_check)
set_tests_properties(gpu PROPERTIES TIMEOUT 300 SKIP_RETURN_CODE 77)

# What is written of a recording.
weir_test(exec_trace_test SOURCES json.c LIBRARIES ${weir_exec_parts})
weir_test(exec_timeline_test SOURCES json.c timeline_rules.c LIBRARIES ${weir_exec_parts} m)
# The same rules, for files that programs under `weir run` leave.
add_executable(timeline_check timeline_check.c timeline_rules.c json.c)
target_link_libraries(timeline_check PRIVATE weir_build m)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# The documentation's programs, the packages and the command.
add_subdirectory(${PROJECT_SOURCE_DIR}/docs/snippets ${PROJECT_BINARY_DIR}/docs/snippets)

set(WEIR_TEST_PREFIX ${PROJECT_BINARY_DIR}/tests/prefix)
function(weir_shell_test name)
  add_test(NAME install_${name} COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/install_${name}.sh)
  set_tests_properties(install_${name} PROPERTIES TIMEOUT 120 SKIP_RETURN_CODE 77 ${ARGN}
    ENVIRONMENT "SOURCE=${PROJECT_SOURCE_DIR};BUILD=${PROJECT_BINARY_DIR};PREFIX=${WEIR_TEST_PREFIX};OPENMP=${WEIR_OPENMP}")
endfunction()

weir_shell_test(docs)
weir_shell_test(words)
# What is installed is the optimised build.
if(NOT WEIR_SANITIZER)
  weir_shell_test(prefix FIXTURES_SETUP prefix)
  weir_shell_test(consumers FIXTURES_REQUIRED prefix)
  weir_shell_test(exports FIXTURES_REQUIRED prefix)
  weir_shell_test(trace FIXTURES_REQUIRED prefix)
  weir_shell_test(graphviz FIXTURES_REQUIRED prefix)
  if(WEIR_OPENMP)
    weir_shell_test(pictures FIXTURES_REQUIRED prefix TIMEOUT 300)
    weir_shell_test(run FIXTURES_REQUIRED prefix)
    weir_shell_test(openmp FIXTURES_REQUIRED prefix)
    weir_shell_test(link_order FIXTURES_REQUIRED prefix)
  endif()
endif()

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Generated programs, compiled by clang. A sanitized libweir.so cannot be loaded into them.
if(NOT WEIR_OPENMP OR WEIR_SANITIZER)
  return()
endif()
add_test(NAME openmp_generated
  COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/generate/run.sh 200 1 ${PROJECT_BINARY_DIR}/${CMAKE_INSTALL_LIBDIR} ${CMAKE_CURRENT_BINARY_DIR})
set_tests_properties(openmp_generated PROPERTIES TIMEOUT 900 SKIP_RETURN_CODE 77 PROCESSORS 2)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# The emulated driver. Its tests are linked to it.
add_library(emulator_kernels MODULE cuda/image_kernels.c)
target_link_libraries(emulator_kernels PRIVATE weir_build emulator)
set_target_properties(emulator_kernels PROPERTIES C_VISIBILITY_PRESET default)

function(weir_emulator_test name)
  weir_test(${name} SOURCES cuda/rig.c LIBRARIES emulator)
  add_dependencies(${name} emulator_kernels emulator_11_0)
  target_compile_definitions(${name} PRIVATE EMULATOR_IMAGE="$<TARGET_FILE:emulator_kernels>")
  if(NOT WEIR_SANITIZER)
    target_compile_definitions(${name} PRIVATE EMULATOR_11_0="$<TARGET_FILE:emulator_11_0>")
  endif()
  target_include_directories(${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
endfunction()
weir_emulator_test(cuda_emulator_start_test)
weir_emulator_test(cuda_emulator_stream_test)
weir_emulator_test(cuda_emulator_memory_test)
weir_emulator_test(cuda_emulator_module_test)

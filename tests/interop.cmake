# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
if(NOT WEIR_OPENMP)
  return()
endif()
set(weir_facade weir_interop weir_exec weir_trace weir_devices weir_graph PkgConfig::FFI ${CMAKE_DL_LIBS})

weir_test(interop_shape_test SOURCES ${PROJECT_SOURCE_DIR}/interop/shape.c)
add_executable(interop_shape_print interop_shape_print.c ${PROJECT_SOURCE_DIR}/interop/shape.c)
target_link_libraries(interop_shape_print PRIVATE weir_build)
add_test(NAME interop_nvptx COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/interop_nvptx.sh $<TARGET_FILE:interop_shape_print>)
set_tests_properties(interop_nvptx PROPERTIES TIMEOUT 120 SKIP_RETURN_CODE 77)
weir_test(interop_decode_test SOURCES ${PROJECT_SOURCE_DIR}/interop/decode.c)

# A device image made by hand, and an executable whose functions stand in for libomp.
add_library(interop_image MODULE interop_image.c)
target_compile_options(interop_image PRIVATE -fvisibility=default)
weir_test(interop_registry_test LIBRARIES ${weir_facade})
add_dependencies(interop_registry_test interop_image)
target_compile_definitions(interop_registry_test PRIVATE INTEROP_IMAGE="$<TARGET_FILE:interop_image>")
set_target_properties(interop_registry_test PROPERTIES ENABLE_EXPORTS ON)
weir_test(interop_properties_test LIBRARIES ${weir_facade})
add_dependencies(interop_properties_test interop_image)
target_compile_definitions(interop_properties_test PRIVATE INTEROP_IMAGE="$<TARGET_FILE:interop_image>")
set_target_properties(interop_properties_test PROPERTIES ENABLE_EXPORTS ON)

weir_test(interop_driver_test LIBRARIES ${weir_facade} emulator)
add_dependencies(interop_driver_test interop_image)
target_compile_definitions(interop_driver_test PRIVATE INTEROP_IMAGE="$<TARGET_FILE:interop_image>")
target_include_directories(interop_driver_test PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
set_target_properties(interop_driver_test PROPERTIES ENABLE_EXPORTS ON)

# Interop constructs beside stand-ins for libomp and the shim.
weir_test(interop_nodes_test SOURCES ${PROJECT_SOURCE_DIR}/interop/interop_order.c
  ${PROJECT_SOURCE_DIR}/interop/interop_object.c LIBRARIES weir_exec weir_trace weir_devices weir_graph PkgConfig::FFI ${CMAKE_DL_LIBS})

# The map rules on a stand-in for exec/work.h.
foreach(part data data_arguments data_attach data_begin data_end data_region data_update mapping mapping_ended)
  list(APPEND weir_map_rules ${PROJECT_SOURCE_DIR}/interop/${part}.c)
endforeach()
set(weir_beneath ${PROJECT_SOURCE_DIR}/graph/error.c ${PROJECT_SOURCE_DIR}/devices/thread.c)
weir_test(interop_mapping_test SOURCES fake_work.c ${PROJECT_SOURCE_DIR}/interop/mapping.c
  ${PROJECT_SOURCE_DIR}/interop/mapping_ended.c ${weir_beneath} TIMEOUT 600)
weir_test(interop_data_test SOURCES fake_work.c ${weir_map_rules} ${weir_beneath})
weir_test(interop_lifetime_test SOURCES fake_work.c ${weir_map_rules} ${weir_beneath})
weir_test(interop_order_test SOURCES fake_work.c ${weir_map_rules} ${weir_beneath} TIMEOUT 600)
foreach(function malloc calloc realloc)
  target_link_options(interop_order_test PRIVATE -Wl,--wrap=${function})
endforeach()

# Programs compiled by clang, on the drop-in and preloaded. A sanitized libweir.so cannot be loaded into them.
if(NOT WEIR_SANITIZER)
  file(GLOB weir_openmp_programs CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/openmp/*.c)
  foreach(program IN LISTS weir_openmp_programs)
    get_filename_component(name ${program} NAME_WE)
    add_test(NAME openmp_${name}
      COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/run_openmp.sh ${program} ${PROJECT_BINARY_DIR}/${CMAKE_INSTALL_LIBDIR})
    set_tests_properties(openmp_${name} PROPERTIES TIMEOUT 300 SKIP_RETURN_CODE 77)
    # The same on the emulated CUDA driver, whose memory the host cannot reach.
    add_test(NAME openmp_cuda_${name}
      COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/run_openmp.sh ${program} ${PROJECT_BINARY_DIR}/${CMAKE_INSTALL_LIBDIR}
        $<TARGET_FILE_DIR:emulator>)
    set_tests_properties(openmp_cuda_${name} PROPERTIES TIMEOUT 300 SKIP_RETURN_CODE 77)
  endforeach()
endif()

# The plugin for LLVM's libomptarget: its functions, and the library.
weir_test(interop_plugin_test LIBRARIES weir_plugin_objects weir_exec weir_trace weir_devices weir_graph PkgConfig::FFI
  ${CMAKE_DL_LIBS})
add_dependencies(interop_plugin_test weir_plugin devices_host_image_2)
target_compile_definitions(interop_plugin_test PRIVATE
  PLUGIN="$<TARGET_FILE:weir_plugin>" IMAGE="$<TARGET_FILE:devices_host_image_2>")
# LLVM's own libomptarget, unpacked from its packages, loads the plugin; weir loads LLVM's.
if(NOT WEIR_SANITIZER)
  foreach(release 14 16)
    add_test(NAME interop_plugin_llvm_${release} COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/plugin/in_llvm.sh ${release}
      ${PROJECT_BINARY_DIR}/llvm $<TARGET_FILE_DIR:weir_plugin>)
    add_test(NAME devices_plugin_llvm_${release} COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/plugin/on_weir.sh ${release}
      ${PROJECT_BINARY_DIR}/llvm ${PROJECT_BINARY_DIR}/${CMAKE_INSTALL_LIBDIR} $<TARGET_FILE:exec_property_test>)
    set_tests_properties(interop_plugin_llvm_${release} devices_plugin_llvm_${release} PROPERTIES
      TIMEOUT 300 SKIP_RETURN_CODE 77)
  endforeach()
endif()

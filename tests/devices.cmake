# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
weir_test(devices_ops_test LIBRARIES weir_devices weir_graph weir_mock)
weir_test(devices_events_test LIBRARIES weir_devices weir_graph weir_mock)
weir_test(devices_host_stream_test LIBRARIES weir_devices weir_graph)
weir_test(devices_mock_test LIBRARIES weir_devices weir_graph weir_mock)
weir_test(devices_host_native_test LIBRARIES weir_devices weir_graph)
weir_test(devices_host_short_test LIBRARIES weir_devices weir_graph)
weir_test(devices_host_stress_test LIBRARIES weir_devices weir_graph TIMEOUT 300)
weir_test(devices_host_memory_test LIBRARIES weir_devices weir_graph)
target_link_options(devices_host_memory_test PRIVATE
  -Wl,--wrap=malloc -Wl,--wrap=realloc -Wl,--wrap=posix_memalign -Wl,--wrap=pthread_create)
weir_test(devices_host_module_test LIBRARIES weir_devices weir_graph)
foreach(version 1 2 3)
  add_library(devices_host_image_${version} MODULE devices_host_image.c)
  target_compile_definitions(devices_host_image_${version} PRIVATE VERSION=${version})
  set_target_properties(devices_host_image_${version} PROPERTIES C_VISIBILITY_PRESET default)
  add_dependencies(devices_host_module_test devices_host_image_${version})
endforeach()
target_link_options(devices_host_image_1 PRIVATE -Wl,-z,nodelete)
target_compile_definitions(devices_host_image_3 PRIVATE MISSING)
target_compile_definitions(devices_host_module_test PRIVATE
  HOST_IMAGE_1="$<TARGET_FILE:devices_host_image_1>" HOST_IMAGE_2="$<TARGET_FILE:devices_host_image_2>"
  HOST_IMAGE_BROKEN="$<TARGET_FILE:devices_host_image_3>")

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# What `cmake --install` puts where.
include(CMakePackageConfigHelpers)

install(TARGETS weir weir_static EXPORT weir-targets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS weir_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/weir DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
foreach(name IN LISTS WEIR_DROPIN_NAMES)
  install(FILES ${WEIR_BUILD_LIB}/weir/${name} DESTINATION ${CMAKE_INSTALL_LIBDIR}/weir)
endforeach()
if(WEIR_OPENMP)
  install(TARGETS weir_plugin LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/weir/plugins)
  install(FILES ${WEIR_BUILD_LIB}/weir/plugins/${WEIR_PLUGIN_LINK} DESTINATION ${CMAKE_INSTALL_LIBDIR}/weir/plugins)
endif()

# find_package(weir)
set(weir_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/weir)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/weir-config.cmake.in
  ${PROJECT_BINARY_DIR}/weir-config.cmake INSTALL_DESTINATION ${weir_package_dir})
# Before 1.0 a minor version may change what a program sees.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/weir-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/weir-config.cmake ${PROJECT_BINARY_DIR}/weir-config-version.cmake
  DESTINATION ${weir_package_dir})
install(EXPORT weir-targets NAMESPACE weir:: DESTINATION ${weir_package_dir})

# pkg-config; relative to its own place, so that an installation can be moved.
file(RELATIVE_PATH weir_pc_prefix
  ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(${PROJECT_SOURCE_DIR}/cmake/weir.pc.in ${PROJECT_BINARY_DIR}/weir.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/weir.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

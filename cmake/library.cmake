# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# libweir.so, libweir.a and the links under the names of LLVM's offload library. The build tree has the layout of an
# installation (lib, lib/weir, bin), so that everything finds its neighbours in the same way in both.
set(WEIR_BUILD_LIB ${PROJECT_BINARY_DIR}/${CMAKE_INSTALL_LIBDIR})
set(weir_parts weir_graph weir_devices weir_trace weir_exec)
set(weir_map ${PROJECT_SOURCE_DIR}/cmake/weir.map)
if(WEIR_OPENMP)
  list(APPEND weir_parts weir_interop)
  set(weir_map ${PROJECT_SOURCE_DIR}/cmake/weir_openmp.map)
endif()
set(weir_objects)
foreach(part IN LISTS weir_parts)
  list(APPEND weir_objects $<TARGET_OBJECTS:${part}>)
endforeach()

add_library(weir SHARED ${weir_objects})
if(WEIR_OPENMP)
  target_sources(weir PRIVATE ${PROJECT_SOURCE_DIR}/interop/interop_versions.c)
endif()
target_link_libraries(weir PRIVATE weir_build PkgConfig::FFI ${CMAKE_DL_LIBS})
# It stays once it was loaded: its threads, and those of the program that end later, run its code.
target_link_options(weir PRIVATE -Wl,--version-script=${weir_map} -Wl,-z,defs,-z,nodelete)
if(WEIR_SANITIZER)
  # The sanitizers' own symbols come from the executable.
  target_link_options(weir PRIVATE -Wl,-z,undefs)
endif()
set_target_properties(weir PROPERTIES
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR} LINK_DEPENDS ${weir_map}
  LINKER_LANGUAGE C LIBRARY_OUTPUT_DIRECTORY ${WEIR_BUILD_LIB})

add_library(weir_static STATIC ${weir_objects})
target_link_libraries(weir_static INTERFACE Threads::Threads ffi ${CMAKE_DL_LIBS})
set_target_properties(weir_static PROPERTIES
  OUTPUT_NAME weir LINKER_LANGUAGE C ARCHIVE_OUTPUT_DIRECTORY ${WEIR_BUILD_LIB})

foreach(target weir weir_static)
  target_include_directories(${target} INTERFACE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  add_library(weir::${target} ALIAS ${target})
endforeach()

# The names that programs of the supported clangs ask for. Links, not libraries: a preloaded libweir.so and the
# drop-in are then one and the same object to the dynamic linker and are never loaded twice.
if(WEIR_OPENMP)
  set(WEIR_DROPIN_NAMES libomptarget.so libomptarget.so.15 libomptarget.so.16 libomptarget.so.19.1
      libomptarget.so.22.1)
  file(MAKE_DIRECTORY ${WEIR_BUILD_LIB}/weir)
  foreach(name IN LISTS WEIR_DROPIN_NAMES)
    file(CREATE_LINK ../libweir.so ${WEIR_BUILD_LIB}/weir/${name} SYMBOLIC)
  endforeach()
endif()

# The CPU backend for the libomptarget of LLVM 14 and 16, in a folder of its own: found only by those who ask for it.
# LLVM 16 looks for the second name first. Both drop what they loaded at exit, while threads of ours may still run.
if(WEIR_OPENMP)
  add_library(weir_plugin MODULE $<TARGET_OBJECTS:weir_plugin_objects> $<TARGET_OBJECTS:weir_exec>
    $<TARGET_OBJECTS:weir_trace> $<TARGET_OBJECTS:weir_devices> $<TARGET_OBJECTS:weir_graph>)
  set(weir_plugin_map ${PROJECT_SOURCE_DIR}/cmake/weir_plugin.map)
  target_link_libraries(weir_plugin PRIVATE weir_build PkgConfig::FFI ${CMAKE_DL_LIBS})
  target_link_options(weir_plugin PRIVATE -Wl,--version-script=${weir_plugin_map} -Wl,-z,nodelete)
  if(NOT WEIR_SANITIZER) # its functions come with the program
    target_link_options(weir_plugin PRIVATE -Wl,-z,defs)
  endif()
  set_target_properties(weir_plugin PROPERTIES OUTPUT_NAME omptarget.rtl.x86_64 LINK_DEPENDS ${weir_plugin_map}
    LINKER_LANGUAGE C LIBRARY_OUTPUT_DIRECTORY ${WEIR_BUILD_LIB}/weir/plugins)
  set(WEIR_PLUGIN_LINK libomptarget.rtl.x86_64.nextgen.so)
  file(MAKE_DIRECTORY ${WEIR_BUILD_LIB}/weir/plugins)
  file(CREATE_LINK libomptarget.rtl.x86_64.so ${WEIR_BUILD_LIB}/weir/plugins/${WEIR_PLUGIN_LINK} SYMBOLIC)
endif()

# The core as a CMake package, `ringlet`, with one target, ringlet::ringlet: below the prefix, or inside the wheel.
# Nothing in it knows where that is, so it may be moved.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

if(SKBUILD)
  set(include_dir ringlet/include)
  set(library_dir ringlet/lib)
else()
  set(include_dir ${CMAKE_INSTALL_INCLUDEDIR})
  set(library_dir ${CMAKE_INSTALL_LIBDIR})
endif()
set(package_dir ${library_dir}/cmake/ringlet)

# What a program may include. All else is ours, and changes without notice.
set(public_headers
  collectives/algorithms/single_controller.hpp
  collectives/call/call.hpp
  collectives/group/group.hpp
  collectives/group/member.hpp
  core/dtype.hpp
  core/error.hpp
  core/op.hpp
  memory/pool.hpp
  memory/region.hpp
  sync/cache_line.hpp
  sync/event.hpp
  sync/fault.hpp
  sync/futex.hpp
  sync/wait.hpp
  tiling/tile_grid.hpp)
list(TRANSFORM public_headers PREPEND ${PROJECT_SOURCE_DIR}/cpp/ringlet/)

target_sources(ringlet_core PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/cpp FILES ${public_headers})
set_target_properties(ringlet_core PROPERTIES OUTPUT_NAME ringlet EXPORT_NAME ringlet)
add_library(ringlet::ringlet ALIAS ringlet_core)

if(SKBUILD)
  # Whoever includes a public header finds what it declares; within the library, calls stay within it.
  set_target_properties(ringlet_core PROPERTIES CXX_VISIBILITY_PRESET default)
  if(NOT APPLE)
    target_compile_options(ringlet_core PRIVATE -fno-semantic-interposition)
    set(internal_classes ${PROJECT_SOURCE_DIR}/cmake/internal_classes.map)
    target_link_options(ringlet_core PRIVATE LINKER:-Bsymbolic LINKER:--version-script=${internal_classes})
    set_property(TARGET ringlet_core PROPERTY LINK_DEPENDS ${internal_classes})
  endif()
endif()

install(TARGETS ringlet_core EXPORT ringlet ARCHIVE DESTINATION ${library_dir} LIBRARY DESTINATION ${library_dir}
  FILE_SET HEADERS DESTINATION ${include_dir})
install(EXPORT ringlet NAMESPACE ringlet:: FILE ringletTargets.cmake DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/ringletConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_SOURCE_DIR}/cmake/ringletConfig.cmake ${PROJECT_BINARY_DIR}/ringletConfigVersion.cmake
  DESTINATION ${package_dir})

# How everything here is compiled.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")  # for all but the kernels

# Identical bits on every CPU: no fused multiply-add, no reordering. Floating-point exception flags
# are not read, and loops that keep them are not vectorised.
add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wconversion -ffp-contract=off -fno-trapping-math)
if(PROJECT_IS_TOP_LEVEL AND NOT SKBUILD)
  add_compile_options(-Werror)
endif()
if(RINGLET_SANITIZE)
  add_compile_options(-fsanitize=${RINGLET_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${RINGLET_SANITIZE})
endif()

# Headers that are parsed once for all sources of a target, where these have the same options; in a release they differ.
if(NOT CMAKE_BUILD_TYPE STREQUAL "Release")
  set(precompiled_headers <algorithm> <array> <atomic> <chrono> <cstring> <exception> <memory> <mutex> <optional> <span>
    <string> <string_view> <thread> <vector>)
  set(precompiled_extension_headers <pybind11/numpy.h> <pybind11/pybind11.h> <pybind11/stl.h>)
endif()

# find_package(ringlet CONFIG): the target ringlet::ringlet. docs/cpp.md tells how to find it in a Python installation.
include(CMakeFindDependencyMacro)
find_dependency(Threads)
include(${CMAKE_CURRENT_LIST_DIR}/ringletTargets.cmake)

// The parts of the extension module, one per folder of the core.
#pragma once

#include <pybind11/pybind11.h>

namespace ringlet::bindings {

[[gnu::cold]] void register_errors();
[[gnu::cold]] void register_examples(pybind11::module_& m);
[[gnu::cold]] void register_io(pybind11::module_& m);
[[gnu::cold]] void register_kernels(pybind11::module_& m);
[[gnu::cold]] void register_memory(pybind11::module_& m);
[[gnu::cold]] void register_sync(pybind11::module_& m);
[[gnu::cold]] void register_tables(pybind11::module_& m);
[[gnu::cold]] void register_tiling(pybind11::module_& m);
[[gnu::cold]] void register_dtypes(pybind11::module_& m);
[[gnu::cold]] void register_thread_reports(pybind11::module_& m);
[[gnu::cold]] void register_world(pybind11::module_& m);
[[gnu::cold]] void register_groups(pybind11::module_& m);
[[gnu::cold]] void register_collectives(pybind11::module_& m);
[[gnu::cold]] void register_plan(pybind11::module_& m);
[[gnu::cold]] void register_controller(pybind11::module_& m);

}  // namespace ringlet::bindings

// The parts of the extension module, one per folder of the core.
#pragma once

#include <pybind11/pybind11.h>

namespace ringlet::bindings {

void register_errors();
void register_examples(pybind11::module_& m);
void register_io(pybind11::module_& m);
void register_kernels(pybind11::module_& m);
void register_memory(pybind11::module_& m);
void register_sync(pybind11::module_& m);
void register_tables(pybind11::module_& m);
void register_tiling(pybind11::module_& m);
void register_dtypes(pybind11::module_& m);
void register_thread_reports(pybind11::module_& m);
void register_world(pybind11::module_& m);
void register_collectives(pybind11::module_& m);
void register_plan(pybind11::module_& m);
void register_controller(pybind11::module_& m);

}  // namespace ringlet::bindings

#include <pybind11/pybind11.h>

#include "registers.hpp"

PYBIND11_MODULE(_core, m) {
  m.doc() = "The compiled core of ringlet. Use the Python modules instead.";
  ringlet::bindings::register_errors();
  ringlet::bindings::register_examples(m);
  ringlet::bindings::register_io(m);
  ringlet::bindings::register_kernels(m);
  ringlet::bindings::register_memory(m);
  ringlet::bindings::register_sync(m);
  ringlet::bindings::register_tables(m);
  ringlet::bindings::register_tiling(m);
  ringlet::bindings::register_dtypes(m);
  ringlet::bindings::register_thread_reports(m);
  ringlet::bindings::register_world(m);
  ringlet::bindings::register_collectives(m);
  ringlet::bindings::register_plan(m);
  ringlet::bindings::register_controller(m);
}

#include <pybind11/pybind11.h>

#include "registers.hpp"

// docs/decisions/017-free-threading.md
#if defined(RINGLET_FREE_THREADED)
#if defined(Py_GIL_DISABLED) && PY_VERSION_HEX < 0x030E0000
#error "RINGLET_FREE_THREADED requires Python 3.14: before, the places of calls are found under the interpreter lock"
#endif
PYBIND11_MODULE(_core, m, pybind11::mod_gil_not_used()) {
#else
PYBIND11_MODULE(_core, m) {
#endif
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
  ringlet::bindings::register_groups(m);
  ringlet::bindings::register_collectives(m);
  ringlet::bindings::register_plan(m);
  ringlet::bindings::register_controller(m);
}

#include "ringlet/memory/pool.hpp"

#include <pybind11/stl.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "interpreter.hpp"
#include "registers.hpp"

namespace py = pybind11;
using py::literals::operator""_a;

namespace ringlet::bindings {

namespace {

py::dict pool_statistics() {
  const memory::PoolStatistics statistics = memory::result_pool().statistics();
  py::dict counts;
  counts["live_blocks"] = statistics.live_blocks;
  counts["live_bytes"] = statistics.live_bytes;
  counts["idle_blocks"] = statistics.idle_blocks;
  counts["idle_bytes"] = statistics.idle_bytes;
  return counts;
}

std::size_t trim_pool() {
  std::size_t bytes = 0;
  without_interpreter([&] { bytes = memory::result_pool().trim(); });
  return bytes;
}

std::pair<py::object, py::object> allocate(const std::vector<std::int64_t>& shape, const py::dtype& dtype) {
  auto bytes = static_cast<std::size_t>(dtype.itemsize());
  for (const std::int64_t size : shape) bytes *= static_cast<std::size_t>(size);
  return arrays_on(memory::result_pool().allocate(std::max<std::size_t>(bytes, 1)), dtype, shape);
}

// Whether only the list refers to its first item. The parameter is the list, because interpreters differ in whether a
// passed item has another reference.
bool holds_alone(const py::list& list) { return Py_REFCNT(PyList_GET_ITEM(list.ptr(), 0)) == 1; }

void set_pool_keep_idle(double seconds) { memory::result_pool().set_keep_idle(timeout_of(seconds)); }

}  // namespace

void register_memory(py::module_& m) {
  m.def("allocate", allocate, "shape"_a, "dtype"_a);
  m.def("holds_alone", holds_alone, "list"_a);
  m.def("pool_statistics", pool_statistics);
  m.def("trim_pool", trim_pool);
  m.def("set_pool_keep_idle", set_pool_keep_idle, "seconds"_a);
}

}  // namespace ringlet::bindings

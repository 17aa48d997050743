#include "ringlet/memory/pool.hpp"

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

void set_pool_keep_idle(double seconds) { memory::result_pool().set_keep_idle(timeout_of(seconds)); }

}  // namespace

void register_memory(py::module_& m) {
  m.def("pool_statistics", pool_statistics);
  m.def("trim_pool", trim_pool);
  m.def("set_pool_keep_idle", set_pool_keep_idle, "seconds"_a);
}

}  // namespace ringlet::bindings

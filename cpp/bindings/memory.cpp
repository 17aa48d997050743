#include "registers.hpp"
#include "ringlet/memory/pool.hpp"

namespace py = pybind11;

namespace ringlet::bindings {

void register_memory(py::module_& m) {
  m.def("pool_statistics", [] {
    const memory::PoolStatistics statistics = memory::result_pool().statistics();
    py::dict counts;
    counts["live_blocks"] = statistics.live_blocks;
    counts["live_bytes"] = statistics.live_bytes;
    counts["idle_blocks"] = statistics.idle_blocks;
    counts["idle_bytes"] = statistics.idle_bytes;
    return counts;
  });
  m.def("trim_pool", [] { return memory::result_pool().trim(); });
}

}  // namespace ringlet::bindings

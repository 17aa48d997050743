#include "ringlet/collectives/transport/world.hpp"

#include <pybind11/stl.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "registers.hpp"
#include "ringlet/collectives/transport/holds.hpp"
#include "ringlet/memory/shared_heap.hpp"

namespace py = pybind11;
using py::literals::operator""_a;

namespace ringlet::bindings {

namespace {

using collectives::World;

// Ranks, pid, host, socket and pidfd of a process.
using Process = std::tuple<std::vector<int>, int, std::string, int, int>;

bool allows_crossing() {
  const char* const wanted = std::getenv("RINGLET_CROSS_MEMORY");
  return wanted == nullptr || std::string_view(wanted) != "0";
}

std::shared_ptr<World> make_world(int index, const std::vector<Process>& processes, const py::bytes& token) {
  std::vector<collectives::ProcessInfo> infos;
  for (const auto& [ranks, pid, host, socket_fd, pidfd] : processes) {
    infos.push_back({.ranks = ranks, .pid = pid, .host = host, .socket_fd = socket_fd, .pidfd = pidfd});
  }
  return std::make_shared<World>(index, std::move(infos), std::string(token), allows_crossing());
}

py::object empty_shared(const std::vector<std::int64_t>& shape, const py::dtype& dtype) {
  auto bytes = static_cast<std::size_t>(dtype.itemsize());
  for (const std::int64_t size : shape) bytes *= static_cast<std::size_t>(size);
  memory::Block block;
  if (bytes <= memory::SharedHeap::kSmall) {
    block = collectives::allocate_shared(std::max<std::size_t>(bytes, 1));
  } else {
    const py::gil_scoped_release unlocked;  // the system may take seconds to reserve large amounts of memory
    block = collectives::allocate_shared(bytes);
  }
  return arrays_on(std::move(block), dtype, shape).first;
}

py::dict shared_statistics() {
  const memory::SharedHeapStatistics statistics = memory::SharedHeap::of_this_process().statistics();
  py::dict counts;
  counts["live_blocks"] = statistics.lent_blocks;
  counts["live_bytes"] = statistics.lent_bytes;
  counts["idle_blocks"] = statistics.idle_blocks;
  counts["idle_bytes"] = statistics.idle_bytes;
  return counts;
}

}  // namespace

void register_world(py::module_& m) {
  py::class_<World, std::shared_ptr<World>>(m, "World")
      .def(py::init(&make_world), "index"_a, "processes"_a, "token"_a)
      .def_property_readonly("index", &World::index)
      .def_property_readonly("num_processes", &World::num_processes)
      .def_property_readonly("num_ranks", &World::num_ranks)
      .def_property_readonly("cores", &World::cores)
      .def_property_readonly("can_cross", &World::can_use_cma);
  m.def("empty_shared", empty_shared, "shape"_a, "dtype"_a);
  m.def("shared_statistics", shared_statistics);
  m.def("trim_shared", [] { return memory::SharedHeap::of_this_process().trim(); });
}

}  // namespace ringlet::bindings

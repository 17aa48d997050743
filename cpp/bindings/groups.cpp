// Groups and the flight recorder.
#include <pybind11/stl.h>

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "arguments.hpp"
#include "interpreter.hpp"
#include "members.hpp"
#include "registers.hpp"
#include "ringlet/collectives/transport/world.hpp"
#include "ringlet/record/recorder.hpp"

namespace py = pybind11;
using py::literals::operator""_a;

namespace ringlet::bindings {

namespace {

using collectives::Algorithm;
using collectives::Group;

// Reports a long wait of one rank for a message, which is not a call of the group.
void report_stall(Group& group, const std::string& waiting, int rank) {
  std::vector<bool> is_missing(static_cast<std::size_t>(group.num_ranks()), true);
  is_missing[static_cast<std::size_t>(rank)] = false;
  without_interpreter([&] { group.report_stall(waiting, is_missing); });
}

std::shared_ptr<Group> make_group(int num_ranks, double timeout_seconds, std::uint64_t epoch,
                                  std::shared_ptr<collectives::World> world, bool from_interpreter,
                                  std::optional<double> seconds_left, double stall_seconds) {
  if (record::claim_opening()) py::module_::import("ringlet.observe.recorder_memory").attr("open_own")();
  collectives::Options options{.timeout = timeout_of(timeout_seconds),
                               .stall = timeout_of(stall_seconds),
                               .epoch = epoch,
                               .from_interpreter = from_interpreter};
  if (seconds_left.has_value()) options.remaining = timeout_of(*seconds_left);
  std::shared_ptr<Group> group;
  sync::Poll* const poll = signal_poll();
  without_interpreter([&] { group = std::make_shared<Group>(num_ranks, options, std::move(world), poll); });
  return group;
}

template <class Name>
std::string names_of(std::size_t count) {
  std::string names;
  for (std::size_t i = 0; i < count; ++i) names += std::string(name_of(static_cast<Name>(i))) + ',';
  return names + ';';
}

// The names of the operations, algorithms and dtypes that records contain as numbers.
std::string recorder_names() {
  static_assert(collectives::kNumKinds <= record::kMostKinds);
  return names_of<collectives::Kind>(collectives::kNumKinds) + names_of<core::Op>(core::kNumOps) +
         names_of<Algorithm>(collectives::kNumAlgorithms) + names_of<core::DType>(core::kNumDTypes);
}

}  // namespace

void register_groups(py::module_& m) {
  m.def("open_recorder", record::open, "fd"_a, "header"_a);
  m.def("recorder", record::descriptor);
  m.def("count_run", record::count_run);
  m.def("recorder_names", recorder_names);
  py::class_<Group, std::shared_ptr<Group>>(m, "Group")
      .def(py::init(&make_group), "num_ranks"_a, "timeout_seconds"_a, "epoch"_a, "world"_a = py::none(),
           "from_interpreter"_a = true, "seconds_left"_a = py::none(),
           "stall_seconds"_a = std::numeric_limits<double>::infinity())
      .def_property_readonly("num_ranks", &Group::num_ranks)
      .def_property_readonly("epoch", &Group::epoch)
      .def_property_readonly("failure", &Group::failure)
      .def(
          "abort", [](Group& group, const std::string& reason) { group.abort(reason); }, "reason"_a)
      .def("report_stall", report_stall, "waiting"_a, "rank"_a)
      .def(
          "member", [](std::shared_ptr<Group> group, int rank) { return HeldMember(std::move(group), rank); },
          "rank"_a);
}

}  // namespace ringlet::bindings

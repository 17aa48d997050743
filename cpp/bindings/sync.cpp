#include <pybind11/stl.h>

#include "registers.hpp"
#include "ringlet/sync/crew.hpp"
#include "signals.hpp"

namespace py = pybind11;
using py::literals::operator""_a;

namespace ringlet::bindings {

namespace {

// Claims with the interpreter in hand, so that replicas start in the order in which they are claimed.
int wait_for_claim(sync::Crew& crew) {
  for (;;) {
    {
      const py::gil_scoped_release unlocked;
      if (!crew.wait_for_work()) return sync::Crew::kNone;
    }
    if (const int replica = crew.claim(); replica != sync::Crew::kNone) return replica;
  }
}

bool wait_finished(sync::Crew& crew, double timeout_seconds) {
  SignalPoll poll;
  const py::gil_scoped_release unlocked;
  return crew.wait_finished(timeout_of(timeout_seconds), &poll);
}

}  // namespace

void register_sync(py::module_& m) {
  py::class_<sync::Crew>(m, "Crew")
      .def(py::init<int>(), "num_replicas"_a)
      .def("open", &sync::Crew::open)
      .def("claim", &sync::Crew::claim)
      .def("wait_for_claim", wait_for_claim)
      .def("finish", &sync::Crew::finish, "replica"_a)
      .def("wait_finished", wait_finished, "timeout_seconds"_a)
      .def("running", &sync::Crew::running)
      .def("close", &sync::Crew::close);
}

}  // namespace ringlet::bindings

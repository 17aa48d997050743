#include <pthread.h>
#include <pybind11/stl.h>

#include <string>

#include "interpreter.hpp"
#include "registers.hpp"
#include "ringlet/sync/crew.hpp"
#include "ringlet/sync/process/process.hpp"

namespace py = pybind11;
using py::literals::operator""_a;

namespace ringlet::bindings {

namespace {

unsigned long main_thread = 0;

// In the child of a fork, the forking thread is the main thread.
void keep_main_thread() { main_thread = PyThread_get_thread_ident(); }

class SignalPoll final : public sync::Poll {
 public:
  void operator()() override {
    const py::gil_scoped_acquire locked;
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
  }
};

// Claims while holding the interpreter lock, so that replicas start in the order of their claims.
int wait_for_claim(sync::Crew& crew) {
  for (;;) {
    bool is_open = true;
    without_interpreter([&] { is_open = crew.wait_for_work(); }, crew.takes_turns());
    if (!is_open) return sync::Crew::kNone;
    if (const int replica = crew.claim(); replica != sync::Crew::kNone) return replica;
  }
}

void summon_all(sync::Crew& crew) {
  without_interpreter([&] { crew.summon_all(); });  // so that woken threads can begin
}

void finish(sync::Crew& crew, int replica) {
  if (!crew.is_running(replica)) throw py::index_error("replica " + std::to_string(replica) + " is not running");
  crew.finish(replica);
}

bool wait_finished(sync::Crew& crew, double timeout_seconds) {
  sync::Poll* const poll = signal_poll();
  bool is_finished = false;
  without_interpreter([&] { is_finished = crew.wait_finished(timeout_of(timeout_seconds), poll); }, crew.takes_turns());
  return is_finished;
}

}  // namespace

sync::Turnstile& interpreter_turnstile() {
  static sync::Turnstile turnstile;
  return turnstile;
}

sync::Poll* signal_poll() {
  static SignalPoll poll;
  return PyThread_get_thread_ident() == main_thread ? &poll : nullptr;
}

void register_sync(py::module_& m) {
  main_thread = py::module_::import("threading").attr("main_thread")().attr("ident").cast<unsigned long>();
  pthread_atfork(nullptr, nullptr, keep_main_thread);
  m.def("is_stopped", sync::is_stopped, "pid"_a);
  py::class_<sync::Crew>(m, "Crew")
      .def(py::init<int>(), "num_replicas"_a)
      .def("open", &sync::Crew::open)
      .def("claim", &sync::Crew::claim)
      .def("summon_all", summon_all)
      .def("wait_for_claim", wait_for_claim)
      .def("finish", finish, "replica"_a)
      .def("wait_finished", wait_finished, "timeout_seconds"_a)
      .def("running", &sync::Crew::running)
      .def("close", &sync::Crew::close);
  py::class_<sync::Pidfd>(m, "Pidfd")
      .def(py::init<int, int>(), "fd"_a, "pid"_a)
      .def("fileno", &sync::Pidfd::fd)
      .def("has_ended", &sync::Pidfd::has_ended)
      .def("how_it_ended", &sync::Pidfd::how_it_ended);
}

}  // namespace ringlet::bindings

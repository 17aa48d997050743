#include "ringlet/collectives/group/thread_reports.hpp"

#include <cxxabi.h>
#include <unistd.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "call_place.hpp"
#include "registers.hpp"

namespace py = pybind11;
using py::literals::operator""_a;

namespace ringlet::bindings {

namespace {

using collectives::RankThread;

// Calls f() with the interpreter lock. A thread that requests the lock while the interpreter ends blocks until the
// process has ended: see Unlocked. Its stack may be unwound first, so f() holds Python objects by plain pointers.
template <class F>
auto with_interpreter(F&& f) -> decltype(f()) {
#if defined(__GLIBCXX__)
  try {
#endif
    const PyGILState_STATE state = PyGILState_Ensure();
    auto result = f();
    PyErr_Clear();
    PyGILState_Release(state);
    return result;
#if defined(__GLIBCXX__)
  } catch (abi::__forced_unwind&) {
    for (;;) ::pause();
  }
#endif
}

// Empty if `object` is null, after an error, or not a string. Consumes the reference.
std::string text_of(PyObject* object) {
  Py_ssize_t size = 0;
  const char* const text = object == nullptr ? nullptr : PyUnicode_AsUTF8AndSize(object, &size);
  std::string copy(text == nullptr ? "" : text, text == nullptr ? 0 : static_cast<std::size_t>(size));
  Py_XDECREF(object);
  return copy;
}

// Functions of Python, which live as long as the process.
class PythonReports final : public collectives::ThreadReports {
 public:
  PythonReports(py::function call_site, py::function stacks, py::function log, int stack_signal)
      : call_site_(call_site.release().ptr()),
        stacks_(stacks.release().ptr()),
        log_(log.release().ptr()),
        stack_signal_(stack_signal) {}

  int stack_signal() override { return stack_signal_; }
  std::string call_site() override {
    return with_interpreter([this] { return text_of(PyObject_CallNoArgs(call_site_)); });
  }
  std::vector<std::string> stacks(std::span<const RankThread> ranks) override {
    return with_interpreter([&] {
      std::vector<std::string> texts;
      PyObject* const given = PyList_New(0);
      for (const RankThread& rank : ranks) {
        PyObject* const entry = Py_BuildValue("(iKO)", rank.rank, static_cast<unsigned long long>(rank.thread),
                                              rank.is_in_call ? Py_True : Py_False);
        PyList_Append(given, entry);
        Py_XDECREF(entry);
      }
      PyObject* const found = PyObject_CallOneArg(stacks_, given);
      for (Py_ssize_t i = 0; found != nullptr && i < PyList_Size(found); ++i) {
        texts.push_back(text_of(Py_NewRef(PyList_GetItem(found, i))));
      }
      Py_XDECREF(found);
      Py_DECREF(given);
      return texts;
    });
  }
  void log(const std::string& text, sync::Flag& is_logged) override {
    with_interpreter([&] {
      if (!is_logged.claim()) return false;
      PyObject* const given = PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
      Py_XDECREF(given == nullptr ? nullptr : PyObject_CallOneArg(log_, given));
      Py_XDECREF(given);
      return true;
    });
  }

 private:
  PyObject* call_site_;
  PyObject* stacks_;
  PyObject* log_;
  int stack_signal_;
};

}  // namespace

void register_thread_reports(py::module_& m) {
  m.def(
      "set_thread_reports",
      [](py::function call_site, py::function stacks, py::function log, int stack_signal) {
        collectives::set_thread_reports(
            *new PythonReports(std::move(call_site), std::move(stacks), std::move(log), stack_signal));  // never freed
      },
      "call_site"_a, "stacks"_a, "log"_a, "stack_signal"_a);
  m.def("set_places", set_places, "place"_a, "files"_a);
  m.def("note_place", note_place);
  m.def("make_calls_for", make_calls_for, "place"_a);
}

}  // namespace ringlet::bindings

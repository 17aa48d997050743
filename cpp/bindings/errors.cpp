#include <exception>
#include <system_error>

#include "registers.hpp"
#include "ringlet/core/error.hpp"

namespace py = pybind11;

namespace ringlet::bindings {

namespace {

py::object class_named(const char* name) { return py::module_::import("ringlet.errors").attr(name); }

// This code runs Python, which may run signal handlers. An exception that they raise replaces the original one; a
// translator must not throw it.
template <class F>
void set_or_interrupt(F&& set) {
  try {
    set();
  } catch (py::error_already_set& raised) {
    raised.restore();
  }
}

void set_error(const char* name, const std::exception& error) {
  set_or_interrupt([&] { PyErr_SetString(class_named(name).ptr(), error.what()); });
}

void set_error(const core::WorkerLostError& error) {
  set_or_interrupt([&] {
    const py::object type = class_named("WorkerLostError");
    PyErr_SetObject(type.ptr(), type(error.what(), error.rank, error.host, error.pid, error.reason).ptr());
  });
}

void set_error(const core::SharedMemoryError& error) {
  set_or_interrupt([&] {
    const py::object type = class_named("SharedMemoryFullError");
    const py::object raised = type(error.what(), error.wanted_bytes, error.free_bytes, error.path, error.error_number);
    PyErr_SetObject(type.ptr(), raised.ptr());
  });
}

void set_error(const std::system_error& error) {
  set_or_interrupt([&] {
    const py::handle type = PyExc_OSError;
    PyErr_SetObject(type.ptr(), type(error.code().value(), error.what()).ptr());
  });
}

}  // namespace

void register_errors() {
  py::register_local_exception_translator([](std::exception_ptr raised) {
    try {
      if (raised) std::rethrow_exception(raised);
    } catch (const core::MismatchError& error) {
      set_error("CollectiveMismatchError", error);
    } catch (const core::WorkerLostError& error) {
      set_error(error);
    } catch (const core::SharedMemoryError& error) {
      set_error(error);
    } catch (const core::AbortedError& error) {
      set_error("CollectiveAborted", error);
    } catch (const core::ClosedError& error) {
      set_error("FailedPreconditionError", error);
    } catch (const core::DeadlineError& error) {
      set_error("DeadlineExceededError", error);
    } catch (const core::PartitionError& error) {
      set_error("PartitionError", error);
    } catch (const core::ArgumentError& error) {
      set_error("InvalidArgumentError", error);
    } catch (const std::system_error& error) {
      set_error(error);
    }
  });
}

}  // namespace ringlet::bindings

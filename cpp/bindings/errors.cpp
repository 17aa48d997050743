#include <exception>

#include "registers.hpp"
#include "ringlet/core/error.hpp"

namespace py = pybind11;

namespace ringlet::bindings {

namespace {

void set_error(const char* name, const std::exception& error) {
  const py::object type = py::module_::import("ringlet.errors").attr(name);
  PyErr_SetString(type.ptr(), error.what());
}

}  // namespace

void register_errors() {
  py::register_local_exception_translator([](std::exception_ptr raised) {
    try {
      if (raised) std::rethrow_exception(raised);
    } catch (const core::MismatchError& error) {
      set_error("CollectiveMismatchError", error);
    } catch (const core::AbortedError& error) {
      set_error("CollectiveAborted", error);
    } catch (const core::DeadlineError& error) {
      set_error("DeadlineExceededError", error);
    } catch (const core::PartitionError& error) {
      set_error("PartitionError", error);
    } catch (const core::ArgumentError& error) {
      set_error("InvalidArgumentError", error);
    }
  });
}

}  // namespace ringlet::bindings

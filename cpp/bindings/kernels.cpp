#include "ringlet/kernels/kernels.hpp"

#include <string>

#include "registers.hpp"

namespace py = pybind11;

namespace ringlet::bindings {

void register_kernels(py::module_& m) {
  kernels::active();  // an unsupported RINGLET_CPU is an error when the library is loaded
  m.def("cpu_target", [] { return std::string(kernels::active().name); });
  m.def("cpu_targets", [] {
    py::list names;
    for (const kernels::Kernels* set : kernels::runnable()) names.append(std::string(set->name));
    return names;
  });
  m.def("compiler", [] {
#if defined(__clang__)
    return std::string(__VERSION__);
#else
    return std::string("GCC ") + __VERSION__;
#endif
  });
}

}  // namespace ringlet::bindings

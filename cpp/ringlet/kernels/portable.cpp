#include "ringlet/kernels/walk.hpp"

namespace ringlet::kernels {

const Kernels& portable() {
  static constexpr Kernels kKernels = make_kernels("portable");
  return kKernels;
}

}  // namespace ringlet::kernels

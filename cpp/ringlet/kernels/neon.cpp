#include "ringlet/kernels/walk.hpp"

namespace ringlet::kernels {

const Kernels& neon() {
  static constexpr Kernels kKernels = make_kernels("neon");
  return kKernels;
}

}  // namespace ringlet::kernels

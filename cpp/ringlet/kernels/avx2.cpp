#include "ringlet/kernels/walk.hpp"

namespace ringlet::kernels {

const Kernels& avx2() {
  static constexpr Kernels kKernels = make_kernels("avx2");
  return kKernels;
}

}  // namespace ringlet::kernels

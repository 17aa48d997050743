#include "ringlet/kernels/walk.hpp"

namespace ringlet::kernels {

const Kernels& avx512() {
  static constexpr Kernels kKernels = make_kernels("avx512");
  return kKernels;
}

}  // namespace ringlet::kernels

// The narrow floats only, whose conversions are arithmetic: vectors of 512 bits are faster for them than those of 256
// bits (python -m bench.targets). For the other dtypes, memory limits both, so they use the loops of avx2.
#define RINGLET_NARROW_FLOATS_ONLY
#include "ringlet/kernels/walk.hpp"

namespace ringlet::kernels {

namespace {

constexpr Kernels kNarrow = make_kernels("avx512");

const Kernels& set_for(core::DType dtype) { return row(core::Op::kMax, dtype).decode != nullptr ? kNarrow : avx2(); }

void reduce_any(core::Op op, core::DType dtype, std::span<const void* const> inputs, std::size_t count,
                std::span<void* const> outputs, Store store) {
  set_for(dtype).reduce(op, dtype, inputs, count, outputs, store);
}

void combine_any(core::Op op, core::DType dtype, const void* left, const void* mine, std::size_t count, void* partial) {
  set_for(dtype).combine(op, dtype, left, mine, count, partial);
}

void finish_any(core::Op op, core::DType dtype, const void* partial, std::size_t count, std::size_t num_ranks,
                void* result) {
  set_for(dtype).finish(op, dtype, partial, count, num_ranks, result);
}

}  // namespace

const Kernels& avx512() {
  static constexpr Kernels kKernels = {kNarrow.name, reduce_any, widen, combine_any, finish_any, copy};
  return kKernels;
}

}  // namespace ringlet::kernels

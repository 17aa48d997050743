// The loops that touch data, one set per CPU target, chosen at load.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "ringlet/core/dtype.hpp"
#include "ringlet/core/op.hpp"

namespace ringlet::kernels {

// kStream goes round the caches: for results that are larger than the second-level cache and not read at once.
enum class Store { kPlain, kStream };

// The most inputs that one reduction takes.
inline constexpr std::size_t kMaxInputs = 4096;

struct Kernels {
  std::string_view name;

  // Combines `count` elements of every input in the tree order ((0+1)+(2+3))+..., a lone subtree moving up unchanged,
  // and writes the result, of result_dtype(op, dtype), to every output. An output may be one of the inputs, or share no
  // byte with any of them.
  void (*reduce)(core::Op op, core::DType dtype, std::span<const void* const> inputs, std::size_t count,
                 std::span<void* const> outputs, Store store);

  // Partial results, of partial_dtype(dtype), for algorithms that combine two ranks at a time.
  void (*widen)(core::DType dtype, const void* mine, std::size_t count, void* partial);
  // partial = left + mine. `partial` may be `left` or, where they have one type, `mine`.
  void (*combine)(core::Op op, core::DType dtype, const void* left, const void* mine, std::size_t count, void* partial);
  // Turns the combination of `num_ranks` ranks into the result, which may be `partial` where they have one type.
  void (*finish)(core::Op op, core::DType dtype, const void* partial, std::size_t count, std::size_t num_ranks,
                 void* result);

  void (*copy)(const void* from, std::size_t bytes, void* to, Store store);
};

// One per translation unit; portable() runs everywhere.
const Kernels& portable();
#if defined(RINGLET_X86_TARGETS)
const Kernels& avx2();
const Kernels& avx512();
#endif
#if defined(RINGLET_ARM_TARGETS)
const Kernels& neon();
#endif

// The sets that this CPU can run, best first.
std::span<const Kernels* const> runnable();

// The best of them, or the one that the environment variable RINGLET_CPU names; throws ArgumentError if this CPU cannot
// run that.
const Kernels& active();

// Results of more bytes than this are stored past the caches.
std::size_t streaming_threshold_bytes();

}  // namespace ringlet::kernels

// The loops that touch data, one set per CPU target, chosen at load.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "ringlet/core/dtype.hpp"
#include "ringlet/core/op.hpp"

namespace ringlet::kernels {

// kStream bypasses the caches, for results that are larger than the L2 cache and not read immediately.
enum class Store { kPlain, kStream };

// The maximum number of inputs of one reduction.
inline constexpr std::size_t kMaxInputs = 4096;

struct Kernels {
  std::string_view name;

  // Combines `count` elements of every input in the tree order ((0+1)+(2+3))+..., in which a subtree without a sibling
  // moves up unchanged, and writes the result, of result_dtype(op, dtype), to every output. An output may be one of the
  // inputs, or share no byte with any of them.
  void (*reduce)(core::Op op, core::DType dtype, std::span<const void* const> inputs, std::size_t count,
                 std::span<void* const> outputs, Store store);

  // Converts to partial results, of partial_dtype(dtype), for algorithms that combine two ranks at a time.
  void (*widen)(core::DType dtype, const void* mine, std::size_t count, void* partial);
  // partial = left + mine. `partial` may be `left` or, if the types are equal, `mine`.
  void (*combine)(core::Op op, core::DType dtype, const void* left, const void* mine, std::size_t count, void* partial);
  // Converts the combination of `num_ranks` ranks to the result, which may be `partial` if the types are equal.
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

// The sets that this CPU can run, fastest first.
std::span<const Kernels* const> runnable();

// The fastest one, or the one that the environment variable RINGLET_CPU names; throws ArgumentError if this CPU cannot
// run it.
const Kernels& active();

// Results of more bytes than this use streaming stores.
std::size_t streaming_threshold_bytes();

}  // namespace ringlet::kernels

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

// Combines `count` elements of every input in the tree order ((0+1)+(2+3))+..., a lone subtree moving up unchanged, and
// writes the result to every output. An output may be one of the inputs, or share no byte with any of them.
using Reduce = void (*)(std::span<const void* const> inputs, std::size_t count, std::span<void* const> outputs,
                        Store store);

// One ring step: out = left + mine. `out` may be `left` or `mine`.
using Combine = void (*)(const void* left, const void* mine, std::size_t count, void* out);

// The last ring step of an operation over `num_ranks` ranks: out = finish(left + mine).
using CombineLast = void (*)(const void* left, const void* mine, std::size_t count, std::size_t num_ranks, void* out);

using Copy = void (*)(const void* from, std::size_t bytes, void* to, Store store);

struct Kernels {
  std::string_view name;
  Reduce reduce[core::kNumOps][core::kNumDTypes];
  Combine combine[core::kNumDTypes];
  CombineLast combine_last[core::kNumOps][core::kNumDTypes];
  Copy copy;
};

// One per translation unit; portable() runs everywhere.
const Kernels& portable();
#if defined(RINGLET_X86_TARGETS)
const Kernels& avx2();
const Kernels& avx512();
#endif

// The sets that this CPU can run, best first.
std::span<const Kernels* const> runnable();

// The best of them, or the one that the environment variable RINGLET_CPU names; throws ArgumentError if this CPU cannot
// run that.
const Kernels& active();

// Results of more bytes than this are stored past the caches.
std::size_t streaming_threshold_bytes();

}  // namespace ringlet::kernels

// What each rank contributes to a verified all-reduce, and the answer that must come out.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "ringlet/core/op.hpp"

namespace ringlet::bench {

// Sums of integers wrap; unsigned arithmetic says so.
template <class T>
T wrapping_add(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using Unsigned = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
  } else {
    return a + b;
  }
}

// Different at every rank and every place: a block of random values for each rank, scaled by the number of the block
// that they stand in. `is_exact`: small whole numbers, whose sums are the same in any order; else values whose sums
// show the order of rounding.
template <class T>
class Values {
 public:
  static constexpr std::size_t kBlock = std::size_t{1} << 15;

  Values(int num_ranks, bool is_exact) {
    std::uint64_t state = 20240229;
    for (int rank = 0; rank < num_ranks; ++rank) {
      auto& pattern = patterns_.emplace_back(kBlock);
      for (T& value : pattern) value = draw(state, is_exact);
    }
  }

  void fill(int rank, std::span<T> into) const {
    for (std::size_t begin = 0; begin < into.size(); begin += kBlock) {
      write_block(rank, begin, into.subspan(begin, std::min(kBlock, into.size() - begin)));
    }
  }

  // Whether `result` is, bit for bit, what `op` gives in the documented order ((0+1)+(2+3))+..., a lone subtree moving
  // up unchanged. R is the element type of the result.
  template <class R>
  bool is_result(std::span<const R> result, core::Op op) const {
    std::vector<std::vector<T>> level(patterns_.size(), std::vector<T>(kBlock));
    std::vector<R> expected(kBlock);
    for (std::size_t begin = 0; begin < result.size(); begin += kBlock) {
      const std::size_t size = std::min(kBlock, result.size() - begin);
      for (std::size_t rank = 0; rank < level.size(); ++rank) {
        write_block(static_cast<int>(rank), begin, std::span(level[rank]).first(size));
      }
      combine(level, size);
      for (std::size_t i = 0; i < size; ++i) expected[i] = finish<R>(level[0][i], op);
      if (std::memcmp(expected.data(), result.data() + begin, size * sizeof(R)) != 0) return false;
    }
    return true;
  }

 private:
  static T draw(std::uint64_t& state, bool is_exact) {
    // A linear congruential generator with Knuth's MMIX constants; its high bits are good enough for test data.
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    const auto bits = static_cast<std::int64_t>(state >> 40U);
    if (is_exact || std::is_integral_v<T>) return static_cast<T>(bits % 2001 - 1000);
    return static_cast<T>(std::ldexp(static_cast<double>(bits - (1 << 23)), static_cast<int>((state >> 32U) % 13) - 6));
  }

  void write_block(int rank, std::size_t begin, std::span<T> into) const {
    const auto factor = static_cast<T>(begin / kBlock % 17 + 1);
    const auto& pattern = patterns_[static_cast<std::size_t>(rank)];
    for (std::size_t i = 0; i < into.size(); ++i) into[i] = pattern[i] * factor;
  }

  static void combine(std::vector<std::vector<T>>& level, std::size_t size) {
    for (std::size_t count = level.size(); count > 1; count = (count + 1) / 2) {
      for (std::size_t pair = 0; pair + 1 < count; pair += 2) {
        for (std::size_t i = 0; i < size; ++i) {
          level[pair / 2][i] = wrapping_add(level[pair][i], level[pair + 1][i]);
        }
      }
      if (count % 2 == 1) level[count / 2] = level[count - 1];
    }
  }

  template <class R>
  R finish(T sum, core::Op op) const {
    if (op == core::Op::kSum) return static_cast<R>(sum);
    return static_cast<R>(sum) / static_cast<R>(patterns_.size());
  }

  std::vector<std::vector<T>> patterns_;
};

}  // namespace ringlet::bench

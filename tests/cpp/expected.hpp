// What each element of a reduction must be, made slowly from what all ranks hold.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "check.hpp"
#include "palette.hpp"
#include "plan.hpp"
#include "reference.hpp"
#include "ringlet/collectives/algorithms/direct.hpp"

namespace ringlet::stress {

// What changes no value that it is combined with.
inline void write_identity(core::Op op, core::DType dtype, std::byte* to) {
  using core::Op;
  reference::with_type(dtype, [&]<class T>() {
    if constexpr (std::integral<T>) {
      const bool is_bool = dtype == core::DType::kBool;
      const T largest = is_bool ? T{1} : std::numeric_limits<T>::max();
      const T all_ones = is_bool ? T{1} : static_cast<T>(-1);
      const T smallest = std::numeric_limits<T>::min();
      const T one{1};
      reference::store(dtype,
                       op == Op::kMin    ? largest
                       : op == Op::kMax  ? smallest
                       : op == Op::kAnd  ? all_ones
                       : op == Op::kProd ? one
                                         : T{0},
                       to);
    } else if constexpr (std::floating_point<T>) {
      T limit = std::numeric_limits<T>::infinity();
      if (core::category_of(dtype) == core::Category::kNarrow) limit = reference::NarrowFormat::of(dtype).largest();
      reference::store(dtype, op == Op::kMin ? limit : op == Op::kMax ? -limit : op == Op::kProd ? T{1} : T{0}, to);
    } else {
      using Real = decltype(T::real);
      reference::store(dtype, T{op == Op::kProd ? Real{1} : Real{0}, Real{0}}, to);
    }
  });
}

class Expected {
 public:
  Expected(const Plan& plan, int num_ranks, std::size_t part = 0)
      : plan_(plan), num_ranks_(static_cast<std::size_t>(num_ranks)), part_(part) {}

  // That `results` are elements begin .. begin + count - 1 of the reduction. Looks at some, if they are many.
  void check_reduction(const std::byte* results, std::size_t begin, std::size_t count) {
    const core::DType dtype = core::result_dtype(plan_.op, plan_.dtype);
    for_some(count, [&](std::size_t i) {
      alignas(16) std::array<std::byte, 16> expected;
      collect(begin + i, num_ranks_);
      if (plan_.algorithm == collectives::Algorithm::kRing) {
        reference::reduce_in_ring_order(plan_.op, plan_.dtype, elements_, first_in_ring(begin + i), expected.data());
      } else {
        reference::reduce_in_tree_order(plan_.op, plan_.dtype, elements_, expected.data());
      }
      check(reference::are_equal(dtype, results + i * core::size_of(dtype), expected.data()),
            "an element of a reduction combines those of all ranks in their order");
    });
  }

  // That `results` are what `rank` gets of a scan.
  void check_scan(const std::byte* results, int rank, std::size_t count) {
    for_some(count, [&](std::size_t i) {
      alignas(16) std::array<std::byte, 16> expected;
      collect(i, static_cast<std::size_t>(rank));
      if (rank == 0) {
        write_identity(plan_.op, plan_.dtype, expected.data());
      } else {
        reference::reduce_in_ring_order(plan_.op, plan_.dtype, elements_, 0, expected.data());
      }
      check(reference::are_equal(plan_.dtype, results + i * core::size_of(plan_.dtype), expected.data()),
            "an element of a scan combines those of the ranks before from left to right");
    });
  }

 private:
  // The elements of ranks 0 .. num_ranks - 1 at one index.
  void collect(std::size_t index, std::size_t num_ranks) {
    elements_.clear();
    for (std::size_t rank = 0; rank < num_ranks; ++rank) {
      elements_.push_back(
          Palette::of(plan_.dtype).element(first_of(plan_.seed, static_cast<int>(rank), part_) + index));
    }
  }

  // The rank at which the ring begins with an element: that of its piece in its segment.
  std::size_t first_in_ring(std::size_t index) const {
    const std::size_t segment = num_ranks_ * (collectives::kRingPieceBytes / core::size_of(plan_.dtype));
    const std::size_t begin = index / segment * segment;
    const std::size_t size = std::min(segment, plan_.counts[part_] - begin);
    std::size_t piece = 0;
    while ((piece + 1) * size / num_ranks_ <= index - begin) ++piece;
    return piece;
  }

  template <class F>
  void for_some(std::size_t count, F&& f) {
    constexpr std::size_t kSome = 16;
    if (count <= kSome) {
      for (std::size_t i = 0; i < count; ++i) f(i);
      return;
    }
    Random random(plan_.seed + part_);
    f(0);
    f(count - 1);
    for (std::size_t i = 2; i < kSome; ++i) f(random.below(count));
  }

  const Plan& plan_;
  std::size_t num_ranks_;
  std::size_t part_;
  std::vector<const std::byte*> elements_;
};

}  // namespace ringlet::stress

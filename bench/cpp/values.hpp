// What each rank contributes to a verified call, and the answers that must come out.
#pragma once

#include <cstddef>
#include <memory>

#include "ringlet/core/dtype.hpp"
#include "ringlet/core/op.hpp"

namespace ringlet::bench {

// Different at every rank and every place: random values that repeat after a prime number of elements, so that no part
// of a buffer that a call could take for another looks like it. Answers are compared bit for bit.
class Values {
 public:
  virtual ~Values() = default;

  // Elements 0 .. count - 1 of what `rank` contributes.
  virtual void fill(int rank, std::size_t count, void* into) const = 0;

  // Whether `given` holds elements first .. first + count - 1 of
  // what `rank` contributes,
  virtual bool is_from(int rank, std::size_t first, std::size_t count, const void* given) const = 0;
  // the combination of all ranks in the documented order ((0+1)+(2+3))+..., a lone subtree moving up unchanged,
  virtual bool is_combined(std::size_t first, std::size_t count, const void* given) const = 0;
  // or the combination of the ranks before `rank`, from left to right.
  virtual bool is_scanned(int rank, std::size_t first, std::size_t count, const void* given) const = 0;
};

// Values whose results show the order of rounding; with `is_exact`, such that their combination is the same in any.
std::unique_ptr<const Values> make_values(core::DType dtype, core::Op op, int num_ranks, bool is_exact);

}  // namespace ringlet::bench

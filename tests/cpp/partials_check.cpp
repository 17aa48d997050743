// Two ranks at a time, as the ring and the scan go: widened, combined from left to right, finished; on every CPU
// target, for every operation on every dtype, with partial results in place wherever they may be.
#include <cstring>
#include <string>
#include <vector>

#include "check.hpp"
#include "reference.hpp"
#include "values.hpp"
#include "ringlet/kernels/kernels.hpp"

namespace {

using namespace ringlet;
using core::DType;
using core::Op;
using kernels::Kernels;
using stress::check;

constexpr std::size_t kCounts[] = {0, 1, 2, 3, 7, 31, 63, 64, 65, 511, 512, 513, 2049};
constexpr std::size_t kMostElements = 2049;
constexpr std::size_t kNumRanks = 5;

// Where a partial result goes.
enum class Into { kApart, kLeft, kMine };

// All arrays have their size to the byte: a sanitizer sees what is read or written beyond.
stress::Array chain(const Kernels& kernels, Op op, DType dtype, const std::vector<stress::Array>& given,
                    std::size_t count, Into into) {
  const DType partial_dtype = core::partial_dtype(dtype);
  const std::size_t partial_bytes = count * core::size_of(partial_dtype);
  stress::Array so_far = stress::new_array(partial_bytes);
  kernels.widen(dtype, given.front().get(), count, so_far.get());
  for (std::size_t rank = 1; rank < kNumRanks; ++rank) {
    stress::Array mine = stress::new_array(count * core::size_of(dtype));
    std::memcpy(mine.get(), given[rank].get(), count * core::size_of(dtype));
    stress::Array apart = stress::new_array(partial_bytes);
    stress::Array& target = into == Into::kLeft ? so_far : into == Into::kMine && partial_dtype == dtype ? mine : apart;
    kernels.combine(op, dtype, so_far.get(), mine.get(), count, target.get());
    if (into != Into::kLeft) so_far = std::move(target);
  }
  const DType result = core::result_dtype(op, dtype);
  if (result == partial_dtype && into != Into::kApart) {
    kernels.finish(op, dtype, so_far.get(), count, kNumRanks, so_far.get());
    return so_far;
  }
  stress::Array finished = stress::new_array(count * core::size_of(result));
  kernels.finish(op, dtype, so_far.get(), count, kNumRanks, finished.get());
  return finished;
}

void check_chains(Op op, DType dtype) {
  stress::Random random(core::index_of(dtype));
  std::vector<stress::Array> given;
  for (std::size_t rank = 0; rank < kNumRanks; ++rank) {
    given.push_back(stress::draw_elements(dtype, kMostElements, random));
  }
  const DType result = core::result_dtype(op, dtype);
  for (const std::size_t count : kCounts) {
    std::vector<std::byte> expected(count * core::size_of(result));
    for (std::size_t i = 0; i < count; ++i) {
      std::vector<const std::byte*> elements;
      for (const stress::Array& input : given) elements.push_back(input.get() + i * core::size_of(dtype));
      reference::reduce_in_ring_order(op, dtype, elements, 0, &expected[i * core::size_of(result)]);
    }
    for (const Kernels* const kernels : kernels::runnable()) {
      for (const Into into : {Into::kApart, Into::kLeft, Into::kMine}) {
        const stress::Array finished = chain(*kernels, op, dtype, given, count, into);
        for (std::size_t i = 0; i < count; ++i) {
          const std::size_t at = i * core::size_of(result);
          if (reference::are_equal(result, finished.get() + at, &expected[at])) continue;
          check(false, std::string(core::name_of(op)) + " of " + std::to_string(count) + " " +
                           std::string(core::name_of(dtype)) + " is the reference's on " + std::string(kernels->name));
        }
      }
    }
  }
}

}  // namespace

int main() {
  for (std::size_t op = 0; op < core::kNumOps; ++op) {
    for (std::size_t dtype = 0; dtype < core::kNumDTypes; ++dtype) {
      const auto given = static_cast<DType>(dtype);
      if (core::is_supported(static_cast<Op>(op), given)) check_chains(static_cast<Op>(op), given);
    }
  }
}

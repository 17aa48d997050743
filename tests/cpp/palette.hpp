// What every rank holds in every call: a run of one long row of elements, from where the call and the rank say. So any
// rank knows what any other holds.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "check.hpp"
#include "values.hpp"
#include "ringlet/core/dtype.hpp"

namespace ringlet::stress {

class Palette {
 public:
  static const Palette& of(core::DType dtype) {
    static const std::vector<Palette> kPalettes = [] {
      std::vector<Palette> all;
      for (std::size_t index = 0; index < core::kNumDTypes; ++index)
        all.push_back(Palette(static_cast<core::DType>(index)));
      return all;
    }();
    return kPalettes[core::index_of(dtype)];
  }

  // The row goes round: after the last element comes the first.
  const std::byte* element(std::size_t index) const { return row_.get() + index % kLength * size_; }

  void copy_to(std::byte* to, std::size_t begin, std::size_t count) const {
    for_each_run(begin, count, [&](const std::byte* run, std::size_t bytes) {
      std::memcpy(to, run, bytes);
      to += bytes;
      return true;
    });
  }

  bool equals(const std::byte* data, std::size_t begin, std::size_t count) const {
    return for_each_run(begin, count, [&](const std::byte* run, std::size_t bytes) {
      const bool is_equal = std::memcmp(data, run, bytes) == 0;
      data += bytes;
      return is_equal;
    });
  }

 private:
  static constexpr std::size_t kLength = 1021;  // a prime, so that chunks of work and this do not keep step

  explicit Palette(core::DType dtype) : size_(core::size_of(dtype)) {
    Random random(core::index_of(dtype));
    row_ = draw_elements(dtype, kLength, random);
  }

  // Until `f` says no.
  template <class F>
  bool for_each_run(std::size_t begin, std::size_t count, F&& f) const {
    for (std::size_t done = 0; done < count;) {
      const std::size_t place = (begin + done) % kLength;
      const std::size_t run = std::min(count - done, kLength - place);
      if (!f(row_.get() + place * size_, run * size_)) return false;
      done += run;
    }
    return true;
  }

  std::size_t size_;
  Array row_;
};

// Where the run of a rank begins: of its array number `part` in a call.
inline std::size_t first_of(std::uint64_t call_seed, int rank, std::size_t part = 0) {
  return Random(call_seed * 64 + static_cast<std::uint64_t>(rank) * 4 + part).below(std::size_t{1} << 30);
}

}  // namespace ringlet::stress

// Division of the bytes of a call into chunks of work.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "ringlet/collectives/call/call.hpp"

namespace ringlet::collectives {

// Consecutive elements of one buffer.
struct Run {
  std::size_t part;
  std::size_t begin;
  std::size_t count;
};

// The first chunk of the share of `rank`, which ends where the share of rank + 1 begins.
constexpr std::size_t share_begin(std::size_t num_chunks, int rank, int num_ranks) {
  return num_chunks * static_cast<std::size_t>(rank) / static_cast<std::size_t>(num_ranks);
}

// All buffers of a call laid end to end and cut into chunks of about equal cost. A chunk is one run of a large buffer,
// or several small buffers. Chunks are numbered; each rank first claims a share of consecutive chunks, so that the same
// core handles the same bytes in successive calls.
class Chunks {
 public:
  // Reuses the memory of earlier calls.
  void plan(const Call& call, int num_ranks);

  std::size_t size() const noexcept { return starts_.size() - 1; }
  std::span<const Run> operator[](std::size_t chunk) const noexcept {
    return std::span(runs_).subspan(starts_[chunk], starts_[chunk + 1] - starts_[chunk]);
  }

 private:
  std::vector<Run> runs_;
  std::vector<std::size_t> starts_{0};
};

// Consecutive units begin .. end - 1; the unit depends on the call.
struct Range {
  std::size_t begin;
  std::size_t end;
};

// Units 0 .. total - 1 cut into chunks by the bytes that each unit stands for.
class Ranges {
 public:
  Ranges(std::size_t total, std::size_t bytes_per_unit, int num_ranks);

  std::size_t size() const noexcept { return (total_ + step_ - 1) / step_; }
  Range operator[](std::size_t chunk) const noexcept {
    const std::size_t begin = chunk * step_;
    return {begin, begin + step_ < total_ ? begin + step_ : total_};
  }

 private:
  std::size_t total_;
  std::size_t step_;
};

}  // namespace ringlet::collectives

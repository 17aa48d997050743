// How the bytes of a call are divided into pieces of work.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "ringlet/collectives/call.hpp"

namespace ringlet::collectives {

// Consecutive elements of one part.
struct Run {
  std::size_t part;
  std::size_t begin;
  std::size_t count;
};

// All parts of a call laid end to end and cut into chunks of about equal cost. A chunk is one run of a large part, or
// several small parts. Chunks are numbered; each rank has a first claim on a share of consecutive ones, so that in call
// after call the same core handles the same bytes.
class Chunks {
 public:
  // Keeps the memory of earlier calls.
  void plan(const Call& call, int num_ranks);

  std::size_t size() const noexcept { return starts_.size() - 1; }
  std::span<const Run> operator[](std::size_t chunk) const noexcept {
    return std::span(runs_).subspan(starts_[chunk], starts_[chunk + 1] - starts_[chunk]);
  }

  // The share of `rank`: chunks first_of(rank) .. first_of(rank + 1) - 1.
  std::size_t first_of(int rank, int num_ranks) const noexcept {
    return size() * static_cast<std::size_t>(rank) / static_cast<std::size_t>(num_ranks);
  }

 private:
  std::vector<Run> runs_;
  std::vector<std::size_t> starts_{0};
};

}  // namespace ringlet::collectives

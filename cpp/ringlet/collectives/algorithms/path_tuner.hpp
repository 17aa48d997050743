// Chooses the faster of two data paths at run time: the speed at which one core reads what another has just written
// differs between processors, and changes tenfold when the host of a virtual machine moves its cores.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>

#include "ringlet/sync/wait.hpp"

namespace ringlet::collectives {

// Kept by one rank. Sizes are told apart by their power of two.
class PathTuner {
 public:
  // Return the path of the next call of this size, 0 or 1: the faster one, and the other one at intervals. Several
  // calls in a row take one path, because the first of them does not find its memory in the caches.
  std::size_t next(std::size_t bytes) noexcept {
    Paths& paths = paths_of(bytes);
    const unsigned call = paths.calls++;
    if (call % kCallsInARow == 0) {
      const std::size_t faster = paths.costs[1] < paths.costs[0] ? 1 : 0;
      paths.path = call / kCallsInARow % kRowsBetweenTrials == kRowsBetweenTrials - 1 ? 1 - faster : faster;
    }
    return paths.path;
  }

  // Record the time of the call that `next` has been asked about.
  void add(std::size_t bytes, sync::Clock::duration taken) noexcept {
    Paths& paths = paths_of(bytes);
    const unsigned place = (paths.calls - 1) % kCallsInARow;
    paths.row[place] = taken;
    if (place + 1 < kCallsInARow) return;
    auto* const middle = paths.row.begin() + kCallsInARow / 2;
    std::nth_element(paths.row.begin(), middle, paths.row.end());
    paths.costs[paths.path] = *middle;
  }

 private:
  static constexpr unsigned kCallsInARow = 8;
  // If the slower path is five times as slow, its trials cost 2 %.
  static constexpr unsigned kRowsBetweenTrials = 200;

  struct Paths {
    std::array<sync::Clock::duration, 2> costs{};  // median of the last row; zero: each path is tried first
    std::array<sync::Clock::duration, kCallsInARow> row{};
    unsigned calls = 0;
    std::size_t path = 0;  // of the row in progress
  };

  Paths& paths_of(std::size_t bytes) noexcept { return by_size_[static_cast<std::size_t>(std::bit_width(bytes))]; }

  std::array<Paths, 65> by_size_{};
};

}  // namespace ringlet::collectives

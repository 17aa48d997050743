// Chooses the faster of two data paths at run time: the speed at which one core reads what another has just written
// differs between processors, and changes tenfold when the host of a virtual machine moves its cores.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>

#include "ringlet/sync/wait.hpp"

namespace ringlet::collectives {

// State of one rank, with an entry for each power of two of the size in bytes.
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
    paths.row[place] = std::chrono::duration<double>(taken).count() / static_cast<double>(bytes);
    if (place + 1 < kCallsInARow) return;
    const auto middle = paths.row.begin() + kCallsInARow / 2;
    std::nth_element(paths.row.begin(), middle, paths.row.end());
    paths.costs[paths.path] = *middle;
  }

 private:
  static constexpr unsigned kCallsInARow = 8;
  // If the slower path is five times as slow, its trials cost 2 %.
  static constexpr unsigned kRowsBetweenTrials = 200;

  struct Paths {
    std::array<double, 2> costs{};  // seconds per byte, the median of a row; zero: each path is tried first
    std::array<double, kCallsInARow> row{};
    unsigned calls = 0;
    std::size_t path = 0;  // of the row in progress
  };

  // Smaller sizes share the first entry, larger sizes the last.
  static constexpr int kLeastBits = 16, kMostBits = 28;

  Paths& paths_of(std::size_t bytes) noexcept {
    const int bits = std::clamp(static_cast<int>(std::bit_width(bytes)), kLeastBits, kMostBits);
    return by_size_[static_cast<std::size_t>(bits - kLeastBits)];
  }

  std::array<Paths, kMostBits - kLeastBits + 1> by_size_{};
};

}  // namespace ringlet::collectives

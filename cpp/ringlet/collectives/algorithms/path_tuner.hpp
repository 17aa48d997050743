// Chooses the faster of two data paths at run time: the speed at which one core reads what another has just written
// changes tenfold when the host of a virtual machine moves its cores.
#pragma once

#include <array>
#include <cstddef>

namespace ringlet::collectives {

// Kept by one rank, which sends its choice to the others.
class PathTuner {
 public:
  // Return the next path, 0 or 1: the faster one, and the other one at intervals.
  std::size_t next() noexcept {
    const std::size_t faster = costs_[1] < costs_[0] ? 1 : 0;
    if (++calls_ < kCallsBetweenProbes) return faster;
    calls_ = 0;
    return 1 - faster;
  }

  // Record the time of a call per byte. A better time replaces the estimate; a worse one counts by a quarter, because
  // other load may have caused it.
  void add(std::size_t way, double cost) noexcept {
    costs_[way] = cost < costs_[way] ? cost : costs_[way] + (cost - costs_[way]) / 4;
  }

 private:
  // Calls between trials of the slower path; if it is five times as slow, the trials cost 2 %.
  static constexpr int kCallsBetweenProbes = 200;

  std::array<double, 2> costs_{};  // zero: each path is tried first
  int calls_ = 0;
};

}  // namespace ringlet::collectives

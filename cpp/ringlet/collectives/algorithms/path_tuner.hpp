// Which of two ways is the faster one here and now: how fast one core reads what another has just written changes
// tenfold when the host of a virtual machine moves its cores.
#pragma once

#include <array>
#include <cstddef>

namespace ringlet::collectives {

// Of one rank, which tells the others.
class Trial {
 public:
  // The way to go next, 0 or 1: the one that was faster, and now and then the other.
  std::size_t next() noexcept {
    const std::size_t faster = costs_[1] < costs_[0] ? 1 : 0;
    if (++calls_ < kCallsBetweenProbes) return faster;
    calls_ = 0;
    return 1 - faster;
  }

  // What a call took, by byte. A good time counts at once, a bad one by a quarter: it may have been somebody else's.
  void add(std::size_t way, double cost) noexcept {
    costs_[way] = cost < costs_[way] ? cost : costs_[way] + (cost - costs_[way]) / 4;
  }

 private:
  // A way that is five times as slow costs 2 % then.
  static constexpr int kCallsBetweenProbes = 200;

  std::array<double, 2> costs_{};  // nothing: each is tried first
  int calls_ = 0;
};

}  // namespace ringlet::collectives

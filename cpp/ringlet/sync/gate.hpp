// Whether a call takes place.
#pragma once

#include <atomic>
#include <cstdint>

#include "ringlet/sync/cache_line.hpp"

namespace ringlet::sync {

// A rank whose buffers others may read must not leave while they do. So the ranks of a call agree once: it goes (all
// have arrived, nobody leaves before the work is done) or it is called off (nobody touches a buffer). The first to
// decide wins; everybody else learns the outcome. One gate serves every second call, like a slot.
class alignas(kCacheLine) Gate {
 public:
  enum class State { kUndecided, kGoes, kCalledOff };

  State state(std::uint64_t sequence) const noexcept { return decode(word_.load(), sequence); }
  State open(std::uint64_t sequence) noexcept { return decide(sequence, kGoesBit); }
  State call_off(std::uint64_t sequence) noexcept { return decide(sequence, kCalledOffBit); }

 private:
  static constexpr std::uint64_t kGoesBit = 1;
  static constexpr std::uint64_t kCalledOffBit = 2;
  static constexpr int kStateBits = 2;

  static State decode(std::uint64_t word, std::uint64_t sequence) noexcept {
    if (word >> kStateBits != sequence) return State::kUndecided;
    return (word & kGoesBit) != 0 ? State::kGoes : State::kCalledOff;
  }
  State decide(std::uint64_t sequence, std::uint64_t bit) noexcept {
    std::uint64_t seen = word_.load();
    while (seen >> kStateBits != sequence) {  // still the decision about an earlier call
      const std::uint64_t decision = sequence << kStateBits | bit;
      if (word_.compare_exchange_weak(seen, decision)) return decode(decision, sequence);
    }
    return decode(seen, sequence);
  }

  std::atomic<std::uint64_t> word_{0};
};

}  // namespace ringlet::sync

// Whether a call takes place.
#pragma once

#include <atomic>
#include <cstdint>

#include "ringlet/sync/cache_line.hpp"
#include "ringlet/sync/fault.hpp"

namespace ringlet::sync {

// A rank whose buffers others may read must not leave while they do. So the ranks of a call agree: it goes (all have
// arrived, nobody leaves before the work is done) or it is called off (nobody touches a buffer).
//
// A rank that sees all arrived and then no leaver just goes. A rank that wants to leave first says so
// (Round::propose_to_leave), then looks whether all have arrived, and proposes to the gate: go if they have, else call
// off. A rank that sees all arrived but also a leaver proposes go. The first proposal wins. Why nobody goes while the
// call is called off: who went without asking had seen all arrived before any leaver had spoken, so every leaver looked
// later still, saw all arrived, too, and proposed go. All operations are seq_cst, so "before" means one order for
// everybody.
//
// One gate serves every second call, like a slot.
class alignas(kCacheLine) Gate {
 public:
  // Each proposes, and gives whether the call goes.
  bool propose_to_go(std::uint64_t sequence) noexcept { return decide(sequence, kGoesBit); }
  bool propose_to_call_off(std::uint64_t sequence) noexcept { return decide(sequence, kCalledOffBit); }

 private:
  static constexpr std::uint64_t kGoesBit = 1;
  static constexpr std::uint64_t kCalledOffBit = 2;
  static constexpr int kStateBits = 2;

  bool decide(std::uint64_t sequence, std::uint64_t bit) noexcept {
    fault_point();
    const std::uint64_t decision = sequence << kStateBits | bit;
    std::uint64_t seen = word_.load();
    while (seen >> kStateBits != sequence) {  // still the decision about an earlier call
      if (word_.compare_exchange_weak(seen, decision)) return bit == kGoesBit;
    }
    return (seen & kGoesBit) != 0;
  }

  std::atomic<std::uint64_t> word_{0};
};

}  // namespace ringlet::sync

// Decision on whether a call takes place.
#pragma once

#include <atomic>
#include <cstdint>

#include "ringlet/sync/cache_line.hpp"
#include "ringlet/sync/fault.hpp"

namespace ringlet::sync {

// A rank whose buffers others may read must not leave while they do. So the ranks of a call agree: it goes (all have
// arrived, no rank leaves before the work is done) or it is called off (no rank accesses a buffer).
//
// A rank that sees all arrived and then no leaver proceeds. A rank that intends to leave first sets a flag
// (Round::propose_to_leave), then checks whether all have arrived, and proposes to the gate: go if they have, else call
// off. A rank that sees all arrived but also a leaver proposes go. The first proposal wins. No rank proceeds in a call
// that is called off, because a rank that proceeded without the gate saw all arrived before any leaver set its flag, so
// every leaver checked later, also saw all arrived, and proposed go. All operations are seq_cst, so "before" refers to
// a single total order.
//
// One gate serves every second call, like a slot.
class alignas(kCacheLine) Gate {
 public:
  // Each function proposes a decision, and returns whether the call goes.
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
    while (seen >> kStateBits != sequence) {  // while the word has the decision on an earlier call
      if (word_.compare_exchange_weak(seen, decision)) return bit == kGoesBit;
    }
    return (seen & kGoesBit) != 0;
  }

  std::atomic<std::uint64_t> word_{0};
};

}  // namespace ringlet::sync

// The owner of a resource that outlives its process.
#pragma once

#include <atomic>
#include <cstdint>

#include "ringlet/sync/fault.hpp"

namespace ringlet::sync {

// Holds the code of a process (see Incarnation), or kUnowned. A thread that replaces kUnowned, or the code of an ended
// process, by the code of its own process has exclusive ownership until it releases the word or the process ends. Codes
// are never reused, so a word that still holds the code of an ended process has had no later owner.
class OwnerWord {
 public:
  static constexpr std::uint64_t kUnowned = 0;

  // acquire, here and in try_take, pairs with the release of both: writes of earlier owners are visible.
  std::uint64_t owner() const noexcept { return word_.load(std::memory_order_acquire); }
  bool try_take(std::uint64_t from, std::uint64_t to) noexcept {
    if (word_.load(std::memory_order_relaxed) != from) return false;  // relaxed: only saves the attempt
    fault_point();
    return word_.compare_exchange_strong(from, to, std::memory_order_acq_rel);
  }
  void give_up() noexcept {
    fault_point();
    word_.store(kUnowned, std::memory_order_release);
  }

 private:
  std::atomic<std::uint64_t> word_{kUnowned};
};

}  // namespace ringlet::sync

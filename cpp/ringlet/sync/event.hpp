// Parking of threads until the state of a group changes.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "ringlet/sync/cache_line.hpp"
#include "ringlet/sync/fault.hpp"
#include "ringlet/sync/futex.hpp"

namespace ringlet::sync {

// A thread that changes an awaited word calls notify() after the change. A waiting thread calls enlist(), reads the
// word once more, and only then parks. Every operation here and on the words waited for is seq_cst, so in the single
// order of all of them either the change comes before the second look, which sees it, or enlist() comes before
// notify(), which wakes the sleeper: no wakeup is lost, and notify() costs one load while no thread sleeps.
//
// It works between processes. A process that dies while parked stays counted, so every later notify() makes a system
// call; its group has failed anyway. A process that dies between a change and notify() wakes no thread; the process
// that detects its end notifies instead.
class alignas(kCacheLine) Event {
 public:
  std::uint32_t enlist() noexcept {
    fault_point();
    sleepers_.fetch_add(1);
    return signal_.load();
  }
  void leave() noexcept {
    fault_point();
    sleepers_.fetch_sub(1);
  }
  Wake park(std::uint32_t ticket, std::chrono::nanoseconds limit) noexcept {
    return futex_wait(signal_, ticket, limit);
  }

  void notify() noexcept {
    if (sleepers_.load() == 0) return;
    fault_point();
    signal_.fetch_add(1);
    futex_wake_all(signal_);
  }
  void notify_one() noexcept {
    if (sleepers_.load() == 0) return;
    signal_.fetch_add(1);
    futex_wake_one(signal_);
  }

 private:
  std::atomic<std::uint32_t> signal_{0};
  std::atomic<std::uint32_t> sleepers_{0};
};

}  // namespace ringlet::sync

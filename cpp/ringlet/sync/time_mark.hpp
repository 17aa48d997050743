// Rate limit of an action: at most once per interval.
#pragma once

#include <atomic>
#include <chrono>

namespace ringlet::sync {

// A point in time that threads share.
class TimeMark {
 public:
  using Clock = std::chrono::steady_clock;

  // Returns true for one caller, then false for all callers until `interval` has passed. relaxed: it orders nothing.
  bool pass(Clock::duration interval) noexcept {
    const auto now = Clock::now().time_since_epoch().count();
    auto next = next_.load(std::memory_order_relaxed);
    return now >= next && next_.compare_exchange_strong(next, now + interval.count(), std::memory_order_relaxed);
  }

 private:
  std::atomic<Clock::rep> next_{0};
};

}  // namespace ringlet::sync

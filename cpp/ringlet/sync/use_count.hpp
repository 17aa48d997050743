// The uses of an object that one of its users closes.
#pragma once

#include <atomic>
#include <cstdint>

namespace ringlet::sync {

// Any thread may call any function. No use begins after close(), so exactly one use sees that it is the last.
class UseCount {
 public:
  // False after close().
  bool begin() noexcept {
    std::uint64_t state = state_.load();
    do {
      if ((state & kClosed) != 0) return false;
    } while (!state_.compare_exchange_weak(state, state + kUse));
    return true;
  }
  // True for the last use of a closed object.
  bool end() noexcept { return state_.fetch_sub(kUse) == kUse + kClosed; }
  // Only during a use. True for the first caller.
  bool close() noexcept { return (state_.fetch_or(kClosed) & kClosed) == 0; }

 private:
  static constexpr std::uint64_t kClosed = 1;
  static constexpr std::uint64_t kUse = 2;
  std::atomic<std::uint64_t> state_{0};
};

}  // namespace ringlet::sync

// Turns of threads at a resource that one thread at a time can hold.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "ringlet/sync/cache_line.hpp"
#include "ringlet/sync/wait.hpp"

namespace ringlet::sync {

// A hint in front of a lock whose waiters sleep: threads that arrive in quick succession hold it for a few microseconds
// each, but waking a thread takes longer. A thread yields here for a bounded time before it takes the lock, until the
// previous thread has released it. Mutual exclusion comes from the lock alone, so a thread that stops waiting, or never
// enters the turnstile, is harmless.
class alignas(kCacheLine) Turnstile {
 public:
  // Before taking the lock.
  void enter(std::chrono::nanoseconds limit) noexcept {
    const std::uint64_t me = ticket();
    const auto try_enter = [&] {
      std::uint64_t inside = 0;
      return inside_.compare_exchange_strong(inside, me) || inside == me;
    };
    if (try_enter() || yield_until(limit, try_enter) || !yields_pay(Clock::now())) return;
    inside_.store(me);  // a holder that stays this long will not leave soon, so the next thread does not wait for it
  }

  // After releasing the lock.
  void leave() noexcept {
    std::uint64_t me = ticket();
    // A load first, because an exchange that fails takes longer and every release comes here.
    if (inside_.load() == me) inside_.compare_exchange_strong(me, 0);
  }

 private:
  // A number for each thread; never 0, which means no thread.
  static std::uint64_t ticket() noexcept {
    static std::atomic<std::uint64_t> next{1};
    thread_local const std::uint64_t mine = next.fetch_add(1);
    return mine;
  }

  std::atomic<std::uint64_t> inside_{0};
};

}  // namespace ringlet::sync

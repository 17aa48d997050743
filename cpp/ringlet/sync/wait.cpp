#include "ringlet/sync/wait.hpp"

#include <algorithm>
#include <atomic>

#if defined(__linux__)
#include <sched.h>
#include <unistd.h>
#endif

#include "ringlet/sync/cache_line.hpp"
#include "ringlet/sync/process/cores.hpp"

namespace ringlet::sync {

namespace {

int count_cores() noexcept {
#if defined(__linux__)
  cpu_set_t set;
  // The affinity of the process, which is that of its first thread; the calling thread may be bound to one core.
  if (sched_getaffinity(getpid(), sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
#endif
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace

int usable_cores() noexcept {
  static const int kCores = std::min(count_cores(), quota_cores());
  return kCores;
}

namespace {

// Relaxed: a hint, on which no other memory depends.
alignas(kCacheLine) std::atomic<Clock::rep> yields_pay_from{0};
std::atomic<Clock::rep> without_yields{0};  // the last time without yields

}  // namespace

bool yields_pay(Clock::time_point now) noexcept {
  return now.time_since_epoch().count() >= yields_pay_from.load(std::memory_order_relaxed);
}

void note_yield(Clock::time_point now, Clock::duration taken) noexcept {
  constexpr std::chrono::milliseconds kTimeSlice{1};
  constexpr Clock::duration kShortest = std::chrono::milliseconds(5);
  constexpr Clock::duration kLongest = std::chrono::milliseconds(40);
  if (taken < kTimeSlice) return;
  // A program that stays busy soon takes the core again; one that ran once should cost few yields.
  const Clock::duration last(without_yields.load(std::memory_order_relaxed));
  const Clock::duration since =
      now.time_since_epoch() - Clock::duration(yields_pay_from.load(std::memory_order_relaxed));
  const auto next = since < 2 * last ? std::min(2 * last, kLongest) : kShortest;
  without_yields.store(next.count(), std::memory_order_relaxed);
  yields_pay_from.store((now + next).time_since_epoch().count(), std::memory_order_relaxed);
}

Patience patience_for(int num_ranks, bool from_interpreter, int cores) noexcept {
  constexpr int kSpins = 500;
  constexpr std::chrono::microseconds kYields{100};
  constexpr std::chrono::microseconds kInterpreterYields{200};
  if (from_interpreter) return {.spins = 0, .yields = kInterpreterYields};
  if (num_ranks <= cores) return {.spins = kSpins, .yields = std::chrono::nanoseconds{0}};
  return {.spins = 0, .yields = kYields};
}

}  // namespace ringlet::sync

// Spinning and yielding before parking.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <thread>

#include "ringlet/sync/event.hpp"

namespace ringlet::sync {

using Clock = std::chrono::steady_clock;

inline void pause() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");
#endif
}

// The actions of a waiting thread before it parks on a futex.
struct Patience {
  int spins = 0;                       // reads with a pause between them: only useful if every rank has a core
  std::chrono::nanoseconds yields{0};  // time spent yielding the core to other threads
};

// The number of cores that the threads of this process may run on.
int usable_cores() noexcept;

// Ranks that each have a core spin for some ten microseconds. Ranks that share cores must yield immediately, for a
// bounded time. Threads of an interpreter never spin: the awaited rank may need their core to acquire the interpreter
// lock.
Patience patience_for(int num_ranks, bool from_interpreter, int cores = usable_cores()) noexcept;

// Runs while a thread waits, every kPollInterval and after every signal; may throw to end the wait.
class Poll {
 public:
  virtual void operator()() = 0;

 protected:
  ~Poll() = default;
};

// Thrown by an Interruption in place of the exception that it keeps.
class Interrupted final : public std::exception {
 public:
  const char* what() const noexcept override { return "interrupted"; }
};

// Runs a poll until it throws, and keeps the exception until work that must be done first has ended.
class Interruption final : public Poll {
 public:
  explicit Interruption(Poll* poll) noexcept : poll_(poll) {}  // null for none
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  void operator()() override {
    try {
      (*poll_)();
    } catch (...) {
      raised_ = std::current_exception();
      throw Interrupted();
    }
  }
  // The poll for a wait; null if there is nothing to run.
  Poll* poll() noexcept { return poll_ == nullptr || has_come() ? nullptr : this; }
  bool has_come() const noexcept { return raised_ != nullptr; }
  [[noreturn]] void rethrow() const { std::rethrow_exception(raised_); }

 private:
  Poll* poll_;
  std::exception_ptr raised_;
};

inline constexpr std::chrono::nanoseconds kPollInterval = std::chrono::milliseconds(50);

// A time-out of this length means never.
inline constexpr Clock::duration kForever = Clock::duration::max();

// The clock is read only by a thread that is about to park.
class Deadline {
 public:
  explicit Deadline(Clock::duration timeout) : timeout_(timeout) {}

  // The time to park now; zero after the deadline.
  std::chrono::nanoseconds remaining() {
    if (timeout_ == kForever) return std::chrono::hours(1);
    const auto now = Clock::now();
    if (!is_running_) {
      is_running_ = true;
      end_ = now + timeout_;
    }
    return end_ - now;
  }

 private:
  Clock::duration timeout_;
  bool is_running_ = false;
  Clock::time_point end_{};
};

// Checks `is_ready()` once, and again after each of some pauses, until it is true.
template <class Ready>
bool spin_until(int pauses, Ready&& is_ready) {
  for (int spin = 0; spin <= pauses; ++spin) {
    if (is_ready()) return true;
    if (spin < pauses) pause();
  }
  return false;
}

// Whether to yield: false for some time after a yield of any thread of this process has taken as long as a time slice
// of another thread, usually of another program. A parked thread gets a core sooner, because the system prefers threads
// that wake.
bool yields_pay(Clock::time_point now) noexcept;
// To be called after each yield with its duration.
void note_yield(Clock::time_point now, Clock::duration taken) noexcept;

// Yields the core, and checks `is_ready()` after each yield, for about `limit`, as long as yields pay.
template <class Ready, class Yield = void (*)() noexcept>
bool yield_until(std::chrono::nanoseconds limit, Ready&& is_ready, Yield yield = std::this_thread::yield) {
  auto now = Clock::now();
  for (const auto end = now + limit; now < end && yields_pay(now);) {
    const auto before = Clock::now();
    yield();
    now = Clock::now();
    note_yield(now, now - before);
    if (is_ready()) return true;
  }
  return false;
}

// Waits until `is_ready()`; false if `timeout` passed first. `poll` may be null.
template <class Ready>
bool wait_until(Event& event, const Patience& patience, Clock::duration timeout, Poll* poll, Ready&& is_ready) {
  if (spin_until(patience.spins, is_ready) || yield_until(patience.yields, is_ready)) return true;
  Deadline deadline(timeout);
  for (;;) {
    const auto remaining = deadline.remaining();
    if (remaining.count() <= 0) return is_ready();
    const std::uint32_t ticket = event.enlist();
    if (is_ready()) {
      event.leave();
      return true;
    }
    const bool polls_first = poll != nullptr && kPollInterval < remaining;
    const Wake wake = event.park(ticket, polls_first ? kPollInterval : remaining);
    event.leave();
    if (is_ready()) return true;
    if (poll != nullptr && wake != Wake::kWoken) (*poll)();
  }
}

}  // namespace ringlet::sync

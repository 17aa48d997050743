// Small counters, each on its own cache line.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "ringlet/sync/cache_line.hpp"
#include "ringlet/sync/fault.hpp"

namespace ringlet::sync {

// The chunks of one rank's share that are taken, and the number of chunks of any share that the owner has finished. The
// same readers need both at the same time, so they share a line.
class alignas(kCacheLine) WorkQueue {
 public:
  // For the owner, before it publishes its arrival. relaxed: every rank waits for the arrival before it reads this.
  void reset() noexcept {
    fault_point();
    next_.store(0, std::memory_order_relaxed);
    done_.store(0, std::memory_order_relaxed);
  }

  // For any thread: returns the next number below `limit`, each exactly once, or `limit`. relaxed: the contents of
  // chunks are determined before the call begins, and done() publishes their completion; the read-modify-write alone
  // makes numbers unique.
  std::size_t take(std::size_t limit) noexcept {
    if (next_.load(std::memory_order_relaxed) >= limit) return limit;
    fault_point();
    const std::size_t taken = next_.fetch_add(1, std::memory_order_relaxed);
    return taken < limit ? taken : limit;
  }

  // For the owner: publishes the number of chunks that it has finished.
  void publish_done(std::size_t chunks) noexcept {
    fault_point();
    done_.store(chunks);
  }
  std::size_t done() const noexcept { return done_.load(); }

 private:
  std::atomic<std::size_t> next_{0};
  std::atomic<std::size_t> done_{0};
};

// The last call for which one rank has reached a state, such as that it has left the call. Only the owner writes.
class alignas(kCacheLine) SequenceNumber {
 public:
  void publish(std::uint64_t sequence) noexcept {
    fault_point();
    value_.store(sequence);
  }
  bool has_reached(std::uint64_t sequence) const noexcept { return value_.load() >= sequence; }
  // relaxed: what the owner wrote before the number is seen through has_reached() only.
  std::uint64_t value() const noexcept { return value_.load(std::memory_order_relaxed); }

  // For an owner that then overwrites memory which others may still be reading, and for those: reads, then
  // order_reads(), then has_reached(). A reader that has read a new byte finds the number. seq_cst alone permits that
  // plain writes become visible before an earlier store, and that plain reads take place after a later load.
  void publish_before_reuse(std::uint64_t sequence) noexcept {
    publish(sequence);
    fence(std::memory_order_release);
  }
  static void order_reads() noexcept { fence(std::memory_order_acquire); }

 private:
  static void fence([[maybe_unused]] std::memory_order order) noexcept {
#if !defined(__SANITIZE_THREAD__)  // not supported; it sees one process, where no rank reads such memory
    std::atomic_thread_fence(order);
#endif
  }

  std::atomic<std::uint64_t> value_{0};
};

// The last call that one rank of any process has claimed, to report it. relaxed: it orders nothing.
class alignas(kCacheLine) ClaimedSequence {
 public:
  // True for one caller for each call; calls are claimed in order.
  bool claim(std::uint64_t sequence) noexcept {
    std::uint64_t last = last_.load(std::memory_order_relaxed);
    return last < sequence && last_.compare_exchange_strong(last, sequence, std::memory_order_relaxed);
  }

 private:
  std::atomic<std::uint64_t> last_{0};
};

// A number that its owner sets and others read, for messages. relaxed: it orders nothing.
class RelaxedNumber {
 public:
  void set(std::uint64_t value) noexcept { value_.store(value, std::memory_order_relaxed); }
  std::uint64_t value() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

// A count of events in all processes. relaxed: it orders nothing; events of a process killed before the increment are
// not counted.
class alignas(kCacheLine) Tally {
 public:
  std::uint64_t add() noexcept { return count_.fetch_add(1, std::memory_order_relaxed) + 1; }  // the new count
  std::uint64_t count() const noexcept { return count_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> count_{0};
};

// A flag that one side sets and resets and others read.
class alignas(kCacheLine) Flag {
 public:
  void set(bool value) noexcept {
    fault_point();
    value_.store(value);
  }
  bool is_set() const noexcept { return value_.load(); }
  // Sets the flag; true for the one caller that finds it unset.
  bool claim() noexcept { return !value_.exchange(true); }

 private:
  std::atomic<bool> value_{false};
};

}  // namespace ringlet::sync

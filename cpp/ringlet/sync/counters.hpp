// Small counters, each on its own cache line.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "ringlet/sync/cache_line.hpp"
#include "ringlet/sync/fault.hpp"

namespace ringlet::sync {

// The chunks of one rank's share: which are taken, and how many chunks, of any share, the owner has finished. Both are
// wanted by the same readers at the same time, so they share a line.
class alignas(kCacheLine) WorkQueue {
 public:
  // The owner, before it publishes its arrival. relaxed: every rank waits for the arrival before reading this.
  void reset() noexcept {
    fault_point();
    next_.store(0, std::memory_order_relaxed);
    done_.store(0, std::memory_order_relaxed);
  }

  // Any thread: the next number below `limit`, each exactly once, or `limit`. relaxed: what a chunk holds was settled
  // before the call began, and that it is finished is told by done(); the read-modify-write alone makes numbers unique.
  std::size_t take(std::size_t limit) noexcept {
    if (next_.load(std::memory_order_relaxed) >= limit) return limit;
    fault_point();
    const std::size_t taken = next_.fetch_add(1, std::memory_order_relaxed);
    return taken < limit ? taken : limit;
  }

  // The owner: how many chunks it has finished.
  void publish_done(std::size_t chunks) noexcept {
    fault_point();
    done_.store(chunks);
  }
  std::size_t done() const noexcept { return done_.load(); }

 private:
  std::atomic<std::size_t> next_{0};
  std::atomic<std::size_t> done_{0};
};

// The last call of which one rank tells something, such as that it has left the call. Only its owner writes it.
class alignas(kCacheLine) SequenceNumber {
 public:
  void publish(std::uint64_t sequence) noexcept {
    fault_point();
    value_.store(sequence);
  }
  bool has_reached(std::uint64_t sequence) const noexcept { return value_.load() >= sequence; }

 private:
  std::atomic<std::uint64_t> value_{0};
};

// An event count over all processes. relaxed: it orders nothing, and a process killed before it counts is not counted.
class alignas(kCacheLine) Tally {
 public:
  std::uint64_t add() noexcept { return count_.fetch_add(1, std::memory_order_relaxed) + 1; }  // the new count
  std::uint64_t count() const noexcept { return count_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> count_{0};
};

// A statement that one side makes and takes back, and others look at.
class alignas(kCacheLine) Flag {
 public:
  void set(bool value) noexcept {
    fault_point();
    value_.store(value);
  }
  bool is_set() const noexcept { return value_.load(); }
  // True for the one caller that finds it unset and sets it.
  bool claim() noexcept { return !value_.exchange(true); }

 private:
  std::atomic<bool> value_{false};
};

}  // namespace ringlet::sync

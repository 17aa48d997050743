// Small counters, each alone on its cache line.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "ringlet/sync/cache_line.hpp"

namespace ringlet::sync {

// Hands out the chunks of one rank's share, each exactly once. The owner resets it before it publishes its arrival.
class alignas(kCacheLine) Ticket {
 public:
  // relaxed: the publication of the owner's slot, which everybody waits for before taking, orders this store.
  void reset() noexcept { next_.store(0, std::memory_order_relaxed); }

  // The next number below `limit`, or `limit`. relaxed: which data a chunk holds was settled before the call began, and
  // that it is finished is told by Tally; the read-modify-write alone makes numbers unique.
  std::size_t take(std::size_t limit) noexcept {
    if (next_.load(std::memory_order_relaxed) >= limit) return limit;
    const std::size_t taken = next_.fetch_add(1, std::memory_order_relaxed);
    return taken < limit ? taken : limit;
  }

 private:
  std::atomic<std::size_t> next_{0};
};

// How many chunks of a call are finished.
class alignas(kCacheLine) Tally {
 public:
  // relaxed: as Ticket::reset.
  void reset() noexcept { done_.store(0, std::memory_order_relaxed); }

  // Returns the new total. seq_cst: its release half publishes the chunks, its place in the single order is what
  // Event::notify needs.
  std::size_t add(std::size_t chunks) noexcept { return done_.fetch_add(chunks) + chunks; }
  bool has_reached(std::size_t chunks) const noexcept { return done_.load() >= chunks; }

 private:
  std::atomic<std::size_t> done_{0};
};

// How many ring steps one rank has finished since the group was made. Only its owner writes.
class alignas(kCacheLine) StepCounter {
 public:
  void publish(std::uint64_t steps) noexcept { done_.store(steps); }
  bool has_reached(std::uint64_t steps) const noexcept { return done_.load() >= steps; }

 private:
  std::atomic<std::uint64_t> done_{0};
};

// A statement that one side makes and takes back, and others look at.
class alignas(kCacheLine) Flag {
 public:
  void set(bool value) noexcept { value_.store(value); }
  bool is_set() const noexcept { return value_.load(); }
  // True for the one caller that finds it unset and sets it.
  bool claim() noexcept { return !value_.exchange(true); }

 private:
  std::atomic<bool> value_{false};
};

}  // namespace ringlet::sync

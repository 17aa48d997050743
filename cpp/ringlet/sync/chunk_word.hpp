// Write ownership of a chunk of memory and consistency of its copies.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "ringlet/sync/fault.hpp"

namespace ringlet::sync {

// A chunk is memory that several processes read and change. Its word records the number of changes, the seat that holds
// it (see tables/writer.hpp), and whether the holder is changing it. Only its holder writes the chunk, between
// begin_change() and end_change(), and with store_shared() alone.
//
// A reader loads the word, copies the chunk with load_shared(), and loads the word again. If the first load shows no
// change in progress and the last load shows the same count and no change in progress, the copy is the state after the
// last change before the first load:
//  - No byte is older. The acquire of the first load pairs with the release of the end_change() that set its count.
//  - No byte is newer. A byte of a later change was stored with release after that one's begin_change(), and loaded
//    with acquire before the last load, which therefore sees the begin_change() or what came after it.
class ChunkWord {
 public:
  class State {
   public:
    bool is_held() const noexcept { return (bits_ & kHolderBits) != 0; }
    bool is_changing() const noexcept { return (bits_ & kChangingBit) != 0; }
    std::size_t holder() const noexcept { return ((bits_ & kHolderBits) >> 1) - 1; }  // only if held

   private:
    friend class ChunkWord;
    explicit State(std::uint64_t bits) noexcept : bits_(bits) {}
    std::uint64_t bits_;
  };
  static constexpr std::size_t kMostSeats = 0x7FFF;

  State look() const noexcept { return State(word_.load(std::memory_order_acquire)); }
  // relaxed: the preceding loads of the chunk are acquire, so this load is not reordered before them.
  bool is_unchanged_since(State first) const noexcept {
    const std::uint64_t last = word_.load(std::memory_order_relaxed);
    return last >> kCountShift == first.bits_ >> kCountShift && (last & kChangingBit) == 0;
  }

  // Takes a chunk without a holder. release: a process that sees the holder also sees the holder's earlier writes to
  // its seat. acquire pairs with the release by the previous holder, whose writes are visible here.
  bool try_hold(State seen, std::size_t seat) noexcept {
    fault_point();
    return word_.compare_exchange_strong(seen.bits_, seen.bits_ | (seat + 1) << 1, std::memory_order_acq_rel);
  }

  // The following functions are for the holder. All stores are release: a process that sees the word sees all earlier
  // writes, and a killed process has not begun the next step before these are complete.
  void begin_change() noexcept { store(own() | kChangingBit); }
  void end_change() noexcept { store(((own() >> kCountShift) + 1) << kCountShift); }
  void give_back() noexcept { store(own() & ~(kHolderBits | kChangingBit)); }

 private:
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
  static constexpr int kCountShift = 16;
  static constexpr std::uint64_t kChangingBit = 1;
  static constexpr std::uint64_t kHolderBits = std::uint64_t{kMostSeats} << 1;

  // relaxed: only the holder writes the word.
  std::uint64_t own() const noexcept { return word_.load(std::memory_order_relaxed); }
  void store(std::uint64_t bits) noexcept {
    fault_point();
    word_.store(bits, std::memory_order_release);
  }

  std::atomic<std::uint64_t> word_{0};
};

}  // namespace ringlet::sync

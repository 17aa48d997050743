// How often one process holds a block of shared memory.
#pragma once

#include <atomic>
#include <cstdint>

#include "ringlet/sync/fault.hpp"

namespace ringlet::sync {

// A block has one of these for each process. Its owner adds the holds that it hands to a process before it tells that
// process of the block, or takes them back if it never did, or if all know that there is nothing to take; else only
// that process lets go of them, one after the other. The owner uses the block again once all words are zero, or belong
// to processes that have ended. Everything is seq_cst, so what a process did with the block comes before it let go, and
// that before the owner's next use.
class HoldWord {
 public:
  void add(std::uint32_t holds) noexcept {
    fault_point();
    word_.fetch_add(holds);
  }
  void release() noexcept {
    fault_point();
    word_.fetch_sub(1);
  }
  // By the owner, when nobody holds the block: a process that ended has let go of nothing.
  void clear() noexcept { word_.store(0); }
  bool is_held() const noexcept { return word_.load() != 0; }

 private:
  static_assert(std::atomic<std::uint32_t>::is_always_lock_free);
  std::atomic<std::uint32_t> word_{0};
};

}  // namespace ringlet::sync

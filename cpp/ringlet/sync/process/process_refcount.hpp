// Reference count of one process on a block of shared memory.
#pragma once

#include <atomic>
#include <cstdint>

#include "ringlet/sync/fault.hpp"

namespace ringlet::sync {

// A block has one of these for each process. Its owner adds the holds for a process before it sends that process the
// name of the block, and takes them back if it never sends it, or if the call is known to all to have no results;
// otherwise only that process releases them, one at a time. The owner reuses the block once all counts are zero, or
// belong to processes that have ended. Everything is seq_cst, so accesses of a process to the block come before its
// release, and that before the owner's next use.
class ProcessRefcount {
 public:
  void add(std::uint32_t holds) noexcept {
    fault_point();
    word_.fetch_add(holds);
  }
  void release() noexcept {
    fault_point();
    word_.fetch_sub(1);
  }
  // By the owner, when no live process holds the block: an ended process has released nothing.
  void clear() noexcept { word_.store(0); }
  bool is_held() const noexcept { return word_.load() != 0; }

 private:
  static_assert(std::atomic<std::uint32_t>::is_always_lock_free);
  std::atomic<std::uint32_t> word_{0};
};

}  // namespace ringlet::sync

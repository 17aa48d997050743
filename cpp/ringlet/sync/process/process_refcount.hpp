// Reference count of one process on a block of shared memory.
#pragma once

#include <atomic>
#include <cstdint>

#include "ringlet/sync/fault.hpp"

namespace ringlet::sync {

// A block has one count for each process. The owner of the block adds the holds for a process before it sends the
// process the name of the block, and removes them if it never sends the name, or if all ranks know that the call has no
// results; otherwise only that process releases them, one at a time. A process adds its hold on the control block of a
// subgroup itself, in a call during which the owner keeps the block. The owner reuses the block once each count is zero
// or belongs to an ended process. All operations are seq_cst, so accesses of a process to the block precede its
// release, which precedes the owner's next use.
class ProcessRefcount {
 public:
  void add(std::uint32_t holds) noexcept {
    fault_point();
    word_.fetch_add(holds);
  }
  std::uint32_t release() noexcept {  // the number of holds left
    fault_point();
    return word_.fetch_sub(1) - 1;
  }
  // For the owner, when no live process holds the block: an ended process may not have released its holds.
  void clear() noexcept { word_.store(0); }
  bool is_held() const noexcept { return word_.load() != 0; }

 private:
  static_assert(std::atomic<std::uint32_t>::is_always_lock_free);
  std::atomic<std::uint32_t> word_{0};
};

}  // namespace ringlet::sync

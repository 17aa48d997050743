// Where results live: memory that is reused once its last view has died.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>

#include "ringlet/memory/region.hpp"

namespace ringlet::memory {

// Pooled memory; it returns to the pool when the last holder releases it.
using Block = std::shared_ptr<Region>;

struct PoolStatistics {
  std::size_t live_blocks = 0;
  std::size_t live_bytes = 0;
  std::size_t idle_blocks = 0;
  std::size_t idle_bytes = 0;
};

// Touching fresh memory costs more than reducing into it, so regions are kept for the next result of about their size.
// Small ones come straight from the heap, which has caches for every thread; they do not count in the statistics.
//
// A region that stays idle for `keep_idle` is given back to the system, at most a tenth of that time later, by a thread
// that lives only while regions are idle: a quiet process has neither memory of the pool nor a thread. Where no thread
// can be started, stale regions go when the next one comes back.
class Pool {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kKeepIdle{10};
  static constexpr std::size_t kFromHeap = 4096;

  explicit Pool(Clock::duration keep_idle = kKeepIdle);
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // At least `bytes` bytes, aligned to a cache line. The pool must outlive the block.
  Block allocate(std::size_t bytes);

  // Returns all idle regions to the system; the result is their size in bytes.
  std::size_t trim();
  PoolStatistics statistics() const;
  // Holds from the next time that the thread looks: it may sleep for as long as was set before.
  void set_keep_idle(Clock::duration keep_idle);

  // Around fork(), so that the child finds the lists whole, no region on its way out, and knows that it has no thread.
  void before_fork();
  void after_fork(bool is_child);

 private:
  struct State;
  std::shared_ptr<State> state_;  // the thread looks whether it is still there
};

// The pool of this process. It is never destroyed: views may outlive everything else.
Pool& result_pool();

}  // namespace ringlet::memory

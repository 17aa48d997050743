// Memory of results, which is reused after the destruction of its last view.
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

// The first access to fresh memory costs more than reducing into it, so regions are kept for the next result of similar
// size. Small regions come directly from the heap, which has a cache for every thread; they are not in the statistics.
//
// A region that stays idle for `keep_idle` is returned to the system, at most a tenth of that time later, by a thread
// that exists only while regions are idle. An inactive process therefore has neither pooled memory nor a thread. If no
// thread can be started, stale regions are released when the next region returns.
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
  // Takes effect at the thread's next wake-up: it may first sleep for the previous time.
  void set_keep_idle(Clock::duration keep_idle);

  // Called around fork(), so that in the child the lists are consistent, no region is being unmapped, and the missing
  // thread is recorded.
  void before_fork();
  void after_fork(bool is_child);

 private:
  struct State;
  std::shared_ptr<State> state_;  // the thread checks whether it still exists
};

// The pool of this process. It is never destroyed: views may outlive everything else.
Pool& result_pool();

}  // namespace ringlet::memory

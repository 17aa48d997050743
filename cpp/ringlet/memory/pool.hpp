// Where results live: memory that is reused once its last view has died.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "ringlet/memory/region.hpp"

namespace ringlet::memory {

// Pooled memory; it goes back to the pool when the last holder lets go.
using Block = std::shared_ptr<Region>;

struct PoolStatistics {
  std::size_t live_blocks = 0;
  std::size_t live_bytes = 0;
  std::size_t idle_blocks = 0;
  std::size_t idle_bytes = 0;
};

// Touching fresh memory costs more than reducing into it, so regions are kept for the next result of about their size.
// Small ones come straight from the heap, which has caches for every thread; they do not count in the statistics.
// A region that stayed idle for kKeepIdle is given back to the system when the next one comes back.
class Pool {
 public:
  static constexpr std::chrono::seconds kKeepIdle{10};
  static constexpr std::size_t kFromHeap = 4096;

  // At least `bytes` bytes, aligned to a cache line. The pool must outlive the block.
  Block allocate(std::size_t bytes);

  // Gives all idle regions back to the system; returns their bytes.
  std::size_t trim();
  PoolStatistics statistics() const;

  // Held across fork(), so that the child finds the lists whole.
  std::mutex& mutex() noexcept { return mutex_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Idle {
    std::unique_ptr<Region> region;
    Clock::time_point since;
  };

  std::unique_ptr<Region> find_idle(std::size_t bytes);
  void take_back(std::unique_ptr<Region> region) noexcept;
  void drop_stale(Clock::time_point now);

  mutable std::mutex mutex_;
  std::map<std::size_t, std::vector<Idle>> idle_;  // by size; the most recently used at the back
  PoolStatistics statistics_;
  Clock::time_point last_sweep_{};
};

// The pool of this process. It is never destroyed: views may outlive everything else.
Pool& result_pool();

}  // namespace ringlet::memory

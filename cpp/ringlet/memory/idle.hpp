// Idle regions, kept for reuse.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "ringlet/memory/region.hpp"

namespace ringlet::memory {

// Idle regions by size, each with the time at which it became idle. Used by one thread at a time; `now` never
// decreases.
class IdleRegions {
 public:
  using Clock = std::chrono::steady_clock;

  // May throw std::bad_alloc; the region is then freed.
  void put(std::unique_ptr<Region> region, Clock::time_point now);
  // The most recently used region of exactly `bytes`, whose memory is likely in the cache; null if there is none.
  std::unique_ptr<Region> take(std::size_t bytes) noexcept;
  // A region that was put at `limit` or before; null if there is none.
  std::unique_ptr<Region> take_stale(Clock::time_point limit) noexcept;

  std::optional<Clock::time_point> oldest() const noexcept;
  std::size_t blocks() const noexcept { return blocks_; }
  std::size_t bytes() const noexcept { return bytes_; }

 private:
  struct Idle {
    std::unique_ptr<Region> region;
    Clock::time_point since;
  };

  std::map<std::size_t, std::vector<Idle>> by_size_;  // the most recently used at the back
  std::size_t blocks_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace ringlet::memory

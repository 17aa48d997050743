// Regions that wait for their next use.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "ringlet/memory/region.hpp"

namespace ringlet::memory {

// By size, each with the time since when it is idle. Used by one thread at a time, and `now` never goes back.
class IdleRegions {
 public:
  using Clock = std::chrono::steady_clock;

  // May throw std::bad_alloc; the memory is free then.
  void put(std::unique_ptr<Region> region, Clock::time_point now);
  // The most recently used region of exactly `bytes`, whose memory is still warm; null if there is none.
  std::unique_ptr<Region> take(std::size_t bytes) noexcept;
  // One that was put at `limit` or before; null if there is none.
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

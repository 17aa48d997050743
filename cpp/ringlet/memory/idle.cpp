#include "ringlet/memory/idle.hpp"

#include <utility>

namespace ringlet::memory {

void IdleRegions::put(std::unique_ptr<Region> region, Clock::time_point now) {
  const std::size_t bytes = region->size();
  by_size_[bytes].push_back({std::move(region), now});
  blocks_ += 1;
  bytes_ += bytes;
}

// A size without regions keeps its entry, because the taken region will return.
std::unique_ptr<Region> IdleRegions::take(std::size_t bytes) noexcept {
  const auto found = by_size_.find(bytes);
  if (found == by_size_.end() || found->second.empty()) return nullptr;
  std::unique_ptr<Region> region = std::move(found->second.back().region);
  found->second.pop_back();
  blocks_ -= 1;
  bytes_ -= bytes;
  return region;
}

std::unique_ptr<Region> IdleRegions::take_stale(Clock::time_point limit) noexcept {
  for (auto& [bytes, regions] : by_size_) {
    if (regions.empty() || regions.front().since > limit) continue;
    std::unique_ptr<Region> region = std::move(regions.front().region);
    regions.erase(regions.begin());
    blocks_ -= 1;
    bytes_ -= bytes;
    return region;
  }
  return nullptr;
}

std::optional<IdleRegions::Clock::time_point> IdleRegions::oldest() const noexcept {
  std::optional<Clock::time_point> oldest;
  for (const auto& [bytes, regions] : by_size_) {
    if (!regions.empty() && (!oldest || regions.front().since < *oldest)) oldest = regions.front().since;
  }
  return oldest;
}

}  // namespace ringlet::memory

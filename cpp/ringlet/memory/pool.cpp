#include "ringlet/memory/pool.hpp"

#include <pthread.h>

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

namespace ringlet::memory {

namespace {

// Four sizes an octave, then whole huge pages.
std::size_t size_class(std::size_t bytes) {
  const std::size_t step = std::max(std::bit_floor(bytes) / 4, Region::kAlignment);
  const std::size_t rounded = (bytes + step - 1) / step * step;
  if (rounded < Region::kHugePage) return rounded;
  return (rounded + Region::kHugePage - 1) / Region::kHugePage * Region::kHugePage;
}

void lock_result_pool() { result_pool().mutex().lock(); }
void unlock_result_pool() { result_pool().mutex().unlock(); }

}  // namespace

Block Pool::allocate(std::size_t bytes) {
  if (bytes <= kFromHeap) return std::make_shared<Region>(bytes);
  const std::size_t wanted = size_class(bytes);
  std::unique_ptr<Region> region = find_idle(wanted);
  if (region == nullptr) region = std::make_unique<Region>(wanted);
  {
    const std::scoped_lock lock(mutex_);
    statistics_.live_blocks += 1;
    statistics_.live_bytes += wanted;
  }
  return {region.release(), [this](Region* last) { take_back(std::unique_ptr<Region>(last)); }};
}

std::unique_ptr<Region> Pool::find_idle(std::size_t bytes) {
  const std::scoped_lock lock(mutex_);
  const auto found = idle_.find(bytes);
  if (found == idle_.end() || found->second.empty()) return nullptr;
  std::unique_ptr<Region> region = std::move(found->second.back().region);
  found->second.pop_back();
  statistics_.idle_blocks -= 1;
  statistics_.idle_bytes -= bytes;
  return region;
}

void Pool::take_back(std::unique_ptr<Region> region) noexcept {
  const std::size_t bytes = region->size();
  const auto now = Clock::now();
  const std::scoped_lock lock(mutex_);
  statistics_.live_blocks -= 1;
  statistics_.live_bytes -= bytes;
  drop_stale(now);
  try {
    idle_[bytes].push_back({std::move(region), now});
  } catch (const std::bad_alloc&) {
    return;  // `region` frees the memory
  }
  statistics_.idle_blocks += 1;
  statistics_.idle_bytes += bytes;
}

// At most once a second; the oldest regions of a size are at the front.
void Pool::drop_stale(Clock::time_point now) {
  if (now - last_sweep_ < std::chrono::seconds(1)) return;
  last_sweep_ = now;
  for (auto& [bytes, regions] : idle_) {
    const auto fresh =
        std::find_if(regions.begin(), regions.end(), [now](const Idle& idle) { return now - idle.since < kKeepIdle; });
    const auto stale = static_cast<std::size_t>(fresh - regions.begin());
    statistics_.idle_blocks -= stale;
    statistics_.idle_bytes -= stale * bytes;
    regions.erase(regions.begin(), fresh);
  }
}

std::size_t Pool::trim() {
  std::map<std::size_t, std::vector<Idle>> dropped;
  const std::scoped_lock lock(mutex_);
  dropped.swap(idle_);
  statistics_.idle_blocks = 0;
  return std::exchange(statistics_.idle_bytes, 0);
}

PoolStatistics Pool::statistics() const {
  const std::scoped_lock lock(mutex_);
  return statistics_;
}

Pool& result_pool() {
  static Pool* const pool = [] {
    auto made = std::make_unique<Pool>();
    pthread_atfork(lock_result_pool, unlock_result_pool, unlock_result_pool);
    return made.release();
  }();
  return *pool;
}

}  // namespace ringlet::memory

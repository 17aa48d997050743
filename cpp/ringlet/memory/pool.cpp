#include "ringlet/memory/pool.hpp"

#include <pthread.h>

#include <algorithm>
#include <bit>

namespace ringlet::memory {

namespace {

using Clock = std::chrono::steady_clock;

// Four sizes an octave, so that at most a fifth of a block is unused. Untouched pages of it cost nothing.
std::size_t size_class(std::size_t bytes) {
  const std::size_t step = std::max(std::bit_floor(bytes) / 4, Region::kAlignment);
  const std::size_t rounded = (bytes + step - 1) / step * step;
  if (rounded < Region::kHugePage) return rounded;
  return (rounded + Region::kHugePage - 1) / Region::kHugePage * Region::kHugePage;
}

void lock_result_pool() { result_pool().mutex().lock(); }
void unlock_result_pool() { result_pool().mutex().unlock(); }

}  // namespace

// acq_rel: the last holder's release comes after every other holder's use of the memory.
void Block::release() noexcept {
  if (holders_.fetch_sub(1, std::memory_order_acq_rel) == 1) pool_->take_back(this);
}

Block* Pool::allocate(std::size_t bytes, std::uint32_t holders) {
  if (bytes <= kFromHeap) {
    auto small = std::make_unique<Block>(Region(bytes), *this);
    small->holders_.store(holders, std::memory_order_relaxed);  // relaxed: nobody else knows the block yet
    return small.release();
  }
  const std::size_t wanted = size_class(bytes);
  std::unique_ptr<Block> block;
  {
    const std::scoped_lock lock(mutex_);
    if (const auto found = idle_.find(wanted); found != idle_.end() && !found->second.empty()) {
      block = std::move(found->second.back());
      found->second.pop_back();
      statistics_.idle_blocks -= 1;
      statistics_.idle_bytes -= wanted;
      statistics_.live_blocks += 1;
      statistics_.live_bytes += wanted;
    }
  }
  if (block == nullptr) {
    block = std::make_unique<Block>(Region(wanted), *this);
    const std::scoped_lock lock(mutex_);
    idle_[wanted].reserve(16);  // so that take_back, which must not fail, seldom has to grow it
    statistics_.live_blocks += 1;
    statistics_.live_bytes += wanted;
  }
  block->holders_.store(holders, std::memory_order_relaxed);  // relaxed: nobody else knows the block yet
  return block.release();
}

void Pool::take_back(Block* block) noexcept {
  std::unique_ptr<Block> owned(block);
  const std::size_t capacity = owned->capacity();
  if (capacity <= kFromHeap) return;
  const auto now = Clock::now();
  owned->idle_since_ = now;
  const std::scoped_lock lock(mutex_);
  statistics_.live_blocks -= 1;
  statistics_.live_bytes -= capacity;
  drop_stale(now);
  try {
    idle_[capacity].push_back(std::move(owned));
  } catch (const std::bad_alloc&) {
    return;  // `owned` frees the block
  }
  statistics_.idle_blocks += 1;
  statistics_.idle_bytes += capacity;
}

// At most once a second; the oldest blocks of a size are at the front.
void Pool::drop_stale(Clock::time_point now) {
  if (now - last_sweep_ < std::chrono::seconds(1)) return;
  last_sweep_ = now;
  for (auto& [capacity, blocks] : idle_) {
    const auto fresh = std::find_if(blocks.begin(), blocks.end(),
                                    [now](const auto& block) { return now - block->idle_since_ < kKeepIdle; });
    const auto stale = static_cast<std::size_t>(fresh - blocks.begin());
    statistics_.idle_blocks -= stale;
    statistics_.idle_bytes -= stale * capacity;
    blocks.erase(blocks.begin(), fresh);
  }
}

std::size_t Pool::trim() {
  std::map<std::size_t, Blocks> dropped;
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

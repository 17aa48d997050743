// Where results live: memory that is reused once its last view has died.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "ringlet/memory/region.hpp"

namespace ringlet::memory {

class Pool;

// A piece of pooled memory with a count of the views that hold it. Handled through BlockRef.
class Block {
 public:
  Block(Region region, Pool& pool) : region_(std::move(region)), pool_(&pool) {}

  std::byte* data() noexcept { return region_.data(); }
  std::size_t capacity() const noexcept { return region_.size(); }

  // Adds `count` holders. relaxed: who adds one has one already.
  void retain(std::uint32_t count) noexcept { holders_.fetch_add(count, std::memory_order_relaxed); }
  void release() noexcept;

 private:
  friend class Pool;

  Region region_;
  Pool* pool_;
  std::atomic<std::uint32_t> holders_{0};
  std::chrono::steady_clock::time_point idle_since_{};
};

// Holds one of a block's counts.
class BlockRef {
 public:
  BlockRef() = default;
  // Takes over a count that the caller owns.
  static BlockRef adopt(Block* block) noexcept { return BlockRef(block); }
  BlockRef(BlockRef&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  BlockRef& operator=(BlockRef&& other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  BlockRef(const BlockRef&) = delete;
  BlockRef& operator=(const BlockRef&) = delete;
  ~BlockRef() {
    if (block_ != nullptr) block_->release();
  }

  std::byte* data() const noexcept { return block_->data(); }
  Block* get() const noexcept { return block_; }
  // Hands the count to the caller.
  Block* detach() noexcept { return std::exchange(block_, nullptr); }

 private:
  explicit BlockRef(Block* block) noexcept : block_(block) {}
  Block* block_ = nullptr;
};

struct PoolStatistics {
  std::size_t live_blocks = 0;
  std::size_t live_bytes = 0;
  std::size_t idle_blocks = 0;
  std::size_t idle_bytes = 0;
};

// Touching fresh memory costs more than reducing into it, so blocks are kept for the next result of about their size.
// Small ones come straight from the heap, which has caches for every thread; they do not count in the statistics.
// A block that stayed idle for kKeepIdle is given back to the system by the next call that touches the pool.
class Pool {
 public:
  static constexpr std::chrono::seconds kKeepIdle{10};
  static constexpr std::size_t kFromHeap = 4096;

  // Memory for `bytes` bytes, aligned to at least a cache line, with `holders` counts that the caller hands out.
  Block* allocate(std::size_t bytes, std::uint32_t holders);
  BlockRef allocate(std::size_t bytes) { return BlockRef::adopt(allocate(bytes, 1)); }

  // Gives all idle blocks back to the system; returns their bytes.
  std::size_t trim();
  PoolStatistics statistics() const;

  // Held across fork(), so that the child finds the lists whole.
  std::mutex& mutex() noexcept { return mutex_; }

 private:
  friend class Block;
  using Blocks = std::vector<std::unique_ptr<Block>>;

  void take_back(Block* block) noexcept;
  void drop_stale(std::chrono::steady_clock::time_point now);

  mutable std::mutex mutex_;
  std::map<std::size_t, Blocks> idle_;  // by capacity; the most recently used at the back
  PoolStatistics statistics_;
  std::chrono::steady_clock::time_point last_sweep_{};
};

// The pool of this process. It is never destroyed: views may outlive everything else.
Pool& result_pool();

}  // namespace ringlet::memory

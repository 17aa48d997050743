// Allocator of this process's shared memory.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "ringlet/memory/segment.hpp"

namespace ringlet::memory {

// Data in a segment, preceded by one page of bookkeeping for the processes that share it.
struct SharedBlock {
  std::byte* data = nullptr;
  std::size_t bytes = 0;

  static constexpr std::size_t kHeaderBytes = 4096;
  std::byte* header() const noexcept { return data - kHeaderBytes; }
};

// Decides when blocks may be reused: their holders include other processes, which may end at any time.
class ReclaimPolicy {
 public:
  virtual ~ReclaimPolicy() = default;
  // Writes the header of a free block so that this process holds it.
  virtual void lend(const SharedBlock& block) const noexcept = 0;
  virtual bool is_reclaimable(const SharedBlock& block) const noexcept = 0;
};

// The position of an address in a segment of this process.
struct SharedPlace {
  std::uint32_t segment;
  std::uint64_t offset;
};

struct SharedHeapStatistics {
  std::size_t lent_blocks = 0;  // as last known: a block may have been released since
  std::size_t lent_bytes = 0;
  std::size_t idle_blocks = 0;
  std::size_t idle_bytes = 0;
};

// Blocks of a few sizes, each kept for the next block of its size, in segments that are never unmapped, so that their
// positions can be sent to other processes once. Blocks that stay idle for kKeepIdle return their memory to the system
// at an allocation or by trim(); the addresses stay.
class SharedHeap {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kKeepIdle{10};
  static constexpr std::size_t kSegmentBytes = std::size_t{1} << 30;
  static constexpr std::size_t kMostSegments = 2048;

  // The heap of this process; it is never destroyed. A child of fork() begins with an empty heap.
  static SharedHeap& of_this_process();
  SharedHeap();

  // At least `bytes` bytes, aligned to a cache line. Throws core::SharedMemoryError.
  SharedBlock allocate(std::size_t bytes, std::shared_ptr<const ReclaimPolicy> policy);

  // Replaces the reclaim policy of the held block at this address.
  void hand_over(const std::byte* address, std::shared_ptr<const ReclaimPolicy> policy);
  // The same; `make` gets the current policy.
  void hand_over(const std::byte* address,
                 const std::function<std::shared_ptr<const ReclaimPolicy>(std::shared_ptr<const ReclaimPolicy>)>& make);
  // Excludes the block at this address from further use.
  void give_up(const std::byte* address) noexcept;

  // Gives processes with different numbers different positions within a page for their next blocks: if arrays of
  // several ranks have equal positions, loads wait for unrelated stores with equal low address bits, which costs a
  // factor of five.
  void set_number(int number);

  std::optional<SharedPlace> find(const void* address) const;
  // A segment with the index that find() returned.
  const Segment& segment(std::uint32_t index) const;

  // Returns idle blocks to the system; the result is their size in bytes.
  std::size_t trim();
  SharedHeapStatistics statistics();

  void before_fork() { mutex_.lock(); }
  void after_fork(bool is_child);

 private:
  struct Lent {
    SharedBlock block;
    std::shared_ptr<const ReclaimPolicy> policy;
  };
  struct Idle {
    SharedBlock block;
    Clock::time_point since;
    bool has_memory;
  };
  // Blocks of one size.
  struct Shelf {
    std::list<Lent> lent;  // the most recently used first
    std::list<Lent>::iterator next_look = lent.end();
    std::vector<Idle> idle;
  };

  Lent* find_lent(const std::byte* address) noexcept;
  static void collect_some(Shelf& shelf, Clock::time_point now);
  SharedBlock take(std::size_t size);
  SharedBlock carve(std::size_t size);
  void add_segment(std::size_t bytes);
  void collect(Clock::time_point now);
  std::size_t release_idle(Clock::time_point limit) noexcept;
  Segment& segment_of(const SharedBlock& block);
  std::size_t offset_of(const SharedBlock& block);
  std::size_t next_skew();

  mutable std::mutex mutex_;  // guards all that follows
  std::map<std::size_t, Shelf> shelves_;
  std::vector<std::unique_ptr<Segment>> segments_;
  std::size_t used_ = 0;  // of the last segment
  Clock::time_point next_look_{};
  std::size_t number_;
  std::size_t num_carved_ = 0;
};

}  // namespace ringlet::memory

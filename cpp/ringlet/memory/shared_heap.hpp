// Allocator of this process's shared memory.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "ringlet/memory/segment.hpp"

namespace ringlet::memory {

// Data in a segment, preceded by a header: bookkeeping for the processes that share it.
struct SharedBlock {
  std::byte* data = nullptr;
  std::size_t bytes = 0;

  static constexpr std::size_t kMostHeaderBytes = 4096;
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
  std::size_t idle_blocks = 0;  // without small blocks
  std::size_t idle_bytes = 0;
};

// Blocks of a few sizes, each kept for the next block of its size, in segments that are never unmapped, so that their
// positions can be sent to other processes once. Blocks that stay idle for kKeepIdle return their memory to the system
// at an allocation or by trim(); the addresses stay. Small blocks share pages, which stay with this process.
//
// The time of an allocation does not depend on the number of live blocks: it checks blocks that this process has
// reported as released, of which other processes may still hold some, and never those that it still holds.
class SharedHeap {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kKeepIdle{10};
  static constexpr std::size_t kSegmentBytes = std::size_t{1} << 30;
  static constexpr std::size_t kMostSegments = 2048;
  static constexpr std::size_t kSmall = 1024;  // bytes of the largest small block

  // The heap of this process; it is never destroyed. A child of fork() begins with an empty heap.
  static SharedHeap& of_this_process();
  SharedHeap();

  // At least `bytes` bytes, aligned to a cache line, after a header of at least `header_bytes`. Throws
  // core::SharedMemoryError.
  SharedBlock allocate(std::size_t bytes, std::shared_ptr<const ReclaimPolicy> policy,
                       std::size_t header_bytes = SharedBlock::kMostHeaderBytes);
  // Reports that this process has released its last hold of a block. Needs no lock that calls a policy.
  void note_released(const std::byte* data) noexcept;

  // Replaces the reclaim policy of the held block at this address.
  void hand_over(const std::byte* address, std::shared_ptr<const ReclaimPolicy> policy);
  // Replaces the policy by the result of `make`, which gets the current policy.
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

  void before_fork();
  void after_fork(bool is_child);

 private:
  struct Shelf;
  enum class State { kLent, kReleased, kIdle, kEmpty };  // kReleased: by this process; others may hold it
  struct Entry {
    SharedBlock block;
    Shelf* shelf;
    State state;
    std::shared_ptr<const ReclaimPolicy> policy;
    Clock::time_point since;  // when it became idle
  };
  using Entries = std::list<Entry>;
  // Blocks of one size, by state. Idle blocks have memory, empty ones have returned theirs.
  struct Shelf {
    std::size_t size;  // including the space around a block
    std::array<Entries, 4> entries{};
    std::byte* fresh = nullptr;  // the rest of the last slab of small blocks
    std::byte* fresh_end = nullptr;
    Entries& in(State state) { return entries[static_cast<std::size_t>(state)]; }
    bool is_small() const noexcept { return size < SharedBlock::kMostHeaderBytes; }
  };

  static void move(Entries::iterator entry, State to);
  static void move_if_reclaimable(Entries::iterator entry, Clock::time_point now);
  Entries::iterator* find_lent(const std::byte* address) noexcept;
  void take_notes(Clock::time_point now);
  static void collect_some(Shelf& shelf, Clock::time_point now);
  Entries::iterator take(Shelf& shelf);
  Entries::iterator carve(Shelf& shelf);
  std::byte* extend(std::size_t bytes);
  void add_segment(std::size_t bytes);
  void collect(Clock::time_point now, bool is_complete);
  std::size_t release_idle(Clock::time_point limit) noexcept;
  Segment& segment_of(const SharedBlock& block);
  std::size_t offset_of(const SharedBlock& block);
  std::size_t next_skew();

  mutable std::mutex mutex_;  // guards all that follows
  std::map<std::size_t, Shelf> shelves_;
  std::unordered_map<const std::byte*, Entries::iterator> entries_;  // keyed by the address of the data
  std::vector<std::unique_ptr<Segment>> segments_;
  std::size_t used_ = 0;  // used bytes of the last segment
  Clock::time_point next_look_{};
  std::size_t number_;
  std::size_t num_carved_ = 0;

  std::mutex notes_mutex_;               // guards what follows; may be locked after mutex_, never before
  std::vector<const std::byte*> notes_;  // released blocks
  bool has_lost_notes_ = false;          // a note was lost for lack of memory
};

}  // namespace ringlet::memory

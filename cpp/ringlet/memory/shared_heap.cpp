#include "ringlet/memory/shared_heap.hpp"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "ringlet/core/error.hpp"
#include "ringlet/memory/size_class.hpp"

namespace ringlet::memory {

namespace {

constexpr std::size_t kPage = 4096;

constexpr std::size_t kLine = 64;

// The number of most recently used blocks, and of other blocks, that an allocation checks.
constexpr int kLooks = 4;

// The size with a header and room for any position within a page.
constexpr std::size_t kAround = SharedBlock::kHeaderBytes + kPage;
std::size_t shelf_of(std::size_t bytes) { return size_class(std::max(bytes, kPage), kPage) + kAround; }

}  // namespace

SharedHeap::SharedHeap() : number_(static_cast<std::size_t>(getpid())) {}

SharedHeap& SharedHeap::of_this_process() {
  static SharedHeap* const heap = [] {
    auto made = std::make_unique<SharedHeap>();
    pthread_atfork([] { of_this_process().before_fork(); }, [] { of_this_process().after_fork(false); },
                   [] { of_this_process().after_fork(true); });
    return made.release();
  }();
  return *heap;
}

SharedBlock SharedHeap::allocate(std::size_t bytes, std::shared_ptr<const ReclaimPolicy> policy) {
  const std::size_t size = shelf_of(bytes);
  const std::scoped_lock lock(mutex_);
  Shelf& shelf = shelves_[size];
  const auto now = Clock::now();
  collect_some(shelf, now);
  auto back = shelf.lent.begin();
  int looks = 0;
  while (back != shelf.lent.end() && !back->policy->is_reclaimable(back->block)) {
    back = ++looks < kLooks ? std::next(back) : shelf.lent.end();
  }
  if (back != shelf.lent.end()) {
    if (back == shelf.next_look) ++shelf.next_look;
    back->policy = std::move(policy);
    shelf.lent.splice(shelf.lent.begin(), shelf.lent, back);
  } else {
    shelf.lent.push_front({take(size), std::move(policy)});
  }
  const Lent& lent = shelf.lent.front();
  lent.policy->lend(lent.block);
  const SharedBlock block = lent.block;
  if (now >= next_look_) {
    collect(now);
    release_idle(now - kKeepIdle);
    next_look_ = now + kKeepIdle / 10;
  }
  return block;
}

// Checks a few blocks, different ones each time, because any number of blocks may still be in use.
void SharedHeap::collect_some(Shelf& shelf, Clock::time_point now) {
  for (int look = 0; look < kLooks && !shelf.lent.empty(); ++look) {
    if (shelf.next_look == shelf.lent.end()) shelf.next_look = shelf.lent.begin();
    const auto lent = shelf.next_look++;
    if (!lent->policy->is_reclaimable(lent->block)) continue;
    shelf.idle.push_back({lent->block, now, true});
    shelf.lent.erase(lent);
  }
}

SharedHeap::Lent* SharedHeap::find_lent(const std::byte* address) noexcept {
  for (auto& [size, shelf] : shelves_) {
    for (Lent& lent : shelf.lent) {
      if (address >= lent.block.data && address < lent.block.data + lent.block.bytes) return &lent;
    }
  }
  return nullptr;
}

void SharedHeap::hand_over(const std::byte* address, std::shared_ptr<const ReclaimPolicy> policy) {
  const std::scoped_lock lock(mutex_);
  if (Lent* const lent = find_lent(address))
    std::swap(lent->policy, policy);  // the old policy is destroyed after the lock is released
}

void SharedHeap::hand_over(
    const std::byte* address,
    const std::function<std::shared_ptr<const ReclaimPolicy>(std::shared_ptr<const ReclaimPolicy>)>& make) {
  const std::scoped_lock lock(mutex_);
  if (Lent* const lent = find_lent(address)) lent->policy = make(lent->policy);
}

void SharedHeap::give_up(const std::byte* address) noexcept {
  const std::scoped_lock lock(mutex_);
  for (auto& [size, shelf] : shelves_) {
    shelf.next_look = shelf.lent.end();
    shelf.lent.remove_if(
        [&](const Lent& lent) { return address >= lent.block.data && address < lent.block.data + lent.block.bytes; });
  }
}

SharedBlock SharedHeap::take(std::size_t size) {
  std::vector<Idle>& idle = shelves_[size].idle;
  if (idle.empty()) return carve(size);
  const Idle last = idle.back();
  if (!last.has_memory) {
    segment_of(last.block).reserve(offset_of(last.block), size);
  }
  idle.pop_back();
  return last.block;
}

// Allocates from the rest of the last segment. A block that is too large for it uses a new segment; the rest stays in
// use if the block is large.
SharedBlock SharedHeap::carve(std::size_t size) {
  const bool fits = !segments_.empty() && size <= segments_.back()->size() - used_;
  if (!fits) add_segment(size);
  Segment& segment = *segments_.back();
  segment.reserve(used_, size);
  std::byte* const header = segment.data() + used_ + next_skew();
  used_ += size;
  return {header + SharedBlock::kHeaderBytes, size - kAround};
}

// Cache lines within a page: far apart for successive blocks, and for processes with adjacent numbers and equal
// allocations.
std::size_t SharedHeap::next_skew() {
  constexpr std::size_t kBetweenProcesses = 19;
  constexpr std::size_t kBetweenBlocks = 7;
  return (number_ * kBetweenProcesses + num_carved_++ * kBetweenBlocks) * kLine % kPage;
}

void SharedHeap::set_number(int number) {
  const std::scoped_lock lock(mutex_);
  number_ = static_cast<std::size_t>(number);
}

std::size_t SharedHeap::offset_of(const SharedBlock& block) {
  const auto header = static_cast<std::size_t>(block.header() - segment_of(block).data());
  return header / kPage * kPage;
}

// Adds a large segment, of which only used parts take memory; a smaller one if the limits of this process require it.
void SharedHeap::add_segment(std::size_t bytes) {
  if (segments_.size() == kMostSegments) {
    throw core::SharedMemoryError("this process already has " + std::to_string(kMostSegments) +
                                      " segments of shared memory: keep fewer large arrays at a time.",
                                  ENOSPC, bytes, 0, "memfd");
  }
  segments_.reserve(segments_.size() + 1);
  for (const std::size_t wanted : std::array{kSegmentBytes, kSegmentBytes / 16}) {
    if (wanted < bytes) continue;
    try {
      segments_.push_back(std::make_unique<Segment>(Segment::create(wanted)));
      used_ = 0;
      return;
    } catch (const core::SharedMemoryError&) {  // then a smaller one
    }
  }
  segments_.push_back(std::make_unique<Segment>(Segment::create(bytes)));
  used_ = 0;
}

void SharedHeap::collect(Clock::time_point now) {
  for (auto& [size, shelf] : shelves_) {
    shelf.next_look = shelf.lent.end();
    for (auto lent = shelf.lent.begin(); lent != shelf.lent.end();) {
      const auto next = std::next(lent);
      if (lent->policy->is_reclaimable(lent->block)) {
        shelf.idle.push_back({lent->block, now, true});
        shelf.lent.erase(lent);
      }
      lent = next;
    }
  }
}

std::size_t SharedHeap::release_idle(Clock::time_point limit) noexcept {
  std::size_t bytes = 0;
  for (auto& [size, shelf] : shelves_) {
    for (Idle& idle : shelf.idle) {
      if (!idle.has_memory || idle.since > limit) continue;
      segment_of(idle.block).release(offset_of(idle.block), size);
      idle.has_memory = false;
      bytes += size;
    }
    // Regions that have memory are taken first, from the back.
    std::stable_partition(shelf.idle.begin(), shelf.idle.end(), [](const Idle& idle) { return !idle.has_memory; });
  }
  return bytes;
}

Segment& SharedHeap::segment_of(const SharedBlock& block) {
  const auto found = std::find_if(segments_.begin(), segments_.end(), [&](const std::unique_ptr<Segment>& segment) {
    return block.data >= segment->data() && block.data < segment->data() + segment->size();
  });
  return **found;
}

std::optional<SharedPlace> SharedHeap::find(const void* address) const {
  const auto* const wanted = static_cast<const std::byte*>(address);
  const std::scoped_lock lock(mutex_);
  for (std::size_t index = 0; index < segments_.size(); ++index) {
    const Segment& segment = *segments_[index];
    if (wanted >= segment.data() && wanted < segment.data() + segment.size()) {
      return SharedPlace{static_cast<std::uint32_t>(index), static_cast<std::uint64_t>(wanted - segment.data())};
    }
  }
  return std::nullopt;
}

const Segment& SharedHeap::segment(std::uint32_t index) const {
  const std::scoped_lock lock(mutex_);
  return *segments_[index];
}

std::size_t SharedHeap::trim() {
  const std::scoped_lock lock(mutex_);
  const auto now = Clock::now();
  collect(now);
  return release_idle(now);
}

SharedHeapStatistics SharedHeap::statistics() {
  const std::scoped_lock lock(mutex_);
  collect(Clock::now());
  SharedHeapStatistics statistics;
  for (const auto& [size, shelf] : shelves_) {
    statistics.lent_blocks += shelf.lent.size();
    statistics.lent_bytes += shelf.lent.size() * size;
    for (const Idle& idle : shelf.idle) {
      statistics.idle_blocks += idle.has_memory ? 1U : 0U;
      statistics.idle_bytes += idle.has_memory ? size : 0;
    }
  }
  return statistics;
}

// Earlier blocks stay mapped in the child, which may still read them; only the parent may reuse their memory.
void SharedHeap::after_fork(bool is_child) {
  if (is_child) {
    for (auto& segment : segments_) segment->abandon();
    segments_.clear();
    shelves_.clear();
    used_ = 0;
  }
  mutex_.unlock();
}

}  // namespace ringlet::memory

#include "ringlet/memory/shared_heap.hpp"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>
#include <new>
#include <utility>

#include "ringlet/core/error.hpp"
#include "ringlet/memory/size_class.hpp"

namespace ringlet::memory {

namespace {

constexpr std::size_t kPage = 4096;

constexpr std::size_t kLine = 64;

// The numbers of reported blocks, and of blocks that other processes may hold, that an allocation checks.
constexpr std::size_t kNotes = 4;
constexpr std::size_t kLooks = 4;

// Space around a block: a header, and for large blocks room for any position within a page.
constexpr std::size_t kAround = SharedBlock::kMostHeaderBytes + kPage;
constexpr std::size_t kSmallHeader = kLine;
constexpr std::size_t kSlab = 8 * kPage;

std::size_t shelf_of(std::size_t bytes, std::size_t header_bytes) {
  if (bytes <= SharedHeap::kSmall && header_bytes <= kSmallHeader) {
    return size_class(std::max(bytes, kLine), kLine) + kSmallHeader;
  }
  return size_class(std::max(bytes, kPage), kPage) + kAround;
}

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

SharedBlock SharedHeap::allocate(std::size_t bytes, std::shared_ptr<const ReclaimPolicy> policy,
                                 std::size_t header_bytes) {
  const std::size_t size = shelf_of(bytes, header_bytes);
  const std::scoped_lock lock(mutex_);
  Shelf& shelf = shelves_.try_emplace(size, Shelf{.size = size}).first->second;
  const auto now = Clock::now();
  take_notes(now);
  collect_some(shelf, now);
  const auto entry = take(shelf);
  move(entry, State::kLent);
  entry->policy = std::move(policy);
  entry->policy->lend(entry->block);
  const SharedBlock block = entry->block;
  if (now >= next_look_) {
    collect(now, false);
    release_idle(now - kKeepIdle);
    next_look_ = now + kKeepIdle / 10;
  }
  return block;
}

void SharedHeap::note_released(const std::byte* data) noexcept {
  const std::scoped_lock lock(notes_mutex_);
  try {
    notes_.push_back(data);
  } catch (const std::bad_alloc&) {
    has_lost_notes_ = true;
  }
}

void SharedHeap::move(Entries::iterator entry, State to) {
  Entries& entries = entry->shelf->in(to);
  entries.splice(entries.end(), entry->shelf->in(entry->state), entry);
  entry->state = to;
}

void SharedHeap::move_if_reclaimable(Entries::iterator entry, Clock::time_point now) {
  if (!entry->policy->is_reclaimable(entry->block)) return;
  move(entry, State::kIdle);
  entry->policy = nullptr;
  entry->since = now;
}

// Takes the last notes, whose memory is most likely in the cache. Takes a few at a time, because as many blocks are
// released as allocated.
void SharedHeap::take_notes(Clock::time_point now) {
  std::array<const std::byte*, kNotes> taken{};
  std::size_t count = 0;
  {
    const std::scoped_lock lock(notes_mutex_);
    count = std::min(notes_.size(), kNotes);
    std::copy(notes_.end() - static_cast<std::ptrdiff_t>(count), notes_.end(), taken.begin());
    notes_.resize(notes_.size() - count);
  }
  for (std::size_t note = 0; note < count; ++note) {
    const auto found = entries_.find(taken[note]);
    if (found == entries_.end() || found->second->state != State::kLent) continue;
    move(found->second, State::kReleased);
    move_if_reclaimable(found->second, now);
  }
}

// Checks a few blocks, different ones each time, because other processes may hold any number of blocks.
void SharedHeap::collect_some(Shelf& shelf, Clock::time_point now) {
  Entries& released = shelf.in(State::kReleased);
  for (std::size_t look = std::min(kLooks, released.size()); look > 0; --look) {
    move(released.begin(), State::kReleased);
    move_if_reclaimable(std::prev(released.end()), now);
  }
}

SharedHeap::Entries::iterator* SharedHeap::find_lent(const std::byte* address) noexcept {
  const auto is_lent = [](const Entry& entry) { return entry.policy != nullptr; };
  if (const auto found = entries_.find(address); found != entries_.end()) {
    return is_lent(*found->second) ? &found->second : nullptr;
  }
  for (auto& [data, entry] : entries_) {  // an array that begins within a block
    if (is_lent(*entry) && address >= data && address < data + entry->block.bytes) return &entry;
  }
  return nullptr;
}

void SharedHeap::hand_over(const std::byte* address, std::shared_ptr<const ReclaimPolicy> policy) {
  const std::scoped_lock lock(mutex_);
  if (Entries::iterator* const lent = find_lent(address))
    std::swap((*lent)->policy, policy);  // the old policy is destroyed after the lock is released
}

void SharedHeap::hand_over(
    const std::byte* address,
    const std::function<std::shared_ptr<const ReclaimPolicy>(std::shared_ptr<const ReclaimPolicy>)>& make) {
  const std::scoped_lock lock(mutex_);
  if (Entries::iterator* const lent = find_lent(address)) (*lent)->policy = make((*lent)->policy);
}

void SharedHeap::give_up(const std::byte* address) noexcept {
  const std::scoped_lock lock(mutex_);
  Entries::iterator* const lent = find_lent(address);
  if (lent == nullptr) return;
  const auto entry = *lent;
  entries_.erase(entry->block.data);
  entry->shelf->in(entry->state).erase(entry);
}

SharedHeap::Entries::iterator SharedHeap::take(Shelf& shelf) {
  if (Entries& idle = shelf.in(State::kIdle); !idle.empty()) return std::prev(idle.end());
  Entries& empty = shelf.in(State::kEmpty);
  if (empty.empty()) return carve(shelf);
  const auto last = std::prev(empty.end());
  segment_of(last->block).reserve(offset_of(last->block), shelf.size);
  return last;
}

// A new block. Small blocks are parts of a slab.
SharedHeap::Entries::iterator SharedHeap::carve(Shelf& shelf) {
  SharedBlock block;
  if (shelf.is_small()) {
    if (static_cast<std::size_t>(shelf.fresh_end - shelf.fresh) < shelf.size) {
      std::byte* const slab = extend(kSlab);
      shelf.fresh = slab + next_skew();
      shelf.fresh_end = slab + kSlab;
    }
    block = {shelf.fresh + kSmallHeader, shelf.size - kSmallHeader};
    shelf.fresh += shelf.size;
  } else {
    block = {extend(shelf.size) + next_skew() + SharedBlock::kMostHeaderBytes, shelf.size - kAround};
  }
  Entries& idle = shelf.in(State::kIdle);
  idle.push_back({.block = block, .shelf = &shelf, .state = State::kIdle, .policy = nullptr, .since = {}});
  entries_.emplace(block.data, std::prev(idle.end()));
  return std::prev(idle.end());
}

// Reserves the next pages of the last segment, or of a new one if they do not fit.
std::byte* SharedHeap::extend(std::size_t bytes) {
  const bool fits = !segments_.empty() && bytes <= segments_.back()->size() - used_;
  if (!fits) add_segment(bytes);
  Segment& segment = *segments_.back();
  segment.reserve(used_, bytes);
  used_ += bytes;
  return segment.data() + used_ - bytes;
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
  const auto header = static_cast<std::size_t>(block.data - SharedBlock::kMostHeaderBytes - segment_of(block).data());
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
    } catch (const core::SharedMemoryError&) {  // try a smaller segment
    }
  }
  segments_.push_back(std::make_unique<Segment>(Segment::create(bytes)));
  used_ = 0;
}

// Checks all blocks that other processes may hold, or all blocks.
void SharedHeap::collect(Clock::time_point now, bool is_complete) {
  {
    const std::scoped_lock lock(notes_mutex_);
    is_complete |= std::exchange(has_lost_notes_, false);
    if (is_complete) notes_.clear();
  }
  for (auto& [size, shelf] : shelves_) {
    for (const State state : {State::kReleased, State::kLent}) {
      if (state == State::kLent && !is_complete) break;
      Entries& entries = shelf.in(state);
      for (auto next = entries.begin(); next != entries.end();) move_if_reclaimable(next++, now);
    }
  }
}

std::size_t SharedHeap::release_idle(Clock::time_point limit) noexcept {
  std::size_t bytes = 0;
  for (auto& [size, shelf] : shelves_) {
    Entries& idle = shelf.in(State::kIdle);  // the longest idle first
    while (!shelf.is_small() && !idle.empty() && idle.front().since <= limit) {
      segment_of(idle.front().block).release(offset_of(idle.front().block), size);
      move(idle.begin(), State::kEmpty);
      bytes += size;
    }
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
  collect(now, true);
  return release_idle(now);
}

SharedHeapStatistics SharedHeap::statistics() {
  const std::scoped_lock lock(mutex_);
  collect(Clock::now(), true);
  SharedHeapStatistics statistics;
  for (auto& [size, shelf] : shelves_) {
    const std::size_t lent = shelf.in(State::kLent).size() + shelf.in(State::kReleased).size();
    statistics.lent_blocks += lent;
    statistics.lent_bytes += lent * size;
    if (shelf.is_small()) continue;
    statistics.idle_blocks += shelf.in(State::kIdle).size();
    statistics.idle_bytes += shelf.in(State::kIdle).size() * size;
  }
  return statistics;
}

void SharedHeap::before_fork() {
  mutex_.lock();
  notes_mutex_.lock();
}

// Earlier blocks stay mapped in the child, which may still read them; only the parent may reuse their memory.
void SharedHeap::after_fork(bool is_child) {
  notes_mutex_.unlock();
  if (is_child) {
    for (auto& segment : segments_) segment->abandon();
    segments_.clear();
    entries_.clear();
    shelves_.clear();  // the policies of blocks may release blocks
    notes_.clear();
    used_ = 0;
  }
  mutex_.unlock();
}

}  // namespace ringlet::memory

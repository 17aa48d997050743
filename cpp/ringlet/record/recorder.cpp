#include "ringlet/record/recorder.hpp"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/syscall.h>
#endif

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

#include "ringlet/sync/append_only.hpp"
#include "ringlet/sync/counters.hpp"

namespace ringlet::record {

namespace {

std::uint64_t thread_id() {
#if defined(__linux__)
  return static_cast<std::uint64_t>(syscall(SYS_gettid));
#else
  return 0;
#endif
}

sync::SoleCounter newest_place;  // numbering continues in the child of a fork

// Never destroyed: threads may outlive static objects.
class Recorder {
 public:
  Recorder(int fd, std::string_view header) : segment_(memory::Segment::create_in(fd, kBytes)) {
#if defined(__linux__)
    madvise(segment_.data(), kBytes, MADV_DONTFORK);
#endif
    segment_.reserve(0, kPage);
    std::copy_n(header.data(), std::min(header.size(), kPage), reinterpret_cast<char*>(segment_.data()));
    rings_.reserve(kMostRings);  // so that rings do not move
    free_.reserve(kMostRings);
  }

  int descriptor() const noexcept { return segment_.fd(); }
  void forget_in_child() noexcept { segment_.close_descriptor(); }

  // Null if no ring or no memory is left.
  Ring* acquire() noexcept {
    const std::scoped_lock lock(mutex_);
    try {
      if (free_.empty() && rings_.size() < kMostRings) {
        free_.push_back(&rings_.emplace_back(segment_, kRingsOffset + rings_.size() * sizeof(RingMemory)));
        counter(kNumRingsOffset).set(rings_.size());
      }
    } catch (const std::exception&) {
      return nullptr;
    }
    if (free_.empty()) return nullptr;
    Ring* const ring = free_.back();
    free_.pop_back();
    ring->set_thread(thread_id());
    return ring;
  }
  void give_back(Ring* ring) noexcept {
    const std::scoped_lock lock(mutex_);
    free_.push_back(ring);
  }
  void add_place(std::uint64_t number, std::string_view text) {
    const std::size_t offset = kPage + number % kNumPlaces * sizeof(Place);
    segment_.reserve(offset / kPage * kPage, kPage);
    std::array<std::uint64_t, kPlaceBytes / sizeof(std::uint64_t)> words{};
    std::memcpy(words.data(), text.data(), std::min(text.size(), kPlaceBytes - 1));
    reinterpret_cast<Place*>(segment_.data() + offset)->write(number, words);
  }
  // Places of the parent of a fork have smaller numbers.
  bool has_place(std::uint64_t number) const noexcept {
    const std::uint64_t newest = newest_place.value();
    return number > first_place_ && number <= newest && newest - number < kNumPlaces;
  }
  sync::SoleCounter& counter(std::size_t offset) const noexcept {
    return *reinterpret_cast<sync::SoleCounter*>(segment_.data() + offset);
  }

 private:
  memory::Segment segment_;
  std::mutex mutex_;
  std::vector<Ring> rings_;
  std::vector<Ring*> free_;
  std::uint64_t first_place_ = newest_place.value();
};

sync::Flag is_claimed;
constinit sync::Pointer<Recorder> current;

// The ring of this thread, for as long as the thread runs. `recorder` is the one that was asked for a ring last.
struct Lease {
  Recorder* recorder = nullptr;
  Ring* ring = nullptr;
  ~Lease() {
    if (ring != nullptr) recorder->give_back(ring);
  }
};
thread_local Lease lease;
thread_local constinit Ring* own_ring = nullptr;  // ring of the lease, faster to access
thread_local constinit std::uint64_t own_place = 0;

Ring* acquire_ring() noexcept {
  Recorder* const recorder = current.get();
  if (recorder == nullptr || lease.recorder == recorder) return nullptr;
  lease.recorder = recorder;
  lease.ring = recorder->acquire();
  return own_ring = lease.ring;
}

// In the child of a fork, which has one thread. The recorder's lock may be held for ever.
void forget_parent() {
  if (Recorder* const recorder = current.get(); recorder != nullptr) recorder->forget_in_child();
  current.set(nullptr);
  is_claimed.set(false);
  lease.recorder = nullptr;
  lease.ring = own_ring = nullptr;
}

}  // namespace

bool claim_opening() noexcept { return !is_claimed.is_set() && is_claimed.claim(); }

void open(int fd, std::string_view header) {
  [[maybe_unused]] static const int registered = pthread_atfork(nullptr, nullptr, forget_parent);
  current.set(std::make_unique<Recorder>(fd, header).release());
}

int descriptor() noexcept {
  const Recorder* const recorder = current.get();
  return recorder == nullptr ? -1 : recorder->descriptor();
}

std::uint64_t add_place(std::string_view text) noexcept {
  Recorder* const recorder = current.get();
  if (recorder == nullptr) return 0;
  std::uint64_t number = newest_place.value() + 1;
  if (number << kPlaceBit == 0) ++number;
  try {
    recorder->add_place(number, text);
  } catch (const std::exception&) {
    return 0;
  }
  newest_place.set(number);
  return number;
}

bool has_place(std::uint64_t number) noexcept {
  const Recorder* const recorder = current.get();
  return recorder != nullptr && recorder->has_place(number);
}

void set_place(std::uint64_t number) noexcept { own_place = number; }

std::uint64_t begin(Operation& operation) noexcept {
  Ring* const ring = own_ring != nullptr ? own_ring : acquire_ring();
  if (ring == nullptr) return 0;
  operation.bytes |= own_place << kPlaceBit;
  operation.began = now();
  return ring->begin(operation);
}

void arrive(std::uint64_t number, bool has_waited) noexcept {
  if (number != 0 && own_ring != nullptr) own_ring->arrive(number, has_waited);
}

void end(std::uint64_t number, bool has_returned) noexcept {
  if (number != 0 && own_ring != nullptr) own_ring->end(number, has_returned);
}

void count_run() noexcept {
  if (const Recorder* const recorder = current.get(); recorder != nullptr) recorder->counter(kNumRunsOffset).add(1);
}

}  // namespace ringlet::record

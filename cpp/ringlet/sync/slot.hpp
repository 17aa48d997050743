// The slot in which one rank publishes its call.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "ringlet/sync/cache_line.hpp"
#include "ringlet/sync/fault.hpp"

namespace ringlet::sync {

// Maximum size of a payload inside the slot. Its first bytes share a cache line with the header.
inline constexpr std::size_t kSlotPayloadBytes = 2048 - 48;

// Only the owner writes. Every rank alternates between two slots: it may overwrite the slot of call s - 2, because it
// has seen every rank arrive at call s - 1, so every rank has left call s - 2.
class alignas(kCacheLine) Slot {
 public:
  // The fingerprint that must be equal on all ranks; written before publish().
  std::uint64_t call_fingerprint = 0;
  std::uint64_t buffers_fingerprint = 0;
  // Names of the owner's first array, of its output, and of the first result that the owner announced for others; in
  // the slot, so that a call on one array needs no other cache line.
  std::uint64_t input = 0;
  std::uint64_t output = 0;
  std::uint64_t result = 0;

  // Publishes the call at which the owner has arrived; calls are counted from 1.
  void publish(std::uint64_t sequence) noexcept {
    fault_point();
    sequence_.store(sequence);
  }
  bool has_arrived(std::uint64_t sequence) const noexcept { return sequence_.load() >= sequence; }
  std::uint64_t sequence() const noexcept { return sequence_.load(); }

  std::byte* payload() noexcept { return payload_; }

 private:
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
  std::atomic<std::uint64_t> sequence_{0};
  alignas(16) std::byte payload_[kSlotPayloadBytes];  // aligned for any element type
};
static_assert(sizeof(Slot) == 2048);

}  // namespace ringlet::sync

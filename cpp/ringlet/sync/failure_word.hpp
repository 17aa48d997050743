// The first failure of a group: its author and cause.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "ringlet/sync/cache_line.hpp"
#include "ringlet/sync/fault.hpp"

namespace ringlet::sync {

// A process that fails a group writes the text to its own area, then claims this word, which names that area. The first
// claim wins and is permanent. A reader of the claim therefore sees the whole text, and a process that dies before the
// claim has not failed the group.
class alignas(kCacheLine) FailureWord {
 public:
  struct Claim {
    std::uint8_t cause;
    std::uint16_t author;  // which process wrote the text
    std::uint16_t lost;    // which process was lost, if that is the cause
  };

  bool is_claimed() const noexcept { return word_.load() != 0; }
  bool claim(const Claim& claim) noexcept {
    fault_point();
    std::uint64_t unclaimed = 0;
    const std::uint64_t word =
        kClaimedBit | std::uint64_t{claim.cause} << 32 | std::uint64_t{claim.author} << 16 | std::uint64_t{claim.lost};
    return word_.compare_exchange_strong(unclaimed, word);
  }
  std::optional<Claim> claimed() const noexcept {
    const std::uint64_t word = word_.load();
    if (word == 0) return std::nullopt;
    return Claim{.cause = static_cast<std::uint8_t>(word >> 32),
                 .author = static_cast<std::uint16_t>(word >> 16),
                 .lost = static_cast<std::uint16_t>(word)};
  }

 private:
  static constexpr std::uint64_t kClaimedBit = std::uint64_t{1} << 63;
  std::atomic<std::uint64_t> word_{0};
};

}  // namespace ringlet::sync

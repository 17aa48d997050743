// Copies from and to memory that other processes concurrently read or write.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "ringlet/sync/fault.hpp"

namespace ringlet::sync {

// The unit in which shared memory is read and written.
using SharedWord = std::atomic<std::uint64_t>;
static_assert(SharedWord::is_always_lock_free && sizeof(SharedWord) == sizeof(std::uint64_t));

// Words are copied four per iteration: the time of a loop over single words depends on its code alignment.

// Copies bytes from any position in words that another process may be storing. acquire: a reader that sees a stored
// word also sees all writes before its store_shared().
inline void load_shared(const std::byte* from, std::span<std::byte> to) noexcept {
  std::size_t skipped = reinterpret_cast<std::uintptr_t>(from) % sizeof(SharedWord);
  const auto* word = reinterpret_cast<const SharedWord*>(from - skipped);
  const auto load = [&](std::size_t bytes) {
    const std::uint64_t value = word++->load(std::memory_order_acquire);
    std::memcpy(to.data(), reinterpret_cast<const std::byte*>(&value) + skipped, bytes);
    to = to.subspan(bytes);
  };
  if (skipped != 0) load(std::min(sizeof(SharedWord) - skipped, to.size()));
  skipped = 0;
  while (to.size() >= 4 * sizeof(SharedWord)) {
    load(sizeof(SharedWord));
    load(sizeof(SharedWord));
    load(sizeof(SharedWord));
    load(sizeof(SharedWord));
  }
  while (to.size() >= sizeof(SharedWord)) load(sizeof(SharedWord));
  if (!to.empty()) load(to.size());
}

// Copies words to memory that other processes may be loading. release pairs with load_shared.
inline void store_shared(std::span<const std::uint64_t> from, std::byte* to) noexcept {
  auto* const words = reinterpret_cast<SharedWord*>(to);
  const auto store = [&](std::size_t i) {
    fault_point();
    words[i].store(from[i], std::memory_order_release);
  };
  std::size_t i = 0;
  for (; i + 4 <= from.size(); i += 4) {
    store(i);
    store(i + 1);
    store(i + 2);
    store(i + 3);
  }
  for (; i < from.size(); ++i) store(i);
}

}  // namespace ringlet::sync

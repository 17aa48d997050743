// Parking of threads on a word, and waking them.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace ringlet::sync {

enum class Wake { kWoken, kTimedOut, kInterrupted };

// Sleeps while `word` holds `expected`, at most for `limit`. May return spuriously. The wait is shared: it works for
// words in memory that several processes map (std::atomic::wait may park on a process-private queue).
Wake futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t expected,
                std::chrono::nanoseconds limit) noexcept;

void futex_wake_all(const std::atomic<std::uint32_t>& word) noexcept;
void futex_wake_one(const std::atomic<std::uint32_t>& word) noexcept;

}  // namespace ringlet::sync

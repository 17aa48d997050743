#include "ringlet/sync/futex.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>

#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>
#elif defined(__APPLE__)
extern "C" int __ulock_wait(std::uint32_t operation, void* address, std::uint64_t value, std::uint32_t timeout_us);
extern "C" int __ulock_wake(std::uint32_t operation, void* address, std::uint64_t value);
#else
#error "ringlet parks threads with a futex: Linux and macOS have one. On Windows, build inside WSL."
#endif

namespace ringlet::sync {

static_assert(std::atomic<std::uint32_t>::is_always_lock_free && sizeof(std::atomic<std::uint32_t>) == 4);

#if defined(__linux__)

Wake futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t expected,
                std::chrono::nanoseconds limit) noexcept {
  constexpr std::int64_t kNanosecondsPerSecond = 1'000'000'000;
  const std::int64_t nanoseconds = std::max<std::int64_t>(limit.count(), 0);
  const timespec timeout{.tv_sec = static_cast<time_t>(nanoseconds / kNanosecondsPerSecond),
                         .tv_nsec = static_cast<long>(nanoseconds % kNanosecondsPerSecond)};
  if (syscall(SYS_futex, &word, FUTEX_WAIT, expected, &timeout, nullptr, 0) == 0) return Wake::kWoken;
  if (errno == ETIMEDOUT) return Wake::kTimedOut;
  return errno == EINTR ? Wake::kInterrupted : Wake::kWoken;
}

void futex_wake_all(const std::atomic<std::uint32_t>& word) noexcept {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void futex_wake_one(const std::atomic<std::uint32_t>& word) noexcept {
  syscall(SYS_futex, &word, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

#elif defined(__APPLE__)

namespace {
constexpr std::uint32_t kCompareAndWaitShared = 3;
constexpr std::uint32_t kWakeAll = 0x100;
constexpr std::uint32_t kNoErrno = 0x01000000;

void* address_of(const std::atomic<std::uint32_t>& word) { return const_cast<std::atomic<std::uint32_t>*>(&word); }
}  // namespace

Wake futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t expected,
                std::chrono::nanoseconds limit) noexcept {
  // A timeout of 0 means no limit, so the shortest wait is one microsecond.
  const auto microseconds = std::clamp<std::int64_t>(limit.count() / 1000, 1, UINT_MAX);
  const int result = __ulock_wait(kCompareAndWaitShared | kNoErrno, address_of(word), expected,
                                  static_cast<std::uint32_t>(microseconds));
  if (result == -ETIMEDOUT) return Wake::kTimedOut;
  return result == -EINTR ? Wake::kInterrupted : Wake::kWoken;
}

void futex_wake_all(const std::atomic<std::uint32_t>& word) noexcept {
  __ulock_wake(kCompareAndWaitShared | kWakeAll | kNoErrno, address_of(word), 0);
}

void futex_wake_one(const std::atomic<std::uint32_t>& word) noexcept {
  __ulock_wake(kCompareAndWaitShared | kNoErrno, address_of(word), 0);
}

#endif

}  // namespace ringlet::sync

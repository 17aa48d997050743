#include "ringlet/sync/fault.hpp"

#if defined(RINGLET_FAULT)
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>

namespace ringlet::sync {

void fault_point() noexcept {
  static std::atomic<std::uint64_t> passed{0};
  static const std::uint64_t last = [] {
    const char* const number = std::getenv("RINGLET_FAULT");
    return number == nullptr ? 0 : std::strtoull(number, nullptr, 10);
  }();
  static const int number = std::getenv("RINGLET_FAULT_STOPS") == nullptr ? SIGKILL : SIGSTOP;
  if (last != 0 && passed.fetch_add(1) + 1 == last) kill(getpid(), number);
}

}  // namespace ringlet::sync
#endif

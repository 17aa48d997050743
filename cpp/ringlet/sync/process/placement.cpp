#include "ringlet/sync/process/placement.hpp"

#if defined(__linux__)
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdio>
#endif

namespace ringlet::sync {

#if defined(__linux__)

static_assert(CoreSet().size() == CPU_SETSIZE);

namespace {

long online_cores() noexcept {
  static const long kCores = sysconf(_SC_NPROCESSORS_ONLN);
  return kCores;
}

}  // namespace

int current_core() noexcept { return sched_getcpu(); }

// A thread on a core that its new affinity excludes is moved immediately, and is not moved back when the core is
// allowed again. The system remembers the last requested affinity, and applies it when the process is allowed more
// cores: so a thread that may run on all cores requests all cores.
bool move_to_core_outside(const CoreSet& taken) noexcept {
  cpu_set_t before;
  if (sched_getaffinity(0, sizeof before, &before) != 0) return false;
  cpu_set_t others = before;
  for (std::size_t core = 0; core < taken.size(); ++core) {
    if (taken[core]) CPU_CLR(core, &others);
  }
  if (CPU_COUNT(&others) == 0) return false;
  if (CPU_COUNT(&before) == online_cores()) {
    for (std::size_t core = 0; core < taken.size(); ++core) CPU_SET(core, &before);
  }
  if (sched_setaffinity(0, sizeof others, &others) != 0) return false;
  (void)sched_setaffinity(0, sizeof before, &before);  // fails only if no core of it is left, and then changes nothing
  return true;
}

// The file has three averages, then the number of runnable threads, including this one, and the number of all threads.
bool has_idle_core() noexcept {
  std::array<char, 128> text{};
  const int fd = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const ssize_t size = read(fd, text.data(), text.size() - 1);
  close(fd);
  long ready = 0;
  return size > 0 && std::sscanf(text.data(), "%*s %*s %*s %ld/", &ready) == 1 && ready <= online_cores();
}

#else

int current_core() noexcept { return kUnknownCore; }

bool move_to_core_outside(const CoreSet& /*taken*/) noexcept { return false; }

bool has_idle_core() noexcept { return false; }

#endif

}  // namespace ringlet::sync

#include "ringlet/io/crc32c.hpp"

#include <cstdlib>
#include <string_view>
#include <vector>

#if defined(RINGLET_ARM_TARGETS) && defined(__linux__)
#include <sys/auxv.h>
#endif

namespace ringlet::io {

namespace {

#if defined(RINGLET_ARM_TARGETS)
bool arm_has_crc32() {
#if defined(__linux__)
  constexpr unsigned long kCrc32 = 1UL << 7;  // HWCAP_CRC32 of <asm/hwcap.h>
  return (getauxval(AT_HWCAP) & kCrc32) != 0;
#else
  return true;  // every Apple CPU of this kind
#endif
}
#endif

std::vector<const Crc32c*> find_runnable() {
  std::vector<const Crc32c*> found;
#if defined(RINGLET_X86_TARGETS)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("sse4.2") != 0) found.push_back(&crc32c_sse42());
#endif
#if defined(RINGLET_ARM_TARGETS)
  if (arm_has_crc32()) found.push_back(&crc32c_arm());
#endif
  found.push_back(&crc32c_portable());
  return found;
}

const Crc32c& choose() {
  const char* const wanted = std::getenv("RINGLET_CPU");
  const bool is_portable = wanted != nullptr && std::string_view(wanted) == "portable";
  return is_portable ? *runnable_crc32c().back() : *runnable_crc32c().front();
}

}  // namespace

std::span<const Crc32c* const> runnable_crc32c() {
  static const std::vector<const Crc32c*> kFound = find_runnable();
  return kFound;
}

const Crc32c& active_crc32c() {
  static const Crc32c& kChosen = choose();
  return kChosen;
}

}  // namespace ringlet::io

#include <unistd.h>

#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "ringlet/core/error.hpp"
#include "ringlet/kernels/kernels.hpp"

namespace ringlet::kernels {

namespace {

std::vector<const Kernels*> find_runnable() {
  std::vector<const Kernels*> found;
#if defined(RINGLET_X86_TARGETS)
  __builtin_cpu_init();
  const bool has_avx2 = __builtin_cpu_supports("avx2") != 0;
  const bool has_avx512 = __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512dq") != 0 &&
                          __builtin_cpu_supports("avx512bw") != 0 && __builtin_cpu_supports("avx512vl") != 0;
  if (has_avx512) found.push_back(&avx512());
  if (has_avx2) found.push_back(&avx2());
#endif
#if defined(RINGLET_ARM_TARGETS)
  found.push_back(&neon());  // every 64-bit ARM CPU has NEON
#endif
  found.push_back(&portable());
  return found;
}

const Kernels& choose() {
  const char* const wanted = std::getenv("RINGLET_CPU");
  if (wanted == nullptr || std::string_view(wanted).find_first_not_of(' ') == std::string_view::npos) {
    return *runnable().front();
  }
  std::string names;
  for (const Kernels* kernels : runnable()) {
    if (kernels->name == wanted) return *kernels;
    names += names.empty() ? "" : ", ";
    names += kernels->name;
  }
  throw core::ArgumentError("RINGLET_CPU is '" + std::string(wanted) + "', which this CPU or this build cannot run. " +
                            "Set it to one of: " + names + "; or unset it to use the first of these.");
}

std::size_t second_level_cache_bytes() {
#if defined(_SC_LEVEL2_CACHE_SIZE)
  if (const long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE); bytes > 0) return static_cast<std::size_t>(bytes);
#endif
  return std::size_t{1} << 20;
}

}  // namespace

std::span<const Kernels* const> runnable() {
  static const std::vector<const Kernels*> kFound = find_runnable();
  return kFound;
}

const Kernels& active() {
  static const Kernels& kChosen = choose();
  return kChosen;
}

std::size_t streaming_threshold_bytes() {
  static const std::size_t kBytes = second_level_cache_bytes();
  return kBytes;
}

}  // namespace ringlet::kernels

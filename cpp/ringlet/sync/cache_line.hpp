// Size of the unit in which cores exchange memory.
#pragma once

#include <cstddef>

namespace ringlet::sync {

// Two words that different cores write must not share one of these.
#if defined(__APPLE__) && defined(__aarch64__)
inline constexpr std::size_t kCacheLine = 128;
#else
inline constexpr std::size_t kCacheLine = 64;
#endif

}  // namespace ringlet::sync

// Detection of reads of uninitialized memory.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace ringlet::memory {

// With RINGLET_POISON=1 in the environment, fills allocated memory: every float is then NaN, every integer -1 or the
// maximum. For tests.
inline void poison(std::byte* data, std::size_t bytes) noexcept {
  static const bool is_on = [] {
    const char* const value = std::getenv("RINGLET_POISON");
    return value != nullptr && std::string_view(value) == "1";
  }();
  if (is_on && bytes > 0) std::memset(data, 0xFF, bytes);
}

}  // namespace ringlet::memory

// Fresh memory that shows when it is read before it is written.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace ringlet::memory {

// With RINGLET_POISON=1 in the environment, fills what is given out: every float is NaN then, every integer -1 or the
// largest. For tests.
inline void poison(std::byte* data, std::size_t bytes) noexcept {
  static const bool is_on = [] {
    const char* const value = std::getenv("RINGLET_POISON");
    return value != nullptr && std::string_view(value) == "1";
  }();
  if (is_on && bytes > 0) std::memset(data, 0xFF, bytes);
}

}  // namespace ringlet::memory

// Size classes in which memory is kept for reuse.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>

namespace ringlet::memory {

// Four sizes for each power of two, each a multiple of `unit`.
constexpr std::size_t size_class(std::size_t bytes, std::size_t unit) {
  const std::size_t step = std::max(std::bit_floor(bytes) / 4, unit);
  return (bytes + step - 1) / step * step;
}

}  // namespace ringlet::memory

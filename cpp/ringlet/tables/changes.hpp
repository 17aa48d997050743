// Elementwise changes of updates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "ringlet/core/dtype.hpp"

namespace ringlet::tables {

enum class Change : std::uint8_t { kAssign, kAdd, kSubtract, kMultiply, kDivide, kMinimum, kMaximum };

inline constexpr std::size_t kNumChanges = 7;

constexpr std::string_view name_of(Change change) {
  constexpr std::string_view kNames[kNumChanges] = {"assign", "add", "sub", "mul", "div", "min", "max"};
  return kNames[static_cast<std::size_t>(change)];
}

// Throws ArgumentError if the change does not support this dtype.
void check_supported(Change change, core::DType dtype);

// result = change(old, value), element by element; `result` shares no memory with them. Integers wrap on overflow;
// division truncates towards zero, and division by zero returns zero. Floats of 8 and 16 bits are computed as float32
// and rounded once.
void apply(Change change, core::DType dtype, const void* old, const void* value, std::size_t count,
           void* result) noexcept;

}  // namespace ringlet::tables

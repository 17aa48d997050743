// How the elements of several ranks become one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "ringlet/core/dtype.hpp"

namespace ringlet::core {

enum class Op : std::uint8_t { kSum, kMean };

inline constexpr std::size_t kNumOps = 2;

constexpr std::string_view name_of(Op op) {
  constexpr std::string_view kNames[kNumOps] = {"SUM", "MEAN"};
  return kNames[static_cast<std::size_t>(op)];
}

// The mean of integers is a floating point number, as TensorFlow's is: float64 for 32 and 64 bit integers.
constexpr DType result_dtype(Op op, DType dtype) {
  return op == Op::kMean && is_integer(dtype) ? DType::kFloat64 : dtype;
}

}  // namespace ringlet::core

// Operations that combine the elements of several ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "ringlet/core/dtype.hpp"

namespace ringlet::core {

// MIN and MAX return NaN if an operand is NaN; -0 is less than +0.
enum class Op : std::uint8_t { kSum, kMean, kMin, kMax, kProd, kAnd, kOr, kXor };

inline constexpr std::size_t kNumOps = 8;

constexpr std::size_t index_of(Op op) { return static_cast<std::size_t>(op); }

constexpr std::string_view name_of(Op op) {
  constexpr std::string_view kNames[kNumOps] = {"SUM", "MEAN", "MIN", "MAX", "PROD", "AND", "OR", "XOR"};
  return kNames[index_of(op)];
}

constexpr bool is_bitwise(Op op) { return op == Op::kAnd || op == Op::kOr || op == Op::kXor; }
constexpr bool is_extreme(Op op) { return op == Op::kMin || op == Op::kMax; }

constexpr bool is_supported(Op op, DType dtype) {
  switch (category_of(dtype)) {
    case Category::kBoolean:
      return is_bitwise(op) || is_extreme(op);
    case Category::kSigned:
    case Category::kUnsigned:
      return true;
    case Category::kFloat:
    case Category::kNarrow:
      return !is_bitwise(op);
    case Category::kComplex:
      break;
  }
  return !is_bitwise(op) && !is_extreme(op);
}

// The mean of integers is a floating point number, as in TensorFlow: float32 for 8 and 16 bits, else float64.
constexpr DType result_dtype(Op op, DType dtype) {
  if (op != Op::kMean || !is_integer(dtype)) return dtype;
  return size_of(dtype) <= 2 ? DType::kFloat32 : DType::kFloat64;
}

}  // namespace ringlet::core

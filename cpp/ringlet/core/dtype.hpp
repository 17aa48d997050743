// Element types of the buffers that collectives move.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ringlet::core {

enum class DType : std::uint8_t {
  kBool,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUInt8,
  kUInt16,
  kUInt32,
  kUInt64,
  kFloat16,
  kBFloat16,
  kFloat32,
  kFloat64,
  kComplex64,
  kComplex128,
  // 8-bit floats, named as ml_dtypes names them: bits of the exponent and of the mantissa, then deviations from IEEE
  // 754. fn: no infinities; uz: no negative zero; b11: the bias of the exponent.
  kFloat8E3M4,
  kFloat8E4M3,
  kFloat8E4M3B11FNUZ,
  kFloat8E4M3FN,
  kFloat8E4M3FNUZ,
  kFloat8E5M2,
  kFloat8E5M2FNUZ,
};

inline constexpr std::size_t kNumDTypes = 22;

// kNarrow are floats of 8 and 16 bits, which are combined as float32.
enum class Category : std::uint8_t { kBoolean, kSigned, kUnsigned, kFloat, kNarrow, kComplex };

namespace detail {

struct DTypeFacts {
  std::string_view name;
  std::size_t size_bytes;
  Category category;
};

inline constexpr DTypeFacts kDTypes[kNumDTypes] = {
    {"bool", 1, Category::kBoolean},         {"int8", 1, Category::kSigned},
    {"int16", 2, Category::kSigned},         {"int32", 4, Category::kSigned},
    {"int64", 8, Category::kSigned},         {"uint8", 1, Category::kUnsigned},
    {"uint16", 2, Category::kUnsigned},      {"uint32", 4, Category::kUnsigned},
    {"uint64", 8, Category::kUnsigned},      {"float16", 2, Category::kNarrow},
    {"bfloat16", 2, Category::kNarrow},      {"float32", 4, Category::kFloat},
    {"float64", 8, Category::kFloat},        {"complex64", 8, Category::kComplex},
    {"complex128", 16, Category::kComplex},  {"float8_e3m4", 1, Category::kNarrow},
    {"float8_e4m3", 1, Category::kNarrow},   {"float8_e4m3b11fnuz", 1, Category::kNarrow},
    {"float8_e4m3fn", 1, Category::kNarrow}, {"float8_e4m3fnuz", 1, Category::kNarrow},
    {"float8_e5m2", 1, Category::kNarrow},   {"float8_e5m2fnuz", 1, Category::kNarrow},
};

}  // namespace detail

constexpr std::size_t index_of(DType dtype) { return static_cast<std::size_t>(dtype); }
constexpr std::string_view name_of(DType dtype) { return detail::kDTypes[index_of(dtype)].name; }
constexpr std::size_t size_of(DType dtype) { return detail::kDTypes[index_of(dtype)].size_bytes; }
constexpr Category category_of(DType dtype) { return detail::kDTypes[index_of(dtype)].category; }
constexpr bool is_integer(DType dtype) {
  return category_of(dtype) == Category::kSigned || category_of(dtype) == Category::kUnsigned;
}

// The dtype of partial results of a reduction: rounding happens once, at the end.
constexpr DType partial_dtype(DType dtype) { return category_of(dtype) == Category::kNarrow ? DType::kFloat32 : dtype; }

}  // namespace ringlet::core

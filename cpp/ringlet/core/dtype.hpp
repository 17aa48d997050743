// Element types of the buffers that collectives move.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

namespace ringlet::core {

enum class DType : std::uint8_t { kFloat32, kFloat64, kInt32, kInt64 };

inline constexpr std::size_t kNumDTypes = 4;

// Calls `f` with the C++ type that `dtype` names: visit_dtype(dtype, [&]<class T>() { add<T>(into, from); });
template <class F>
constexpr decltype(auto) visit_dtype(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kFloat32:
      return std::forward<F>(f).template operator()<float>();
    case DType::kFloat64:
      return std::forward<F>(f).template operator()<double>();
    case DType::kInt32:
      return std::forward<F>(f).template operator()<std::int32_t>();
    case DType::kInt64:
      break;
  }
  return std::forward<F>(f).template operator()<std::int64_t>();
}

constexpr std::size_t size_of(DType dtype) {
  return visit_dtype(dtype, []<class T>() { return sizeof(T); });
}

constexpr bool is_integer(DType dtype) { return dtype == DType::kInt32 || dtype == DType::kInt64; }

constexpr std::string_view name_of(DType dtype) {
  constexpr std::string_view kNames[kNumDTypes] = {"float32", "float64", "int32", "int64"};
  return kNames[static_cast<std::size_t>(dtype)];
}

}  // namespace ringlet::core

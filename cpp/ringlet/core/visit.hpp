// Dispatch from a dtype to a C++ type.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

#include "ringlet/core/dtype.hpp"

namespace ringlet::core {

// Calls `f` with the C++ type that `dtype` names: visit_dtype(dtype, [&]<class T>() { add<T>(into, from); }). Throws
// std::invalid_argument for dtypes without an arithmetic type in C++.
template <class F>
decltype(auto) visit_dtype(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kInt8:
      return std::forward<F>(f).template operator()<std::int8_t>();
    case DType::kInt16:
      return std::forward<F>(f).template operator()<std::int16_t>();
    case DType::kInt32:
      return std::forward<F>(f).template operator()<std::int32_t>();
    case DType::kInt64:
      return std::forward<F>(f).template operator()<std::int64_t>();
    case DType::kUInt8:
      return std::forward<F>(f).template operator()<std::uint8_t>();
    case DType::kUInt16:
      return std::forward<F>(f).template operator()<std::uint16_t>();
    case DType::kUInt32:
      return std::forward<F>(f).template operator()<std::uint32_t>();
    case DType::kUInt64:
      return std::forward<F>(f).template operator()<std::uint64_t>();
    case DType::kFloat32:
      return std::forward<F>(f).template operator()<float>();
    case DType::kFloat64:
      return std::forward<F>(f).template operator()<double>();
    default:
      throw std::invalid_argument("C++ has no arithmetic type for " + std::string(name_of(dtype)));
  }
}

}  // namespace ringlet::core

// Reductions of one element after the other, slowly, as the rules for operations and dtypes say.
#pragma once

#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

#include "narrow.hpp"
#include "ringlet/core/dtype.hpp"
#include "ringlet/core/op.hpp"

namespace ringlet::reference {

template <class T>
struct Complex {
  T real;
  T imaginary;
};

template <class T>
T combine(core::Op op, T a, T b) {
  using core::Op;
  if constexpr (std::integral<T>) {
    const auto x = static_cast<std::uint64_t>(a);
    const auto y = static_cast<std::uint64_t>(b);
    return op == Op::kMin    ? std::min(a, b)
           : op == Op::kMax  ? std::max(a, b)
           : op == Op::kProd ? static_cast<T>(x * y)
           : op == Op::kAnd  ? static_cast<T>(x & y)
           : op == Op::kOr   ? static_cast<T>(x | y)
           : op == Op::kXor  ? static_cast<T>(x ^ y)
                             : static_cast<T>(x + y);
  } else if constexpr (std::floating_point<T>) {
    if (op == Op::kProd) return a * b;
    if (!core::is_extreme(op)) return a + b;
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<T>::quiet_NaN();
    const bool a_is_less = a == b ? std::signbit(a) : a < b;
    return a_is_less == (op == Op::kMin) ? a : b;
  } else {
    if (op != Op::kProd) return {a.real + b.real, a.imaginary + b.imaginary};
    return {a.real * b.real - a.imaginary * b.imaginary, a.real * b.imaginary + a.imaginary * b.real};
  }
}

// Calls `f` with the type in which elements of this dtype are combined.
template <class F>
void with_type(core::DType dtype, F&& f) {
  using core::DType;
  switch (dtype) {
    case DType::kInt8:
      return f.template operator()<std::int8_t>();
    case DType::kInt16:
      return f.template operator()<std::int16_t>();
    case DType::kInt32:
      return f.template operator()<std::int32_t>();
    case DType::kInt64:
      return f.template operator()<std::int64_t>();
    case DType::kBool:
    case DType::kUInt8:
      return f.template operator()<std::uint8_t>();
    case DType::kUInt16:
      return f.template operator()<std::uint16_t>();
    case DType::kUInt32:
      return f.template operator()<std::uint32_t>();
    case DType::kUInt64:
      return f.template operator()<std::uint64_t>();
    case DType::kFloat64:
      return f.template operator()<double>();
    case DType::kComplex64:
      return f.template operator()<Complex<float>>();
    case DType::kComplex128:
      return f.template operator()<Complex<double>>();
    default:
      return f.template operator()<float>();
  }
}

template <class T>
T load(core::DType dtype, const std::byte* from) {
  if constexpr (std::same_as<T, float>) {
    if (core::category_of(dtype) == core::Category::kNarrow) {
      std::uint16_t code = 0;
      std::memcpy(&code, from, core::size_of(dtype));  // little-endian, as all CPUs that this runs on
      return NarrowFormat::of(dtype).decode(code);
    }
  }
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <class T>
void store(core::DType dtype, T value, std::byte* to) {
  if constexpr (std::same_as<T, float>) {
    if (core::category_of(dtype) == core::Category::kNarrow) {
      const auto code = static_cast<std::uint16_t>(NarrowFormat::of(dtype).encode(value));
      std::memcpy(to, &code, core::size_of(dtype));
      return;
    }
  }
  std::memcpy(to, &value, sizeof value);
}

// Writes what `num_ranks` ranks together have come to.
template <class T>
void finish(core::Op op, core::DType dtype, T value, std::size_t num_ranks, std::byte* to) {
  if (op != core::Op::kMean) return store(dtype, value, to);
  if constexpr (std::integral<T>) {
    if (sizeof(T) <= 2)
      return store(core::DType::kFloat32, static_cast<float>(value) / static_cast<float>(num_ranks), to);
    return store(core::DType::kFloat64, static_cast<double>(value) / static_cast<double>(num_ranks), to);
  } else if constexpr (std::floating_point<T>) {
    return store(dtype, value / static_cast<T>(num_ranks), to);
  } else {
    using Real = decltype(value.real);
    const auto divisor = static_cast<Real>(num_ranks);
    return store(dtype, T{value.real / divisor, value.imaginary / divisor}, to);
  }
}

// Where the elements of all ranks are.
using Elements = std::span<const std::byte* const>;

// ((0+1)+(2+3))+...: neighbours are combined, level by level; who has none moves up.
inline void reduce_in_tree_order(core::Op op, core::DType dtype, Elements elements, std::byte* result) {
  with_type(dtype, [&]<class T>() {
    thread_local std::vector<T> level;
    level.clear();
    for (const std::byte* const element : elements) level.push_back(load<T>(dtype, element));
    while (level.size() > 1) {
      const std::size_t pairs = level.size() / 2;
      for (std::size_t i = 0; i < pairs; ++i) level[i] = combine(op, level[2 * i], level[2 * i + 1]);
      if (level.size() % 2 == 1) level[pairs] = level.back();
      level.resize((level.size() + 1) / 2);
    }
    finish(op, dtype, level.front(), elements.size(), result);
  });
}

// From left to right, beginning at element `first` and going round.
inline void reduce_in_ring_order(core::Op op, core::DType dtype, Elements elements, std::size_t first,
                                 std::byte* result) {
  with_type(dtype, [&]<class T>() {
    T value = load<T>(dtype, elements[first]);
    for (std::size_t i = 1; i < elements.size(); ++i) {
      value = combine(op, value, load<T>(dtype, elements[(first + i) % elements.size()]));
    }
    finish(op, dtype, value, elements.size(), result);
  });
}

// Whether two elements are one value: all NaNs are.
inline bool are_equal(core::DType dtype, const std::byte* one, const std::byte* other) {
  if (std::memcmp(one, other, core::size_of(dtype)) == 0) return true;
  bool both_nan = false;
  with_type(dtype, [&]<class T>() {
    const T a = load<T>(dtype, one);
    const T b = load<T>(dtype, other);
    if constexpr (std::floating_point<T>) {
      both_nan = std::isnan(a) && std::isnan(b);
    } else if constexpr (!std::integral<T>) {
      const core::DType part = sizeof(T) == 8 ? core::DType::kFloat32 : core::DType::kFloat64;
      const std::size_t half = sizeof(T) / 2;
      both_nan = are_equal(part, one, other) && are_equal(part, one + half, other + half);
    }
  });
  return both_nan;
}

}  // namespace ringlet::reference

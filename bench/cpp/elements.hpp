// The element types of buffers, as the checks compute with them: apart from the kernels, and simple rather than fast.
#pragma once

#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include "ringlet/core/visit.hpp"

namespace ringlet::bench {

// What the largest codes of a narrow float mean. kIeee: infinities and NaNs; kFinite: NaN is the code of ones alone;
// kUnsignedZero: NaN is what would be -0.
enum class Style { kIeee, kFinite, kUnsignedZero };

// A float of 8 or 16 bits, which is combined as float32 and rounded once. No value of the checks is a NaN or too large.
template <class BitsType, int kMantissaBits, int kBias, Style kStyle = Style::kIeee>
struct Narrow {
  BitsType bits = 0;

  static constexpr unsigned kSign = 1U << (8 * sizeof(BitsType) - 1);
  static constexpr unsigned kOnes = kSign - 1;
  static constexpr unsigned kMantissaOnes = (1U << kMantissaBits) - 1;

  static Narrow from_float(float value) {
    const float magnitude = std::fabs(value);
    const int exponent = magnitude == 0.0F ? 1 - kBias : std::max(std::ilogb(magnitude), 1 - kBias);
    // nearbyint: to nearest, ties to even. A carry into the next exponent is what the sum of both fields makes of it.
    const auto places = static_cast<unsigned>(std::nearbyint(std::ldexp(magnitude, kMantissaBits - exponent)));
    const unsigned code = (static_cast<unsigned>(exponent + kBias - 1) << kMantissaBits) + places;
    const bool is_negative = std::signbit(value) && (kStyle != Style::kUnsignedZero || code != 0);
    return {static_cast<BitsType>(is_negative ? code | kSign : code)};
  }

  float to_float() const {
    const unsigned magnitude = bits & kOnes;
    const int field = static_cast<int>(magnitude >> kMantissaBits);
    const unsigned places = field == 0 ? magnitude : (magnitude & kMantissaOnes) + kMantissaOnes + 1;
    const float value = std::ldexp(static_cast<float>(places), std::max(field, 1) - kBias - kMantissaBits);
    return (bits & kSign) != 0 ? -value : value;
  }

  // Infinity, or the largest number of a format without.
  static Narrow largest() {
    const unsigned code = kStyle == Style::kIeee ? kOnes - kMantissaOnes : kStyle == Style::kFinite ? kOnes - 1 : kOnes;
    return {static_cast<BitsType>(code)};
  }
  static Narrow smallest() { return {static_cast<BitsType>(largest().bits | kSign)}; }
};

template <class T>
struct IsNarrow : std::false_type {};
template <class Bits, int kMantissaBits, int kBias, Style kStyle>
struct IsNarrow<Narrow<Bits, kMantissaBits, kBias, kStyle>> : std::true_type {};
template <class T>
inline constexpr bool kIsNarrow = IsNarrow<T>::value;
template <class T>
inline constexpr bool kIsComplex = std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>;

// What elements are combined as.
template <class T>
using Partial = std::conditional_t<kIsNarrow<T>, float, T>;

template <class T>
Partial<T> widened(T value) {
  if constexpr (kIsNarrow<T>) {
    return value.to_float();
  } else {
    return value;
  }
}

template <class T>
T narrowed(Partial<T> value) {
  if constexpr (kIsNarrow<T>) {
    return T::from_float(value);
  } else {
    return value;
  }
}

// Calls `f` with the type of a dtype's elements; a bool is a byte that is 0 or 1.
template <class F>
decltype(auto) visit_element(core::DType dtype, F&& f) {
  using core::DType;
  using std::uint16_t;
  using std::uint8_t;
  switch (dtype) {
    case DType::kBool:
      return std::forward<F>(f).template operator()<uint8_t>();
    case DType::kFloat16:
      return std::forward<F>(f).template operator()<Narrow<uint16_t, 10, 15>>();
    case DType::kBFloat16:
      return std::forward<F>(f).template operator()<Narrow<uint16_t, 7, 127>>();
    case DType::kComplex64:
      return std::forward<F>(f).template operator()<std::complex<float>>();
    case DType::kComplex128:
      return std::forward<F>(f).template operator()<std::complex<double>>();
    case DType::kFloat8E3M4:
      return std::forward<F>(f).template operator()<Narrow<uint8_t, 4, 3>>();
    case DType::kFloat8E4M3:
      return std::forward<F>(f).template operator()<Narrow<uint8_t, 3, 7>>();
    case DType::kFloat8E4M3B11FNUZ:
      return std::forward<F>(f).template operator()<Narrow<uint8_t, 3, 11, Style::kUnsignedZero>>();
    case DType::kFloat8E4M3FN:
      return std::forward<F>(f).template operator()<Narrow<uint8_t, 3, 7, Style::kFinite>>();
    case DType::kFloat8E4M3FNUZ:
      return std::forward<F>(f).template operator()<Narrow<uint8_t, 3, 8, Style::kUnsignedZero>>();
    case DType::kFloat8E5M2:
      return std::forward<F>(f).template operator()<Narrow<uint8_t, 2, 15>>();
    case DType::kFloat8E5M2FNUZ:
      return std::forward<F>(f).template operator()<Narrow<uint8_t, 2, 16, Style::kUnsignedZero>>();
    default:
      return core::visit_dtype(dtype, std::forward<F>(f));
  }
}

}  // namespace ringlet::bench

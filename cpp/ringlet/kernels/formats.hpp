// Conversion of floats of 8 and 16 bits to float32 and back. Part of loops.hpp, with the same rules.
//
// Integer arithmetic only, except for one addition that rounds and one conversion of a small integer, so that the bits
// do not depend on the CPU's instructions for these formats. There are no branches, so that compilers vectorise the
// code.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ringlet/kernels/operations.hpp"

namespace ringlet::kernels {
namespace {

// The use of the largest codes of a format. kIeee: infinities and NaNs; kFinite: NaN is the code with all bits set, no
// infinities; kFiniteUnsignedZero: NaN is the code of -0, no infinities.
enum class Style { kIeee, kFinite, kFiniteUnsignedZero };

template <class BitsType, int MantissaBits, int Bias, Style FormatStyle>
struct Format {
  using Bits = BitsType;
  static constexpr int kMantissaBits = MantissaBits;
  static constexpr int kBias = Bias;
  static constexpr Style kStyle = FormatStyle;
  static constexpr std::uint32_t kSign = std::uint32_t{1} << (8 * sizeof(Bits) - 1);
  static constexpr std::uint32_t kOnes = kSign - 1;
  static constexpr std::uint32_t kMantissaOnes = (std::uint32_t{1} << MantissaBits) - 1;
  // Magnitudes from this code on are not finite; in kIeee, this code is infinity.
  static constexpr std::uint32_t kBeyondFinite = kStyle == Style::kIeee     ? kOnes - kMantissaOnes
                                                 : kStyle == Style::kFinite ? kOnes
                                                                            : kOnes + 1;
  static constexpr std::uint32_t kNaN = kStyle == Style::kIeee     ? kBeyondFinite | (kMantissaOnes / 2 + 1)
                                        : kStyle == Style::kFinite ? kOnes
                                                                   : kSign;
  // The code of values that are too large.
  static constexpr std::uint32_t kOverflow = kStyle == Style::kIeee ? kBeyondFinite : kNaN;
};

using Float16 = Format<std::uint16_t, 10, 15, Style::kIeee>;
using Float8E3M4 = Format<std::uint8_t, 4, 3, Style::kIeee>;
using Float8E4M3 = Format<std::uint8_t, 3, 7, Style::kIeee>;
using Float8E4M3B11FNUZ = Format<std::uint8_t, 3, 11, Style::kFiniteUnsignedZero>;
using Float8E4M3FN = Format<std::uint8_t, 3, 7, Style::kFinite>;
using Float8E4M3FNUZ = Format<std::uint8_t, 3, 8, Style::kFiniteUnsignedZero>;
using Float8E5M2 = Format<std::uint8_t, 2, 15, Style::kIeee>;
using Float8E5M2FNUZ = Format<std::uint8_t, 2, 16, Style::kFiniteUnsignedZero>;

// bfloat16: the upper half of a float32.
struct BFloat16 {
  using Bits = std::uint16_t;
};

constexpr int kFloatBias = 127;
constexpr int kFloatMantissaBits = 23;
constexpr std::uint32_t kFloatSign = 0x80000000;
constexpr std::uint32_t kFloatInfinity = 0x7F800000;
constexpr std::uint32_t kFloatNaN = 0x7FC00000;

// The bits of 2^exponent.
constexpr std::uint32_t power_of_two(int exponent) {
  return static_cast<std::uint32_t>(exponent + kFloatBias) << kFloatMantissaBits;
}

template <class F>
float decode(typename F::Bits code) {
  constexpr int kShift = kFloatMantissaBits - F::kMantissaBits;
  const std::uint32_t magnitude = code & F::kOnes;
  const std::uint32_t normal = (magnitude << kShift) + (std::uint32_t{kFloatBias - F::kBias} << kFloatMantissaBits);
  const float unit = bit_copy<float>(power_of_two(1 - F::kBias - F::kMantissaBits));
  const auto tiny = bit_copy<std::uint32_t>(static_cast<float>(static_cast<std::int32_t>(magnitude)) * unit);
  std::uint32_t bits = magnitude <= F::kMantissaOnes ? tiny : normal;
  if constexpr (F::kStyle == Style::kIeee) bits = magnitude == F::kBeyondFinite ? kFloatInfinity : bits;
  if constexpr (F::kStyle == Style::kFiniteUnsignedZero) {
    bits = code == F::kNaN ? kFloatNaN : bits;
  } else {
    constexpr std::uint32_t kLastNumber = F::kStyle == Style::kIeee ? F::kBeyondFinite : F::kBeyondFinite - 1;
    bits = magnitude > kLastNumber ? kFloatNaN : bits;
  }
  return bit_copy<float>(bits | (code & F::kSign) << (31 - (8 * sizeof(typename F::Bits) - 1)));
}

// Rounds to nearest, ties to even; infinities and values that are too large become kOverflow, NaNs kNaN.
template <class F>
typename F::Bits encode(float value) {
  constexpr int kShift = kFloatMantissaBits - F::kMantissaBits;
  const auto given = bit_copy<std::uint32_t>(value);
  const std::uint32_t magnitude = given & ~kFloatSign;
  // Normal numbers: add just less than half of the last place kept, plus one if that place is odd.
  const std::uint32_t odd = magnitude >> kShift & 1;
  const std::uint32_t rounded = magnitude + ((std::uint32_t{1} << (kShift - 1)) - 1) + odd;
  const std::uint32_t normal = (rounded >> kShift) - (std::uint32_t{kFloatBias - F::kBias} << F::kMantissaBits);
  // Subnormal numbers: the sum with this power of two has the same last place as the result.
  constexpr std::uint32_t kMagic = power_of_two(1 - F::kBias + kShift);
  const float shifted = bit_copy<float>(magnitude) + bit_copy<float>(kMagic);
  const std::uint32_t tiny = bit_copy<std::uint32_t>(shifted) - kMagic;
  constexpr std::uint32_t kFirstNormal = power_of_two(1 - F::kBias);
  std::uint32_t code = magnitude < kFirstNormal ? tiny : normal;
  code = code >= F::kBeyondFinite ? F::kOverflow : code;
  code = magnitude > kFloatInfinity ? F::kNaN : code;
  std::uint32_t sign = (given & kFloatSign) >> (31 - (8 * sizeof(typename F::Bits) - 1));
  if constexpr (F::kStyle == Style::kFiniteUnsignedZero) sign = code == 0 || code == F::kNaN ? 0 : sign;
  if constexpr (F::kStyle != Style::kFiniteUnsignedZero) sign = magnitude > kFloatInfinity ? 0 : sign;
  return static_cast<typename F::Bits>(code | sign);
}

template <>
float decode<BFloat16>(std::uint16_t code) {
  return bit_copy<float>(static_cast<std::uint32_t>(code) << 16);
}

template <>
std::uint16_t encode<BFloat16>(float value) {
  const auto bits = bit_copy<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
  return static_cast<std::uint16_t>((bits & ~kFloatSign) > kFloatInfinity ? kFloatNaN >> 16 : rounded);
}

template <class F>
void decode_block(const void* from, std::size_t count, float* to) {
  const auto* const codes = static_cast<const typename F::Bits*>(from);
  RINGLET_VECTORISE
  for (std::size_t i = 0; i < count; ++i) to[i] = decode<F>(codes[i]);
}

template <class F>
void encode_block(const float* from, std::size_t count, void* to) {
  auto* const codes = static_cast<typename F::Bits*>(to);
  RINGLET_VECTORISE
  for (std::size_t i = 0; i < count; ++i) codes[i] = encode<F>(from[i]);
}

}  // namespace
}  // namespace ringlet::kernels

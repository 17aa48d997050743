// Floats of 8 and 16 bits, slowly and by their definition: a table of the value of every code, and a search in it.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "ringlet/core/dtype.hpp"

namespace ringlet::reference {

class NarrowFormat {
 public:
  static const NarrowFormat& of(core::DType dtype) {
    using core::DType;
    static const std::vector<NarrowFormat> kFormats{
        {DType::kFloat16, 5, 10, 15, Codes::kIeee},          {DType::kBFloat16, 8, 7, 127, Codes::kIeee},
        {DType::kFloat8E3M4, 3, 4, 3, Codes::kIeee},         {DType::kFloat8E4M3, 4, 3, 7, Codes::kIeee},
        {DType::kFloat8E5M2, 5, 2, 15, Codes::kIeee},        {DType::kFloat8E4M3FN, 4, 3, 7, Codes::kFinite},
        {DType::kFloat8E4M3B11FNUZ, 4, 3, 11, Codes::kFnuz}, {DType::kFloat8E4M3FNUZ, 4, 3, 8, Codes::kFnuz},
        {DType::kFloat8E5M2FNUZ, 5, 2, 16, Codes::kFnuz},
    };
    static const std::array<const NarrowFormat*, core::kNumDTypes> kByDType = [] {
      std::array<const NarrowFormat*, core::kNumDTypes> table{};
      for (const NarrowFormat& format : kFormats) table[core::index_of(format.dtype_)] = &format;
      return table;
    }();
    return *kByDType[core::index_of(dtype)];
  }

  std::uint32_t num_codes() const { return 2 * sign_; }
  float decode(std::uint32_t code) const { return values_[code]; }
  // To nearest, ties to the even code; zeros keep their sign if they can.
  std::uint32_t encode(float value) const {
    if (std::isnan(value)) return nan_;
    const std::uint32_t sign = std::signbit(value) ? sign_ : 0;
    const std::uint32_t magnitude = nearest(std::fabs(static_cast<double>(value)));
    if (magnitude < num_finite_) return magnitude == 0 && codes_ == Codes::kFnuz ? 0 : magnitude | sign;
    return codes_ == Codes::kIeee ? num_finite_ | sign : nan_;  // infinity is the first code that is not finite
  }
  // Infinity, where there is one.
  float largest() const { return *std::max_element(values_.begin(), values_.end(), is_less); }
  // The values from 0 on, in the order of their codes, and what would come next.
  std::span<const double> magnitudes() const { return magnitudes_; }

 private:
  // What the largest codes mean: infinity and NaNs; one NaN; or one NaN in the place of -0.
  enum class Codes { kIeee, kFinite, kFnuz };

  NarrowFormat(core::DType dtype, int exponent_bits, int mantissa_bits, int bias, Codes codes)
      : dtype_(dtype), codes_(codes), sign_(std::uint32_t{1} << (exponent_bits + mantissa_bits)) {
    num_finite_ = codes == Codes::kIeee     ? sign_ - (std::uint32_t{1} << mantissa_bits)
                  : codes == Codes::kFinite ? sign_ - 1
                                            : sign_;
    nan_ = codes == Codes::kFnuz ? sign_ : sign_ - 1;
    for (std::uint32_t code = 0; code <= num_finite_; ++code) {
      const auto exponent = static_cast<int>(code >> mantissa_bits);
      const auto mantissa = static_cast<double>(code & ((std::uint32_t{1} << mantissa_bits) - 1));
      magnitudes_.push_back(
          exponent == 0 ? std::ldexp(mantissa, 1 - bias - mantissa_bits)
                        : std::ldexp(mantissa + std::ldexp(1.0, mantissa_bits), exponent - bias - mantissa_bits));
    }
    for (std::uint32_t code = 0; code < num_codes(); ++code) values_.push_back(meaning_of(code));
  }

  static bool is_less(float one, float other) { return std::isnan(one) ? !std::isnan(other) : one < other; }

  float meaning_of(std::uint32_t code) const {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
    if (code == sign_ && codes_ == Codes::kFnuz) return kNaN;
    const std::uint32_t magnitude = code & (sign_ - 1);
    const bool is_infinite = codes_ == Codes::kIeee && magnitude == num_finite_;
    if (magnitude >= num_finite_ && !is_infinite) return kNaN;
    const float value = is_infinite ? kInfinity : static_cast<float>(magnitudes_[magnitude]);
    return code >= sign_ ? -value : value;
  }

  std::uint32_t nearest(double magnitude) const {
    const auto above = std::lower_bound(magnitudes_.begin(), magnitudes_.end(), magnitude);
    const auto code = static_cast<std::uint32_t>(above - magnitudes_.begin());
    if (code == 0 || above == magnitudes_.end()) return code;
    const double up = *above - magnitude;
    const double down = magnitude - magnitudes_[code - 1];
    return down < up || (down == up && code % 2 == 1) ? code - 1 : code;
  }

  core::DType dtype_;
  Codes codes_;
  std::uint32_t sign_;
  std::uint32_t num_finite_ = 0;
  std::uint32_t nan_ = 0;
  std::vector<double> magnitudes_;
  std::vector<float> values_;
};

}  // namespace ringlet::reference

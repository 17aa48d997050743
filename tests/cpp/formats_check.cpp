// Every code of every 8- and 16-bit float becomes the float32 that its definition says, and float32 become the nearest
// code, at and around every point where the nearest one changes, on every CPU target.
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "check.hpp"
#include "narrow.hpp"
#include "reference.hpp"
#include "ringlet/kernels/kernels.hpp"

namespace {

using namespace ringlet;
using core::DType;
using stress::check;

void check_decoding(const kernels::Kernels& kernels, DType dtype) {
  const reference::NarrowFormat& format = reference::NarrowFormat::of(dtype);
  const std::size_t size = core::size_of(dtype);
  std::vector<std::byte> codes(format.num_codes() * size);
  for (std::uint32_t code = 0; code < format.num_codes(); ++code) std::memcpy(&codes[code * size], &code, size);
  std::vector<float> values(format.num_codes());
  kernels.widen(dtype, codes.data(), values.size(), values.data());
  for (std::uint32_t code = 0; code < format.num_codes(); ++code) {
    const float expected = format.decode(code);
    const bool is_right = std::isnan(expected)
                              ? std::isnan(values[code])
                              : std::bit_cast<std::uint32_t>(values[code]) == std::bit_cast<std::uint32_t>(expected);
    check(is_right, std::string(core::name_of(dtype)) + " code " + std::to_string(code) + " has its value on " +
                        std::string(kernels.name));
  }
}

// All values, the points half-way between neighbours, what lies next to each, and numbers of every exponent.
std::vector<float> numbers_to_encode(DType dtype) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kLargest = std::numeric_limits<float>::max();
  std::vector<float> numbers{0, kInfinity, kLargest, std::numeric_limits<float>::denorm_min()};
  const auto magnitudes = reference::NarrowFormat::of(dtype).magnitudes();
  for (std::size_t i = 0; i < magnitudes.size(); ++i) {
    const double half_way = i + 1 < magnitudes.size() ? (magnitudes[i] + magnitudes[i + 1]) / 2 : magnitudes[i];
    for (const double point : {magnitudes[i], half_way}) {
      if (point > static_cast<double>(kLargest)) continue;
      const auto number = static_cast<float>(point);
      numbers.insert(numbers.end(), {std::nextafter(number, 0.0F), number, std::nextafter(number, kInfinity)});
    }
  }
  stress::Random random(core::index_of(dtype));
  for (std::uint32_t exponent = 0; exponent < 256; ++exponent) {  // 255: NaNs with all kinds of payloads
    for (int turn = 0; turn < 40; ++turn) {
      const auto mantissa = static_cast<std::uint32_t>(random.below(std::size_t{1} << 23));
      numbers.push_back(std::bit_cast<float>(exponent << 23 | mantissa));
    }
  }
  const std::size_t num_positive = numbers.size();
  for (std::size_t i = 0; i < num_positive; ++i) numbers.push_back(-numbers[i]);
  return numbers;
}

void check_encoding(const kernels::Kernels& kernels, DType dtype) {
  const reference::NarrowFormat& format = reference::NarrowFormat::of(dtype);
  const std::size_t size = core::size_of(dtype);
  const std::vector<float> numbers = numbers_to_encode(dtype);
  std::vector<std::byte> codes(numbers.size() * size);
  kernels.finish(core::Op::kSum, dtype, numbers.data(), numbers.size(), 1, codes.data());
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const std::uint32_t expected = format.encode(numbers[i]);
    check(reference::are_equal(dtype, &codes[i * size], reinterpret_cast<const std::byte*>(&expected)),
          std::to_string(numbers[i]) + " has its nearest " + std::string(core::name_of(dtype)) + " on " +
              std::string(kernels.name));
  }
}

}  // namespace

int main() {
  for (const kernels::Kernels* const kernels : kernels::runnable()) {
    for (std::size_t index = 0; index < core::kNumDTypes; ++index) {
      const auto dtype = static_cast<DType>(index);
      if (core::category_of(dtype) != core::Category::kNarrow) continue;
      check_decoding(*kernels, dtype);
      check_encoding(*kernels, dtype);
    }
  }
}

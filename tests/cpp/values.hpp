// Elements to compute with: of all magnitudes, and now and then a special one.
#pragma once

#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <memory>

#include "check.hpp"
#include "reference.hpp"

namespace ringlet::stress {

namespace detail {

template <std::integral T>
T special(Random& random) {
  constexpr T kNumbers[] = {0, 1, static_cast<T>(-1), std::numeric_limits<T>::min(), std::numeric_limits<T>::max()};
  return kNumbers[random.below(std::size(kNumbers))];
}

template <std::floating_point T>
T special(Random& random) {
  using Limits = std::numeric_limits<T>;
  const T numbers[] = {Limits::quiet_NaN(),  Limits::signaling_NaN(), Limits::infinity(),   0,
                       Limits::denorm_min(), Limits::min(),           Limits::min() / 2,    Limits::max(),
                       Limits::max() / 3,    Limits::epsilon(),       1 + Limits::epsilon()};
  const T number = numbers[random.below(std::size(numbers))];
  return random.below(2) == 0 ? number : -number;
}

template <std::integral T>
T ordinary(Random& random) {
  std::uint64_t bits = 0;
  for (int turn = 0; turn < 3; ++turn) bits = bits << 24 ^ random.below(std::size_t{1} << 31);
  return static_cast<T>(bits);
}

// With bits in every place, so that sums and products round, and within a few powers of two of 1.
template <std::floating_point T>
T ordinary(Random& random) {
  const auto fraction = static_cast<T>(random.below(std::size_t{1} << 31));
  const T number = std::ldexp(1 + fraction / static_cast<T>(3'000'000'000), static_cast<int>(random.below(6)) - 3);
  return random.below(2) == 0 ? number : -number;
}

template <class T>
T draw(Random& random) {
  return random.below(8) == 0 ? special<T>(random) : ordinary<T>(random);
}

}  // namespace detail

inline std::byte* draw_element(core::DType dtype, Random& random, std::byte* to) {
  const std::size_t size = core::size_of(dtype);
  const bool is_narrow = core::category_of(dtype) == core::Category::kNarrow;
  reference::with_type(dtype, [&]<class T>() {
    if constexpr (std::integral<T>) {
      const T value = detail::draw<T>(random);
      reference::store(dtype, dtype == core::DType::kBool ? static_cast<T>(value & 1) : value, to);
    } else if constexpr (std::floating_point<T>) {
      const T value = is_narrow && random.below(8) == 0
                          ? reference::NarrowFormat::of(dtype).decode(
                                static_cast<std::uint32_t>(random.below(std::size_t{1} << (8 * size))))
                          : detail::draw<T>(random);
      reference::store(dtype, value, to);
    } else {
      using Real = decltype(T::real);
      reference::store(dtype, T{detail::draw<Real>(random), detail::draw<Real>(random)}, to);
    }
  });
  return to + size;
}

// An array of the size that it must have, to the byte, so that a sanitizer sees what lies beyond. Never null.
using Array = std::unique_ptr<std::byte[]>;

inline Array new_array(std::size_t bytes) { return std::make_unique<std::byte[]>(bytes); }

inline Array draw_elements(core::DType dtype, std::size_t count, Random& random) {
  Array elements = new_array(count * core::size_of(dtype));
  std::byte* to = elements.get();
  for (std::size_t i = 0; i < count; ++i) to = draw_element(dtype, random, to);
  return elements;
}

}  // namespace ringlet::stress

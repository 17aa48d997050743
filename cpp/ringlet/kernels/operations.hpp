// Operations on two elements. Part of loops.hpp, with the same rules.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

// Precedes a loop in which no iteration reads what another iteration writes: compilers vectorise it without a check,
// and clang warns if it cannot.
#if defined(__clang__)
#define RINGLET_VECTORISE _Pragma("clang loop vectorize(assume_safety)")
#else
#define RINGLET_VECTORISE _Pragma("GCC ivdep")
#endif

namespace ringlet::kernels {
namespace {

template <std::size_t Bytes>
struct BitsOf;
template <>
struct BitsOf<4> {
  using Type = std::uint32_t;
};
template <>
struct BitsOf<8> {
  using Type = std::uint64_t;
};

template <class To, class From>
To bit_copy(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

// Integers are combined as unsigned numbers of 32 bits or more, whose overflow is defined and whose low bits equal the
// low bits of the signed sum and product.
template <class T>
using Wide = std::conditional_t<(sizeof(T) < sizeof(std::uint32_t)), std::uint32_t, T>;

struct Add {
  template <class T>
  static T apply(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(static_cast<Wide<T>>(a) + static_cast<Wide<T>>(b));
    } else {
      return a + b;
    }
  }
};

struct Multiply {
  template <class T>
  static T apply(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(static_cast<Wide<T>>(a) * static_cast<Wide<T>>(b));
    } else {
      return a * b;
    }
  }
};

// Two equal floats differ in their bits only if they are -0 and +0; "or" of the sign bits then returns -0.
struct Minimum {
  template <class T>
  static T apply(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      return a < b ? a : b;
    } else {
      using Bits = typename BitsOf<sizeof(T)>::Type;
      const T equal = bit_copy<T>(bit_copy<Bits>(a) | bit_copy<Bits>(b));
      const T least = ((a < b) | (a != a)) ? a : b;  // both comparisons are false if b is NaN
      return a == b ? equal : least;
    }
  }
};

struct Maximum {
  template <class T>
  static T apply(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      return a > b ? a : b;
    } else {
      using Bits = typename BitsOf<sizeof(T)>::Type;
      const T equal = bit_copy<T>(bit_copy<Bits>(a) & bit_copy<Bits>(b));
      const T greatest = ((a > b) | (a != a)) ? a : b;
      return a == b ? equal : greatest;
    }
  }
};

struct BitAnd {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(a & b);
  }
};

struct BitOr {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(a | b);
  }
};

struct BitXor {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};

}  // namespace
}  // namespace ringlet::kernels

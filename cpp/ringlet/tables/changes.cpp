#include "ringlet/tables/changes.hpp"

#include <algorithm>
#include <array>
#include <complex>
#include <cstring>
#include <optional>
#include <string>
#include <type_traits>

#include "ringlet/core/error.hpp"
#include "ringlet/core/op.hpp"
#include "ringlet/core/visit.hpp"
#include "ringlet/kernels/kernels.hpp"

namespace ringlet::tables {

namespace {

// The equivalent reduction of two ranks; none if the order of operands matters.
constexpr std::optional<core::Op> reduction_of(Change change) {
  switch (change) {
    case Change::kAdd:
      return core::Op::kSum;
    case Change::kMultiply:
      return core::Op::kProd;
    case Change::kMinimum:
      return core::Op::kMin;
    case Change::kMaximum:
      return core::Op::kMax;
    default:
      return std::nullopt;
  }
}

// Unsigned, to avoid overflow; small types would be promoted to signed int.
template <class T>
using Wrapping = std::conditional_t<(sizeof(T) < sizeof(std::uint32_t)), std::uint32_t, std::make_unsigned_t<T>>;

template <class T>
T subtract(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<Wrapping<T>>(a) - static_cast<Wrapping<T>>(b));
  } else {
    return a - b;
  }
}

template <class T>
T divide(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    if (b == 0) return 0;
    if (std::is_signed_v<T> && b == static_cast<T>(-1))
      return subtract<T>(0, a);  // the negation of the minimum overflows
    return static_cast<T>(a / b);
  } else {
    return a / b;
  }
}

template <class T>
void combine(Change change, const void* old, const void* value, std::size_t count, void* result) {
  const auto* const a = static_cast<const T*>(old);
  const auto* const b = static_cast<const T*>(value);
  auto* const to = static_cast<T*>(result);
  if (change == Change::kSubtract) {
    for (std::size_t i = 0; i < count; ++i) to[i] = subtract(a[i], b[i]);
  } else {
    for (std::size_t i = 0; i < count; ++i) to[i] = divide(a[i], b[i]);
  }
}

// Combines block by block, through float32.
void combine_narrow(Change change, core::DType dtype, const void* old, const void* value, std::size_t count,
                    void* result) {
  constexpr std::size_t kBlock = 256;
  const kernels::Kernels& kernels = kernels::active();
  const std::size_t size_bytes = core::size_of(dtype);
  float a[kBlock];
  float b[kBlock];
  float combined[kBlock];
  for (std::size_t begin = 0; begin < count; begin += kBlock) {
    const std::size_t size = std::min(kBlock, count - begin);
    const std::size_t offset = begin * size_bytes;
    kernels.widen(dtype, static_cast<const std::byte*>(old) + offset, size, a);
    kernels.widen(dtype, static_cast<const std::byte*>(value) + offset, size, b);
    combine<float>(change, a, b, size, combined);
    kernels.finish(core::Op::kSum, dtype, combined, size, 1, static_cast<std::byte*>(result) + offset);
  }
}

void combine_in_order(Change change, core::DType dtype, const void* old, const void* value, std::size_t count,
                      void* result) {
  if (core::category_of(dtype) == core::Category::kNarrow) {
    combine_narrow(change, dtype, old, value, count, result);
  } else if (dtype == core::DType::kComplex64) {
    combine<std::complex<float>>(change, old, value, count, result);
  } else if (dtype == core::DType::kComplex128) {
    combine<std::complex<double>>(change, old, value, count, result);
  } else {
    core::visit_dtype(dtype, [&]<class T>() { combine<T>(change, old, value, count, result); });
  }
}

bool is_supported(Change change, core::DType dtype) {
  if (change == Change::kAssign) return true;
  if (const auto op = reduction_of(change)) return core::is_supported(*op, dtype);
  return core::category_of(dtype) != core::Category::kBoolean;
}

}  // namespace

void check_supported(Change change, core::DType dtype) {
  if (is_supported(change, dtype)) return;
  throw core::ArgumentError(std::string(name_of(change)) + " is not supported for " +
                            std::string(core::name_of(dtype)) + ": assign a computed value, or use another dtype.");
}

void apply(Change change, core::DType dtype, const void* old, const void* value, std::size_t count,
           void* result) noexcept {
  if (change == Change::kAssign) {
    std::memcpy(result, value, count * core::size_of(dtype));
  } else if (const auto op = reduction_of(change)) {
    const std::array<const void*, 2> inputs{old, value};
    const std::array<void*, 1> outputs{result};
    kernels::active().reduce(*op, dtype, inputs, count, outputs, kernels::Store::kPlain);
  } else {
    combine_in_order(change, dtype, old, value, count, result);
  }
}

}  // namespace ringlet::tables

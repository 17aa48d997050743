#include "ringlet/collectives/algorithms/identities.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "ringlet/kernels/kernels.hpp"

namespace ringlet::collectives {

namespace {

template <class T>
void store(T value, std::byte* to) {
  std::memcpy(to, &value, sizeof value);
}

// The largest or smallest value of a format of one byte, by comparing all codes; an infinity if the format has one.
std::byte extreme_code(core::DType dtype, bool wants_largest) {
  std::byte best{};
  float best_value = wants_largest ? -std::numeric_limits<float>::infinity() : std::numeric_limits<float>::infinity();
  for (int code = 0; code < 256; ++code) {
    const auto candidate = static_cast<std::byte>(code);
    float value = 0;
    kernels::active().widen(dtype, &candidate, 1, &value);
    if (wants_largest ? value > best_value : value < best_value) {
      best = candidate;
      best_value = value;
    }
  }
  return best;
}

template <class T>
void store_identity(core::Op op, std::byte* to) {
  using Limits = std::numeric_limits<T>;
  const T largest = Limits::has_infinity ? Limits::infinity() : Limits::max();
  const T smallest = Limits::has_infinity ? -Limits::infinity() : Limits::min();
  switch (op) {
    case core::Op::kMin:
      return store(largest, to);
    case core::Op::kMax:
      return store(smallest, to);
    case core::Op::kProd:
      return store(T{1}, to);
    default:
      return;
  }
}

// Writes one identity. `to` holds zero, which is the identity of SUM, OR and XOR.
void write_identity(core::Op op, core::DType dtype, std::byte* to) {
  using core::DType;
  if (op == core::Op::kAnd || (op == core::Op::kMin && dtype == DType::kBool)) {
    const bool is_boolean = dtype == DType::kBool;
    std::memset(to, is_boolean ? 1 : 0xFF, core::size_of(dtype));
    return;
  }
  switch (dtype) {
    case DType::kBool:
      return;
    case DType::kInt8:
      return store_identity<std::int8_t>(op, to);
    case DType::kInt16:
      return store_identity<std::int16_t>(op, to);
    case DType::kInt32:
      return store_identity<std::int32_t>(op, to);
    case DType::kInt64:
      return store_identity<std::int64_t>(op, to);
    case DType::kUInt8:
      return store_identity<std::uint8_t>(op, to);
    case DType::kUInt16:
      return store_identity<std::uint16_t>(op, to);
    case DType::kUInt32:
      return store_identity<std::uint32_t>(op, to);
    case DType::kUInt64:
      return store_identity<std::uint64_t>(op, to);
    case DType::kFloat32:
    case DType::kComplex64:  // the imaginary part stays zero
      return store_identity<float>(op, to);
    case DType::kFloat64:
    case DType::kComplex128:
      return store_identity<double>(op, to);
    default:
      break;
  }
  if (core::is_extreme(op) && core::size_of(dtype) == 1) {
    *to = extreme_code(dtype, op == core::Op::kMin);
    return;
  }
  float value = 0;
  store_identity<float>(op, reinterpret_cast<std::byte*>(&value));
  kernels::active().finish(core::Op::kProd, dtype, &value, 1, 1, to);
}

}  // namespace

void write_identities(core::Op op, core::DType dtype, std::size_t count, std::byte* to) {
  const std::size_t element = core::size_of(dtype);
  std::memset(to, 0, element);
  write_identity(op, dtype, to);
  for (std::size_t done = 1; done < count; done *= 2) {
    std::memcpy(to + done * element, to, std::min(done, count - done) * element);
  }
}

}  // namespace ringlet::collectives

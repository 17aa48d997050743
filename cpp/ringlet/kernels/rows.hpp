// The loops for each operation and dtype. Part of loops.hpp, with the same rules.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ringlet/core/dtype.hpp"
#include "ringlet/core/op.hpp"
#include "ringlet/kernels/formats.hpp"
#include "ringlet/kernels/loops.hpp"

namespace ringlet::kernels {
namespace {

// Elements consist of units: a complex number is two units if its parts are combined separately.
struct Row {
  const Loops* fused = nullptr;    // from inputs to results in one pass; null: through partial results
  const Loops* partial = nullptr;  // null: not supported
  void (*finish)(const void* partial, std::size_t count, std::size_t num_ranks, void* result) = nullptr;
  void (*decode)(const void* from, std::size_t count, float* to) = nullptr;
  void (*encode)(const float* from, std::size_t count, void* to) = nullptr;
  std::size_t units = 1;          // units of an element
  std::size_t unit_bytes = 0;     // bytes of a unit of the inputs
  std::size_t partial_bytes = 0;  // bytes of a unit of partial results
  std::size_t result_bytes = 0;   // bytes of a unit of the results
};

template <class Operation, class T>
constexpr Loops kLoops = make_loops<Operation, T>();
template <class Operation, class T>
constexpr Loops kSmallLoops = make_small_loops<Operation, T>();
template <class T>
constexpr Loops kMeanLoops = make_loops<Add, T, Divide>();
template <class T>
constexpr Loops kComplexProductLoops = make_complex_product_loops<T>();

constexpr Row simple(const Loops& loops, std::size_t bytes, std::size_t units = 1) {
  return {&loops, &loops, nullptr, nullptr, nullptr, units, bytes, bytes, bytes};
}

// T is the type as which an integer is read for division, U the unsigned type of the same size.
template <class T, class U>
constexpr Row integer(core::Op op) {
  using Result = std::conditional_t<sizeof(T) <= 2, float, double>;
  switch (op) {
    case core::Op::kSum:
      return simple(kLoops<Add, U>, sizeof(T));
    case core::Op::kMean:
      return {nullptr, &kLoops<Add, U>, divide<T, Result>, nullptr, nullptr, 1, sizeof(T), sizeof(T), sizeof(Result)};
    case core::Op::kMin:
      return simple(kSmallLoops<Minimum, T>, sizeof(T));
    case core::Op::kMax:
      return simple(kSmallLoops<Maximum, T>, sizeof(T));
    case core::Op::kProd:
      return simple(kSmallLoops<Multiply, U>, sizeof(T));
    case core::Op::kAnd:
      return simple(kSmallLoops<BitAnd, std::uint8_t>, 1, sizeof(T));
    case core::Op::kOr:
      return simple(kSmallLoops<BitOr, std::uint8_t>, 1, sizeof(T));
    case core::Op::kXor:
      break;
  }
  return simple(kSmallLoops<BitXor, std::uint8_t>, 1, sizeof(T));
}

constexpr Row boolean(core::Op op) {
  if (op == core::Op::kMin || op == core::Op::kAnd) return simple(kSmallLoops<BitAnd, std::uint8_t>, 1);
  if (op == core::Op::kMax || op == core::Op::kOr) return simple(kSmallLoops<BitOr, std::uint8_t>, 1);
  if (op == core::Op::kXor) return simple(kSmallLoops<BitXor, std::uint8_t>, 1);
  return {};
}

template <class T>
constexpr Row real(core::Op op) {
  switch (op) {
    case core::Op::kSum:
      return simple(kLoops<Add, T>, sizeof(T));
    case core::Op::kMean:
      return {&kMeanLoops<T>, &kLoops<Add, T>, divide<T, T>, nullptr, nullptr, 1, sizeof(T), sizeof(T), sizeof(T)};
    case core::Op::kMin:
      return simple(kSmallLoops<Minimum, T>, sizeof(T));
    case core::Op::kMax:
      return simple(kSmallLoops<Maximum, T>, sizeof(T));
    case core::Op::kProd:
      return simple(kSmallLoops<Multiply, T>, sizeof(T));
    default:
      return {};
  }
}

template <class F>
constexpr Row narrow(core::Op op) {
  if (core::is_bitwise(op)) return {};
  Row row = real<float>(op);
  row.fused = nullptr;
  row.decode = decode_block<F>;
  row.encode = encode_block<F>;
  row.unit_bytes = row.result_bytes = sizeof(typename F::Bits);
  return row;
}

template <class T>
constexpr Row complex(core::Op op) {
  if (op == core::Op::kProd) return simple(kComplexProductLoops<T>, 2 * sizeof(T));
  if (op != core::Op::kSum && op != core::Op::kMean) return {};
  Row row = real<T>(op);
  row.units = 2;
  return row;
}

constexpr Row row_of(core::Op op, core::DType dtype) {
  using core::DType;
  switch (dtype) {
    case DType::kBool:
      return boolean(op);
    case DType::kInt8:
      return integer<std::int8_t, std::uint8_t>(op);
    case DType::kInt16:
      return integer<std::int16_t, std::uint16_t>(op);
    case DType::kInt32:
      return integer<std::int32_t, std::uint32_t>(op);
    case DType::kInt64:
      return integer<std::int64_t, std::uint64_t>(op);
    case DType::kUInt8:
      return integer<std::uint8_t, std::uint8_t>(op);
    case DType::kUInt16:
      return integer<std::uint16_t, std::uint16_t>(op);
    case DType::kUInt32:
      return integer<std::uint32_t, std::uint32_t>(op);
    case DType::kUInt64:
      return integer<std::uint64_t, std::uint64_t>(op);
    case DType::kFloat16:
      return narrow<Float16>(op);
    case DType::kBFloat16:
      return narrow<BFloat16>(op);
    case DType::kFloat32:
      return real<float>(op);
    case DType::kFloat64:
      return real<double>(op);
    case DType::kComplex64:
      return complex<float>(op);
    case DType::kComplex128:
      return complex<double>(op);
    case DType::kFloat8E3M4:
      return narrow<Float8E3M4>(op);
    case DType::kFloat8E4M3:
      return narrow<Float8E4M3>(op);
    case DType::kFloat8E4M3B11FNUZ:
      return narrow<Float8E4M3B11FNUZ>(op);
    case DType::kFloat8E4M3FN:
      return narrow<Float8E4M3FN>(op);
    case DType::kFloat8E4M3FNUZ:
      return narrow<Float8E4M3FNUZ>(op);
    case DType::kFloat8E5M2:
      return narrow<Float8E5M2>(op);
    case DType::kFloat8E5M2FNUZ:
      return narrow<Float8E5M2FNUZ>(op);
  }
  return {};
}

struct Rows {
  Row rows[core::kNumOps][core::kNumDTypes];
};

constexpr Rows make_rows() {
  Rows table;
  for (std::size_t op = 0; op < core::kNumOps; ++op) {
    for (std::size_t dtype = 0; dtype < core::kNumDTypes; ++dtype) {
#if defined(RINGLET_NARROW_FLOATS_ONLY)
      if (core::category_of(static_cast<core::DType>(dtype)) != core::Category::kNarrow) continue;
#endif
      table.rows[op][dtype] = row_of(static_cast<core::Op>(op), static_cast<core::DType>(dtype));
    }
  }
  return table;
}

constexpr Rows kRows = make_rows();

constexpr const Row& row(core::Op op, core::DType dtype) {
  return kRows.rows[core::index_of(op)][core::index_of(dtype)];
}

}  // namespace
}  // namespace ringlet::kernels

// The loops that implement kernels.hpp. Included once by each target's translation unit, which is compiled for that
// target.
//
// Everything here and in the files that this one includes has internal linkage and calls no inline function of the
// standard library except the accessors of std::span, which contain no vector code: the linker could take a shared
// function from the unit compiled for the newer CPU.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ringlet/kernels/operations.hpp"
#include "ringlet/kernels/stores.hpp"

namespace ringlet::kernels {
namespace {

// Combines elements begin .. begin + count - 1 of some inputs, in the tree order, and writes them to the outputs from
// element out_begin on.
using Fuse = void (*)(const void* const* inputs, std::size_t begin, std::size_t count, void* const* outputs,
                      std::size_t out_begin);

// Fuse for whole cache lines, with streaming stores to any number of outputs, which all begin a line at out_begin.
using Stream = void (*)(const void* const* inputs, std::size_t begin, std::size_t lines, void* const* outputs,
                        std::size_t num_outputs, std::size_t out_begin);

// The loops of one operation on one type.
struct Loops {
  Fuse into_one[4];                                                // 1, 2, 4, 8 inputs, one output
  Fuse into_all[4];                                                // as many outputs as inputs; null: use scratch
  Stream stream[4];                                                // null: use scratch
  void (*merge)(void* into, const void* from, std::size_t count);  // into = into + from
};

struct Keep {
  template <class T, std::size_t N>
  static T finish(T value) {
    return value;
  }
};

// Division by a power of two, a constant for the compiler.
struct Divide {
  template <class T, std::size_t N>
  static T finish(T value) {
    return value / static_cast<T>(N);
  }
};

// The tree over inputs First .. First + N - 1, N a power of two, at element i.
template <class Operation, std::size_t First, std::size_t N, class T>
T tree(const T* const* inputs, std::size_t i) {
  if constexpr (N == 1) {
    return inputs[First][i];
  } else {
    return Operation::apply(tree<Operation, First, N / 2>(inputs, i), tree<Operation, First + N / 2, N / 2>(inputs, i));
  }
}

// N inputs in one pass, to one output or to N. kernels.hpp requires that an output is an input or disjoint from all of
// them, so no iteration depends on an earlier one.
template <class Operation, class Finish, class T, std::size_t N, std::size_t NumOutputs>
void fused(const void* const* inputs, std::size_t begin, std::size_t count, void* const* outputs,
           std::size_t out_begin) {
  const T* in[N];
  T* out[NumOutputs];
  for (std::size_t k = 0; k < N; ++k) in[k] = static_cast<const T*>(inputs[k]) + begin;
  for (std::size_t k = 0; k < NumOutputs; ++k) out[k] = static_cast<T*>(outputs[k]) + out_begin;
  RINGLET_VECTORISE
  for (std::size_t i = 0; i < count; ++i) {
    const T value = Finish::template finish<T, N>(tree<Operation, 0, N>(in, i));
    for (std::size_t k = 0; k < NumOutputs; ++k) out[k][i] = value;
  }
}

// A line is computed in registers and stored from there to every output.
template <class Operation, class Finish, class T, std::size_t N>
void streamed(const void* const* inputs, std::size_t begin, std::size_t lines, void* const* outputs,
              std::size_t num_outputs, std::size_t out_begin) {
  constexpr std::size_t kLine = kLineBytes / sizeof(T);
  const T* in[N];
  for (std::size_t k = 0; k < N; ++k) in[k] = static_cast<const T*>(inputs[k]) + begin;
  for (std::size_t line = 0; line < lines; ++line) {
    alignas(kLineBytes) T values[kLine];
    for (std::size_t i = 0; i < kLine; ++i) {
      values[i] = Finish::template finish<T, N>(tree<Operation, 0, N>(in, line * kLine + i));
    }
    for (std::size_t k = 0; k < num_outputs; ++k) {
      stream_line(values, static_cast<T*>(outputs[k]) + out_begin + line * kLine);
    }
  }
}

template <class Operation, class T>
void merge(void* into, const void* from, std::size_t count) {
  auto* const a = static_cast<T*>(into);
  const auto* const b = static_cast<const T*>(from);
  RINGLET_VECTORISE
  for (std::size_t i = 0; i < count; ++i) a[i] = Operation::apply(a[i], b[i]);
}

template <class Operation, class T, class Finish = Keep>
constexpr Loops make_loops() {
  return {{fused<Operation, Finish, T, 1, 1>, fused<Operation, Finish, T, 2, 1>, fused<Operation, Finish, T, 4, 1>,
           fused<Operation, Finish, T, 8, 1>},
          {fused<Operation, Finish, T, 1, 1>, fused<Operation, Finish, T, 2, 2>, fused<Operation, Finish, T, 4, 4>,
           fused<Operation, Finish, T, 8, 8>},
          {streamed<Operation, Finish, T, 1>, streamed<Operation, Finish, T, 2>, streamed<Operation, Finish, T, 4>,
           streamed<Operation, Finish, T, 8>},
          merge<Operation, T>};
}

// Loops without separate functions for many outputs and for streaming, for rare operations.
template <class Operation, class T>
constexpr Loops make_small_loops() {
  return {{fused<Operation, Keep, T, 1, 1>, fused<Operation, Keep, T, 2, 1>, fused<Operation, Keep, T, 4, 1>,
           fused<Operation, Keep, T, 8, 1>},
          {},
          {},
          merge<Operation, T>};
}

// Complex numbers are multiplied with their real and imaginary parts in separate arrays: for adjacent products, g++ 12
// uses fused instructions if the CPU has them, regardless of its options.
constexpr std::size_t kPlane = 64;

template <class T>
struct Planes {
  T real[kPlane];
  T imaginary[kPlane];

  void load(const T* from, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      real[i] = from[2 * i];
      imaginary[i] = from[2 * i + 1];
    }
  }
  void store(T* to, std::size_t count) const {
    for (std::size_t i = 0; i < count; ++i) {
      to[2 * i] = real[i];
      to[2 * i + 1] = imaginary[i];
    }
  }
  void multiply_by(const Planes& other) {
    for (std::size_t i = 0; i < kPlane; ++i) {
      const T re = real[i] * other.real[i] - imaginary[i] * other.imaginary[i];
      imaginary[i] = real[i] * other.imaginary[i] + imaginary[i] * other.real[i];
      real[i] = re;
    }
  }
};

template <class T, std::size_t N>
void complex_products(const void* const* inputs, std::size_t begin, std::size_t count, void* const* outputs,
                      std::size_t out_begin) {
  Planes<T> planes[N] = {};
  for (std::size_t done = 0; done < count; done += kPlane) {
    const std::size_t size = count - done < kPlane ? count - done : kPlane;
    for (std::size_t k = 0; k < N; ++k) planes[k].load(static_cast<const T*>(inputs[k]) + 2 * (begin + done), size);
    for (std::size_t width = 1; width < N; width *= 2) {
      for (std::size_t k = 0; k < N; k += 2 * width) planes[k].multiply_by(planes[k + width]);
    }
    planes[0].store(static_cast<T*>(outputs[0]) + 2 * (out_begin + done), size);
  }
}

template <class T>
void merge_complex_products(void* into, const void* from, std::size_t count) {
  const void* const inputs[2] = {into, from};
  complex_products<T, 2>(inputs, 0, count, &into, 0);
}

template <class T>
constexpr Loops make_complex_product_loops() {
  return {{complex_products<T, 1>, complex_products<T, 2>, complex_products<T, 4>, complex_products<T, 8>},
          {},
          {},
          merge_complex_products<T>};
}

// Divides combinations of `num_ranks` ranks; `result` may be `partial` if the types are equal.
template <class T, class Result>
void divide(const void* partial, std::size_t count, std::size_t num_ranks, void* result) {
  const auto* const from = static_cast<const T*>(partial);
  auto* const to = static_cast<Result*>(result);
  const auto divisor = static_cast<Result>(num_ranks);
  RINGLET_VECTORISE
  for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<Result>(from[i]) / divisor;
}

}  // namespace
}  // namespace ringlet::kernels

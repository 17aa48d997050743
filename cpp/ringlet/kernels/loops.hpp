// The loops behind kernels.hpp. Included once by each target's translation unit, which is compiled for that target.
//
// Everything here has internal linkage and calls no inline function of the standard library but the accessors of
// std::span, which hold no vector code: a function that two translation units share could be taken from the one
// compiled for the newer CPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "ringlet/kernels/kernels.hpp"

namespace ringlet::kernels {
namespace {

// Scratch is cut into blocks that stay in the first-level cache beside their inputs.
constexpr std::size_t kBlockBytes = 4096;
constexpr std::size_t kTreeBlockBytes = 2048;  // of which tree_block needs kMaxPartials, on stacks that may be small
constexpr std::size_t kLineBytes = 64;
constexpr std::size_t kMaxPartials = 14;  // for the 4,096 ranks that a group may have: see tree_block

template <class T>
T add(T a, T b) {
  if constexpr (std::is_integral_v<T>) {  // integer sums wrap; signed overflow would be undefined
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
  } else {
    return a + b;
  }
}

// What becomes of the sum of all ranks.
template <class T>
struct Sum {
  using Result = T;
  static T finish(T sum, std::size_t) { return sum; }
};

template <class T>
struct Mean {
  using Result = std::conditional_t<std::is_integral_v<T>, double, T>;
  static Result finish(T sum, std::size_t num_ranks) {
    return static_cast<Result>(sum) / static_cast<Result>(num_ranks);
  }
};

// The tree over inputs First .. First + N - 1, N a power of two, at element i.
template <std::size_t First, std::size_t N, class T>
T tree(const T* const* inputs, std::size_t i) {
  if constexpr (N == 1) {
    return inputs[First][i];
  } else {
    return add(tree<First, N / 2>(inputs, i), tree<First + N / 2, N / 2>(inputs, i));
  }
}

// N inputs in one pass, to one output or to N; elements begin .. begin + count - 1 of the inputs go to the start of the
// outputs. The pragma states what kernels.hpp demands of the buffers: an output is an input or apart from all of them,
// so no iteration depends on an earlier one.
template <class Finish, class T, std::size_t N, std::size_t NumOutputs>
void fused(const void* const* inputs, std::size_t begin, std::size_t count, std::size_t num_ranks,
           void* const* outputs) {
  const T* in[N];
  typename Finish::Result* out[NumOutputs];
  for (std::size_t k = 0; k < N; ++k) in[k] = static_cast<const T*>(inputs[k]) + begin;
  for (std::size_t k = 0; k < NumOutputs; ++k) out[k] = static_cast<typename Finish::Result*>(outputs[k]);
#pragma GCC ivdep
  for (std::size_t i = 0; i < count; ++i) {
    const auto value = Finish::finish(tree<0, N>(in, i), num_ranks);
    for (std::size_t k = 0; k < NumOutputs; ++k) out[k][i] = value;
  }
}

// A partial sum of the tree: of how many ranks, and where.
template <class T>
struct Partial {
  alignas(kLineBytes) T values[kTreeBlockBytes / sizeof(T)];
  std::size_t num_ranks;
};

template <class T>
void add_block(T* into, const T* from, std::size_t count) {
#pragma GCC ivdep
  for (std::size_t i = 0; i < count; ++i) into[i] = add(into[i], from[i]);
}

// Sums one block over any number of inputs: a stack of partial sums whose sizes fall from bottom to top; two of equal
// size become one, as in a binary counter, and what is left at the end is combined from the top down.
// Returns the bottom of the stack.
template <class T>
const T* tree_block(const void* const* inputs, std::size_t num_inputs, std::size_t begin, std::size_t count,
                    Partial<T>* stack) {
  std::size_t depth = 0;
  for (std::size_t rank = 0; rank < num_inputs;) {
    const std::size_t left = num_inputs - rank;
    const std::size_t width = left >= 8 ? 8 : left >= 4 ? 4 : left >= 2 ? 2 : 1;
    const void* const* const group = inputs + rank;
    void* const top = stack[depth].values;
    if (width == 8) {
      fused<Sum<T>, T, 8, 1>(group, begin, count, 8, &top);
    } else if (width == 4) {
      fused<Sum<T>, T, 4, 1>(group, begin, count, 4, &top);
    } else if (width == 2) {
      fused<Sum<T>, T, 2, 1>(group, begin, count, 2, &top);
    } else {
      fused<Sum<T>, T, 1, 1>(group, begin, count, 1, &top);
    }
    stack[depth++].num_ranks = width;
    rank += width;
    while (depth > 1 && stack[depth - 2].num_ranks == stack[depth - 1].num_ranks) {
      add_block(stack[depth - 2].values, stack[depth - 1].values, count);
      stack[--depth - 1].num_ranks *= 2;
    }
  }
  for (; depth > 1; --depth) add_block(stack[depth - 2].values, stack[depth - 1].values, count);
  return stack[0].values;
}

// Ordinary stores may pass streaming ones; this keeps them behind.
void end_streaming() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

void stream_lines(const unsigned char* from, std::size_t lines, unsigned char* to) {
#if defined(__AVX512F__)
  for (std::size_t i = 0; i < lines; ++i) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to) + i, _mm512_loadu_si512(from + i * kLineBytes));
  }
#elif defined(__AVX2__)
  for (std::size_t i = 0; i < 2 * lines; ++i) {
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to) + i,
                        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from) + i));
  }
#elif defined(__x86_64__)
  for (std::size_t i = 0; i < 4 * lines; ++i) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(to) + i, _mm_loadu_si128(reinterpret_cast<const __m128i*>(from) + i));
  }
#else
  std::memcpy(to, from, lines * kLineBytes);  // no portable streaming store on this CPU
#endif
}

void store_bytes(const void* from, std::size_t bytes, void* to, Store store) {
  const auto* source = static_cast<const unsigned char*>(from);
  auto* target = static_cast<unsigned char*>(to);
  if (store == Store::kStream && bytes >= 4 * kLineBytes) {
    const std::size_t head = (kLineBytes - reinterpret_cast<std::uintptr_t>(target) % kLineBytes) % kLineBytes;
    std::memcpy(target, source, head);
    const std::size_t lines = (bytes - head) / kLineBytes;
    stream_lines(source + head, lines, target + head);
    const std::size_t done = head + lines * kLineBytes;
    source += done;
    target += done;
    bytes -= done;
  }
  std::memcpy(target, source, bytes);
}

template <class Result>
void store_block(const Result* block, std::size_t begin, std::size_t count, std::span<void* const> outputs,
                 Store store) {
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    store_bytes(block, count * sizeof(Result), static_cast<Result*>(outputs.data()[k]) + begin, store);
  }
}

// How many of `count` elements to take before the rest of the first output begins on a line: a block that begins and
// ends on lines leaves no line half written, which streaming stores pay dearly for.
template <class Result>
std::size_t head_of(const void* output, std::size_t count, Store store) {
  const std::size_t beyond = reinterpret_cast<std::uintptr_t>(output) % kLineBytes;
  if (store == Store::kPlain || beyond == 0) return 0;
  const std::size_t head = (kLineBytes - beyond) / sizeof(Result);
  return head < count ? head : count;
}

// Any number of inputs and outputs, block by block through scratch.
template <class Finish, class T>
void blocked(std::span<const void* const> inputs, std::size_t count, std::span<void* const> outputs, Store store) {
  using Result = typename Finish::Result;
  constexpr std::size_t kBlock = kTreeBlockBytes / (sizeof(T) > sizeof(Result) ? sizeof(T) : sizeof(Result));
  Partial<T> stack[kMaxPartials];
  alignas(kLineBytes) Result finished[kBlock];
  std::size_t size = head_of<Result>(outputs.data()[0], count, store);
  for (std::size_t begin = 0; begin < count; begin += size) {
    if (begin > 0 || size == 0) size = count - begin < kBlock ? count - begin : kBlock;
    const T* const sums = tree_block<T>(inputs.data(), inputs.size(), begin, size, stack);
#pragma GCC ivdep
    for (std::size_t i = 0; i < size; ++i) finished[i] = Finish::finish(sums[i], inputs.size());
    store_block(finished, begin, size, outputs, store);
  }
}

// N inputs through `fused` into scratch, from there past the caches.
template <class Finish, class T, std::size_t N>
void fused_streaming(std::span<const void* const> inputs, std::size_t count, std::span<void* const> outputs) {
  using Result = typename Finish::Result;
  constexpr std::size_t kBlock = kBlockBytes / sizeof(Result);
  alignas(kLineBytes) Result finished[kBlock];
  void* const scratch = finished;
  std::size_t size = head_of<Result>(outputs.data()[0], count, Store::kStream);
  for (std::size_t begin = 0; begin < count; begin += size) {
    if (begin > 0 || size == 0) size = count - begin < kBlock ? count - begin : kBlock;
    fused<Finish, T, N, 1>(inputs.data(), begin, size, N, &scratch);
    store_block(finished, begin, size, outputs, Store::kStream);
  }
}

template <class Finish, class T, std::size_t N>
void few_inputs(std::span<const void* const> inputs, std::size_t count, std::span<void* const> outputs, Store store) {
  if (store == Store::kStream) {
    fused_streaming<Finish, T, N>(inputs, count, outputs);
  } else if (outputs.size() == 1) {
    fused<Finish, T, N, 1>(inputs.data(), 0, count, N, outputs.data());
  } else if (outputs.size() == N) {
    fused<Finish, T, N, N>(inputs.data(), 0, count, N, outputs.data());
  } else {
    blocked<Finish, T>(inputs, count, outputs, store);
  }
}

template <class Finish, class T>
void reduce(std::span<const void* const> inputs, std::size_t count, std::span<void* const> outputs, Store store) {
  switch (inputs.size()) {
    case 1:
      few_inputs<Finish, T, 1>(inputs, count, outputs, store);
      break;
    case 2:
      few_inputs<Finish, T, 2>(inputs, count, outputs, store);
      break;
    case 4:
      few_inputs<Finish, T, 4>(inputs, count, outputs, store);
      break;
    case 8:
      few_inputs<Finish, T, 8>(inputs, count, outputs, store);
      break;
    default:
      blocked<Finish, T>(inputs, count, outputs, store);
  }
  if (store == Store::kStream) end_streaming();
}

template <class Finish, class T>
void combine_last(const void* left, const void* mine, std::size_t count, std::size_t num_ranks, void* out) {
  const void* const inputs[2] = {left, mine};
  fused<Finish, T, 2, 1>(inputs, 0, count, num_ranks, &out);
}

template <class T>
void combine(const void* left, const void* mine, std::size_t count, void* out) {
  combine_last<Sum<T>, T>(left, mine, count, 2, out);
}

void copy(const void* from, std::size_t bytes, void* to, Store store) {
  store_bytes(from, bytes, to, store);
  if (store == Store::kStream) end_streaming();
}

// Rows and columns in the order of core::Op and core::DType.
constexpr Kernels make_kernels(std::string_view name) {
  return Kernels{
      name,
      {{reduce<Sum<float>, float>, reduce<Sum<double>, double>, reduce<Sum<std::int32_t>, std::int32_t>,
        reduce<Sum<std::int64_t>, std::int64_t>},
       {reduce<Mean<float>, float>, reduce<Mean<double>, double>, reduce<Mean<std::int32_t>, std::int32_t>,
        reduce<Mean<std::int64_t>, std::int64_t>}},
      {combine<float>, combine<double>, combine<std::int32_t>, combine<std::int64_t>},
      {{combine_last<Sum<float>, float>, combine_last<Sum<double>, double>,
        combine_last<Sum<std::int32_t>, std::int32_t>, combine_last<Sum<std::int64_t>, std::int64_t>},
       {combine_last<Mean<float>, float>, combine_last<Mean<double>, double>,
        combine_last<Mean<std::int32_t>, std::int32_t>, combine_last<Mean<std::int64_t>, std::int64_t>}},
      copy,
  };
}

}  // namespace
}  // namespace ringlet::kernels

// Bodies of the probe's loops over a vector type. Included by one unit per CPU target; the unnamed namespace keeps the
// units' instantiations apart, so that the linker cannot hand code for one target to another.
#pragma once

#include <cstring>

#include "loops.hpp"

namespace ringlet::bench {
namespace {

inline constexpr float kConstant = 1.0F;

// `V` gives `Vector` (a vector type of the compiler), `stream(float*, Vector)`, a store that bypasses the caches, and
// `fence()`, after which streamed stores are done.
template <class V>
inline constexpr std::size_t kWidth = sizeof(typename V::Vector) / sizeof(float);

// How a loop goes through memory. Several runs at once keep more requests of one core under way than one run does.
struct Manner {
  bool stream = false;    // stores bypass the caches
  std::size_t ahead = 0;  // prefetch that many lines ahead; 0 leaves it to the hardware
  std::size_t runs = 1;   // the part is cut into so many runs, taken in turn line by line
};

template <class V>
inline typename V::Vector load(const float* from) {
  typename V::Vector value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <class V, Manner kManner>
inline void store(float* into, typename V::Vector value) {
  if constexpr (kManner.stream) {
    V::stream(into, value);
  } else {
    std::memcpy(into, &value, sizeof value);
  }
}

template <Manner kManner>
inline void fetch_ahead(const float* at) {
  if constexpr (kManner.ahead > 0) __builtin_prefetch(at + kManner.ahead * kFloatsPerLine);
}

// Calls `on_line(offset)` once for every line of a part.
template <Manner kManner, class OnLine>
inline void sweep(std::size_t count, OnLine&& on_line) {
  const std::size_t run = count / kFloatsPerLine / kManner.runs * kFloatsPerLine;
  for (std::size_t offset = 0; offset < run; offset += kFloatsPerLine) {
    for (std::size_t which = 0; which < kManner.runs; ++which) on_line(which * run + offset);
  }
  for (std::size_t offset = run * kManner.runs; offset < count; offset += kFloatsPerLine) on_line(offset);
}

template <class V, Manner kManner>
void update(const Part& part) {
  const auto addend = typename V::Vector{} + kConstant;
  float* const into = part.into[0];
  sweep<kManner>(part.count, [=](std::size_t line) {
    fetch_ahead<kManner>(into + line);
    for (std::size_t i = line; i < line + kFloatsPerLine; i += kWidth<V>) {
      store<V, kManner>(into + i, load<V>(into + i) + addend);
    }
  });
}

template <class V, Manner kManner>
void copy(const Part& part) {
  const float* const from = part.from[0];
  float* const into = part.into[0];
  sweep<kManner>(part.count, [=](std::size_t line) {
    fetch_ahead<kManner>(from + line);
    for (std::size_t i = line; i < line + kFloatsPerLine; i += kWidth<V>)
      store<V, kManner>(into + i, load<V>(from + i));
  });
  V::fence();
}

template <class V, Manner kManner>
void read(const Part& part) {
  constexpr std::size_t kVectors = kFloatsPerLine / kWidth<V>;
  constexpr std::size_t kChains = 4;  // lines in a row, summed apart: the latency of an addition must not limit
  typename V::Vector sums[kChains][kVectors] = {};
  const float* const from = part.from[0];
  const auto add_line = [&](std::size_t chain, std::size_t line) {
    fetch_ahead<kManner>(from + line);
    for (std::size_t i = 0; i < kVectors; ++i) sums[chain][i] += load<V>(from + line + i * kWidth<V>);
  };
  constexpr std::size_t kStep = kChains * kFloatsPerLine;
  const std::size_t run = part.count / kStep / kManner.runs * kStep;
  for (std::size_t offset = 0; offset < run; offset += kStep) {
    for (std::size_t which = 0; which < kManner.runs; ++which) {
      for (std::size_t chain = 0; chain < kChains; ++chain) {
        add_line(chain, which * run + offset + chain * kFloatsPerLine);
      }
    }
  }
  for (std::size_t line = run * kManner.runs; line < part.count; line += kFloatsPerLine) add_line(0, line);
  asm volatile("" : : "m"(sums));  // counts as a use: the reads cannot be left out
}

template <class V, Manner kManner>
void write(const Part& part) {
  const auto value = typename V::Vector{} + kConstant;
  float* const into = part.into[0];
  sweep<kManner>(part.count, [=](std::size_t line) {
    for (std::size_t i = line; i < line + kFloatsPerLine; i += kWidth<V>) store<V, kManner>(into + i, value);
  });
  V::fence();
}

template <class V, Manner kManner, std::size_t kSources>
void reduce_fixed(const Part& part) {
  const float* from[kSources];
  for (std::size_t source = 0; source < kSources; ++source) from[source] = part.from[source];
  float* const into = part.into[0];
  sweep<kManner>(part.count, [&](std::size_t line) {
    for (std::size_t source = 0; source < kSources; ++source) fetch_ahead<kManner>(from[source] + line);
    for (std::size_t i = line; i < line + kFloatsPerLine; i += kWidth<V>) {
      auto sum = load<V>(from[0] + i);
      for (std::size_t source = 1; source < kSources; ++source) sum += load<V>(from[source] + i);
      store<V, kManner>(into + i, sum);
    }
  });
  V::fence();
}

template <class V, Manner kManner, std::size_t kTargets>
void spread_fixed(const Part& part) {
  const float* const from = part.from[0];
  float* into[kTargets];
  for (std::size_t target = 0; target < kTargets; ++target) into[target] = part.into[target];
  sweep<kManner>(part.count, [&](std::size_t line) {
    fetch_ahead<kManner>(from + line);
    for (std::size_t i = line; i < line + kFloatsPerLine; i += kWidth<V>) {
      const auto value = load<V>(from + i);
      for (std::size_t target = 0; target < kTargets; ++target) store<V, kManner>(into[target] + i, value);
    }
  });
  V::fence();
}

// Calls f<n>() with n as a constant.
template <std::size_t kMost = kMaxBuffers, class F>
void with_constant(std::size_t n, F&& f) {
  if constexpr (kMost > 1) {
    if (n < kMost) return with_constant<kMost - 1>(n, f);
  }
  f.template operator()<kMost>();
}

template <class V, Manner kManner>
void reduce(const Part& part) {
  with_constant(part.from.size(), [&]<std::size_t kSources>() { reduce_fixed<V, kManner, kSources>(part); });
}

template <class V, Manner kManner>
void spread(const Part& part) {
  with_constant(part.into.size(), [&]<std::size_t kTargets>() { spread_fixed<V, kManner, kTargets>(part); });
}

// Distances and runs that were the best somewhere: second-level cache, third level, memory.
template <class V>
inline constexpr Loop kLoops[] = {
    {Kind::kUpdate, false, "plain", update<V, Manner{}>},
    {Kind::kUpdate, false, "ahead 16", update<V, Manner{.ahead = 16}>},
    {Kind::kUpdate, false, "ahead 64", update<V, Manner{.ahead = 64}>},
    {Kind::kUpdate, false, "4 runs ahead 16", update<V, Manner{.ahead = 16, .runs = 4}>},
    {Kind::kCopy, false, "plain", copy<V, Manner{}>},
    {Kind::kCopy, true, "stream", copy<V, Manner{.stream = true}>},
    {Kind::kCopy, true, "stream ahead 16", copy<V, Manner{.stream = true, .ahead = 16}>},
    {Kind::kCopy, true, "stream ahead 64", copy<V, Manner{.stream = true, .ahead = 64}>},
    {Kind::kCopy, true, "stream 4 runs ahead 16", copy<V, Manner{.stream = true, .ahead = 16, .runs = 4}>},
    {Kind::kRead, false, "plain", read<V, Manner{}>},
    {Kind::kRead, false, "ahead 16", read<V, Manner{.ahead = 16}>},
    {Kind::kRead, false, "ahead 64", read<V, Manner{.ahead = 64}>},
    {Kind::kRead, false, "4 runs ahead 16", read<V, Manner{.ahead = 16, .runs = 4}>},
    {Kind::kWrite, false, "plain", write<V, Manner{}>},
    {Kind::kWrite, true, "stream", write<V, Manner{.stream = true}>},
    {Kind::kWrite, true, "stream 4 runs", write<V, Manner{.stream = true, .runs = 4}>},
    {Kind::kReduce, false, "plain", reduce<V, Manner{}>},
    {Kind::kReduce, true, "stream", reduce<V, Manner{.stream = true}>},
    {Kind::kReduce, true, "stream ahead 16", reduce<V, Manner{.stream = true, .ahead = 16}>},
    {Kind::kReduce, true, "stream ahead 64", reduce<V, Manner{.stream = true, .ahead = 64}>},
    {Kind::kReduce, false, "ahead 16", reduce<V, Manner{.ahead = 16}>},
    {Kind::kSpread, false, "plain", spread<V, Manner{}>},
    {Kind::kSpread, true, "stream", spread<V, Manner{.stream = true}>},
    {Kind::kSpread, true, "stream ahead 16", spread<V, Manner{.stream = true, .ahead = 16}>},
    {Kind::kSpread, true, "stream ahead 64", spread<V, Manner{.stream = true, .ahead = 64}>},
};

}  // namespace
}  // namespace ringlet::bench

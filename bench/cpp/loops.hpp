// The loops that the probe drives memory with: one table per CPU target, each compiled in a unit of its own.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace ringlet::bench {

inline constexpr std::size_t kLine = 64;
inline constexpr std::size_t kFloatsPerLine = kLine / sizeof(float);
inline constexpr std::size_t kMaxBuffers = 8;  // that a loop reads, or writes, beside one other

enum class Kind {
  kUpdate,  // into[0][i] += constant: each line is read and written back
  kCopy,    // into[0][i] = from[0][i]
  kRead,    // from[0] is read, nothing is written
  kWrite,   // into[0][i] = constant
  kReduce,  // into[0][i] = sum of from[...][i]; into[0] may be one of them
  kSpread,  // into[...][i] = from[0][i]
};

// One thread's part of a pass. Buffers are aligned to a line and `count` is a multiple of kFloatsPerLine; a loop of
// kRead ignores `into`, loops of kUpdate and kWrite ignore `from`.
struct Part {
  std::span<float* const> into;
  std::span<const float* const> from;
  std::size_t count = 0;
};

struct Loop {
  Kind kind;
  bool is_streaming;  // stores bypass the caches
  std::string_view name;
  void (*run)(const Part& part);
};

std::span<const Loop> baseline_loops();
#if defined(__x86_64__)
std::span<const Loop> avx2_loops();
std::span<const Loop> avx512_loops();
#endif

}  // namespace ringlet::bench

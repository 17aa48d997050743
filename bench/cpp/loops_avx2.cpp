#include <immintrin.h>

#include "loops_body.hpp"

namespace ringlet::bench {
namespace {

struct Avx2 {
  using Vector = float __attribute__((vector_size(32)));
  static void stream(float* into, Vector value) { _mm256_stream_ps(into, value); }
  static void fence() { _mm_sfence(); }
};

}  // namespace

std::span<const Loop> avx2_loops() { return kLoops<Avx2>; }

}  // namespace ringlet::bench

#include <immintrin.h>

#include "loops_body.hpp"

namespace ringlet::bench {
namespace {

struct Avx512 {
  using Vector = float __attribute__((vector_size(64)));
  static void stream(float* into, Vector value) { _mm512_stream_ps(into, value); }
  static void fence() { _mm_sfence(); }
};

}  // namespace

std::span<const Loop> avx512_loops() { return kLoops<Avx512>; }

}  // namespace ringlet::bench

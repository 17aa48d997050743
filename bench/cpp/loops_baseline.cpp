#include "loops_body.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace ringlet::bench {
namespace {

struct Baseline {
  using Vector = float __attribute__((vector_size(16)));
#if defined(__x86_64__)
  static void stream(float* into, Vector value) { _mm_stream_ps(into, value); }
  static void fence() { _mm_sfence(); }
#else
  static void stream(float* into, Vector value) { store<Baseline, false>(into, value); }
  static void fence() {}
#endif
};

}  // namespace

std::span<const Loop> baseline_loops() { return kLoops<Baseline>; }

}  // namespace ringlet::bench

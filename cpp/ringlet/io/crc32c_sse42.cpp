#include <nmmintrin.h>

#include "ringlet/io/crc32c.hpp"
#include "ringlet/io/crc32c_lanes.hpp"

namespace ringlet::io {

namespace {

struct Sse42 {
  static std::uint32_t word(std::uint32_t reg, std::uint64_t bytes) {
    return static_cast<std::uint32_t>(_mm_crc32_u64(reg, bytes));
  }
  static std::uint32_t byte(std::uint32_t reg, std::uint8_t value) { return _mm_crc32_u8(reg, value); }
};

}  // namespace

const Crc32c& crc32c_sse42() {
  static constexpr Crc32c kSet{"sse4.2", Lanes<Sse42>::extend};
  return kSet;
}

}  // namespace ringlet::io

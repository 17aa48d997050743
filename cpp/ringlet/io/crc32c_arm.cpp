#include <arm_acle.h>

#include "ringlet/io/crc32c.hpp"
#include "ringlet/io/crc32c_lanes.hpp"

namespace ringlet::io {

namespace {

struct ArmCrc {
  static std::uint32_t word(std::uint32_t reg, std::uint64_t bytes) { return __crc32cd(reg, bytes); }
  static std::uint32_t byte(std::uint32_t reg, std::uint8_t value) { return __crc32cb(reg, value); }
};

}  // namespace

const Crc32c& crc32c_arm() {
  static constexpr Crc32c kSet{"arm-crc", Lanes<ArmCrc>::extend};
  return kSet;
}

}  // namespace ringlet::io

#include <cstdint>
#include <cstring>

#include "ringlet/io/crc32c.hpp"
#include "ringlet/io/crc32c_math.hpp"

namespace ringlet::io {

namespace {

// Eight bytes per iteration, with independent look-ups.
std::uint32_t extend(std::uint32_t crc, Bytes bytes) {
  static const crc_math::ByteTable kFour = crc_math::zeros(4);
  static const crc_math::ByteTable kEight = crc_math::zeros(8);
  std::uint32_t reg = ~crc;
  const std::byte* at = bytes.data();
  std::size_t remaining = bytes.size();
  for (; remaining >= 8; at += 8, remaining -= 8) {
    std::uint32_t words[2];
    std::memcpy(words, at, sizeof words);
    reg = kEight(reg ^ words[0]) ^ kFour(words[1]);
  }
  // The last byte of four zeros' map is what a single byte does to the register.
  for (; remaining > 0; ++at, --remaining) {
    reg = (reg >> 8) ^ kFour.entries[3][(reg ^ static_cast<std::uint32_t>(*at)) & 255];
  }
  return ~reg;
}

}  // namespace

const Crc32c& crc32c_portable() {
  static constexpr Crc32c kSet{"portable", extend};
  return kSet;
}

}  // namespace ringlet::io

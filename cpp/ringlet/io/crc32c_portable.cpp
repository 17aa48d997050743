#include <array>
#include <cstdint>
#include <cstring>

#include "ringlet/io/crc32c.hpp"
#include "ringlet/io/crc32c_math.hpp"

namespace ringlet::io {

namespace {

// Entry [k][b]: a register of zeros after byte b and k bytes of zeros.
using Tables = std::array<std::array<std::uint32_t, 256>, 8>;

constexpr Tables make_tables() {
  Tables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) tables[0][byte] = crc_math::after_zero_byte(byte);
  for (std::size_t later = 1; later < tables.size(); ++later) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      tables[later][byte] = crc_math::after_zero_byte(tables[later - 1][byte]);
    }
  }
  return tables;
}

constexpr Tables kTables = make_tables();

// Eight bytes per iteration, with independent look-ups.
std::uint32_t extend(std::uint32_t crc, Bytes bytes) {
  std::uint32_t reg = ~crc;
  const std::byte* at = bytes.data();
  std::size_t remaining = bytes.size();
  for (; remaining >= 8; at += 8, remaining -= 8) {
    std::uint64_t word;
    std::memcpy(&word, at, sizeof word);
    word ^= reg;
    reg = 0;
    for (std::size_t byte = 0; byte < 8; ++byte) reg ^= kTables[7 - byte][word >> (8 * byte) & 255];
  }
  for (; remaining > 0; ++at, --remaining) reg = (reg >> 8) ^ kTables[0][(reg ^ static_cast<std::uint32_t>(*at)) & 255];
  return ~reg;
}

}  // namespace

const Crc32c& crc32c_portable() {
  static constexpr Crc32c kSet{"portable", extend};
  return kSet;
}

}  // namespace ringlet::io

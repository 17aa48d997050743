// CRC32C as arithmetic on bits, which computes its tables at compile time.
//
// A checksum is kept as a *register*, with all bits inverted. A byte of zeros shifts the register by eight bits, which
// is a linear map of bits, so many bytes of zeros are a linear map too, and
//
//     register(a, followed by b) = zeros(size of b)(register(a)) ^ register(b from 0)
//
// which allows several ranges of bytes to be processed in parallel.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace ringlet::io::crc_math {

static_assert(std::endian::native == std::endian::little, "words are read in the order of their bytes");

inline constexpr std::uint32_t kPolynomial = 0x82F63B78;  // 0x1EDC6F41, bits in the order in which they are shifted out

// The register after one byte of zeros.
constexpr std::uint32_t after_zero_byte(std::uint32_t reg) {
  for (int bit = 0; bit < 8; ++bit) reg = (reg >> 1) ^ ((reg & 1) != 0 ? kPolynomial : 0);
  return reg;
}

// A linear map of registers, as the images of their 32 bits.
using Map = std::array<std::uint32_t, 32>;

constexpr std::uint32_t apply(const Map& map, std::uint32_t reg) {
  std::uint32_t image = 0;
  for (std::size_t bit = 0; bit < 32; ++bit) {
    if ((reg >> bit & 1) != 0) image ^= map[bit];
  }
  return image;
}

// The map of `bytes` bytes of zeros; a power of two.
constexpr Map zeros(std::size_t bytes) {
  Map map{};
  for (std::size_t bit = 0; bit < 32; ++bit) map[bit] = after_zero_byte(std::uint32_t{1} << bit);
  for (std::size_t done = 1; done < bytes; done *= 2) {
    Map twice{};
    for (std::size_t bit = 0; bit < 32; ++bit) twice[bit] = apply(map, map[bit]);
    map = twice;
  }
  return map;
}

// A linear map by bytes of the register: the image is the exclusive or of one entry per byte.
class ByteTable {
 public:
  constexpr explicit ByteTable(const Map& map) {
    for (std::size_t byte = 0; byte < 4; ++byte) {
      for (std::size_t value = 1; value < 256; ++value) {
        const std::size_t lowest = static_cast<std::size_t>(std::countr_zero(value));
        entries_[byte][value] = entries_[byte][value & (value - 1)] ^ map[8 * byte + lowest];
      }
    }
  }
  constexpr std::uint32_t operator()(std::uint32_t reg) const {
    return entries_[0][reg & 255] ^ entries_[1][reg >> 8 & 255] ^ entries_[2][reg >> 16 & 255] ^ entries_[3][reg >> 24];
  }

 private:
  std::array<std::array<std::uint32_t, 256>, 4> entries_{};
};

}  // namespace ringlet::io::crc_math

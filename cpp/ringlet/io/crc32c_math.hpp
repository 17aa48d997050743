// CRC32C as arithmetic on bits.
//
// A checksum is kept as a *register*, with all bits inverted. A byte of zeros shifts the register by eight bits, which
// is a linear map of bits, so many bytes of zeros are a linear map too, and
//
//     register(a, followed by b) = zeros(size of b)(register(a)) ^ register(b from 0)
//
// which allows several ranges of bytes to be processed in parallel.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace ringlet::io::crc_math {

static_assert(std::endian::native == std::endian::little, "words are read in the order of their bytes");

// A linear map of registers by bytes of the register: the image is the exclusive or of one entry per byte.
struct ByteTable {
  std::uint32_t entries[4][256];

  std::uint32_t operator()(std::uint32_t reg) const {
    return entries[0][reg & 255] ^ entries[1][reg >> 8 & 255] ^ entries[2][reg >> 16 & 255] ^ entries[3][reg >> 24];
  }
};

// The map of `bytes` bytes of zeros; a power of two. Computed when first needed, in microseconds: as constants, the
// tables would be a twentieth of the compressed library.
ByteTable zeros(std::size_t bytes);

}  // namespace ringlet::io::crc_math

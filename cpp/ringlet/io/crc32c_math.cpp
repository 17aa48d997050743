#include "ringlet/io/crc32c_math.hpp"

#include <array>

namespace ringlet::io::crc_math {

namespace {

constexpr std::uint32_t kPolynomial = 0x82F63B78;  // 0x1EDC6F41, bits in the order in which they are shifted out

// A linear map of registers, as the images of their 32 bits.
using Map = std::array<std::uint32_t, 32>;

std::uint32_t image_of(const Map& map, std::uint32_t reg) {
  std::uint32_t image = 0;
  for (; reg != 0; reg &= reg - 1) image ^= map[static_cast<std::size_t>(std::countr_zero(reg))];
  return image;
}

}  // namespace

ByteTable zeros(std::size_t bytes) {
  Map map{};
  for (std::size_t bit = 0; bit < 32; ++bit) {
    std::uint32_t reg = std::uint32_t{1} << bit;
    for (int shift = 0; shift < 8; ++shift) reg = (reg >> 1) ^ ((reg & 1) != 0 ? kPolynomial : 0);
    map[bit] = reg;
  }
  for (std::size_t done = 1; done < bytes; done *= 2) {
    const Map once = map;
    for (std::uint32_t& image : map) image = image_of(once, image);
  }
  ByteTable table;
  for (std::size_t byte = 0; byte < 4; ++byte) {
    for (std::uint32_t value = 0; value < 256; ++value) table.entries[byte][value] = image_of(map, value << (8 * byte));
  }
  return table;
}

}  // namespace ringlet::io::crc_math

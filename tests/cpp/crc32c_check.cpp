// CRC32C: every way to compute it that this CPU knows gives what a bit by bit division gives, for all lengths around
// those of its inner loops, wherever the bytes begin, in one piece and in two; and the known checksums of RFC 3720.
#include <cstdint>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "check.hpp"
#include "ringlet/io/crc32c.hpp"
#include "ringlet/io/records.hpp"

namespace {

using namespace ringlet;
using io::Bytes;
using stress::check;
using stress::Random;

std::uint32_t divided(Bytes bytes) {
  std::uint32_t reg = ~std::uint32_t{0};
  for (const std::byte byte : bytes) {
    reg ^= static_cast<std::uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) reg = (reg >> 1) ^ ((reg & 1) != 0 ? 0x82F63B78 : 0);
  }
  return ~reg;
}

struct Known {
  std::vector<unsigned char> bytes;
  std::uint32_t crc;
};

// Appendix B.4 of RFC 3720, and the checksum that is printed everywhere.
std::vector<Known> known_checksums() {
  std::vector<unsigned char> up(32);
  std::iota(up.begin(), up.end(), static_cast<unsigned char>(0));
  const std::vector<unsigned char> down(up.rbegin(), up.rend());
  const std::string digits = "123456789";
  return {{{}, 0},
          {std::vector<unsigned char>(32, 0x00), 0x8A9136AA},
          {std::vector<unsigned char>(32, 0xFF), 0x62A8AB43},
          {up, 0x46DD794E},
          {down, 0x113FDB5C},
          {{digits.begin(), digits.end()}, 0xE3069283}};
}

void known_checksums_hold(const io::Crc32c& way) {
  for (const Known& known : known_checksums()) {
    check(way.extend(0, std::as_bytes(std::span(known.bytes))) == known.crc, way.name);
  }
}

void agrees_with_division(const io::Crc32c& way, Bytes bytes, std::size_t cut) {
  const std::uint32_t expected = divided(bytes);
  check(way.extend(0, bytes) == expected, way.name);
  check(way.extend(way.extend(0, bytes.first(cut)), bytes.subspan(cut)) == expected, way.name);
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t rounds = stress::calls_of(argc, argv, 100'000) / 200;
  Random random(7);
  std::vector<std::byte> memory(3 * 2048 * 3 + 64);
  for (std::byte& byte : memory) byte = static_cast<std::byte>(random.below(256));
  for (const io::Crc32c* way : io::runnable_crc32c()) {
    known_checksums_hold(*way);
    for (std::size_t size = 0; size < 1300; ++size) {
      agrees_with_division(*way, Bytes(memory).subspan(size % 9, size), random.below(size + 1));
    }
    for (std::size_t round = 0; round < rounds; ++round) {
      const std::size_t begin = random.below(64);
      const std::size_t size = random.below(memory.size() - begin);
      agrees_with_division(*way, Bytes(memory).subspan(begin, size), random.below(size + 1));
    }
  }
  check(io::masked(0) == 0xA282EAD8 && io::masked(0xE3069283) == 0xC78AB0E5, "masked checksums");
}

// CRC32C on a CPU that has an instruction for it. The instruction starts every cycle but takes three cycles, so three
// ranges of equal length, the *lanes*, are processed in parallel and their checksums combined.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "ringlet/io/crc32c.hpp"
#include "ringlet/io/crc32c_math.hpp"

namespace ringlet::io {

// `Cpu` has word(register, 8 bytes) and byte(register, 1 byte); it is local to its translation unit, so instances of
// this template are too: other units must not get code for this CPU.
template <class Cpu>
class Lanes {
 public:
  static std::uint32_t extend(std::uint32_t crc, Bytes bytes) {
    std::uint32_t reg = ~crc;
    const std::byte* at = bytes.data();
    std::size_t remaining = bytes.size();
    take_lanes<kLong>(reg, at, remaining);
    take_lanes<kShort>(reg, at, remaining);
    for (; remaining >= 8; at += 8, remaining -= 8) reg = Cpu::word(reg, word_at(at));
    for (; remaining > 0; ++at, --remaining) reg = Cpu::byte(reg, static_cast<std::uint8_t>(*at));
    return ~reg;
  }

 private:
  // Bytes of one lane: long lanes cost the least to combine, short lanes are for records of some hundred bytes.
  static constexpr std::size_t kLong = 2048;
  static constexpr std::size_t kShort = 128;

  template <std::size_t kLane>
  static void take_lanes(std::uint32_t& reg, const std::byte*& at, std::size_t& remaining) {
    if (remaining < 3 * kLane) return;
    static const crc_math::ByteTable kOneLane = crc_math::zeros(kLane);
    static const crc_math::ByteTable kTwoLanes = crc_math::zeros(2 * kLane);
    for (; remaining >= 3 * kLane; at += 3 * kLane, remaining -= 3 * kLane) {
      std::uint32_t first = reg;
      std::uint32_t second = 0;
      std::uint32_t third = 0;
      for (std::size_t offset = 0; offset < kLane; offset += 8) {
        first = Cpu::word(first, word_at(at + offset));
        second = Cpu::word(second, word_at(at + kLane + offset));
        third = Cpu::word(third, word_at(at + 2 * kLane + offset));
      }
      reg = kTwoLanes(first) ^ kOneLane(second) ^ third;
    }
  }

  static std::uint64_t word_at(const std::byte* at) {
    std::uint64_t word;
    std::memcpy(&word, at, sizeof word);
    return word;
  }
};

}  // namespace ringlet::io

// TFRecord framing. A record is its length (8 bytes, lowest first), the masked checksum of those 8 bytes (4), its data,
// and the masked checksum of the data (4).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "ringlet/io/crc32c.hpp"

namespace ringlet::io {

inline constexpr std::size_t kHeaderBytes = 12;
inline constexpr std::size_t kFooterBytes = 4;

// A checksum as files hold it: masked, because a checksum of data that contains checksums is weak.
constexpr std::uint32_t masked(std::uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xA282EAD8U; }

// The data of one record within a block.
struct Record {
  std::size_t begin;
  std::size_t size;
};

enum class Fault { kNone, kLengthChecksum, kDataChecksum };

// What a block of bytes from the middle of a file holds.
struct Scan {
  std::vector<Record> records;  // the whole and sound ones, in order
  std::size_t consumed = 0;     // where the first record begins that is not among them
  // How many bytes from there on are needed to go on: a header, or a record as its header tells, at most 2^64 - 1. Of
  // no meaning where there is a fault.
  std::uint64_t wanted = 0;
  Fault fault = Fault::kNone;  // of the record at `consumed`
};

// Reads a block from its first byte, where a record begins. Touches no byte behind the block, whatever it holds.
Scan scan_records(Bytes block);

// What stands before and behind the data of a record.
struct Frame {
  std::array<std::byte, kHeaderBytes> header;
  std::array<std::byte, kFooterBytes> footer;
};
Frame frame_of(Bytes data);

}  // namespace ringlet::io

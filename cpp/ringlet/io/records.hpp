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

// A checksum as stored in files: masked, because checksums of data that contains checksums are weak.
constexpr std::uint32_t masked(std::uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xA282EAD8U; }

// The data of one record within a block.
struct Record {
  std::size_t begin;
  std::size_t size;
};

enum class Fault { kNone, kLengthChecksum, kDataChecksum };

// The records in a block of bytes from the middle of a file.
struct Scan {
  std::vector<Record> records;  // the complete and valid ones, in order
  std::size_t consumed = 0;     // start of the first record that is not among them
  // Number of bytes from there on that are needed to continue: a header, or a record according to its header, at most
  // 2^64 - 1. Undefined if there is a fault.
  std::uint64_t wanted = 0;
  Fault fault = Fault::kNone;  // fault of the record at `consumed`
};

// Reads a block that starts with the first byte of a record. Never reads beyond the block.
Scan scan_records(Bytes block);

// The bytes before and after the data of a record.
struct Frame {
  std::array<std::byte, kHeaderBytes> header;
  std::array<std::byte, kFooterBytes> footer;
};
Frame frame_of(Bytes data);

}  // namespace ringlet::io

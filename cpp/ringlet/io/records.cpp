#include "ringlet/io/records.hpp"

#include <bit>
#include <cstring>
#include <limits>

namespace ringlet::io {

namespace {

static_assert(std::endian::native == std::endian::little, "numbers are read as they stand in files");

constexpr std::size_t kLengthBytes = 8;

template <class T>
T number_at(Bytes bytes, std::size_t at) {
  T number;
  std::memcpy(&number, bytes.data() + at, sizeof number);
  return number;
}

// Bytes of a record with data of `length` bytes; the maximum of the type if the sum overflows.
std::uint64_t framed(std::uint64_t length) {
  constexpr std::uint64_t kAround = kHeaderBytes + kFooterBytes;
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  return length > kMost - kAround ? kMost : length + kAround;
}

}  // namespace

Scan scan_records(Bytes block) {
  const Crc32c& crc = active_crc32c();
  Scan scan;
  for (;;) {
    const Bytes rest = block.subspan(scan.consumed);
    scan.wanted = kHeaderBytes;
    if (rest.size() < kHeaderBytes) return scan;
    const auto length = number_at<std::uint64_t>(rest, 0);
    if (masked(crc.extend(0, rest.first(kLengthBytes))) != number_at<std::uint32_t>(rest, kLengthBytes)) {
      scan.fault = Fault::kLengthChecksum;
      return scan;
    }
    scan.wanted = framed(length);
    if (scan.wanted > rest.size()) return scan;
    // From here on, the length is less than the size of the block.
    const auto size = static_cast<std::size_t>(length);
    const Bytes data = rest.subspan(kHeaderBytes, size);
    if (masked(crc.extend(0, data)) != number_at<std::uint32_t>(rest, kHeaderBytes + size)) {
      scan.fault = Fault::kDataChecksum;
      return scan;
    }
    scan.records.push_back({scan.consumed + kHeaderBytes, size});
    scan.consumed += kHeaderBytes + size + kFooterBytes;
  }
}

Frame frame_of(Bytes data) {
  Frame frame;
  const std::uint64_t length = data.size();
  std::memcpy(frame.header.data(), &length, kLengthBytes);
  const std::uint32_t length_check = masked(crc32c(Bytes(frame.header).first(kLengthBytes)));
  std::memcpy(frame.header.data() + kLengthBytes, &length_check, sizeof length_check);
  const std::uint32_t data_check = masked(crc32c(data));
  std::memcpy(frame.footer.data(), &data_check, sizeof data_check);
  return frame;
}

}  // namespace ringlet::io

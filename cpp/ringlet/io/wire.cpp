#include "ringlet/io/wire.hpp"

#include <cstring>
#include <limits>

#include "ringlet/core/error.hpp"

namespace ringlet::io {

Field Message::field() {
  const std::uint64_t tag = varint();
  if (tag > std::numeric_limits<std::uint32_t>::max() || tag >> 3 == 0) fail("the field number is invalid");
  const auto type = static_cast<std::uint8_t>(tag & 7);
  if (type > 2 && type != 5) fail("wire type " + std::to_string(type) + " is not supported");
  return {static_cast<std::uint32_t>(tag >> 3), static_cast<WireType>(type)};
}

void Message::skip(WireType type) {
  switch (type) {
    case WireType::kVarint:
      varint();
      break;
    case WireType::kFixed64:
      take(8);
      break;
    case WireType::kDelimited:
      delimited();
      break;
    case WireType::kFixed32:
      take(4);
      break;
  }
}

std::uint64_t Message::varint() {
  constexpr std::size_t kMostBytes = 10;
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < kMostBytes; ++i) {
    if (i == rest_.size()) fail("a number is truncated");
    const auto byte = static_cast<std::uint64_t>(rest_[i]);
    value |= (byte & 127) << (7 * i);
    if (byte < 128) {
      rest_ = rest_.subspan(i + 1);
      return value;
    }
  }
  fail("a number has more than 10 bytes");
}

std::uint32_t Message::fixed32() {
  std::uint32_t value;
  std::memcpy(&value, take(sizeof value).data(), sizeof value);
  return value;
}

Bytes Message::delimited() {
  const std::uint64_t size = varint();
  if (size > rest_.size()) {
    fail("a field has " + std::to_string(size) + " bytes, but only " + std::to_string(rest_.size()) + " are left");
  }
  return take(static_cast<std::size_t>(size));
}

Bytes Message::take(std::size_t count) {
  if (count > rest_.size()) fail("a number is truncated");
  const Bytes taken = rest_.first(count);
  rest_ = rest_.subspan(count);
  return taken;
}

void Message::fail(const std::string& reason) const {
  throw core::ArgumentError("at byte " + std::to_string(rest_.data() - begin_of_all_) + ": " + reason);
}

std::size_t varint_bytes(std::uint64_t value) {
  std::size_t bytes = 1;
  for (; value >= 128; value >>= 7) ++bytes;
  return bytes;
}

void append_varint(std::string& message, std::uint64_t value) {
  for (; value >= 128; value >>= 7) message.push_back(static_cast<char>(value | 128));
  message.push_back(static_cast<char>(value));
}

void append_delimited(std::string& message, std::uint32_t number, std::size_t size) {
  append_varint(message, std::uint64_t{number} << 3 | static_cast<std::uint64_t>(WireType::kDelimited));
  append_varint(message, size);
}

std::size_t delimited_bytes(std::size_t size) { return 1 + varint_bytes(size) + size; }

}  // namespace ringlet::io

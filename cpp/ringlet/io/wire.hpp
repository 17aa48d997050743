// Wire format of protocol buffers: reading and writing the fields of a message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "ringlet/io/crc32c.hpp"

namespace ringlet::io {

enum class WireType : std::uint8_t { kVarint = 0, kFixed64 = 1, kDelimited = 2, kFixed32 = 5 };

struct Field {
  std::uint32_t number;
  WireType type;
};

// Reads the fields of a message in order. Throws core::ArgumentError with the position, counted from `begin_of_all`, if
// the message is invalid. Never reads beyond the message, and allocates nothing.
class Message {
 public:
  explicit Message(Bytes bytes) : Message(bytes, bytes.data()) {}
  Message(Bytes bytes, const std::byte* begin_of_all) : rest_(bytes), begin_of_all_(begin_of_all) {}

  bool is_at_end() const noexcept { return rest_.empty(); }
  Bytes rest() const noexcept { return rest_; }

  Field field();
  void skip(WireType type);

  // The value of a field of the varint type. Bits of a varint beyond the 64th are dropped.
  std::uint64_t varint();
  std::uint32_t fixed32();
  Bytes delimited();
  Message message() {
    const Bytes bytes = delimited();
    return Message(bytes, begin_of_all_);
  }

  [[noreturn]] void fail(const std::string& reason) const;

 private:
  Bytes take(std::size_t count);

  Bytes rest_;
  const std::byte* begin_of_all_;
};

// The number of bytes of a varint, and a function that appends a varint to `message`.
std::size_t varint_bytes(std::uint64_t value);
void append_varint(std::string& message, std::uint64_t value);
// Appends the head of a field, which is followed by `size` bytes.
void append_delimited(std::string& message, std::uint32_t number, std::size_t size);
// The number of bytes of such a field with its head; `number` is less than 16.
std::size_t delimited_bytes(std::size_t size);

}  // namespace ringlet::io

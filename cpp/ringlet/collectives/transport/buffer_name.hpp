// The name of a buffer that is valid on every rank.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ringlet::collectives {

// The location of a byte, in 64 bits that mean the same in every process of a group:
//
//     0 [63 bits of an address]                                      private memory of the owner's process
//     1 [process 11 bits] [staged 1 bit] [segment 11 bits] [offset 40 bits]      shared memory
//
// The ranks of one process use private addresses of each other as they are. Staged memory replaces a private buffer of
// its owner, which copies the bytes to it before the call, or from it after the call.
class BufferName {
 public:
  static constexpr int kProcessBits = 11;
  static constexpr int kSegmentBits = 11;
  static constexpr int kOffsetBits = 40;

  constexpr BufferName() = default;
  explicit constexpr BufferName(std::uint64_t bits) : bits_(bits) {}
  static BufferName of_private(const void* address) noexcept {
    return BufferName(reinterpret_cast<std::uintptr_t>(address) & ~kSharedBit);
  }
  static constexpr BufferName of_shared(int process, std::uint32_t segment, std::uint64_t offset) noexcept {
    return BufferName(kSharedBit | static_cast<std::uint64_t>(process) << (kOffsetBits + kSegmentBits + 1) |
                      static_cast<std::uint64_t>(segment) << kOffsetBits | offset);
  }

  constexpr std::uint64_t bits() const noexcept { return bits_; }
  constexpr bool is_null() const noexcept { return bits_ == 0; }
  constexpr bool is_shared() const noexcept { return (bits_ & kSharedBit) != 0; }
  constexpr bool is_staged() const noexcept { return is_shared() && (bits_ & kStagedBit) != 0; }
  constexpr BufferName as_staged() const noexcept { return BufferName(bits_ | kStagedBit); }

  // The address of private memory, in its own process.
  std::byte* address() const noexcept { return reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(bits_)); }
  // The process that owns shared memory.
  constexpr int process() const noexcept {
    return static_cast<int>(bits_ >> (kOffsetBits + kSegmentBits + 1) & ((1U << kProcessBits) - 1));
  }
  constexpr std::uint32_t segment() const noexcept {
    return static_cast<std::uint32_t>(bits_ >> kOffsetBits & ((1U << kSegmentBits) - 1));
  }
  constexpr std::uint64_t offset() const noexcept { return bits_ & ((std::uint64_t{1} << kOffsetBits) - 1); }

  friend constexpr BufferName operator+(BufferName place, std::size_t bytes) noexcept {
    return BufferName(place.bits_ + bytes);
  }
  friend constexpr bool operator==(BufferName, BufferName) = default;

 private:
  static constexpr std::uint64_t kSharedBit = std::uint64_t{1} << 63;
  static constexpr std::uint64_t kStagedBit = std::uint64_t{1} << (kOffsetBits + kSegmentBits);
  static_assert(1 + kProcessBits + 1 + kSegmentBits + kOffsetBits == 64);

  std::uint64_t bits_ = 0;
};

// A named buffer as seen by one rank: `here` is its address in this rank's process, null if it is private memory of
// another process.
struct MappedBuffer {
  std::byte* here = nullptr;
  BufferName name;
  int rank = 0;  // the owner's

  friend MappedBuffer operator+(MappedBuffer spot, std::size_t bytes) noexcept {
    return {spot.here == nullptr ? nullptr : spot.here + bytes, spot.name + bytes, spot.rank};
  }
};

}  // namespace ringlet::collectives

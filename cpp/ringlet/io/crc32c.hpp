// CRC32C (Castagnoli polynomial): the checksum of TFRecord files and of checkpoints.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace ringlet::io {

using Bytes = std::span<const std::byte>;

// One implementation.
struct Crc32c {
  std::string_view name;

  // Extends the checksum `crc` of some data by `bytes`. The checksum of no data is 0.
  std::uint32_t (*extend)(std::uint32_t crc, Bytes bytes);
};

// One per translation unit; crc32c_portable() runs everywhere, the others use a CPU instruction for CRC32C.
const Crc32c& crc32c_portable();
#if defined(RINGLET_X86_TARGETS)
const Crc32c& crc32c_sse42();
#endif
#if defined(RINGLET_ARM_TARGETS)
const Crc32c& crc32c_arm();
#endif

// The implementations that this CPU can run, fastest first.
std::span<const Crc32c* const> runnable_crc32c();

// The fastest one, or the portable one if the environment variable RINGLET_CPU is "portable".
const Crc32c& active_crc32c();

inline std::uint32_t crc32c(Bytes bytes, std::uint32_t crc = 0) { return active_crc32c().extend(crc, bytes); }

}  // namespace ringlet::io

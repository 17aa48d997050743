// CRC32C (the polynomial of Castagnoli): the checksum of TFRecord files and of checkpoints.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace ringlet::io {

using Bytes = std::span<const std::byte>;

// One way to compute it.
struct Crc32c {
  std::string_view name;

  // The checksum of what `crc` is the checksum of, followed by `bytes`. That of nothing is 0.
  std::uint32_t (*extend)(std::uint32_t crc, Bytes bytes);
};

// One per translation unit; crc32c_portable() runs everywhere, the others use an instruction made for it.
const Crc32c& crc32c_portable();
#if defined(RINGLET_X86_TARGETS)
const Crc32c& crc32c_sse42();
#endif
#if defined(RINGLET_ARM_TARGETS)
const Crc32c& crc32c_arm();
#endif

// Those that this CPU can run, best first.
std::span<const Crc32c* const> runnable_crc32c();

// The best of them; the portable one if the environment variable RINGLET_CPU is "portable".
const Crc32c& active_crc32c();

inline std::uint32_t crc32c(Bytes bytes, std::uint32_t crc = 0) { return active_crc32c().extend(crc, bytes); }

}  // namespace ringlet::io

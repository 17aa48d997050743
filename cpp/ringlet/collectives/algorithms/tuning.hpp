// What AUTO does, as `python -m bench.tune` measured it.
#pragma once

#include <cstddef>

namespace ringlet::collectives {

// Up to `max_ranks` ranks, payloads up to `small_bytes` travel in the slots; larger ones by DIRECT.
struct AutoRow {
  int max_ranks;
  std::size_t small_bytes;
};

inline constexpr AutoRow kAutoTable[] = {
    {2, 2000},
    {4, 1024},
    {8, 512},
    {4096, 256},
};

constexpr std::size_t small_limit(int num_ranks) {
  for (const AutoRow& row : kAutoTable) {
    if (num_ranks <= row.max_ranks) return row.small_bytes;
  }
  return 0;
}

// Between processes, private arrays up to this size are copied through shared memory; larger ones are read where they
// are, if the system allows it.
constexpr std::size_t largest_staged(int num_ranks) {
  return num_ranks <= 2 ? std::size_t{48} << 10 : std::size_t{256} << 10;
}

// From so many ranks on, all-reduces of more bytes than kLargestWhole go through shared memory in pieces instead; with
// fewer, only where the system refuses to reach across.
inline constexpr int kFewestForPieces = 3;
inline constexpr std::size_t kLargestWhole = std::size_t{256} << 10;
// One piece stays in the second-level cache with what it is copied from.
inline constexpr std::size_t kPieceBytes = std::size_t{256} << 10;

// Fewer ranks, each in a process of its own, exchange shares instead (see exchange.hpp): whole arrays of up to
// kLargestCrossed, and larger ones in pieces of this size, where that is faster than to read across. Smaller pieces
// would still lie in the second-level cache of their writer when others read them, which takes four times as long as
// from the third.
inline constexpr std::size_t kExchangeBytes = std::size_t{1} << 20;
inline constexpr std::size_t kLargestCrossed = std::size_t{512} << 10;
// Up to this size, what is exchanged goes past that cache for the same reason.
inline constexpr std::size_t kLargestStreamed = std::size_t{512} << 10;

}  // namespace ringlet::collectives

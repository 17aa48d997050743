// Choices of AUTO, as measured by `python -m bench.tune`.
#pragma once

#include <cstddef>

namespace ringlet::collectives {

// Maximum payload that travels in the slots, for at most `max_ranks` ranks; larger payloads use DIRECT.
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

// Maximum size of private arrays that are copied through shared memory between processes; larger ones are read in place
// if the system allows it.
constexpr std::size_t largest_staged(int num_ranks) {
  return num_ranks <= 2 ? std::size_t{48} << 10 : std::size_t{256} << 10;
}

// With at least this many ranks, all-reduces of more bytes than kLargestWhole go through shared memory in pieces
// instead; with fewer ranks, only if the system does not allow reads across processes.
inline constexpr int kFewestForPieces = 3;
inline constexpr std::size_t kLargestWhole = std::size_t{256} << 10;
// Size of a piece: the piece and its source fit the L2 cache together.
inline constexpr std::size_t kPieceBytes = std::size_t{256} << 10;

// Fewer ranks, each in its own process, exchange shares instead (see exchange.hpp): whole arrays of up to
// kLargestCrossed, and larger ones in pieces of this size if that is faster than reading across. Smaller pieces would
// still be in the writer's L2 cache when others read them, which takes four times as long as from the L3 cache.
inline constexpr std::size_t kExchangeBytes = std::size_t{1} << 20;
inline constexpr std::size_t kLargestCrossed = std::size_t{512} << 10;
// Exchanged arrays of up to kLargestAlwaysStreamed are written past the L2 cache, so that others read them from the L3
// cache. From there up to kLargestStreamed, this is faster on some processors only, and each rank chooses by
// measurement.
inline constexpr std::size_t kLargestAlwaysStreamed = std::size_t{48} << 10;
inline constexpr std::size_t kLargestStreamed = std::size_t{512} << 10;

}  // namespace ringlet::collectives

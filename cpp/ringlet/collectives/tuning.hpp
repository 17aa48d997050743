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

}  // namespace ringlet::collectives

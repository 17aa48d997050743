// Tiles of every grid cover a tensor once, in row-major order.
#include <array>
#include <cstdint>
#include <vector>

#include "check.hpp"
#include "ringlet/core/error.hpp"
#include "ringlet/tiling/tile_grid.hpp"

namespace {

using ringlet::stress::check;
using ringlet::tiling::TileGrid;

void check_grid(const std::array<std::int64_t, 2>& shape, const std::array<std::int64_t, 2>& partition) {
  const std::array<std::int64_t, 2> strides{shape[1] * 4, 4};
  const TileGrid grid(shape, strides, partition);
  check(grid.num_tiles() == static_cast<std::size_t>(partition[0] * partition[1]),
        "as many tiles as the grid has cells");
  std::vector<int> seen(static_cast<std::size_t>(shape[0] * shape[1]));
  std::int64_t tile = 0;
  for (const std::int64_t offset : grid.offsets_bytes()) {
    const std::int64_t row = tile / partition[1];
    const std::int64_t column = tile % partition[1];
    check(offset == row * grid.tile_shape()[0] * strides[0] + column * grid.tile_shape()[1] * strides[1],
          "tiles are numbered in row-major order");
    for (std::int64_t i = 0; i < grid.tile_shape()[0]; ++i) {
      for (std::int64_t j = 0; j < grid.tile_shape()[1]; ++j) {
        ++seen[static_cast<std::size_t>((offset + i * strides[0] + j * strides[1]) / 4)];
      }
    }
    ++tile;
  }
  for (const int times : seen) check(times == 1, "every element is in one tile");
}

}  // namespace

int main() {
  for (std::int64_t rows = 1; rows <= 12; ++rows) {
    for (std::int64_t parts = 1; parts <= rows; ++parts) {
      const std::array<std::int64_t, 2> shape{rows, 12};
      if (rows % parts == 0) {
        for (const std::int64_t columns : {1, 2, 3, 4, 6, 12}) check_grid(shape, {parts, columns});
        continue;
      }
      try {
        check_grid(shape, {parts, 1});
        check(false, "an uneven cut is refused");
      } catch (const ringlet::core::PartitionError&) {
      }
    }
  }
}

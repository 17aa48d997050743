// Division of a tensor into equal tiles: integer arithmetic without access to data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ringlet::tiling {

// A tensor of `shape` cut into partition[d] equal parts along every dimension d. Tiles are numbered in row-major order
// of their index in the grid. The product over tiles of their sizes equals the size of the tensor.
class TileGrid {
 public:
  // `strides` in bytes, of any sign. Throws PartitionError if a dimension does not divide.
  TileGrid(std::span<const std::int64_t> shape, std::span<const std::int64_t> strides,
           std::span<const std::int64_t> partition);

  std::size_t num_tiles() const noexcept { return offsets_.size(); }
  std::span<const std::int64_t> tile_shape() const noexcept { return tile_shape_; }
  // Distance in bytes from the tensor's first element to the first element of each tile.
  std::span<const std::int64_t> offsets_bytes() const noexcept { return offsets_; }

 private:
  std::vector<std::int64_t> tile_shape_;
  std::vector<std::int64_t> offsets_;
};

}  // namespace ringlet::tiling

#include "ringlet/tiling/tile_grid.hpp"

#include <string>
#include <utility>

#include "ringlet/core/error.hpp"

namespace ringlet::tiling {

namespace {

// The text of a tuple as in Python.
std::string tuple_text(std::span<const std::int64_t> values) {
  std::string text = "(";
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(values[i]);
  }
  return text + (values.size() == 1 ? ",)" : ")");
}

[[noreturn]] void refuse_rank(std::span<const std::int64_t> shape, std::span<const std::int64_t> partition) {
  throw core::PartitionError("cannot divide shape " + tuple_text(shape) + " by partition_dimensions " +
                             tuple_text(partition) + ": the tensor has " + std::to_string(shape.size()) +
                             " dimensions and partition_dimensions " + std::to_string(partition.size()) +
                             " entries. Pass one number of tiles for each dimension, 1 for one that is not divided.");
}

[[noreturn]] void refuse_dimension(std::span<const std::int64_t> shape, std::size_t dim, std::int64_t buffers) {
  const std::int64_t size = shape[dim];
  const std::string problem = "cannot divide dimension " + std::to_string(dim) + " of shape " + tuple_text(shape) +
                              " into " + std::to_string(buffers);
  if (buffers < 1) throw core::PartitionError(problem + " tiles. Pass a number of at least 1.");
  const std::int64_t padded = size < buffers ? buffers : (size + buffers - 1) / buffers * buffers;
  throw core::PartitionError(problem + " equal tiles: " + std::to_string(size) + " is not a multiple of " +
                             std::to_string(buffers) + ". Choose a divisor of " + std::to_string(size) +
                             ", or pad the dimension to " + std::to_string(padded) + " first.");
}

void check(std::span<const std::int64_t> shape, std::span<const std::int64_t> partition) {
  if (partition.size() != shape.size()) refuse_rank(shape, partition);
  for (std::size_t dim = 0; dim < shape.size(); ++dim) {
    if (partition[dim] < 1 || shape[dim] % partition[dim] != 0) refuse_dimension(shape, dim, partition[dim]);
  }
}

}  // namespace

TileGrid::TileGrid(std::span<const std::int64_t> shape, std::span<const std::int64_t> strides,
                   std::span<const std::int64_t> partition)
    : offsets_(1, 0) {
  check(shape, partition);
  for (std::size_t dim = 0; dim < shape.size(); ++dim) {
    const std::int64_t size = shape[dim] / partition[dim];
    tile_shape_.push_back(size);
    // Row-major: each cell of the previous grid is repeated once for every part of this dimension.
    std::vector<std::int64_t> finer;
    finer.reserve(offsets_.size() * static_cast<std::size_t>(partition[dim]));
    for (const std::int64_t offset : offsets_) {
      for (std::int64_t part = 0; part < partition[dim]; ++part) finer.push_back(offset + part * size * strides[dim]);
    }
    offsets_ = std::move(finer);
  }
}

}  // namespace ringlet::tiling

#include "ringlet/tables/layout.hpp"

#include <algorithm>
#include <string>

#include "ringlet/core/error.hpp"

namespace ringlet::tables {

namespace {

// Limit that keeps all computations below from overflowing.
constexpr std::size_t kMostBytes = std::size_t{1} << 46;
constexpr std::size_t kPage = 4096;

std::size_t round_up(std::size_t value, std::size_t unit) { return (value + unit - 1) / unit * unit; }

std::size_t times(std::size_t bytes, std::size_t size) {
  if (size != 0 && bytes > kMostBytes / size)
    throw core::ArgumentError("a table of so many elements exceeds the maximum size.");
  return bytes * size;
}

}  // namespace

Layout::Layout(std::span<const std::int64_t> dims, core::DType type)
    : dtype(type), shape(dims.begin(), dims.end()), row_bytes(core::size_of(type)) {
  if (shape.size() > kMostDims) {
    throw core::ArgumentError("a table has at most " + std::to_string(kMostDims) + " dimensions, not " +
                              std::to_string(shape.size()) + ".");
  }
  for (std::size_t dim = 0; dim < shape.size(); ++dim) {
    if (shape[dim] < 0) throw core::ArgumentError("no dimension of " + describe() + " may be negative.");
    std::size_t& bytes_or_rows = dim == 0 ? num_rows : row_bytes;
    bytes_or_rows = times(bytes_or_rows, static_cast<std::size_t>(shape[dim]));
  }
  times(row_bytes, num_rows);
  if (row_bytes > 0) chunk_rows = std::max<std::size_t>(1, kChunkBytes / row_bytes);
  chunk_rows = std::clamp<std::size_t>(chunk_rows, 1, std::max<std::size_t>(num_rows, 1));
  chunk_bytes = round_up(chunk_rows * row_bytes, sync::kCacheLine);
  if (row_bytes > 0) num_chunks = (num_rows + chunk_rows - 1) / chunk_rows;
  words_begin = round_up(sizeof(Header) + kNumSeats * sizeof(Seat), sync::kCacheLine);
  chunks_begin = round_up(words_begin + num_chunks * sizeof(sync::ChunkWord), kPage);
  journals_begin = round_up(chunks_begin + num_chunks * chunk_bytes, kPage);
  journal_bytes = round_up(chunk_bytes, kPage);
  total_bytes = journals_begin + kNumSeats * journal_bytes;
}

}  // namespace ringlet::tables

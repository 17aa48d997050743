// Layout of the memory of a table.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ringlet/core/describe.hpp"
#include "ringlet/core/dtype.hpp"
#include "ringlet/sync/cache_line.hpp"
#include "ringlet/sync/chunk_word.hpp"
#include "ringlet/sync/counters.hpp"
#include "ringlet/sync/process/owner_word.hpp"

namespace ringlet::tables {

inline constexpr std::size_t kMostDims = 64;  // as in NumPy

// Describes the table; written by its creator before any other process can map it.
struct Header {
  std::uint64_t magic;
  std::uint64_t pid_namespace;
  std::uint64_t dtype;
  std::uint64_t num_dims;
  std::array<std::int64_t, kMostDims> dims;
  sync::Tally updates;       // number of complete updates
  sync::Tally incarnations;  // number of incarnations that have prepared to write
};

// The place of one writer. Only the owner writes its members.
struct alignas(sync::kCacheLine) Seat {
  sync::OwnerWord owner;
  std::uint64_t chunk;       // the chunk that the owner holds or is about to hold
  std::uint64_t first_word;  // the first word of the chunk in the journal
  std::uint64_t num_words;
  std::uint64_t has_journal;  // nonzero if the journal has memory
};
static_assert(sizeof(Seat) == sync::kCacheLine);

// A table is an array whose first dimension counts rows; one without dimensions is one row. Rows are cut into chunks:
// a chunk is one row, or as many short ones as fit into kChunkBytes. Chunks begin on cache lines and end on words.
//
//     header | seats | words, one for each chunk | chunks | journals, one for each seat, as large as a chunk
struct Layout {
  static constexpr std::size_t kChunkBytes = 4096;
  static constexpr std::size_t kNumSeats =
      64;  // maximum number of threads of all processes that write at the same time

  // Throws ArgumentError if the shape is invalid or too large.
  Layout(std::span<const std::int64_t> shape, core::DType dtype);

  std::size_t array_bytes() const noexcept { return num_rows * row_bytes; }
  std::string describe() const { return core::describe(dtype, shape); }

  core::DType dtype;
  std::vector<std::int64_t> shape;
  std::size_t num_rows = 1;
  std::size_t row_bytes = 0;
  std::size_t chunk_rows = 1;
  std::size_t chunk_bytes = 0;  // distance from one chunk to the next
  std::size_t num_chunks = 0;
  std::size_t words_begin = 0;
  std::size_t chunks_begin = 0;
  std::size_t journals_begin = 0;
  std::size_t journal_bytes = 0;
  std::size_t total_bytes = 0;
};

}  // namespace ringlet::tables

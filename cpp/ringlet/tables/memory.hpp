// The memory of a table, shared by the processes that map it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ringlet/memory/segment.hpp"
#include "ringlet/sync/chunk_word.hpp"
#include "ringlet/sync/counters.hpp"
#include "ringlet/sync/process/incarnation.hpp"
#include "ringlet/sync/process/process.hpp"
#include "ringlet/tables/layout.hpp"

namespace ringlet::tables {

class Memory {
 public:
  // Returns the descriptor of a table of zeros. Throws ArgumentError and SharedMemoryError.
  static sync::Descriptor create(const Layout& layout);
  // Maps a table. Throws ArgumentError if it is not a table, or if its processes are in another PID namespace.
  explicit Memory(sync::Descriptor table);

  const Layout& layout() const noexcept { return layout_; }
  int fd() const noexcept { return segment_.fd(); }
  sync::Tally& updates() const noexcept { return header().updates; }
  Seat& seat(std::size_t index) const noexcept { return seats_[index]; }
  sync::ChunkWord& word(std::size_t chunk) const noexcept { return words_[chunk]; }
  std::byte* chunk(std::size_t index) const noexcept { return chunks_ + index * layout_.chunk_bytes; }
  // The journal of a seat, with the layout of the chunk that it describes.
  std::byte* journal(std::size_t seat) const noexcept { return journals_ + seat * layout_.journal_bytes; }
  // The code with which this process owns seats.
  std::uint64_t own_code() { return incarnations_.own_code(fd(), header().incarnations); }
  // For the owner of the seat. Throws core::SharedMemoryError.
  void reserve_journal(std::size_t seat);

 private:
  explicit Memory(memory::Segment segment);
  Header& header() const noexcept { return *reinterpret_cast<Header*>(segment_.data()); }

  memory::Segment segment_;
  Layout layout_;
  Seat* seats_;
  sync::ChunkWord* words_;
  std::byte* chunks_;
  std::byte* journals_;
  sync::OwnIncarnations incarnations_;
};

}  // namespace ringlet::tables

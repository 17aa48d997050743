// An array in shared memory that processes read and update without coordination by messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "ringlet/sync/process/process.hpp"
#include "ringlet/tables/changes.hpp"
#include "ringlet/tables/memory.hpp"
#include "ringlet/tables/writer.hpp"

namespace ringlet::tables {

// Changes of a chunk (see Layout) are atomic: neither a reader nor a process after the death of a writer sees a partial
// change. Writers of one chunk take turns; readers do so only if writers change the chunk continuously. Buffers have
// the sizes of their rows. Any thread may make a call, even after a fork. If a call throws DeadlineError or an
// exception of `poll`, the chunks that it has processed are changed, the others unchanged.
class Table {
 public:
  Table(sync::Descriptor table, sync::Clock::duration timeout) : memory_(std::move(table)), timeout_(timeout) {}

  const Layout& layout() const noexcept { return memory_.layout(); }
  int fd() const noexcept { return memory_.fd(); }  // owned by the table
  // The number of complete updates and scatters. Their changes may be visible before they are counted.
  std::uint64_t version() const noexcept { return memory_.updates().count(); }

  // Read or update consecutive rows, the first of which is row `begin`. A read copies each byte once unless another
  // process writes to the rows at the same time.
  void read(std::size_t begin, std::span<std::byte> rows, sync::Poll* poll);
  void update(Change kind, std::size_t begin, std::span<const std::byte> values, sync::Poll* poll);

  // Read or update one row for each index; rows with equal indices are processed in order.
  void gather(std::span<const std::int64_t> indices, std::span<std::byte> rows, sync::Poll* poll);
  void scatter(Change kind, std::span<const std::int64_t> indices, std::span<const std::byte> values, sync::Poll* poll);

 private:
  // Part of one chunk: its bytes, and their position in the rows of a call.
  struct Piece {
    std::size_t chunk;
    std::size_t begin;
    std::size_t offset;
    std::size_t size;
  };

  template <class F>
  void for_each_piece(std::size_t begin, std::size_t bytes, F&& f) const;
  Piece piece_of(std::size_t row, std::size_t number) const noexcept;
  void prefetch(std::span<const std::int64_t> indices, std::size_t number) const noexcept;
  void check_indices(std::span<const std::int64_t> indices) const;
  void copy(const Piece& piece, std::byte* to, const Patience& patience);
  void change(Writer& writer, Change kind, const Piece& piece, const std::byte* values) const;

  Memory memory_;
  sync::Clock::duration timeout_;
};

}  // namespace ringlet::tables

// An array in shared memory that processes read and update without asking each other.
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

// Every chunk (see Layout) is at every time as some writer left it, and is never seen between: not by a reader, and not
// after a writer was killed. Writers of one chunk take turns; readers do not, unless writers keep passing them. Sizes
// of buffers are those of their rows; a call may be made by any thread, and after a fork. Where a call throws a
// DeadlineError, or what `poll` throws, the chunks that it has come to are as it leaves them, the others as they were.
class Table {
 public:
  Table(sync::Descriptor table, sync::Clock::duration timeout) : memory_(std::move(table)), timeout_(timeout) {}

  const Layout& layout() const noexcept { return memory_.layout(); }
  int fd() const noexcept { return memory_.fd(); }  // stays the table's
  // How many updates and scatters are complete. Their chunks may be there before they are counted.
  std::uint64_t version() const noexcept { return memory_.updates().count(); }

  // Rows from `begin` on. Each byte is copied once if there is no concurrent write.
  void read(std::size_t begin, std::span<std::byte> rows, sync::Poll* poll);
  void update(Change kind, std::size_t begin, std::span<const std::byte> values, sync::Poll* poll);

  // One row for each index; with equal indices, one after the other.
  void gather(std::span<const std::int64_t> indices, std::span<std::byte> rows, sync::Poll* poll);
  void scatter(Change kind, std::span<const std::int64_t> indices, std::span<const std::byte> values, sync::Poll* poll);

 private:
  // Part of one chunk: bytes, and where these are in the rows of a call.
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

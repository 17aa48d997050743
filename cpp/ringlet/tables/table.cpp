#include "ringlet/tables/table.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "ringlet/core/error.hpp"
#include "ringlet/sync/shared_copy.hpp"

namespace ringlet::tables {

// --- pieces ----------------------------------------------------------------------------------------------------------

template <class F>
void Table::for_each_piece(std::size_t begin, std::size_t bytes, F&& f) const {
  const std::size_t chunk_size = layout().chunk_rows * layout().row_bytes;
  std::size_t at = begin * layout().row_bytes;
  for (std::size_t offset = 0; offset < bytes;) {
    const std::size_t inside = at % chunk_size;
    const std::size_t size = std::min(chunk_size - inside, bytes - offset);
    f(Piece{.chunk = at / chunk_size, .begin = inside, .offset = offset, .size = size});
    at += size;
    offset += size;
  }
}

Table::Piece Table::piece_of(std::size_t row, std::size_t number) const noexcept {
  const std::size_t row_bytes = layout().row_bytes;
  return {.chunk = row / layout().chunk_rows,
          .begin = row % layout().chunk_rows * row_bytes,
          .offset = number * row_bytes,
          .size = row_bytes};
}

// Without prefetching, rows in random order are loaded from memory one after the other. always_inline: g++ would
// consider a function with only prefetches as empty and omit its calls.
[[gnu::always_inline]] inline void Table::prefetch(std::span<const std::int64_t> indices,
                                                   std::size_t number) const noexcept {
  constexpr std::size_t kAhead = 8;
  constexpr std::size_t kMostBytes = 512;
  if (number + kAhead >= indices.size()) return;
  const Piece piece = piece_of(static_cast<std::size_t>(indices[number + kAhead]), 0);
  __builtin_prefetch(&memory_.word(piece.chunk));
  const std::byte* const row = memory_.chunk(piece.chunk) + piece.begin;
  for (std::size_t at = 0; at < std::min(piece.size, kMostBytes); at += sync::kCacheLine) __builtin_prefetch(row + at);
}

void Table::check_indices(std::span<const std::int64_t> indices) const {
  const auto num_rows = static_cast<std::int64_t>(layout().num_rows);
  for (std::size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] >= 0 && indices[i] < num_rows) continue;
    throw core::ArgumentError("indices[" + std::to_string(i) + "] = " + std::to_string(indices[i]) + " is not in [0, " +
                              std::to_string(num_rows) + "): a table of " + layout().describe() + " has " +
                              std::to_string(num_rows) + " rows, counted from 0.");
  }
}

// --- reading ---------------------------------------------------------------------------------------------------------

void Table::copy(const Piece& piece, std::byte* to, const Patience& patience) {
  constexpr int kMostAttempts = 100;
  const sync::ChunkWord& word = memory_.word(piece.chunk);
  const std::span<std::byte> bytes(to + piece.offset, piece.size);
  Waiting waiting(memory_, patience);
  for (int attempt = 0; attempt < kMostAttempts;) {
    const sync::ChunkWord::State seen = word.look();
    if (seen.is_changing()) {
      waiting.for_seat(seen.holder());
      continue;
    }
    sync::load_shared(memory_.chunk(piece.chunk) + piece.begin, bytes);
    if (word.is_unchanged_since(seen)) return;
    ++attempt;
  }
  Writer(memory_, patience).copy(piece.chunk, piece.begin, bytes);
}

void Table::read(std::size_t begin, std::span<std::byte> rows, sync::Poll* poll) {
  const Patience patience{.timeout = timeout_, .poll = poll};
  for_each_piece(begin, rows.size(), [&](const Piece& piece) { copy(piece, rows.data(), patience); });
}

void Table::gather(std::span<const std::int64_t> indices, std::span<std::byte> rows, sync::Poll* poll) {
  check_indices(indices);
  if (layout().row_bytes == 0) return;
  const Patience patience{.timeout = timeout_, .poll = poll};
  for (std::size_t i = 0; i < indices.size(); ++i) {
    prefetch(indices, i);
    copy(piece_of(static_cast<std::size_t>(indices[i]), i), rows.data(), patience);
  }
}

// --- writing ---------------------------------------------------------------------------------------------------------

void Table::change(Writer& writer, Change kind, const Piece& piece, const std::byte* values) const {
  const core::DType dtype = layout().dtype;
  writer.change(piece.chunk, piece.begin, piece.size, [&](const std::byte* old, std::byte* result) {
    apply(kind, dtype, old, values + piece.offset, piece.size / core::size_of(dtype), result);
  });
}

void Table::update(Change kind, std::size_t begin, std::span<const std::byte> values, sync::Poll* poll) {
  check_supported(kind, layout().dtype);
  const Patience patience{.timeout = timeout_, .poll = poll};
  Writer writer(memory_, patience);
  for_each_piece(begin, values.size(), [&](const Piece& piece) { change(writer, kind, piece, values.data()); });
  memory_.updates().add();
}

void Table::scatter(Change kind, std::span<const std::int64_t> indices, std::span<const std::byte> values,
                    sync::Poll* poll) {
  check_supported(kind, layout().dtype);
  check_indices(indices);
  const Patience patience{.timeout = timeout_, .poll = poll};
  Writer writer(memory_, patience);
  for (std::size_t i = 0; layout().row_bytes > 0 && i < indices.size(); ++i) {
    prefetch(indices, i);
    change(writer, kind, piece_of(static_cast<std::size_t>(indices[i]), i), values.data());
  }
  memory_.updates().add();
}

}  // namespace ringlet::tables

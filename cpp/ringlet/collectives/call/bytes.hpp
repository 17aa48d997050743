// Copies of bytes between buffers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "ringlet/collectives/algorithms/chunks.hpp"
#include "ringlet/collectives/call/round.hpp"
#include "ringlet/kernels/kernels.hpp"

namespace ringlet::collectives {

inline const std::byte* at(const void* data, std::size_t bytes) { return static_cast<const std::byte*>(data) + bytes; }
inline std::byte* at(void* data, std::size_t bytes) { return static_cast<std::byte*>(data) + bytes; }

// The kind of store for results of this total size.
inline kernels::Store store_for(std::size_t result_bytes) {
  return result_bytes > kernels::streaming_threshold_bytes() ? kernels::Store::kStream : kernels::Store::kPlain;
}

inline void copy(const void* from, std::size_t bytes, void* to, kernels::Store store) {
  if (from != to && bytes > 0) kernels::active().copy(from, bytes, to, store);
}

// Bytes of one row, which is one index of dimension 0.
std::size_t row_bytes(const Buffer& part);

// Refuses the call if the length of a rank's output differs from that of its result. All ranks check all outputs, so
// that either all ranks refuse or none does.
void check_output_length(Round& round, int rank, std::int64_t given, std::int64_t wanted, std::string_view what);

// The end position of a search in pieces laid end to end; the next search starts there.
struct Cursor {
  std::size_t piece = 0;
  std::size_t begin = 0;
};

// Calls f(piece, begin in the piece, size) for the pieces that a range touches. Needs no storage, and no search if
// ranges ascend.
template <class SizeOf, class F>
void visit(Range range, Cursor& cursor, SizeOf&& size_of, F&& f) {
  if (range.begin < cursor.begin) cursor = {};
  for (;; ++cursor.piece) {
    const std::size_t end = cursor.begin + size_of(cursor.piece);
    const std::size_t size = std::min(end, range.end) - std::min(end, range.begin);
    if (size > 0) f(cursor.piece, range.begin - cursor.begin, size);
    range.begin += size;
    if (range.begin == range.end) return;
    cursor.begin = end;
  }
}

// The positions of the ranks' pieces laid end to end.
class Extents {
 public:
  Extents() = default;
  template <class SizeOf>
  Extents(int num_pieces, SizeOf&& size_of) : ends_(static_cast<std::size_t>(num_pieces)) {
    std::size_t end = 0;
    for (std::size_t piece = 0; piece < ends_.size(); ++piece) ends_[piece] = end += size_of(piece);
  }

  std::size_t total() const { return ends_.empty() ? 0 : ends_.back(); }
  std::size_t begin(std::size_t piece) const { return piece == 0 ? 0 : ends_[piece - 1]; }
  std::size_t size(std::size_t piece) const { return ends_[piece] - begin(piece); }

  // Calls f(piece, begin in the piece, size) for the pieces that a range touches.
  template <class F>
  void visit(Range range, F&& f) const {
    auto piece = static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), range.begin) - ends_.begin());
    while (range.begin < range.end) {
      const std::size_t size = std::min(range.end, ends_[piece]) - range.begin;
      if (size > 0) f(piece, range.begin - begin(piece), size);
      range.begin += size;
      ++piece;
    }
  }

 private:
  std::vector<std::size_t> ends_;
};

}  // namespace ringlet::collectives

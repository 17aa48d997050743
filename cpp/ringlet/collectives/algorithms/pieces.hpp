// All-reduces of large private arrays between processes, piece by piece.
//
// What cannot be reached across processes is copied through shared memory. A whole array would go to the main memory
// and back; a piece stays in the cache. With many ranks that beats reaching across, too. Elements keep their order of
// summation, so the bits are the same.
#pragma once

#include <cstddef>
#include <span>

#include "ringlet/collectives/call/round.hpp"

namespace ringlet::collectives {

// Whether ranks tell each other what memory they have, in a round of arrivals before the work: the same on all ranks.
bool tells_memory(const Group& group, std::span<const Part> parts, Algorithm algorithm);

// That round, of the whole call. True if some rank has private memory.
bool learn_memory(Round& round);

// Calls f(piece) for each piece of each part.
template <class F>
void for_each_piece(std::span<const Part> parts, core::Op op, std::size_t piece_bytes, F&& f) {
  for (const Part& part : parts) {
    const std::size_t element = core::size_of(part.dtype);
    const std::size_t result_element = core::size_of(core::result_dtype(op, part.dtype));
    const std::size_t most = piece_bytes / element;
    for (std::size_t begin = 0; begin < part.count; begin += most) {
      Part piece = part;  // with the shape of the whole, for messages
      piece.input = static_cast<const std::byte*>(part.input) + begin * element;
      piece.output = static_cast<std::byte*>(part.output) + begin * result_element;
      piece.count = part.count - begin < most ? part.count - begin : most;
      f(piece);
    }
  }
}

}  // namespace ringlet::collectives

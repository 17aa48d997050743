// All-reduces of large private arrays between processes, piece by piece.
//
// Data that cannot be read across processes is copied through shared memory. A whole array would go to main memory and
// back, but a piece stays in the cache. With many ranks, this is also faster than reading across. The order of
// summation and therefore the bits are the same.
#pragma once

#include <cstddef>
#include <span>

#include "ringlet/collectives/call/round.hpp"

namespace ringlet::collectives {

// Return whether ranks exchange the kinds of their memory in a round of arrivals before the work: the same on all
// ranks.
bool tells_memory(const Group& group, std::span<const Buffer> buffers, Algorithm algorithm);

// Runs that round for the whole call; true if any rank has private memory.
bool learn_memory(Round& round);

// Calls f(piece) for each piece of each buffer.
template <class F>
void for_each_piece(std::span<const Buffer> buffers, core::Op op, std::size_t piece_bytes, F&& f) {
  for (const Buffer& part : buffers) {
    const std::size_t element = core::size_of(part.dtype);
    const std::size_t result_element = core::size_of(core::result_dtype(op, part.dtype));
    const std::size_t most = piece_bytes / element;
    for (std::size_t begin = 0; begin < part.count; begin += most) {
      Buffer piece = part;  // keeps the shape of the whole, for messages
      piece.input = static_cast<const std::byte*>(part.input) + begin * element;
      piece.output = static_cast<std::byte*>(part.output) + begin * result_element;
      piece.count = part.count - begin < most ? part.count - begin : most;
      f(piece);
    }
  }
}

}  // namespace ringlet::collectives

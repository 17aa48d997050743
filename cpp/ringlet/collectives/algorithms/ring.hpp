// RING: the standard ring algorithm, with traffic between neighbours only.
//
// A part is cut into segments of P pieces, piece c starting at element c*n/P of a segment of n. In step s of the
// reduce-scatter, rank r adds its own piece (r - s) mod P to the left neighbour's partial sum of the piece, so after P
// - 1 steps rank r holds the sum of piece (r + 1) mod P. In P - 1 more steps the sums travel round the ring once
// (all-gather). With one shared result the partial sums stay in place and the second half is not needed.
#pragma once

#include <cstddef>

#include "ringlet/collectives/call/round.hpp"

namespace ringlet::collectives {

// A piece of a full segment; P of them are in flight, so they stay in cache.
inline constexpr std::size_t kRingPieceBytes = std::size_t{128} << 10;

// 2(P-1) steps, 2S(P-1)/P bytes a rank. Element order: piece c is summed from rank c on round the ring, left to right.
Results ring_all_reduce(Round& round);

}  // namespace ringlet::collectives

// DIRECT: every chunk is read from the inputs of all ranks and written once, to the shared result, to every
// output, or to the root's.
#pragma once

#include <cstddef>

#include "ringlet/collectives/call/round.hpp"

namespace ringlet::collectives {

// RING cuts an array into segments of P pieces of this size, and the end of the array into P pieces. Piece c is summed
// from rank c on, round the ring.
inline constexpr std::size_t kRingPieceBytes = std::size_t{128} << 10;

// All-reduce in the tree order, or that of RING. P*S bytes read, S (shared) or P*S bytes written.
Results direct_all_reduce(Round& round);
// All-reduce to outputs, after arriving; mine().chunks are planned.
void direct_all_reduce_of_arrived(Round& round);

// Reduce to the root's output. P*S bytes read, S written.
void direct_reduce(Round& round);

// S bytes read, S (shared) or (P-1)*S bytes written.
Results direct_broadcast(Round& round);

}  // namespace ringlet::collectives

// Reductions whose results differ between ranks; each rank's result is in its part.output.
#pragma once

#include "ringlet/collectives/call/round.hpp"

namespace ringlet::collectives {

// Rank r gets elements r*n/P .. (r+1)*n/P - 1, combined in the tree order. An output may be that place of the rank's
// own input. P*S bytes read, S written.
void reduce_scatter(Round& round);

// The same for private arrays between processes, in pieces. A first round publishes the kinds of memory of all ranks;
// returns whether any rank has private memory. Then there is a round for each piece, of the same elements of every
// share: a rank copies the other ranks' parts to shared memory, and combines its own part. The bits are the same.
bool may_go_in_pieces(const Group& group, const Buffer& part);
bool learn_private_inputs(Round& round);
void reduce_scatter_piece(Round& round, std::size_t begin, std::size_t count);

// Rank r gets the combination of ranks 0 .. r-1 from left to right, rank 0 the identity. An output may be its own
// input. (P-1)*S bytes read, P*S written.
void exclusive_scan(Round& round);

}  // namespace ringlet::collectives

// Reductions whose results differ between ranks; each rank's result is in its part.output.
#pragma once

#include "ringlet/collectives/call/round.hpp"

namespace ringlet::collectives {

// Rank r gets elements r*n/P .. (r+1)*n/P - 1, combined in the tree order. An output may be these elements of the
// rank's own input. P*S bytes read, S written.
void reduce_scatter(Round& round);

// Reduce-scatter of private arrays between processes, in pieces, with the same bits. The first function returns whether
// pieces are possible. If so, a round of the second function publishes the kinds of memory of all ranks, and returns
// whether any rank has private memory. If so, each piece, the same elements of every share, has a round of the third
// function: a rank copies the other ranks' parts to shared memory, and combines its own part.
bool may_go_in_pieces(const Group& group, const Buffer& part);
bool learn_private_inputs(Round& round);
void reduce_scatter_piece(Round& round, std::size_t begin, std::size_t count);

// Rank r gets the combination of ranks 0 .. r-1 from left to right; rank 0 gets the identity. An output may be the
// rank's own input. (P-1)*S bytes read, P*S written.
void exclusive_scan(Round& round);

}  // namespace ringlet::collectives

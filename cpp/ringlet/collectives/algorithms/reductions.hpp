// Reductions whose results differ between ranks; each rank's result is in its part.output.
#pragma once

#include "ringlet/collectives/call/round.hpp"

namespace ringlet::collectives {

// Rank r gets elements r*n/P .. (r+1)*n/P - 1, combined in the tree order. An output may be these elements of the
// rank's own input. P*S bytes read, S written.
void reduce_scatter(Round& round);

// Rank r gets the combination of ranks 0 .. r-1 from left to right; rank 0 gets the identity. An output may be the
// rank's own input. (P-1)*S bytes read, P*S written.
void exclusive_scan(Round& round);

}  // namespace ringlet::collectives

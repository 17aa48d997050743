// Whether the buffers of a call get in each other's way.
#pragma once

#include "ringlet/collectives/round.hpp"

namespace ringlet::collectives {

// An output may be its own input, and must share no byte with any other buffer of any rank: it would be written while
// that one is still read. All ranks see the same buffers, so all of them refuse, or none.
void check_overlap(Round& round);

}  // namespace ringlet::collectives

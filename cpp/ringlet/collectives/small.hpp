// SMALL: the payload travels inside the slot. One store, P loads; every rank computes the result for itself.
#pragma once

#include "ringlet/collectives/round.hpp"

namespace ringlet::collectives {

bool fits_slot(const Call& call);

Results small_all_reduce(Round& round);

}  // namespace ringlet::collectives

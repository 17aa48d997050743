// SMALL: the payload travels inside the slot. One store, P loads; every rank computes its own result, and no rank waits
// for another after all have arrived.
#pragma once

#include "ringlet/collectives/call/round.hpp"

namespace ringlet::collectives {

bool fits_slot(const Call& call);

// Copies this rank's arrays into its slot, before it arrives.
void send_payload(Round& round);

Results small_all_reduce(Round& round);
// The result is in part.output of the root.
void small_reduce(Round& round);
// The results are in part.output of each rank.
void small_reduce_scatter(Round& round);

}  // namespace ringlet::collectives

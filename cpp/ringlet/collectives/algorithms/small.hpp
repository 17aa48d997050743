// SMALL: the payload travels inside the slot. One store, P loads; every rank computes its result for itself, and no
// rank waits for another once all have arrived.
#pragma once

#include "ringlet/collectives/call/round.hpp"

namespace ringlet::collectives {

bool fits_slot(const Call& call);

// Copies this rank's arrays into its slot, before it arrives.
void send_payload(Round& round);

Results small_all_reduce(Round& round);
// To part.output of the root.
void small_reduce(Round& round);
// To part.output of each rank, from what all have sent.
void small_reduce_scatter(Round& round);

}  // namespace ringlet::collectives

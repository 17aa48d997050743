// DIRECT: every chunk is read from the inputs of all ranks and written once, to the shared result, to every
// output, or to the root's.
#pragma once

#include "ringlet/collectives/call/round.hpp"

namespace ringlet::collectives {

// In the tree order. P*S bytes read, S (shared) or P*S bytes written.
Results direct_all_reduce(Round& round);
// The same to outputs, after arriving; mine().chunks are planned.
void direct_all_reduce_of_arrived(Round& round);

// To the root's output. P*S bytes read, S written.
void direct_reduce(Round& round);

// S bytes read, S (shared) or (P-1)*S bytes written.
Results direct_broadcast(Round& round);

}  // namespace ringlet::collectives

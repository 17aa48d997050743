// All-reduces of private arrays between few processes: each rank combines one share.
//
// A rank copies the other ranks' shares of its array to shared memory, combines its own share, writes it to its output
// and to shared memory, and copies the other shares from there. For an array of N bytes, each of P ranks copies 2 N (P
// - 1) / P bytes instead of 2 N. *Across*, each rank reads the inputs of the others in place, combines its share to its
// output, and reads the other shares from the others' outputs; no rank leaves before all have done so. The bits are
// equal to those of DIRECT.
#pragma once

#include "ringlet/collectives/call/round.hpp"

namespace ringlet::collectives {

// Whether each rank of a group has its own process.
bool have_own_processes(const Group& group);
// have_own_processes(), and the ranks are few enough.
bool exchanges(const Group& group);

// Whether this call, an all_reduce by DIRECT, is exchanged as a whole; the same on all ranks.
bool is_to_be_exchanged(const Group& group, const Call& call);
// Whether such an exchange reads across processes.
bool is_to_be_read_across(const Group& group, const Call& call);

// Reduces buffer 0 to its output. Runs DIRECT if all memory is shared.
void exchange_all_reduce(Round& round, bool across);

}  // namespace ringlet::collectives

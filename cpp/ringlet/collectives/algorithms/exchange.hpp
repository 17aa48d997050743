// All-reduces of private arrays between few processes: each rank combines a share of its own.
//
// A rank copies to shared memory what the others combine, combines its share from that of all and its own array, writes
// it to its output and to shared memory, and takes the other shares from there: of an array of N bytes each of P ranks
// copies 2 N (P - 1) / P, where copies of whole arrays would be 2 N. Or *across*: each rank reads the inputs of the
// others where they are, combines its share to its output, and reads the other shares from their outputs, which no rank
// leaves before all have done so. Bits are those of DIRECT.
#pragma once

#include "ringlet/collectives/call/round.hpp"

namespace ringlet::collectives {

// Whether the ranks of a group are few enough, and each in a process of its own.
bool exchanges(const Group& group);

// Whether this call, which is all_reduce by DIRECT, is done that way as a whole: the same on all ranks.
bool is_to_be_exchanged(const Group& group, const Call& call);
// Whether it then goes across.
bool is_to_be_read_across(const Group& group, const Call& call);

// Reduces buffer 0 to its output. Runs DIRECT if all memory turns out to be shared.
void exchange_all_reduce(Round& round, bool across);

}  // namespace ringlet::collectives

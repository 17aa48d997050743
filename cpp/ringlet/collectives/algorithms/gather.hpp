// The arrays of all ranks laid end to end along one axis. S is the size of a rank's argument.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ringlet/collectives/call/round.hpp"

namespace ringlet::collectives {

// Concatenates the arrays of all ranks along call.axis: P*S bytes read, and written once (shared result or the root's)
// or P times. An output may hold its rank's input in place. False if the sizes along the axis differ: then nothing was
// done, and gather_ragged makes another call with the lengths of all ranks.
bool gather_equal(Round& round, Results& results);
Results gather_ragged(Round& round, std::span<const std::int64_t> lengths);

// Lengths of all ranks along the axis, as published in gather_equal.
std::vector<std::int64_t> lengths_of(Round& round);

}  // namespace ringlet::collectives

// Collectives that move bytes and compute nothing. Ranks share the copying, chunk by chunk, independent of which rank
// owns the bytes. S is what a rank passes; small payloads travel inside the slots.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ringlet/collectives/call/round.hpp"

namespace ringlet::collectives {

// The root's array cut along dimension 0 into call.numbers of the root rows for each rank. S bytes read and written.
Results scatter(Round& round);

// Block d of each rank's array goes to rank d, which lays them end to end in rank order, in part.output. P*S bytes read
// and written. `rows` has what each rank sends to each, [source * P + target]; empty: equal blocks.
void all_to_all(Round& round, std::span<const std::int64_t> rows);

// What all ranks send to all, as all_to_all takes it, from call.numbers of each.
std::vector<std::int64_t> exchange_rows(Round& round);

// Rank t gets the array of the source whose target it is, or zeros, in part.output.
void permute(Round& round);

}  // namespace ringlet::collectives

// Collectives that move bytes and compute nothing. Ranks share the copying, chunk by chunk, independent of which rank
// owns the bytes. S is the size of a rank's argument; small payloads travel inside the slots.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ringlet/collectives/call/round.hpp"

namespace ringlet::collectives {

// The root's array cut along dimension 0 into call.numbers of the root rows for each rank. S bytes read and written.
Results scatter(Round& round);

// Block d of each rank's array goes to rank d, which concatenates the blocks in rank order in part.output. P*S bytes
// read and written. `rows` has the numbers of rows by [source * P + target]; if empty, blocks are equal.
void all_to_all(Round& round, std::span<const std::int64_t> rows);

// The row numbers that all_to_all takes, from call.numbers of each rank.
std::vector<std::int64_t> exchange_rows(Round& round);

// Rank t gets in part.output the array of the source that has t as target, or zeros.
void permute(Round& round);

}  // namespace ringlet::collectives

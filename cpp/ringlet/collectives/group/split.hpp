// Subgroups made by split.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ringlet/collectives/call/round.hpp"

namespace ringlet::collectives {

// The ranks that gave one color, in the order of (key, rank).
using Ranks = std::vector<int>;

// The first half of a split: exchanges color and key and returns the ranks with this color. Empty without a color.
Ranks find_part(Round& round, std::optional<int> color, std::int64_t key);

// The second half: the first rank of each part has made its group, null elsewhere, and all of its ranks get it.
std::shared_ptr<Group> share_part(Round& round, const Ranks& part, std::shared_ptr<Group> made);

// Between processes, the first rank of each part has made its control block, null elsewhere; then all know its place,
// in the slot of that rank.
void show_part(Round& round, Place control);

}  // namespace ringlet::collectives

// The rounds of a split.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ringlet/collectives/call/round.hpp"

namespace ringlet::collectives {

// The ranks with one color, in the order of (key, rank).
using Ranks = std::vector<int>;

// The first half of a split: exchanges color, key, label; returns the ranks with this color. Empty without a color.
Ranks find_subgroup_ranks(Round& round, std::optional<int> color, std::int64_t key, std::int64_t label);

// The second half: the first rank of each subgroup passes the group that it made, other ranks pass null; each rank gets
// the group of its subgroup.
std::shared_ptr<Group> share_subgroup(Round& round, const Ranks& subgroup, std::shared_ptr<Group> made);

// Between processes, the first rank of each subgroup passes the name of its control block, all others a null name; then
// all ranks find the name in the slot of that rank.
void announce_subgroup(Round& round, BufferName control);

}  // namespace ringlet::collectives

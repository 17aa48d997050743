// Construction of subgroups.
#pragma once

#include <memory>
#include <vector>

#include "ringlet/collectives/group/group.hpp"

namespace ringlet::collectives {

// Arguments of a subgroup between processes.
struct Group::SubgroupOf {
  Group& parent;
  const std::vector<int>& ranks;  // ranks in the parent
  memory::Block memory;
};

}  // namespace ringlet::collectives

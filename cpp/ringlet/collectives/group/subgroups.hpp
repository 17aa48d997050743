// How a group comes to have parts.
#pragma once

#include <memory>
#include <vector>

#include "ringlet/collectives/group/group.hpp"

namespace ringlet::collectives {

// What a part between processes is made of.
struct Group::PartOf {
  Group& parent;
  const std::vector<int>& ranks;  // of the parent
  memory::Block memory;
};

}  // namespace ringlet::collectives

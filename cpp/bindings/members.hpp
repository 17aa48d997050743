// Groups and members as Python holds them.
#pragma once

#include <memory>
#include <utility>

#include "ringlet/collectives/group.hpp"
#include "ringlet/collectives/member.hpp"

namespace ringlet::bindings {

// A member that keeps its group alive.
struct HeldMember : collectives::Member {
  HeldMember(std::shared_ptr<collectives::Group> held, int rank)
      : Member(held->member(rank)), keeper(std::move(held)) {}

  // Whether several ranks share this interpreter, and each has a core to wait for it on.
  bool takes_turns() const { return group().num_ranks_here() > 1 && group().num_ranks() <= sync::usable_cores(); }

  std::shared_ptr<collectives::Group> keeper;
};

core::Op op_of(int number);
collectives::Algorithm algorithm_of(int number);

}  // namespace ringlet::bindings

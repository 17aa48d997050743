#include "ringlet/collectives/group/subgroups.hpp"

#include <algorithm>
#include <utility>

#include "ringlet/collectives/group/control.hpp"
#include "ringlet/collectives/group/member.hpp"
#include "ringlet/collectives/group/rank_state.hpp"
#include "ringlet/collectives/transport/buffer_name.hpp"
#include "ringlet/collectives/transport/world.hpp"
#include "ringlet/sync/process/fork.hpp"

namespace ringlet::collectives {

Group::Group(SubgroupOf subgroup)
    : options_(subgroup.parent.options_),
      world_(subgroup.parent.world_),
      fork_generation_(sync::fork_generation()),
      memory_(std::move(subgroup.memory)),
      states_(subgroup.ranks.size()) {
  for (const int rank : subgroup.ranks) process_of_.push_back(subgroup.parent.process_of(rank));
  control_ = std::make_unique<ControlBlock>(
      ControlBlock::find(memory_->data(), static_cast<int>(subgroup.ranks.size()), world_->num_processes()));
  make_states();
  patience_ = subgroup.parent.patience_;  // other subgroups compete for the cores
  parent_ = &subgroup.parent;
  world_->add(*this);
  world_->look();  // the parent may have failed before this was added
}

std::shared_ptr<Group> Group::make_subgroup(const std::vector<int>& ranks) {
  auto subgroup = std::make_shared<Group>(static_cast<int>(ranks.size()), options_);
  subgroup->patience_ = patience_;  // other subgroups compete for the cores
  {
    const std::scoped_lock lock(failure_mutex_);
    if (!has_failed()) {
      std::erase_if(subgroups_, [](const Subgroup& known) { return known.group.expired(); });
      subgroups_.push_back({subgroup, ranks});
      return subgroup;
    }
  }
  raise_failure();  // fail() did not see this subgroup
}

memory::Block Group::make_subgroup_control(const std::vector<int>& ranks, BufferName& place, sync::Poll* poll) {
  const int num_processes = world_->num_processes();
  const auto num_ranks = static_cast<int>(ranks.size());
  memory::Block block = world_->allocate(ControlBlock::bytes_for(num_ranks, num_processes));
  ControlBlock::make(block->data(), num_ranks, num_processes);
  place = world_->buffer_name_of(block->data(), poll);
  return block;
}

std::shared_ptr<Group> Group::find_subgroup(BufferName place) {
  const std::scoped_lock lock(failure_mutex_);
  for (Subgroup& subgroup : subgroups_) {
    if (subgroup.name != place.bits() || subgroup.num_awaited == 0) continue;
    --subgroup.num_awaited;
    return subgroup.num_awaited == 0 ? std::move(subgroup.kept) : subgroup.kept;
  }
  return nullptr;
}

// The ranks of a subgroup in this process share one Group: the first to join creates it, and the list keeps it for the
// others, which may join after the first has released it.
std::shared_ptr<Group> Group::join_subgroup(const std::vector<int>& ranks, BufferName place, sync::Poll* poll) {
  const std::scoped_lock lock_join(join_mutex_);
  if (std::shared_ptr<Group> known = find_subgroup(place)) return known;
  memory::Block control = world_->take_hold(place, poll);
  // The rank that created the block keeps it until every process has reached this line or left the split: see
  // split_between.
  header_of(control->data()).holds_of(world_->index()).add(1);
  auto subgroup = std::make_shared<Group>(SubgroupOf{*this, ranks, std::move(control)});
  const auto here = std::count_if(ranks.begin(), ranks.end(), [&](int rank) { return is_here(rank); });
  const std::scoped_lock lock(failure_mutex_);
  std::erase_if(subgroups_, [](const Subgroup& known) { return known.group.expired(); });
  const auto others = static_cast<int>(here) - 1;
  subgroups_.push_back({subgroup, ranks, place.bits(), others > 0 ? subgroup : nullptr, others});
  return subgroup;
}

void Group::mark_split() {
  const std::scoped_lock lock(failure_mutex_);
  was_split_ = true;
}

template <class F>
void Group::for_each_subgroup_of(int rank, F&& f) {
  std::vector<std::pair<std::shared_ptr<Group>, int>> found;
  {
    const std::scoped_lock lock(failure_mutex_);
    for (const Subgroup& subgroup : subgroups_) {
      const auto place = std::find(subgroup.ranks.begin(), subgroup.ranks.end(), rank);
      if (place != subgroup.ranks.end()) {
        found.emplace_back(subgroup.group.lock(), static_cast<int>(place - subgroup.ranks.begin()));
      }
    }
  }
  for (const auto& [group, rank_in_part] : found) {
    if (group != nullptr) f(group->member(rank_in_part));
  }
}

void Group::depart(int rank, std::string_view reason) {
  if (was_forked()) return;
  RankBoard& board = control_->board(rank);
  board.departure.set(reason);
  board.has_departed.set(true);
  (*control_)->has_departures.set(true);
  (*control_)->event.notify();
  for_each_subgroup_of(rank, [&](Member member) { member.depart(reason); });
}

void Group::rejoin(int rank) {
  if (was_forked()) return;
  control_->board(rank).has_departed.set(false);
  for_each_subgroup_of(rank, [](Member member) { member.rejoin(); });
}

}  // namespace ringlet::collectives

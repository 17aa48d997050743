#include "ringlet/collectives/group/split.hpp"

#include <algorithm>
#include <exception>
#include <string>
#include <utility>

#include "ringlet/collectives/group/member.hpp"

namespace ringlet::collectives {

namespace {

// The contents of Call::numbers of a split.
struct Choice {
  bool has_color;
  std::int64_t color;
  std::int64_t key;

  static Choice of(const Call& call) { return {call.numbers[0] != 0, call.numbers[1], call.numbers[2]}; }
};

}  // namespace

Ranks find_subgroup_ranks(Round& round, std::optional<int> color, std::int64_t key, std::int64_t label) {
  round.call().numbers = {color.has_value() ? 1 : 0, color.value_or(0), key, label};
  round.arrive();
  Ranks subgroup;
  if (!color.has_value()) return subgroup;
  for (int rank = 0; rank < round.num_ranks(); ++rank) {
    const Choice choice = Choice::of(round.call_of(rank));
    if (choice.has_color && choice.color == *color) subgroup.push_back(rank);
  }
  std::stable_sort(subgroup.begin(), subgroup.end(), [&](int one, int other) {
    return Choice::of(round.call_of(one)).key < Choice::of(round.call_of(other)).key;
  });
  return subgroup;
}

void announce_subgroup(Round& round, BufferName control) {
  if (!control.is_null()) round.announce_name(control);
  round.arrive();
}

std::shared_ptr<Group> share_subgroup(Round& round, const Ranks& subgroup, std::shared_ptr<Group> made) {
  round.set_of(round.rank()).subgroup = std::move(made);
  round.arrive();
  return subgroup.empty() ? nullptr : round.set_of(subgroup.front()).subgroup;
}

namespace {

// Calls f(poll), for which other ranks wait in the middle of a split.
template <class F>
auto or_fail_split(Group& group, int rank, sync::Poll* poll, F&& f) {
  sync::Interruption interruption(poll);
  try {
    return f(interruption.poll());
  } catch (const sync::Interrupted&) {
    group.abort("rank " + std::to_string(rank) + " was interrupted while it created a subgroup.");
    interruption.rethrow();
  } catch (const std::exception& error) {
    group.abort("rank " + std::to_string(rank) + " could not create a subgroup: " + error.what() + ".");
    throw;
  }
}

}  // namespace

std::shared_ptr<Group> Member::split_here(const std::vector<int>& subgroup, bool is_first, sync::Poll* poll) {
  std::shared_ptr<Group> made;
  if (is_first)
    made = or_fail_split(*group_, rank_, poll, [&](sync::Poll*) { return group_->make_subgroup(subgroup); });
  Round round(*group_, rank_, poll);
  round.begin(Kind::kSplit).continues = true;
  std::shared_ptr<Group> group = share_subgroup(round, subgroup, std::move(made));
  round.finish();
  return group;
}

std::shared_ptr<Group> Member::split_between(const std::vector<int>& subgroup, bool is_first, sync::Poll* poll) {
  BufferName place;
  memory::Block made;
  if (is_first) {
    made = or_fail_split(*group_, rank_, poll,
                         [&](sync::Poll* kept) { return group_->make_subgroup_control(subgroup, place, kept); });
  }
  group_->mark_split();
  Round round(*group_, rank_, poll);
  round.begin(Kind::kSplit).continues = true;
  round.set_of(rank_).kept.assign(1, std::move(made));  // held until no rank is in this call any more
  announce_subgroup(round, place);
  round.finish();
  if (subgroup.empty()) return nullptr;
  place = BufferName(round.slot_of(subgroup.front()).result);
  return or_fail_split(*group_, rank_, poll,
                       [&](sync::Poll* kept) { return group_->join_subgroup(subgroup, place, kept); });
}

SubgroupMember Member::split(std::optional<int> color, std::int64_t key, sync::Poll* poll, std::int64_t label) {
  Ranks subgroup;
  std::vector<std::int64_t> labels;
  {
    Round round(*group_, rank_, poll);
    round.begin(Kind::kSplit);
    subgroup = find_subgroup_ranks(round, color, key, label);
    for (const int rank : subgroup) labels.push_back(round.call_of(rank).numbers.back());
    round.finish();
  }
  const bool is_first = !subgroup.empty() && subgroup.front() == rank_;
  std::shared_ptr<Group> group =
      group_->world() == nullptr ? split_here(subgroup, is_first, poll) : split_between(subgroup, is_first, poll);
  if (group == nullptr) return {};
  const auto rank = static_cast<int>(std::find(subgroup.begin(), subgroup.end(), rank_) - subgroup.begin());
  return {std::move(group), rank, std::move(subgroup), std::move(labels)};
}

}  // namespace ringlet::collectives

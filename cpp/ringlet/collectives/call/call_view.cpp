#include "ringlet/collectives/call/call_view.hpp"

#include <algorithm>
#include <string>

#include "ringlet/collectives/group/thread_reports.hpp"
#include "ringlet/core/error.hpp"
#include "ringlet/sync/process/fork.hpp"

namespace ringlet::collectives {

CallView::CallView(Group& group, int rank)
    : group_(group), rank_(rank), state_(group.states_[static_cast<std::size_t>(rank)].get()) {
  if (group.fork_generation_ != sync::fork_generation()) {
    throw core::AbortedError(
        "this group was created before the process was forked: its ranks are threads of the parent. Create a new group "
        "in the child, or start processes with the 'spawn' method.");
  }
  if (group.has_failed()) group.raise_failure();
  if (!mine().is_busy.claim()) {
    throw core::ArgumentError("rank " + std::to_string(rank) +
                              " is in a call on another thread. Use each rank from one thread at a time.");
  }
  mine().thread.set(this_thread());
  sequence_ = mine().sequence + 1;  // valid once published: a call that throws before that did not take place
  set_ = sequence_ % kSets;
}

Call& CallView::begin(Kind kind) {
  RankState::Set& set = own_set();
  set.subgroup.reset();
  set.result_names.clear();
  set.kept.clear();
  set.call.reset(kind);
  set.call.series = mine().series;
  return set.call;
}

bool CallView::all_have_arrived() const noexcept {
  return std::ranges::all_of(block().boards(), [this](const RankBoard& board) { return has_arrived(board); });
}

}  // namespace ringlet::collectives

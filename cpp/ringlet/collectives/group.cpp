#include "ringlet/collectives/group.hpp"

#include <algorithm>
#include <utility>

#include "ringlet/collectives/member.hpp"
#include "ringlet/collectives/round.hpp"
#include "ringlet/core/error.hpp"
#include "ringlet/kernels/kernels.hpp"
#include "ringlet/sync/fork.hpp"

namespace ringlet::collectives {

namespace {

constexpr int kMaxRanks = static_cast<int>(kernels::kMaxInputs);

}  // namespace

Group::Group(int num_ranks, const Options& options)
    : options_(options),
      patience_(sync::patience_for(num_ranks, options.from_interpreter)),
      fork_generation_(sync::fork_generation()),
      shared_(std::make_unique<Shared>()) {
  if (num_ranks < 1 || num_ranks > kMaxRanks) {
    throw core::ArgumentError("a group has 1 to " + std::to_string(kMaxRanks) + " ranks, not " +
                              std::to_string(num_ranks) + ".");
  }
  for (int rank = 0; rank < num_ranks; ++rank) {
    ranks_.push_back(std::make_unique<RankState>());
    // A rank must not run out of memory while others use its buffers.
    ranks_.back()->inputs.reserve(static_cast<std::size_t>(num_ranks));
    ranks_.back()->outputs.reserve(static_cast<std::size_t>(num_ranks));
  }
  kernels::active();  // throws now if RINGLET_CPU cannot be had
  departures_.resize(ranks_.size());
}

Group::~Group() = default;

Member Group::member(int rank) {
  if (rank < 0 || rank >= num_ranks()) {
    throw core::ArgumentError("rank " + std::to_string(rank) + " is not in this group: its ranks are 0 to " +
                              std::to_string(num_ranks() - 1) + ".");
  }
  return {*this, rank};
}

bool Group::was_forked() const noexcept { return fork_generation_ != sync::fork_generation(); }

void Group::abort(std::string_view reason) {
  if (!was_forked()) fail(Cause::kAborted, std::string(reason));  // else the lock may be held for ever
}

std::optional<std::string> Group::failure() const {
  if (was_forked()) return "made before the process was forked";
  const std::scoped_lock lock(failure_mutex_);
  return failure_.has_value() ? std::optional(failure_->text) : std::nullopt;
}

void Group::fail(Cause cause, std::string text) {
  std::vector<Part> parts;
  {
    const std::scoped_lock lock(failure_mutex_);
    if (failure_.has_value()) return;
    failure_ = Failure{cause, text};
    shared_->has_failed.set(true);  // before anybody else can find that the group has failed
    parts.swap(parts_);             // no more are made
  }
  shared_->event.notify();
  for (const Part& part : parts) {
    if (const std::shared_ptr<Group> group = part.group.lock()) group->fail(Cause::kAborted, text);
  }
}

void Group::raise_failure() const {
  const Failure failure = [this] {
    const std::scoped_lock lock(failure_mutex_);
    return *failure_;
  }();
  switch (failure.cause) {
    case Cause::kMismatch:
      throw core::MismatchError(failure.text);
    case Cause::kDeadline:
      throw core::DeadlineError(failure.text);
    case Cause::kArgument:
      throw core::ArgumentError(failure.text);
    case Cause::kAborted:
      break;
  }
  throw core::AbortedError(failure.text);
}

std::shared_ptr<Group> Group::make_part(const std::vector<int>& ranks) {
  auto part = std::make_shared<Group>(static_cast<int>(ranks.size()), options_);
  part->patience_ = patience_;  // other parts want the cores, too
  {
    const std::scoped_lock lock(failure_mutex_);
    if (!failure_.has_value()) {
      std::erase_if(parts_, [](const Part& known) { return known.group.expired(); });
      parts_.push_back({part, ranks});
      return part;
    }
  }
  raise_failure();  // fail() did not know this part
}

template <class F>
void Group::for_each_part_of(int rank, F&& f) {
  std::vector<std::pair<std::shared_ptr<Group>, int>> found;
  {
    const std::scoped_lock lock(failure_mutex_);
    for (const Part& part : parts_) {
      const auto place = std::find(part.ranks.begin(), part.ranks.end(), rank);
      if (place != part.ranks.end()) {
        found.emplace_back(part.group.lock(), static_cast<int>(place - part.ranks.begin()));
      }
    }
  }
  for (const auto& [group, rank_in_part] : found) {
    if (group != nullptr) f(group->member(rank_in_part));
  }
}

void Group::depart(int rank, std::string_view reason) {
  if (was_forked()) return;
  {
    const std::scoped_lock lock(failure_mutex_);
    departures_[static_cast<std::size_t>(rank)] = reason;
  }
  ranks_[static_cast<std::size_t>(rank)]->has_departed.set(true);
  shared_->has_departures.set(true);
  shared_->event.notify();
  for_each_part_of(rank, [&](Member member) { member.depart(reason); });
}

void Group::rejoin(int rank) {
  if (was_forked()) return;
  ranks_[static_cast<std::size_t>(rank)]->has_departed.set(false);
  for_each_part_of(rank, [](Member member) { member.rejoin(); });
}

}  // namespace ringlet::collectives

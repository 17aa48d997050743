#include "ringlet/collectives/group.hpp"

#include <algorithm>
#include <utility>

#include "ringlet/collectives/direct.hpp"
#include "ringlet/collectives/overlap.hpp"
#include "ringlet/collectives/ring.hpp"
#include "ringlet/collectives/round.hpp"
#include "ringlet/collectives/small.hpp"
#include "ringlet/core/error.hpp"
#include "ringlet/kernels/kernels.hpp"
#include "ringlet/sync/fork.hpp"

namespace ringlet::collectives {

namespace {

constexpr int kMaxRanks = 4096;

Algorithm resolve(Algorithm wanted, const Call& call) {
  if (wanted != Algorithm::kAuto) return wanted;
  return fits_slot(call) ? Algorithm::kSmall : Algorithm::kDirect;
}

void check_small(const Call& call) {
  if (fits_slot(call)) return;
  throw core::ArgumentError("algorithm SMALL carries at most " + std::to_string(sync::kSlotPayloadBytes) +
                            " bytes a rank, " + call.describe() + " has " + std::to_string(call.total_input_bytes()) +
                            ". Use AUTO or DIRECT.");
}

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
  {
    const std::scoped_lock lock(failure_mutex_);
    if (failure_.has_value()) return;
    failure_ = Failure{cause, std::move(text)};
    shared_->has_failed.set(true);  // before anybody else can find that the group has failed
  }
  shared_->event.notify();
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

std::uint64_t Member::calls() const noexcept { return group_->ranks_[static_cast<std::size_t>(rank_)]->sequence; }

Results Member::all_reduce(std::span<const Part> parts, core::Op op, Algorithm algorithm, sync::Poll* poll) {
  Round round(*group_, rank_, poll);
  Call& call = round.call();
  call.kind = Kind::kAllReduce;
  call.op = op;
  call.root = 0;
  call.has_parts = true;
  call.has_outputs = !parts.empty() && parts.front().output != nullptr;
  call.set_parts(parts);
  call.algorithm = algorithm;
  Results results;
  switch (resolve(algorithm, call)) {
    case Algorithm::kSmall:
      check_small(call);
      results = small_all_reduce(round);
      break;
    case Algorithm::kRing:
      results = ring_all_reduce(round);
      break;
    default:
      results = direct_all_reduce(round);
  }
  round.finish();
  return results;
}

Results Member::broadcast(std::span<const Part> parts, bool has_parts, int root, sync::Poll* poll) {
  group_->member(root);  // throws if there is none
  if (rank_ == root && !has_parts) throw core::ArgumentError("the root of a broadcast must pass the arrays to send.");
  Round round(*group_, rank_, poll);
  Call& call = round.call();
  call.kind = Kind::kBroadcast;
  call.op = core::Op::kSum;
  call.algorithm = Algorithm::kAuto;
  call.root = root;
  call.has_parts = has_parts;
  call.has_outputs = !parts.empty() && parts.front().output != nullptr;
  call.set_parts(parts);
  Results results = direct_broadcast(round);
  round.finish();
  return results;
}

std::span<const Part> Member::described_by(int root) const {
  const std::uint64_t sequence = group_->ranks_[static_cast<std::size_t>(rank_)]->sequence;
  return group_->ranks_[static_cast<std::size_t>(root)]->sets[sequence % kSets].call.parts;
}

void Member::barrier(std::string_view name, sync::Poll* poll) {
  Round round(*group_, rank_, poll);
  Call& call = round.call();
  call.kind = Kind::kBarrier;
  call.op = core::Op::kSum;
  call.algorithm = Algorithm::kAuto;
  call.root = 0;
  call.has_parts = true;
  call.has_outputs = false;
  call.name = name;
  call.set_parts({});
  round.arrive();
  round.finish();
}

void Member::depart(std::string_view reason) {
  if (group_->was_forked()) return;
  {
    const std::scoped_lock lock(group_->failure_mutex_);
    group_->departures_[static_cast<std::size_t>(rank_)] = reason;
  }
  group_->ranks_[static_cast<std::size_t>(rank_)]->has_departed.set(true);
  group_->shared_->has_departures.set(true);
  group_->shared_->event.notify();
}

void Member::rejoin() { group_->ranks_[static_cast<std::size_t>(rank_)]->has_departed.set(false); }

void reduce_buffers(std::span<const void* const> inputs, std::size_t count, core::DType dtype, core::Op op,
                    void* output) {
  if (inputs.size() > static_cast<std::size_t>(kMaxRanks)) {
    throw core::ArgumentError("cannot combine more than " + std::to_string(kMaxRanks) + " arrays in one call.");
  }
  const std::size_t bytes = count * core::size_of(core::result_dtype(op, dtype));
  const bool is_in_place = std::find(inputs.begin(), inputs.end(), output) != inputs.end();
  const bool streams = !is_in_place && bytes > kernels::streaming_threshold_bytes();
  const auto reduce = kernels::active().reduce[static_cast<std::size_t>(op)][static_cast<std::size_t>(dtype)];
  reduce(inputs, count, {&output, 1}, streams ? kernels::Store::kStream : kernels::Store::kPlain);
}

}  // namespace ringlet::collectives

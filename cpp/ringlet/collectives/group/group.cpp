#include "ringlet/collectives/group/group.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "ringlet/collectives/group/control.hpp"
#include "ringlet/collectives/group/member.hpp"
#include "ringlet/collectives/group/message_text.hpp"
#include "ringlet/collectives/group/or_abort.hpp"
#include "ringlet/collectives/group/rank_state.hpp"
#include "ringlet/collectives/group/subgroups.hpp"
#include "ringlet/collectives/group/thread_reports.hpp"
#include "ringlet/collectives/transport/world.hpp"
#include "ringlet/core/error.hpp"
#include "ringlet/kernels/kernels.hpp"
#include "ringlet/sync/process/fork.hpp"

namespace ringlet::collectives {

namespace {

constexpr int kMaxRanks = static_cast<int>(kernels::kMaxInputs);

int checked(int num_ranks, const World* world) {
  if (num_ranks < 1 || num_ranks > kMaxRanks) {
    throw core::ArgumentError("a group has 1 to " + std::to_string(kMaxRanks) + " ranks, not " +
                              std::to_string(num_ranks) + ".");
  }
  if (world != nullptr && world->num_ranks() != num_ranks) {
    throw core::ArgumentError("a group has " + std::to_string(num_ranks) + " ranks, but its processes have " +
                              std::to_string(world->num_ranks()) + ".");
  }
  return num_ranks;
}

// Waiting ranks that share an interpreter must not block each other from it; a rank alone in its process may spin.
sync::Patience patience_of(int num_ranks, int num_ranks_here, bool from_interpreter, const World* world) {
  const int cores = world == nullptr ? sync::usable_cores() : world->cores();
  return sync::patience_for(num_ranks, from_interpreter && (world == nullptr || num_ranks_here > 1), cores);
}

}  // namespace

Group::Group(int num_ranks, const Options& options, std::shared_ptr<World> world, sync::Poll* poll)
    : options_(options),
      world_(std::move(world)),
      fork_generation_(sync::fork_generation()),
      states_(static_cast<std::size_t>(checked(num_ranks, world_.get()))) {
  kernels::active();  // throws now if RINGLET_CPU is not supported
  if (world_ == nullptr) {
    memory_ = std::make_shared<memory::Region>(ControlBlock::bytes_for(num_ranks, 0));
    control_ = std::make_unique<ControlBlock>(ControlBlock::make(memory_->data(), num_ranks, 0));
    make_states();
    return;
  }
  for (int rank = 0; rank < num_ranks; ++rank) process_of_.push_back(world_->process_of(rank));
  sync::Interruption interruption(poll);
  try {
    join_world(interruption.poll());
  } catch (const sync::Interrupted&) {
    world_->leave("was interrupted");
    interruption.rethrow();
  } catch (const core::DeadlineError&) {
    world_->leave("gave up after " + seconds_text(options.timeout));
    throw;
  } catch (const std::exception& error) {
    world_->leave(std::string("failed (") + error.what() + ")");
    throw;
  } catch (...) {
    world_->leave("failed");
    throw;
  }
  make_states();
  world_->add(*this);
}

void Group::join_world(sync::Poll* poll) {
  const int num_processes = world_->num_processes();
  const JoinLimit limit = JoinLimit::after(options_.remaining.value_or(options_.timeout), options_.timeout);
  world_->rendezvous(limit, poll);
  if (world_->index() == 0) {
    memory_ = world_->allocate(ControlBlock::bytes_for(num_ranks(), num_processes));
    control_ = std::make_unique<ControlBlock>(ControlBlock::make(memory_->data(), num_ranks(), num_processes));
    for (int process = 1; process < num_processes; ++process) {
      header_of(memory_->data()).holds_of(process).add(1);
    }
    world_->send_control(world_->buffer_name_of(memory_->data(), poll), poll);
  } else {
    memory_ = world_->take_hold(world_->receive_control(limit, poll), poll);
    control_ = std::make_unique<ControlBlock>(ControlBlock::find(memory_->data(), num_ranks(), num_processes));
  }
}

Group::~Group() {
  if (world_ == nullptr || was_forked()) return;
  world_->remove(*this);
  retire();
}

void Group::make_states() {
  for (int rank = 0; rank < num_ranks(); ++rank) {
    if (world_ != nullptr && process_of_[static_cast<std::size_t>(rank)] != world_->index()) continue;
    auto state = std::make_unique<RankState>();
    // A rank must not run out of memory while others use its buffers.
    const auto ranks = static_cast<std::size_t>(num_ranks());
    state->inputs.reserve(ranks);
    state->outputs.reserve(ranks);
    state->targets.reserve(ranks);
    if (world_ != nullptr) state->remote_calls.resize(ranks);
    states_[static_cast<std::size_t>(rank)] = std::move(state);
    ++num_ranks_here_;
  }
  if (world_ != nullptr && thread_reports() != nullptr) {
    control_->stacks(world_->index()).signal.set(static_cast<std::uint64_t>(thread_reports()->stack_signal()));
  }
  std::vector<bool> has_rank(world_ == nullptr ? 0 : static_cast<std::size_t>(world_->num_processes()));
  for (const int process : process_of_) {
    shares_processes_ = shares_processes_ || has_rank[static_cast<std::size_t>(process)];
    has_rank[static_cast<std::size_t>(process)] = true;
  }
  patience_ = patience_of(num_ranks(), num_ranks_here_, options_.from_interpreter, world_.get());
}

Member Group::member(int rank) {
  if (rank < 0 || rank >= num_ranks()) {
    throw core::ArgumentError("rank " + std::to_string(rank) + " is not in this group: its ranks are 0 to " +
                              std::to_string(num_ranks() - 1) + ".");
  }
  if (!is_here(rank)) {
    const int process = process_of(rank);
    throw core::ArgumentError("rank " + std::to_string(rank) + " belongs to process " +
                              std::to_string(world_->pid_of(process)) + " on " + world_->host_of(process) +
                              ": only that process can make its calls.");
  }
  return {*this, rank};
}

bool Group::was_forked() const noexcept { return fork_generation_ != sync::fork_generation(); }
int Group::process_of(int rank) const noexcept {
  return process_of_.empty() ? 0 : process_of_[static_cast<std::size_t>(rank)];
}
bool Group::has_failed() const noexcept { return (*control_)->failure.is_claimed(); }

// --- Failure ---------------------------------------------------------------------------------------------------------

void Group::abort(std::string_view reason) {
  if (!was_forked()) fail(Cause::kAborted, std::string(reason));  // otherwise the lock may never be released
}

void abort_without_memory(Group& group, int rank) {
  const std::string name = "rank " + std::to_string(rank) + " ran out of ";
  try {
    throw;
  } catch (const core::SharedMemoryError& error) {
    group.abort(name + "shared memory during a call: " + error.what());
    throw;
  } catch (const std::bad_alloc&) {
    group.abort(name + "memory during a call.");
    throw;
  }
}

std::optional<std::string> Group::failure() const {
  if (was_forked()) return "created before the process was forked";
  return has_failed() ? std::optional(text_of(first_failure())) : std::nullopt;
}

bool Group::claim_failure(Failure failure) {
  {
    const std::scoped_lock lock(failure_mutex_);
    if (has_failed()) return false;
    const int author = world_ == nullptr ? 0 : world_->index();
    if (world_ != nullptr) {
      FailureNote& note = control_->note(author);
      note.text.set(failure.text);
      note.reason.set(failure.reason);
    }
    if (!(*control_)->failure.claim({.cause = static_cast<std::uint8_t>(failure.cause),
                                     .author = static_cast<std::uint16_t>(author),
                                     .lost = static_cast<std::uint16_t>(failure.lost_process)})) {
      return false;  // first_failure() reads the failure that another thread wrote
    }
    failure_ = std::move(failure);  // before another thread of this process reads it
  }
  (*control_)->event.notify();
  return true;
}

void Group::fail(Cause cause, std::string text) {
  std::vector<Subgroup> subgroups;
  if (!claim_failure({.cause = cause, .text = std::move(text)})) return;
  bool spreads = false;
  {
    const std::scoped_lock lock(failure_mutex_);
    subgroups.swap(subgroups_);  // no more subgroups are made
    spreads = world_ != nullptr && was_split_;
  }
  for (const Subgroup& subgroup : subgroups) {
    if (const std::shared_ptr<Group> group = subgroup.group.lock()) group->fail(Cause::kAborted, first_failure().text);
  }
  if (spreads) world_->spread_failure();
}

Group::Failure Group::first_failure() const {
  const std::scoped_lock lock(failure_mutex_);
  if (!failure_.has_value()) {
    const sync::FailureWord::Claim claim = (*control_)->failure.claimed().value();
    const FailureNote& note = control_->note(claim.author);
    failure_ = Failure{.cause = static_cast<Cause>(claim.cause),
                       .text = note.text.get(),
                       .lost_process = claim.lost,
                       .reason = note.reason.get()};
  }
  return *failure_;
}

std::string Group::text_of(const Failure& failure, const std::string& waiting) const {
  if (failure.cause != Cause::kLost) return failure.text;
  return failure.text + (waiting.empty() ? "" : "; " + waiting + " waited for it") +
         ". Every rank of this group raises this: " +
         (failure.reason == "exited with status 0" ? "make the same calls on every rank."
                                                   : "start the job again, from its last checkpoint if it has one.");
}

void Group::raise_failure(const std::string& waiting) const {
  const Failure failure = first_failure();
  const std::string text = text_of(failure, waiting);
  switch (failure.cause) {
    case Cause::kMismatch:
      throw core::MismatchError(text);
    case Cause::kDeadline:
      throw core::DeadlineError(text);
    case Cause::kArgument:
      throw core::ArgumentError(text);
    case Cause::kLost:
      throw core::WorkerLostError(text, world_->ranks_of(failure.lost_process).front(),
                                  world_->host_of(failure.lost_process), world_->pid_of(failure.lost_process),
                                  failure.reason);
    case Cause::kAborted:
      break;
  }
  throw core::AbortedError(text);
}

// A departed rank does not count as lost: a call that waits for it reports the departure. Lost ranks have their number
// in the whole world, even in a subgroup. A process that ended because the parent group failed is not the cause.
bool Group::lose(int process, const std::string& reason) noexcept {
  follow_parent();
  bool is_lost = false;
  for (int rank = 0; rank < num_ranks(); ++rank) {
    is_lost |= process_of(rank) == process && !control_->board(rank).has_departed.is_set();
  }
  if (is_lost) {
    claim_failure({.cause = Cause::kLost,
                   .text = world_->whereabouts_of(process) + " " + reason,
                   .lost_process = process,
                   .reason = reason});
  }
  (*control_)->event.notify();  // also wakes ranks that wait until all live ranks have left a call
  return is_lost;
}

void Group::follow_parent() noexcept {
  if (parent_ != nullptr && parent_->has_failed() && !has_failed()) claim_failure(parent_->first_failure());
}

void Group::forget(const Group& parent) noexcept {
  if (parent_ == &parent) parent_ = nullptr;
}

}  // namespace ringlet::collectives

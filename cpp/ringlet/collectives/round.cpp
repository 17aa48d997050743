#include "ringlet/collectives/round.hpp"

#include <algorithm>
#include <chrono>
#include <sstream>
#include <string>
#include <thread>
#include <utility>

#include "ringlet/core/error.hpp"
#include "ringlet/sync/fork.hpp"

namespace ringlet::collectives {

namespace {

std::string seconds_text(sync::Clock::duration duration) {
  std::ostringstream text;
  text << std::chrono::duration<double>(duration).count();
  return text.str();
}

}  // namespace

Round::Round(Group& group, int rank, sync::Poll* poll) : group_(group), rank_(rank), poll_(poll) {
  if (group.fork_generation_ != sync::fork_generation()) {
    throw core::AbortedError(
        "this group was made before the process was forked: its ranks are threads of the parent. Make a new group in "
        "the child, or start processes with the 'spawn' method.");
  }
  if (group.shared_->has_failed.is_set()) group.raise_failure();
  if (!mine().is_busy.claim()) {
    throw core::ArgumentError("rank " + std::to_string(rank) +
                              " is inside a call on another thread. Drive each rank by one thread at a time.");
  }
  sequence_ = mine().sequence + 1;  // counts once it is published: a call that throws before did not take place
  set_ = sequence_ % kSets;
  mine().shares[set_].reset();
}

Round::~Round() { mine().is_busy.set(false); }

void Round::announce_results(bool with_scratch) {
  RankState::Set& set = mine().sets[set_];
  Results blocks;
  blocks.reserve(2 * set.call.parts.size());
  const auto add = [&](std::size_t bytes) { blocks.push_back(memory::result_pool().allocate(bytes)); };
  for (const Part& part : set.call.parts) add(set.call.has_outputs ? 0 : set.call.result_bytes(part));
  if (with_scratch) {
    for (const Part& part : set.call.parts) {
      const core::DType partial = core::partial_dtype(part.dtype);
      add(set.call.result_dtype(part) == partial ? 0 : part.count * core::size_of(partial));
    }
  }
  set.results.clear();
  for (const memory::Block& block : blocks) set.results.push_back(block->data());
  set.holds.assign(static_cast<std::size_t>(num_ranks()), blocks);
}

void Round::announce_result(std::size_t bytes, bool is_for_all) {
  RankState::Set& set = mine().sets[set_];
  const memory::Block block = memory::result_pool().allocate(bytes);
  set.results.assign(1, block->data());
  set.holds.assign(static_cast<std::size_t>(num_ranks()), is_for_all ? Results{block} : Results{});
  set.holds[static_cast<std::size_t>(rank_)] = {block};
}

void Round::announce_for_each(std::span<const std::size_t> sizes) {
  RankState::Set& set = mine().sets[set_];
  set.results.clear();
  set.holds.clear();
  for (const std::size_t bytes : sizes) {
    set.holds.push_back({memory::result_pool().allocate(bytes)});
    set.results.push_back(set.holds.back().front()->data());
  }
}

Results Round::take_results(int announcer) {
  RankState::Set& set = of(announcer).sets[set_];
  Results hold = std::move(set.holds[static_cast<std::size_t>(rank_)]);
  if (hold.size() > set.call.parts.size()) hold.resize(set.call.parts.size());  // lets go of the scratch buffers
  return hold;
}

bool Round::all_have_arrived() const noexcept {
  for (const auto& rank : group_.ranks_) {
    if (!rank->slots[set_].has_arrived(sequence_)) return false;
  }
  return true;
}

bool Round::misses_departed() const noexcept {
  if (!group_.shared_->has_departures.is_set()) return false;
  for (const auto& rank : group_.ranks_) {
    // In this order: a rank that arrived and then departed is not missing.
    if (rank->has_departed.is_set() && !rank->slots[set_].has_arrived(sequence_)) return true;
  }
  return false;
}

bool Round::is_hopeless() noexcept {
  saw_departed_ = saw_departed_ || misses_departed();  // who gives up on this account says so, even if they come now
  return saw_departed_ || group_.shared_->has_failed.is_set();
}

void Round::publish() {
  sync::Slot& slot = mine().slots[set_];
  const Call& call = mine().sets[set_].call;
  slot.call_fingerprint = call.call_fingerprint();
  slot.parts_fingerprint = call.has_parts ? call.parts_fingerprint() : 0;
  if (!call.parts.empty()) {
    slot.input = call.parts.front().input;
    slot.output = call.parts.front().output;
  }
  mine().sequence = sequence_;
  slot.publish(sequence_);
}

void Round::arrive() {
  publish();
  if (all_have_arrived()) {
    group_.shared_->event.notify();
  } else {
    const bool in_time = wait_for_arrivals([this] { return all_have_arrived() || is_hopeless(); });
    if (!all_have_arrived()) give_up(!in_time);
  }
  compare();
}

void Round::arrive_for_work() {
  publish();
  bool goes = false;
  if (all_have_arrived()) {
    group_.shared_->event.notify();
    goes = !group_.shared_->has_leavers.is_set() || group_.shared_->gates[set_].propose_to_go(sequence_);
    if (!goes) give_up(false);
  } else {
    const bool in_time = wait_for_arrivals([this] { return all_have_arrived() || is_hopeless(); });
    goes = all_have_arrived() && interruption_ == nullptr && !is_hopeless() && !group_.shared_->has_leavers.is_set();
    if (!goes && propose_to_leave()) give_up(!in_time);
  }
  compare();
}

bool Round::propose_to_leave() {
  group_.shared_->has_leavers.set(true);
  sync::Gate& gate = group_.shared_->gates[set_];
  return !(all_have_arrived() ? gate.propose_to_go(sequence_) : gate.propose_to_call_off(sequence_));
}

bool Round::is_finished(std::size_t chunks) const noexcept {
  std::size_t done = 0;
  for (const auto& rank : group_.ranks_) done += rank->shares[set_].done();
  return done == chunks;
}

void Round::finish() {
  if (interruption_ == nullptr) return;
  group_.fail(Group::Cause::kAborted, name_of_call() + " was interrupted.");
  std::rethrow_exception(interruption_);
}

void Round::give_up(bool timed_out) {
  finish();
  if (timed_out) {
    group_.fail(Group::Cause::kDeadline,
                name_of_call() + " waited " + seconds_text(group_.options_.timeout) + " s for " + missing_ranks() +
                    ". Find out what they do, or allow more with timeout_seconds= or RINGLET_TIMEOUT_SECONDS.");
  } else if (saw_departed_) {
    group_.fail(Group::Cause::kMismatch, name_of_call() +
                                             " waits for ranks that make no more calls: " + missing_ranks() +
                                             ". Make the same calls in the same order on every rank.");
  }
  // Whoever called this off states the cause before it leaves.
  while (!group_.shared_->has_failed.is_set()) std::this_thread::yield();
  group_.raise_failure();
}

void Round::compare() {
  const sync::Slot& own = mine().slots[set_];
  bool all_equal = true;
  for (const auto& rank : group_.ranks_) {
    const sync::Slot& other = rank->slots[set_];
    all_equal &= other.call_fingerprint == own.call_fingerprint && other.parts_fingerprint == own.parts_fingerprint;
  }
  if (all_equal) return;
  // Receivers of a broadcast or scatter may leave the parts to the root.
  bool matches = true;
  const sync::Slot& root = slot_of(call().root);
  for (int rank = 0; rank < num_ranks(); ++rank) {
    const sync::Slot& other = slot_of(rank);
    matches &= other.call_fingerprint == own.call_fingerprint &&
               (other.parts_fingerprint == root.parts_fingerprint || !call_of(rank).has_parts);
  }
  if (matches) return;
  std::string text = "the ranks did not make the same call (their call number " + std::to_string(sequence_) + "):";
  for (int rank = 0; rank < num_ranks(); ++rank) {
    text += "\n  rank " + std::to_string(rank) + ": " + call_of(rank).describe();
  }
  text += "\nMake the same calls in the same order, with equal shapes and dtypes, on every rank.";
  finish();
  group_.fail(Group::Cause::kMismatch, std::move(text));
  group_.raise_failure();
}

void Round::wait_for_steps(int rank, std::uint64_t steps) {
  wait_to_the_end([&] { return of(rank).steps.has_reached(steps); });
}

void Round::finish_step() {
  mine().steps.publish(++mine().ring_steps);
  group_.shared_->event.notify();
}

void Round::refuse(const std::string& problem) {
  finish();
  group_.fail(Group::Cause::kArgument, problem);
  group_.raise_failure();
}

std::string Round::name_of_call() const {
  const Call& call = group_.ranks_[static_cast<std::size_t>(rank_)]->sets[set_].call;
  return call.describe() + ", call " + std::to_string(sequence_) + " of rank " + std::to_string(rank_) + ",";
}

std::string Round::missing_ranks() const {
  std::string text;
  const std::scoped_lock lock(group_.failure_mutex_);
  for (std::size_t rank = 0; rank < group_.ranks_.size(); ++rank) {
    const RankState& state = *group_.ranks_[rank];
    if (state.slots[set_].has_arrived(sequence_)) continue;
    const std::uint64_t made = std::max(state.slots[0].sequence(), state.slots[1].sequence());
    text += (text.empty() ? "rank " : ", rank ") + std::to_string(rank) + " (";
    if (state.has_departed.is_set()) text += group_.departures_[rank] + " ";
    text += "after " + std::to_string(made) + (made == 1 ? " call)" : " calls)");
  }
  return text.empty() ? "ranks that came at the last moment" : text;
}

}  // namespace ringlet::collectives

#include "ringlet/collectives/call/round.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "ringlet/collectives/group/message_text.hpp"
#include "ringlet/collectives/group/thread_reports.hpp"
#include "ringlet/core/error.hpp"
#include "ringlet/record/recorder.hpp"
#include "ringlet/sync/process/fork.hpp"
#include "ringlet/sync/process/placement.hpp"

namespace ringlet::collectives {

namespace {

std::string place_in_series(std::uint32_t series, std::uint64_t sequence) {
  if (series == 0) return ", outside of a series";
  return ", call " + std::to_string(static_cast<std::uint32_t>(sequence) - series + 1) + " of a series";
}

// Called for the set of a call that all ranks have left, which no rank reads any more. Blocks larger than the
// pieces of large all-reduces return to the heap, which caches them for some time.
void drop_large_stages(RankState::Set& set) {
  constexpr std::size_t kLargestKept = std::size_t{4} << 20;
  for (memory::Block* const block : {&set.staged_inputs, &set.staged_outputs}) {
    if (*block != nullptr && (*block)->size() > kLargestKept) block->reset();
  }
}

}  // namespace

Round::Round(Group& group, int rank, sync::Poll* poll)
    : group_(group), rank_(rank), state_(group.states_[static_cast<std::size_t>(rank)].get()), interruption_(poll) {
  if (group.fork_generation_ != sync::fork_generation()) {
    throw core::AbortedError(
        "this group was made before the process was forked: its ranks are threads of the parent. Make a new group in "
        "the child, or start processes with the 'spawn' method.");
  }
  if (group.has_failed()) group.raise_failure();
  if (!mine().is_busy.claim()) {
    throw core::ArgumentError("rank " + std::to_string(rank) +
                              " is inside a call on another thread. Drive each rank by one thread at a time.");
  }
  mine().thread.set(this_thread());
  sequence_ = mine().sequence + 1;  // valid once published: a call that throws before that did not take place
  set_ = sequence_ % kSets;
  queue_of(rank).reset();
}

// A rank that alone leaves a call, for lack of memory, would be one call behind the others.
Round::~Round() {
  record::end(record_, is_complete_);
  if (!is_complete_ && mine().sequence == sequence_ && !group_.has_failed()) fail_without_memory();
  if (is_between_processes()) let_go();
  mine().is_busy.set(false);
}

Call& Round::begin(Kind kind) {
  RankState::Set& set = mine().sets[set_];
  set.subgroup.reset();
  set.result_names.clear();
  set.kept.clear();
  set.call.reset(kind);
  set.call.series = mine().series;
  return set.call;
}

bool Round::all_have_arrived() const noexcept {
  for (const RankBoard& board : group_.control_->boards()) {
    if (!board.slots[set_].has_arrived(sequence_)) return false;
  }
  return true;
}

bool Round::misses_departed() const noexcept {
  if (!(*group_.control_)->has_departures.is_set()) return false;
  for (const RankBoard& board : group_.control_->boards()) {
    // In this order: a rank that arrived and then departed is not missing.
    if (board.has_departed.is_set() && !board.slots[set_].has_arrived(sequence_)) return true;
  }
  return false;
}

bool Round::is_hopeless() noexcept {
  saw_departed_ = saw_departed_ || misses_departed();  // the error names departed ranks even if they arrive now
  return saw_departed_ || group_.has_failed();
}

void Round::publish(Purpose purpose, Staging staging) {
  sync::Slot& slot = own_board().slots[set_];
  const Call& own = call();
  if (own.has_outputs || own.kind == Kind::kReduce || own.kind == Kind::kGather) {
    mine().accesses.reserve((2 * own.buffers.size() + 1) * static_cast<std::size_t>(num_ranks()));  // see overlap.hpp
  }
  slot.call_fingerprint = own.call_fingerprint();
  slot.buffers_fingerprint = own.has_buffers ? own.buffers_fingerprint() : 0;
  begin_record(slot);
  if (is_between_processes()) {
    or_fail([&] { name_buffers(purpose, staging); });
  } else if (!own.buffers.empty()) {
    slot.input = BufferName::of_private(own.buffers.front().input).bits();
    slot.output = BufferName::of_private(own.buffers.front().output).bits();
  }
  mine().sequence = sequence_;
  if (group_.patience_.spins > 0) publish_core(sync::current_core());
  slot.publish(sequence_);
}

void Round::publish_core(int core) noexcept {
  const auto number = static_cast<std::uint64_t>(core + 1);
  if (sync::RelaxedNumber& own = own_board().core; own.value() != number) own.set(number);
}

// Ranks may share a core even if there are enough cores, for example after a sleep, and the system may leave them there
// as long as each parks in turn. A rank that spins on the core of the rank that it waits for delays it, and one that
// yields may lose the core to another program for milliseconds; so it parks immediately. The rank with the higher
// number first moves to a core without ranks. If other programs run, this makes small calls faster, but in large calls
// a rank that loses its core in the middle of the work delays the others more than a rank that shares a core with them.
//
// During a move and after it, ranks spin for longer than a move and a wake-up take. If one parked meanwhile, the other
// would wake it, and the system often moves a thread to the core of its waker.
sync::Patience Round::patience() noexcept {
  const sync::Patience usual = group_.patience_;
  if (usual.spins == 0) return usual;
  const int core = sync::current_core();
  if (core == sync::kUnknownCore) return usual;
  bool is_shared = false;
  bool is_higher = false;
  bool is_moving = false;
  for (int rank = 0; rank < num_ranks(); ++rank) {
    const std::uint64_t number = board_of(rank).core.value();
    is_moving |= number == 0;
    if (rank == rank_ || number != static_cast<std::uint64_t>(core + 1)) continue;
    is_shared = true;
    is_higher |= rank < rank_;
  }
  if (!is_shared) {
    const bool was_patient = mine().waits_apart > 0;
    if (was_patient && --mine().waits_apart == 0) mine().between_moves = kLeastBetweenMoves;
    return was_patient || is_moving ? sync::Patience{.spins = kSpinsApart} : usual;
  }
  if (is_higher && mine().next_move.pass(mine().between_moves) &&
      (call().total_input_bytes() < kLargeCall || sync::has_idle_core())) {
    sync::CoreSet taken;
    for (const RankBoard& board : group_.control_->boards()) {
      if (const std::uint64_t number = board.core.value(); number > 0 && number <= taken.size()) taken.set(number - 1);
    }
    publish_core(sync::kUnknownCore);
    const bool has_moved = sync::move_to_core_outside(taken);
    publish_core(sync::current_core());
    if (has_moved) {
      mine().waits_apart = kWaitsApart;
      mine().between_moves = std::min(2 * mine().between_moves, kMostBetweenMoves);
      return {.spins = kSpinsApart};
    }
  }
  return {};
}

void Round::arrive() { await_others(Purpose::kSlots); }

void Round::arrive_to_tell() { await_others(Purpose::kNames); }

void Round::await_others(Purpose purpose) {
  publish(purpose);
  if (all_have_arrived()) {
    (*group_.control_)->event.notify();
    record::arrive(record_, false);
  } else {
    const bool in_time = wait_for_ranks([this] { return all_have_arrived() || is_hopeless(); });
    if (!all_have_arrived()) give_up(!in_time);
    record::arrive(record_, true);
  }
  compare();
  drop_large_stages(mine().sets[(sequence_ - 1) % kSets]);
}

void Round::arrive_for_work() { await_others_for_work({}); }

void Round::await_others_for_work(Staging staging) {
  publish(Purpose::kWork, staging);
  Control& control = **group_.control_;
  bool goes = false;
  if (all_have_arrived()) {
    control.event.notify();
    goes = !control.has_leavers.is_set() || control.gates[set_].propose_to_go(sequence_);
    if (!goes) give_up(false);
    record::arrive(record_, false);
  } else {
    const bool in_time = wait_for_ranks([this] { return all_have_arrived() || is_hopeless(); });
    goes = all_have_arrived() && !interruption_.has_come() && !is_hopeless() && !control.has_leavers.is_set();
    if (!goes && propose_to_leave()) give_up(!in_time);
    record::arrive(record_, true);
  }
  compare();
  if (!is_between_processes()) return;
  drop_large_stages(mine().sets[(sequence_ - 1) % kSets]);
  goes_ = true;
  resolve_buffers();
}

bool Round::propose_to_leave() {
  Control& control = **group_.control_;
  control.has_leavers.set(true);
  sync::Gate& gate = control.gates[set_];
  return !(all_have_arrived() ? gate.propose_to_go(sequence_) : gate.propose_to_call_off(sequence_));
}

bool Round::is_finished(std::size_t chunks) const noexcept {
  std::size_t done = 0;
  for (const RankBoard& board : group_.control_->boards()) done += board.queues[set_].done();
  return done == chunks;
}

// Publishes the number of chunks that this rank has finished, and waits until all chunks are finished.
void Round::finish_work(std::size_t finished, std::size_t num_chunks) {
  queue_of(rank_).publish_done(finished);
  if (is_finished(num_chunks)) {
    (*group_.control_)->event.notify();
  } else {
    wait_to_the_end([&] { return is_finished(num_chunks); });
  }
}

void Round::finish() {
  raise_interruption();
  is_complete_ = true;
}

void Round::raise_interruption() {
  if (!interruption_.has_come()) return;
  fail_interrupted();
  interruption_.rethrow();
}

void Round::fail_without_memory() noexcept {
  try {
    group_.fail(Group::Cause::kAborted,
                "rank " + std::to_string(rank_) + " ran out of memory in the middle of a call.");
  } catch (const std::bad_alloc&) {
    group_.fail(Group::Cause::kAborted, "out of memory");  // fits the string without allocation
  }
}

void Round::fail_interrupted() { group_.fail(Group::Cause::kAborted, name_of_call() + " was interrupted."); }

void Round::give_up(bool timed_out) {
  if (interruption_.has_come()) {
    group_.fail(Group::Cause::kAborted,
                name_of_call() + " was interrupted while it waited for " + missing_ranks() + ".");
    interruption_.rethrow();
  }
  if (timed_out) {
    fail_late();
  } else if (saw_departed_) {
    group_.fail(Group::Cause::kMismatch, name_of_call() +
                                             " waits for ranks that make no more calls: " + missing_ranks() +
                                             ". Make the same calls in the same order on every rank.");
  }
  // The rank that cancelled the call records the cause before it leaves; if its process ends first, its end is the
  // cause.
  const auto limit = std::min<sync::Clock::duration>(group_.options_.timeout, kLeavingLimit);
  const bool is_stated = wait_for(limit, [this] { return group_.has_failed(); });
  raise_interruption();
  if (!is_stated) {
    group_.fail(
        Group::Cause::kAborted,
        name_of_call() + " was called off by a rank that did not report the cause within " + seconds_text(limit) + ".");
  }
  group_.raise_failure(name_of_call());
}

void Round::compare() {
  const sync::Slot& own = own_board().slots[set_];
  bool all_equal = true;
  for (const RankBoard& board : group_.control_->boards()) {
    const sync::Slot& other = board.slots[set_];
    all_equal &= other.call_fingerprint == own.call_fingerprint && other.buffers_fingerprint == own.buffers_fingerprint;
  }
  if (all_equal) return;
  // Receivers of a broadcast or scatter may omit the buffers.
  bool matches = true;
  const sync::Slot& root = slot_of(call().root);
  for (int rank = 0; rank < num_ranks(); ++rank) {
    const sync::Slot& other = slot_of(rank);
    matches &= other.call_fingerprint == own.call_fingerprint &&
               (other.buffers_fingerprint == root.buffers_fingerprint || !call_of(rank).has_buffers);
  }
  if (matches) return;
  bool is_one_series = true;
  for (int rank = 0; rank < num_ranks(); ++rank) is_one_series &= call_of(rank).series == call().series;
  std::vector<std::string> calls = call_sites();
  for (int rank = 0; rank < num_ranks(); ++rank) {
    const Call& other = call_of(rank);
    std::string& text = calls[static_cast<std::size_t>(rank)];
    text = other.describe() + (is_one_series ? "" : place_in_series(other.series, sequence_)) +
           (text.empty() ? "" : ", " + text);
  }
  raise_interruption();
  group_.fail(Group::Cause::kMismatch,
              "the ranks did not make the same call (their call number " + std::to_string(sequence_) +
                  "):" + ranks_and_texts(calls) +
                  "\nMake the same calls in the same order, with equal shapes and dtypes, on every rank.");
  group_.raise_failure();
}

// The place of this call in the program of each rank: every rank publishes its own. Empty for a rank without one.
std::vector<std::string> Round::call_sites() {
  std::vector<std::string> sites(static_cast<std::size_t>(num_ranks()));
  if (thread_reports() == nullptr) return sites;
  own_board().call_site.set(thread_reports()->call_site());
  own_board().located.publish(sequence_);
  sync::Event& event = (*group_.control_)->event;
  event.notify();
  const auto has_located = [&](const RankBoard& board) { return board.located.has_reached(sequence_); };
  const auto boards = group_.control_->boards();
  (void)sync::wait_until(event, group_.patience_, kSiteLimit, nullptr,
                         [&] { return group_.has_failed() || std::ranges::all_of(boards, has_located); });
  for (int rank = 0; rank < num_ranks(); ++rank) {
    if (has_located(board_of(rank))) sites[static_cast<std::size_t>(rank)] = board_of(rank).call_site.get();
  }
  return sites;
}

void Round::wait_for_readers() {
  own_board().read_seq.publish(sequence_);
  (*group_.control_)->event.notify();
  for (int rank = 0; rank < num_ranks(); ++rank) {
    wait_to_the_end([&] { return board_of(rank).read_seq.has_reached(sequence_); });
  }
}

void Round::refuse(const std::string& problem) {
  call_off();
  raise_interruption();
  group_.fail(Group::Cause::kArgument, problem);
  group_.raise_failure();
}

}  // namespace ringlet::collectives

#include "ringlet/collectives/call/round.hpp"

#include <algorithm>
#include <chrono>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "ringlet/collectives/group/message_text.hpp"
#include "ringlet/collectives/group/thread_reports.hpp"
#include "ringlet/record/recorder.hpp"
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

Round::Round(Group& group, int rank, sync::Poll* poll) : CallResults(group, rank, poll) { queue_of(rank).reset(); }

// A rank that alone leaves a call, for lack of memory, would be one call behind the others.
Round::~Round() {
  record::end(record_, is_complete_);
  if (!is_complete_ && mine().sequence == sequence_ && !group_.has_failed()) fail_without_memory();
  if (is_between_processes()) let_go();
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

void Round::await_others(Purpose purpose) {
  publish(purpose);
  if (all_have_arrived()) {
    control().event.notify();
    record::arrive(record_, false);
  } else {
    const bool in_time = wait_for_ranks([this] { return all_have_arrived() || is_hopeless(); });
    if (!all_have_arrived()) give_up(!in_time);
    record::arrive(record_, true);
  }
  compare();
  drop_large_stages(mine().sets[(sequence_ - 1) % kSets]);
}

void Round::await_others_for_work(Staging staging) {
  publish(Purpose::kWork, staging);
  Control& control = this->control();
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
  goes_ = is_between_processes();
  try {
    compare();
  } catch (const std::bad_alloc&) {  // of this rank alone: the others may take results, and read its buffers
    if (!goes_) throw;
    fail_without_memory();
    leave_together();
  }
  if (!goes_) return;
  drop_large_stages(mine().sets[(sequence_ - 1) % kSets]);
  resolve();
}

bool Round::propose_to_leave() {
  Control& control = this->control();
  control.has_leavers.set(true);
  sync::Gate& gate = control.gates[set_];
  return !(all_have_arrived() ? gate.propose_to_go(sequence_) : gate.propose_to_call_off(sequence_));
}

bool Round::is_finished(std::size_t chunks) const noexcept {
  std::size_t done = 0;
  for (const RankBoard& board : block().boards()) done += board.queues[set_].done();
  return done == chunks;
}

// Publishes the number of chunks that this rank has finished, and waits until all chunks are finished.
void Round::finish_work(std::size_t finished, std::size_t num_chunks) {
  queue_of(rank_).publish_done(finished);
  if (is_finished(num_chunks)) {
    control().event.notify();
  } else {
    wait_to_the_end([&] { return is_finished(num_chunks); });
  }
}

void Round::finish() {
  raise_interruption();
  is_complete_ = true;
}

void Round::compare() {
  const sync::Slot& own = own_board().slots[set_];
  bool all_equal = true;
  for (const RankBoard& board : block().boards()) {
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
  call_off();  // all ranks determine this, so no rank takes results
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
  sync::Event& event = control().event;
  event.notify();
  const auto has_located = [&](const RankBoard& board) { return board.located.has_reached(sequence_); };
  const auto boards = block().boards();
  (void)sync::wait_until(event, group_.patience_, kSiteLimit, nullptr,
                         [&] { return group_.has_failed() || std::ranges::all_of(boards, has_located); });
  for (int rank = 0; rank < num_ranks(); ++rank) {
    if (has_located(board_of(rank))) sites[static_cast<std::size_t>(rank)] = board_of(rank).call_site.get();
  }
  return sites;
}

void Round::wait_for_readers() {
  own_board().read_seq.publish(sequence_);
  control().event.notify();
  for (int rank = 0; rank < num_ranks(); ++rank) {
    wait_to_the_end([&] { return board_of(rank).read_seq.has_reached(sequence_); });
  }
}

void Round::leave_work() {
  take_staged();
  own_board().left_seq.publish(sequence_);
}

void Round::refuse(const std::string& problem) {
  call_off();
  raise_interruption();
  group_.fail(Group::Cause::kArgument, problem);
  group_.raise_failure();
}

}  // namespace ringlet::collectives

// One call in progress: the interface of the algorithms.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>

#include "ringlet/collectives/algorithms/chunks.hpp"
#include "ringlet/collectives/group/control.hpp"
#include "ringlet/collectives/group/group.hpp"
#include "ringlet/collectives/group/rank_state.hpp"
#include "ringlet/collectives/transport/buffer_name.hpp"
#include "ringlet/core/error.hpp"
#include "ringlet/kernels/kernels.hpp"
#include "ringlet/sync/fault.hpp"
#include "ringlet/sync/wait.hpp"

namespace ringlet::collectives {

// Constructed by every rank for every call, destroyed at its end.
class Round {
 public:
  Round(Group& group, int rank, sync::Poll* poll);
  Round(const Round&) = delete;
  Round& operator=(const Round&) = delete;
  ~Round();

  int rank() const noexcept { return rank_; }
  int num_ranks() const noexcept { return group_.num_ranks(); }
  // Whether ranks belong to several processes.
  bool is_between_processes() const noexcept { return group_.world_ != nullptr; }
  RankState& mine() noexcept { return *state_; }
  RankState& state_of(int rank) noexcept { return *group_.states_[static_cast<std::size_t>(rank)]; }
  RankBoard& board_of(int rank) noexcept { return group_.control_->board(rank); }
  // The record of this rank's call; begin() empties it first.
  Call& begin(Kind kind);
  Call& call() noexcept { return mine().sets[set_].call; }
  // The call of any rank. Buffers of a remote rank have no addresses. Valid until the end of the round.
  const Call& call_of(int rank) {
    return group_.is_here(rank) ? state_of(rank).sets[set_].call : group_.remote_call(mine(), rank, sequence_).call;
  }
  sync::Slot& slot_of(int rank) noexcept { return board_of(rank).slots[set_]; }
  sync::WorkQueue& queue_of(int rank) noexcept { return board_of(rank).queues[set_]; }
  RankState::Set& set_of(int rank) noexcept { return state_of(rank).sets[set_]; }
  // The payload in a rank's slot, from an offset on.
  const std::byte* payload_of(int rank, std::size_t offset = 0) noexcept { return slot_of(rank).payload() + offset; }

  // The names of the buffers of any rank that has arrived. The names of buffer 0 are in the slot.
  BufferName input_name(int rank, std::size_t part) {
    return part == 0 ? BufferName(slot_of(rank).input) : further_name(rank, part, true);
  }
  BufferName output_name(int rank, std::size_t part) {
    return part == 0 ? BufferName(slot_of(rank).output) : further_name(rank, part, false);
  }
  // The names of the caller's own buffers, even if staged memory replaces them; for the overlap check.
  BufferName own_input_name(int rank, std::size_t part) {
    const BufferName place = input_name(rank, part);
    return place.is_staged() && may_overlap_unseen() ? own_name(rank, part, true) : place;
  }
  BufferName own_output_name(int rank, std::size_t part) {
    const BufferName place = output_name(rank, part);
    return place.is_staged() && may_overlap_unseen() ? own_name(rank, part, false) : place;
  }
  // The process of a rank: equal names of private memory in different processes are different memory.
  int process_of(int rank) const noexcept { return group_.process_of(rank); }

  // The buffers of any rank, after arrive_for_work().
  MappedBuffer input(int rank, std::size_t part) {
    if (!is_between_processes()) return map_buffer(input_name(rank, part));
    return mine().mapped_inputs[part * static_cast<std::size_t>(num_ranks()) + static_cast<std::size_t>(rank)];
  }
  MappedBuffer output(int rank, std::size_t part) {
    if (!is_between_processes()) return map_buffer(output_name(rank, part));
    return mine().mapped_outputs[part * static_cast<std::size_t>(num_ranks()) + static_cast<std::size_t>(rank)];
  }
  // The result that the announcer of this call allocated. After arrive_for_work().
  std::byte* result_of(int announcer, std::size_t index) {
    return is_between_processes() ? mine().results[index].here : state_of(announcer).sets[set_].results[index];
  }
  MappedBuffer mapped_result(int announcer, std::size_t index) {
    return is_between_processes() ? mine().results[index]
                                  : MappedBuffer{result_of(announcer, index), BufferName(), announcer};
  }

  // Whether all buffers of this call are mapped in this process. If not, algorithms work on blocks of at most
  // block_bytes() of each buffer, which they copy through `lanes` of this rank's scratch memory, numbered from 0.
  bool is_all_here() const noexcept { return is_all_here_; }
  // Whether the work writes this output, if all ranks get the same result: see take_staged.
  bool is_written(int rank, std::size_t part);
  std::size_t block_bytes(std::size_t num_lanes) const noexcept;
  const std::byte* fetch(MappedBuffer from, std::size_t bytes, std::size_t lane, std::size_t num_lanes);
  // Copies unless another rank must write the output: see may_write().
  void copy(MappedBuffer from, std::size_t bytes, MappedBuffer to, kernels::Store store);
  // A rank writes to shared memory while it takes chunks, and to its own private output afterwards.
  bool may_write(MappedBuffer to) const noexcept;

  // Allocates one shared result per buffer unless there are outputs. Before arriving, by one rank, the same on all
  // ranks.
  void announce_results();
  // Allocates one result for all ranks, or for this one alone.
  void announce_result(std::size_t bytes, bool is_for_all);
  // Allocates results of these sizes, one for each rank, which only that rank takes.
  void announce_for_each(std::span<const std::size_t> sizes);
  // Publishes one name to the other ranks, in slot_of(rank()).result.
  void announce_name(BufferName place) { mine().sets[set_].result_names.assign(1, place); }

  // Publishes this rank's call, waits for all ranks, and compares the calls. Afterwards other ranks' slots may be read.
  void arrive();
  // arrive(), after which the kinds of memory of the ranks of other processes are known.
  void arrive_to_tell();
  // arrive(), after which other ranks' buffers may be read and written until the work is done, so no rank may leave
  // before that.
  void arrive_for_work();
  // arrive_for_work() between processes, for an algorithm that stages private buffers itself: `stage()` runs
  // before arriving, after the buffers have names.
  template <class Stage>
  void arrive_for_work(Stage&& stage) {
    await_others_for_work({[](void* context) { (*static_cast<std::remove_reference_t<Stage>*>(context))(); }, &stage});
  }

  // Ends a call that took place. If a wait was interrupted, fails the group and raises the interruption.
  void finish();

  // This rank's hold on the results that `announcer` allocated.
  Results take_results(int announcer);
  // Marks the results of this call as unused because all ranks have determined that it does no work.
  void call_off() noexcept { goes_ = false; }

  // Takes chunks until none is left, then waits until all are finished. `work` processes the chunk with a number.
  template <class Work>
  void process_chunks(std::size_t num_chunks, Work&& work);
  template <class Work>
  void process_chunks(const Chunks& chunks, Work&& work) {
    process_chunks(chunks.size(), [&](std::size_t chunk) {
      for (const Run& run : chunks[chunk]) work(run);
    });
  }
  template <class Work>
  void process_chunks(const Ranges& ranges, Work&& work) {
    process_chunks(ranges.size(), [&](std::size_t chunk) { work(ranges[chunk]); });
  }

  // Between processes: the same for a fixed part of the work for each rank. Calls combine(), waits until all ranks have
  // done so, and calls take(). With `reads_private`, it then waits again because other ranks read its private buffers.
  template <class Combine, class Take>
  void process_shares(bool reads_private, Combine&& combine, Take&& take);

  // Between processes, after the work: copies results from staged memory to the outputs of this rank, and publishes
  // that it accesses no more memory of other ranks.
  void leave_work();

  // Between processes: allocates shared memory in `block` that replaces a buffer of this rank; returns its name.
  BufferName stage(memory::Block& block, std::size_t bytes);
  // The address of the name that a rank has announced by announce_name().
  std::byte* announced_by(int rank);
  // Copies a buffer of any rank.
  void read(MappedBuffer from, std::size_t bytes, std::byte* to);

  // Fails the group because of an argument that every rank finds invalid. Before any work.
  [[noreturn]] void refuse(const std::string& problem);

 private:
  // Thrown if the memory of another process could not be read.
  class Unreachable {};

  void begin_record(const sync::Slot& slot) noexcept;  // see recording.cpp
  bool all_have_arrived() const noexcept;
  bool misses_departed() const noexcept;
  bool is_hopeless() noexcept;  // further waiting is useless: the group failed, or a missing rank has departed
  // The purpose of an arrival: to read slots, to publish buffer names, or to work on buffers.
  enum class Purpose { kSlots, kNames, kWork };
  // The work of an algorithm in place of stage_inputs() and stage_outputs(), if any.
  struct Staging {
    void (*call)(void*);
    void* context;
  };
  void publish(Purpose purpose, Staging staging = {});
  void await_others(Purpose purpose);
  void await_others_for_work(Staging staging);
  bool propose_to_leave();  // false if the call takes place nevertheless
  void compare();
  std::vector<std::string> call_sites();
  bool is_finished(std::size_t chunks) const noexcept;
  void finish_work(std::size_t finished, std::size_t num_chunks);
  // Publishes that this rank has read other ranks' private buffers, and waits until all ranks have.
  void wait_for_readers();
  [[noreturn]] void give_up(bool timed_out);
  std::string name_of_call() const;
  std::string missing_ranks() const;
  std::string unfinished_ranks() const;
  std::string late_ranks() const;
  std::string process_text(int rank) const;
  RankBoard& own_board() const noexcept { return group_.control_->board(rank_); }

  // Between processes: see staging.cpp.
  BufferName further_name(int rank, std::size_t part, bool is_input);
  BufferName own_name(int rank, std::size_t part, bool is_input);
  // Whether buffers may overlap although the staged memory that replaces them does not. One array for each of several
  // processes cannot overlap; then the names need not be sent, which would take time.
  bool may_overlap_unseen() const noexcept { return group_.shares_processes_ || call_size() > 1; }
  std::size_t call_size() const noexcept { return state_->sets[set_].call.buffers.size(); }
  void name_buffers(Purpose purpose, Staging staging);
  void stage_inputs();
  void stage_outputs();
  bool is_to_be_staged(BufferName place, std::size_t bytes) const noexcept;
  bool is_output_to_be_staged(BufferName place, std::size_t bytes) const noexcept;
  bool is_private_output(MappedBuffer to) const noexcept {
    return is_between_processes() && !to.name.is_null() && !to.name.is_shared();
  }
  // Whether any rank has private outputs; the same on all ranks.
  bool has_private_outputs() const noexcept {
    return std::ranges::any_of(state_->mapped_outputs, [&](MappedBuffer spot) { return is_private_output(spot); });
  }
  bool shares_staged_output() const noexcept;
  void write_own_record();
  void resolve_buffers();
  void resolve_results(int announcer, std::size_t num_buffers);
  MappedBuffer map_buffer(int rank, BufferName place);
  static MappedBuffer map_buffer(BufferName place) noexcept { return {place.address(), place, 0}; }
  // Throws if a buffer may no longer have belonged to its rank when it was read. Before this rank publishes that it has
  // read them.
  void check_sources() const;
  void announce_blocks(std::span<const std::size_t> sizes);
  // Calls f(), which passes shared memory to other processes. If it fails or is interrupted, the group fails, since
  // other ranks may wait for this rank in the middle of f().
  template <class F>
  void or_fail(F&& f) {
    try {
      f();
    } catch (const sync::Interrupted&) {
      raise_interruption();
    } catch (const core::AbortedError& error) {
      group_.fail(Group::Cause::kAborted, name_of_call() + " failed: " + error.what());
      group_.raise_failure();
    }
  }
  // The ranks that take the results announced by this rank.
  enum class Takers { kNone, kAll, kOwn, kEachItsOwn };
  template <class F>
  void for_each_hold(F&& f);
  void add_holds(Takers takers);
  bool takes_results();
  void let_go() noexcept;
  void take_staged();
  [[noreturn]] void leave_together();
  [[noreturn]] void give_up_unreachable();

  // Most ranks arrive within the first spins, before the cores of the ranks are compared.
  template <class Ready>
  bool wait_until(sync::Clock::duration limit, sync::Poll* poll, Ready&& is_ready) {
    if (sync::spin_until(std::min(group_.patience_.spins, kFirstSpins), is_ready)) return true;
    return sync::wait_until((*group_.control_)->event, patience(), limit, poll, is_ready);
  }
  // False if the time-out passed first. An interruption also ends the wait; finish() raises it.
  template <class Ready>
  bool wait_for(sync::Clock::duration limit, Ready&& is_ready) {
    try {
      return wait_until(limit, interruption_.poll(), is_ready);
    } catch (const sync::Interrupted&) {
      return true;
    }
  }
  // wait_for() with the group's time-out; a long wait is reported.
  template <class Ready>
  bool wait_for_ranks(Ready&& is_ready) {
    const auto stall = group_.options_.stall;
    const auto timeout =
        group_.options_.timeout == sync::kForever ? sync::kForever : group_.options_.timeout + mine().extra_time;
    if (stall >= timeout) return wait_for(timeout, is_ready);
    if (wait_for(stall, is_ready)) return true;
    const auto stalled_at = sync::Clock::now();
    report_stall();
    if (timeout == sync::kForever) return wait_for(sync::kForever, is_ready);
    return wait_for(timeout - stall - (sync::Clock::now() - stalled_at), is_ready);
  }

  // Waits for an event that is certain among threads, because all ranks are in the call. A process, however, may end or
  // be stopped in the middle of it; then the other ranks leave the call together, so that none reuses memory that
  // another still writes to. A completed call is valid even if the group failed meanwhile.
  template <class Ready>
  void wait_to_the_end(Ready&& is_ready) {
    if (!is_between_processes()) {
      wait_until(sync::kForever, nullptr, is_ready);
      return;
    }
    const auto is_over = [&] { return is_ready() || group_.has_failed(); };
    // A rank that has been interrupted waits only briefly.
    const bool in_time = interruption_.has_come() ? wait_for(kShortWait, is_over) : wait_for_ranks(is_over);
    if (is_ready()) return;
    if (interruption_.has_come()) {
      fail_interrupted();
    } else if (!in_time) {
      fail_late();
    }
    wait_for_leavers(is_ready);  // other ranks may still complete the call
    if (!is_ready()) raise_after_leaving();
  }
  void publish_core(int core) noexcept;
  // For a wait for other ranks, one of which may be on the core of this rank.
  sync::Patience patience() noexcept;
  void raise_interruption();
  void fail_interrupted();
  void fail_without_memory() noexcept;
  void fail_late();
  void report_stall() noexcept;
  std::string describe_ranks(sync::Clock::duration waited);
  std::string describe_late() noexcept;

  // Prevents a rank from reusing its memory while another rank still works on it. Does not wait for stopped ranks,
  // because a stop may be indefinite.
  template <class Ready>
  void wait_for_leavers(Ready&& is_ready) {
    sync::Event& event = (*group_.control_)->event;
    own_board().left_seq.publish(sequence_);
    event.notify();
    const auto end = sync::Clock::now() + kLeavingLimit;
    while (!sync::wait_until(event, group_.patience_, kShortWait, nullptr,
                             [&] { return is_ready() || others_have_left(); })) {
      if (sync::Clock::now() >= end || only_stopped_ones_stay()) return;
    }
  }
  bool has_left(int rank) const noexcept;  // or its process has ended: it no longer accesses buffers of this call
  bool others_have_left() const noexcept;
  bool only_stopped_ones_stay() const;
  [[noreturn]] void raise_after_leaving();
  // Whether other ranks have left the call without this rank, which then accesses none of their memory.
  bool is_left_behind() const noexcept;

  // Waits for ranks in the middle of the work: longer than a running rank takes for a chunk, or for its share of one
  // pass, on a machine that is not heavily overloaded.
  static constexpr sync::Clock::duration kShortWait = std::chrono::milliseconds(100);
  static constexpr sync::Clock::duration kLeavingLimit = std::chrono::seconds(5);
  static constexpr int kFirstSpins = 10;
  static constexpr int kSpinsApart = 5000;
  static constexpr int kWaitsApart = 8;
  static constexpr std::size_t kLargeCall = std::size_t{256} << 10;
  // Doubled by each move, until the ranks have stayed apart for some waits.
  static constexpr sync::Clock::duration kLeastBetweenMoves = std::chrono::microseconds(500);
  static constexpr sync::Clock::duration kMostBetweenMoves = std::chrono::milliseconds(4);
  // Maximum wait after a mismatch for the other ranks to publish their places in the program.
  static constexpr sync::Clock::duration kSiteLimit = std::chrono::milliseconds(300);

  Group& group_;
  int rank_;
  RankState* state_;
  std::uint64_t sequence_;
  std::size_t set_;
  bool is_complete_ = false;
  bool is_all_here_ = true;
  bool saw_departed_ = false;
  bool writes_own_output_ = false;
  bool goes_ = false;  // between processes: others may take results of this call
  bool has_taken_ = false;
  std::uint64_t record_ = 0;      // number of the call's record in the flight recorder
  std::optional<int> announcer_;  // set once the addresses of its results are known
  Takers takers_ = Takers::kNone;
  sync::Interruption interruption_;
};

template <class Work>
void Round::process_chunks(std::size_t num_chunks, Work&& work) {
  const auto first_of = [&](int rank) { return share_begin(num_chunks, rank, num_ranks()); };
  std::size_t finished = 0;
  try {
    for (int i = 0; i < num_ranks(); ++i) {  // this rank's share first, then chunks that others have not begun
      const int owner = (rank_ + i) % num_ranks();
      const std::size_t first = first_of(owner);
      const std::size_t share = first_of(owner + 1) - first;
      for (std::size_t taken = 0; (taken = queue_of(owner).take(share)) < share; ++finished) {
        if (is_left_behind()) throw Unreachable();
        sync::fault_point();
        work(first + taken);
      }
    }
    if (is_between_processes()) {
      if (has_private_outputs()) {
        writes_own_output_ = true;
        for (std::size_t chunk = 0; chunk < num_chunks; ++chunk) work(chunk);
      }
      // If this rank did no work, other ranks may have completed the call and regularly ended their processes.
      if (finished > 0 || writes_own_output_) check_sources();
    }
  } catch (const Unreachable&) {
    give_up_unreachable();  // its chunks stay unfinished: data that it has read may be wrong, so the call must not
                            // complete
  }
  finish_work(finished, num_chunks);
  if (!is_between_processes()) return;
  if (has_private_outputs()) wait_for_readers();
  leave_work();
}

template <class Combine, class Take>
void Round::process_shares(bool reads_private, Combine&& combine, Take&& take) {
  try {
    combine();
    check_sources();
  } catch (const Unreachable&) {
    give_up_unreachable();
  }
  finish_work(1, static_cast<std::size_t>(num_ranks()));
  try {
    take();
    if (reads_private) check_sources();  // else other ranks may have left, but staged memory is unchanged
  } catch (const Unreachable&) {
    give_up_unreachable();
  }
  if (reads_private) wait_for_readers();
  own_board().left_seq.publish(sequence_);
}

}  // namespace ringlet::collectives

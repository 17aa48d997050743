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
  // What this rank calls; begin() empties the record first.
  Call& begin(Kind kind);
  Call& call() noexcept { return mine().sets[set_].call; }
  // The buffers in a call of a remote rank have no addresses. Valid until the end of the round.
  const Call& call_of(int rank) {
    return group_.is_here(rank) ? state_of(rank).sets[set_].call : group_.remote_call(mine(), rank, sequence_).call;
  }
  sync::Slot& slot_of(int rank) noexcept { return board_of(rank).slots[set_]; }
  sync::WorkQueue& queue_of(int rank) noexcept { return board_of(rank).queues[set_]; }
  RankState::Set& set_of(int rank) noexcept { return state_of(rank).sets[set_]; }
  // What a rank sends inside its slot, at an offset.
  const std::byte* payload_of(int rank, std::size_t offset = 0) noexcept { return slot_of(rank).payload() + offset; }

  // The names of the buffers of any rank, once it has arrived. Those of buffer 0 are in the slot.
  BufferName input_name(int rank, std::size_t part) {
    return part == 0 ? BufferName(slot_of(rank).input) : further_name(rank, part, true);
  }
  BufferName output_name(int rank, std::size_t part) {
    return part == 0 ? BufferName(slot_of(rank).output) : further_name(rank, part, false);
  }
  // The same as the rank's caller gave them, where something else stands for them: to see whether they overlap.
  BufferName own_input_name(int rank, std::size_t part) {
    const BufferName place = input_name(rank, part);
    return place.is_staged() && may_overlap_unseen() ? own_name(rank, part, true) : place;
  }
  BufferName own_output_name(int rank, std::size_t part) {
    const BufferName place = output_name(rank, part);
    return place.is_staged() && may_overlap_unseen() ? own_name(rank, part, false) : place;
  }
  // Where two places of equal bits may be different memory: the process of the rank, for its private memory.
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
  // What the announcer of this call's results allocated. After arrive_for_work().
  std::byte* result_of(int announcer, std::size_t index) {
    return is_between_processes() ? mine().results[index].here : state_of(announcer).sets[set_].results[index];
  }
  MappedBuffer mapped_result(int announcer, std::size_t index) {
    return is_between_processes() ? mine().results[index]
                                  : MappedBuffer{result_of(announcer, index), BufferName(), announcer};
  }

  // Whether all buffers of this call are here. Where one is not, algorithms work on blocks of at most block_bytes() of
  // each buffer, and bring them in and out by `lanes` of this rank's scratch memory. Numbers of lanes begin with 0.
  bool is_all_here() const noexcept { return is_all_here_; }
  // Whether the work writes this output of ranks that all get the same: see take_staged.
  bool is_written(int rank, std::size_t part);
  std::size_t block_bytes(std::size_t num_lanes) const noexcept;
  const std::byte* fetch(MappedBuffer from, std::size_t bytes, std::size_t lane, std::size_t num_lanes);
  // Copies unless the output is another rank's to write: see may_write().
  void copy(MappedBuffer from, std::size_t bytes, MappedBuffer to, kernels::Store store);
  // A rank writes to shared memory while it takes chunks, and then to its own private output.
  bool may_write(MappedBuffer to) const noexcept;

  // Allocates one shared result per buffer unless there are outputs. Before arriving, by one rank that all agree on.
  void announce_results();
  // Allocates one result for all ranks, or for this one alone.
  void announce_result(std::size_t bytes, bool is_for_all);
  // Allocates results of these sizes, one for each rank, which alone takes its own.
  void announce_for_each(std::span<const std::size_t> sizes);
  // Publishes one name to the other ranks, in slot_of(rank()).result.
  void announce_name(BufferName place) { mine().sets[set_].result_names.assign(1, place); }

  // Publishes this rank's call, waits for all others, and compares. Afterwards other ranks' slots may be read.
  void arrive();
  // The same; afterwards it is known, too, what memory the ranks of other processes have.
  void arrive_to_tell();
  // The same; afterwards other ranks' buffers may be read and written until the work is done, so no rank may leave
  // before that.
  void arrive_for_work();
  // The same between processes, for an algorithm that itself chooses what stands for private buffers: `stage()` runs
  // before arriving, once the buffers have names.
  template <class Stage>
  void arrive_for_work(Stage&& stage) {
    await_others_for_work({[](void* context) { (*static_cast<std::remove_reference_t<Stage>*>(context))(); }, &stage});
  }

  // Ends a call that took place: raises what interrupted a wait of it, if anything did, and fails the group then.
  void finish();

  // This rank's hold on the results that `announcer` allocated.
  Results take_results(int announcer);
  // Marks the results of this call as unused, as all ranks have determined: it does no work.
  void call_off() noexcept { goes_ = false; }

  // Takes chunks until none is left, then waits until all are finished. `work` handles the chunk of a number.
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

  // Between processes: the same where each rank does a part of the work of its own. It calls combine(), waits until all
  // ranks have, and calls take(). With `reads_private` it then waits again: other ranks read its private buffers.
  template <class Combine, class Take>
  void process_shares(bool reads_private, Combine&& combine, Take&& take);

  // Between processes, after the work: takes results from the staged memory that stands for an output of this rank, and
  // publishes that it needs nothing more of the others.
  void leave_work();

  // Between processes: shared memory of `bytes` that stands for a buffer of this rank, kept in `block`; its name.
  BufferName stage(memory::Block& block, std::size_t bytes);
  // What a rank has announced by announce_name().
  std::byte* announced_by(int rank);
  // Copies a buffer of any rank.
  void read(MappedBuffer from, std::size_t bytes, std::byte* to);

  // Fails the group on account of an argument that every rank finds wrong. Before any work.
  [[noreturn]] void refuse(const std::string& problem);

 private:
  // The memory of another process could not be read.
  class Unreachable {};

  bool all_have_arrived() const noexcept;
  bool misses_departed() const noexcept;
  bool is_hopeless() noexcept;  // further waiting is useless: the group failed, or a missing rank has departed
  // The purpose of an arrival: to read slots, to publish buffer names, or to work on buffers.
  enum class Purpose { kSlots, kNames, kWork };
  // What an algorithm does in the place of stage_inputs() and stage_outputs(), if it does.
  struct Staging {
    void (*call)(void*);
    void* context;
  };
  void publish(Purpose purpose, Staging staging = {});
  void await_others(Purpose purpose);
  void await_others_for_work(Staging staging);
  bool propose_to_leave();  // false if the call goes all the same
  void compare();
  bool is_finished(std::size_t chunks) const noexcept;
  void finish_work(std::size_t finished, std::size_t num_chunks);
  // Publishes that this rank has read other ranks' private buffers, and waits until all ranks have.
  void wait_for_readers();
  [[noreturn]] void give_up(bool timed_out);
  std::string name_of_call() const;
  std::string missing_ranks() const;
  std::string process_text(int rank) const;
  RankBoard& own_board() const noexcept { return group_.control_->board(rank_); }

  // Between processes: see staging.cpp.
  BufferName further_name(int rank, std::size_t part, bool is_input);
  BufferName own_name(int rank, std::size_t part, bool is_input);
  // What stands for buffers does not overlap, although they may. Ranks of several processes, with one array each, have
  // none in common; and telling takes time.
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
  // Of any rank: all ranks see the same.
  bool has_private_outputs() const noexcept {
    return std::ranges::any_of(state_->mapped_outputs, [&](MappedBuffer spot) { return is_private_output(spot); });
  }
  bool shares_staged_output() const noexcept;
  void write_own_record();
  void resolve_buffers();
  void resolve_results(int announcer, std::size_t num_buffers);
  MappedBuffer map_buffer(int rank, BufferName place);
  static MappedBuffer map_buffer(BufferName place) noexcept { return {place.address(), place, 0}; }
  // Throws if a buffer that was just read may no longer have belonged to its rank. Before this rank publishes that it
  // has read them.
  void check_sources() const;
  void announce_blocks(std::span<const std::size_t> sizes);
  // Calls f(), which passes shared memory to other processes. Where that fails, or is interrupted, so does the group:
  // others may wait for this rank in the middle of what it does.
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

  // False if the time was over first. An interruption ends the wait, too: finish() raises it.
  template <class Ready>
  bool wait_for(sync::Clock::duration limit, Ready&& is_ready) {
    try {
      return sync::wait_until((*group_.control_)->event, group_.patience_, limit, interruption_.poll(), is_ready);
    } catch (const sync::Interrupted&) {
      return true;
    }
  }

  // For what is sure to come among threads, because all ranks are in the call. A process may end in the middle of it,
  // or be stopped: then those that are left leave it together, so that none goes on to use memory that another still
  // writes to. A call that was brought to an end counts, whatever failed meanwhile.
  template <class Ready>
  void wait_to_the_end(Ready&& is_ready) {
    if (!is_between_processes()) {
      sync::wait_until((*group_.control_)->event, group_.patience_, sync::kForever, nullptr, is_ready);
      return;
    }
    // A rank that was interrupted before waits only briefly.
    const auto limit = interruption_.has_come() ? kShortWait : group_.options_.timeout;
    const bool in_time = wait_for(limit, [&] { return is_ready() || group_.has_failed(); });
    if (is_ready()) return;
    if (interruption_.has_come()) {
      fail_interrupted();
    } else if (!in_time) {
      fail_late_work();
    }
    wait_for_leavers(is_ready);  // others may still be at work, and bring it to an end
    if (!is_ready()) raise_after_leaving();
  }
  void raise_interruption();
  void fail_interrupted();
  void fail_without_memory() noexcept;
  void fail_late_work();

  // Keeps a rank from reusing its memory while another still works on it. There is no wait for stopped ranks: the end
  // of a stop is unknown.
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
  bool others_have_left() const noexcept;
  bool only_stopped_ones_stay() const;
  [[noreturn]] void raise_after_leaving();
  // Whether other ranks have left the call without this rank, which then accesses none of their memory.
  bool is_left_behind() const noexcept;

  // Longer than a rank that runs takes for a chunk, or for its share of one pass, on a machine that is not far too
  // busy.
  static constexpr sync::Clock::duration kShortWait = std::chrono::milliseconds(100);
  static constexpr sync::Clock::duration kLeavingLimit = std::chrono::seconds(5);

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
  std::optional<int> announcer_;  // of results, once their places are known
  Takers takers_ = Takers::kNone;
  sync::Interruption interruption_;
};

template <class Work>
void Round::process_chunks(std::size_t num_chunks, Work&& work) {
  const auto first_of = [&](int rank) { return share_begin(num_chunks, rank, num_ranks()); };
  std::size_t finished = 0;
  try {
    for (int i = 0; i < num_ranks(); ++i) {  // the own share first, then what others have not begun
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
      // Without work of this rank the others may have ended the call, and their processes, as they should.
      if (finished > 0 || writes_own_output_) check_sources();
    }
  } catch (const Unreachable&) {
    give_up_unreachable();  // its chunks stay unfinished: what it has read may be wrong, so no rank may count this call
  }
  finish_work(finished, num_chunks);
  if (!is_between_processes()) return;
  if (has_private_outputs()) wait_for_readers();
  leave_work();
}

template <class Combine, class Take>
void Round::process_shares(bool reads_private, Combine&& combine, Take&& take) {
  try {
    if (is_left_behind()) throw Unreachable();
    combine();
    check_sources();
  } catch (const Unreachable&) {
    give_up_unreachable();
  }
  finish_work(1, static_cast<std::size_t>(num_ranks()));
  try {
    take();
    if (reads_private) check_sources();  // else others may have left by now: staged memory stays as it is
  } catch (const Unreachable&) {
    give_up_unreachable();
  }
  if (reads_private) wait_for_readers();
  own_board().left_seq.publish(sequence_);
}

}  // namespace ringlet::collectives

// One call in progress, as the algorithms see it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <vector>

#include "ringlet/collectives/chunks.hpp"
#include "ringlet/collectives/group.hpp"
#include "ringlet/sync/counters.hpp"
#include "ringlet/sync/gate.hpp"
#include "ringlet/sync/slot.hpp"
#include "ringlet/sync/wait.hpp"

namespace ringlet::collectives {

// Calls use two sets of everything in turn. A rank that begins call s has seen all ranks arrive at call s - 1, so all
// of them have left call s - 2, whose set it takes.
inline constexpr std::size_t kSets = 2;

// What a rank shows to the others. Others read it between the rank's arrival and its next call but one.
struct alignas(sync::kCacheLine) RankState {
  std::array<sync::Slot, kSets> slots;
  std::array<sync::Share, kSets> shares;
  sync::StepCounter steps;
  sync::Flag has_departed;
  sync::Flag is_busy;

  struct Set {
    Call call;
    std::vector<std::byte*> results;  // shared results that this rank allocated for all
    std::vector<Results> holds;       // what keeps them alive: one for every rank, which takes it away
    std::shared_ptr<Group> part;      // of a split: the group that this rank made for its color
  };
  std::array<Set, kSets> sets;

  // The owner's own notes.
  std::uint64_t sequence = 0;  // the last call that it arrived at
  std::uint64_t ring_steps = 0;
  Chunks chunks;
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
};

struct Group::Shared {
  std::array<sync::Gate, kSets> gates;
  sync::Event event;
  sync::Flag has_leavers;  // some rank has wanted to leave a call: see Gate
  sync::Flag has_failed;
  sync::Flag has_departures;
};

// Entered by every rank for every call, left at its end.
class Round {
 public:
  Round(Group& group, int rank, sync::Poll* poll);
  Round(const Round&) = delete;
  Round& operator=(const Round&) = delete;
  ~Round();

  int rank() const noexcept { return rank_; }
  int num_ranks() const noexcept { return group_.num_ranks(); }
  RankState& mine() noexcept { return *group_.ranks_[static_cast<std::size_t>(rank_)]; }
  RankState& of(int rank) noexcept { return *group_.ranks_[static_cast<std::size_t>(rank)]; }
  // What this rank calls; begin() empties the record first.
  Call& begin(Kind kind) {
    mine().sets[set_].part.reset();
    call().reset(kind);
    return call();
  }
  Call& call() noexcept { return mine().sets[set_].call; }
  const Call& call_of(int rank) noexcept { return of(rank).sets[set_].call; }
  sync::Slot& slot_of(int rank) noexcept { return of(rank).slots[set_]; }
  // The buffers of any rank. Those of the first part stand in the slot.
  const void* input_of(int rank, std::size_t part) noexcept {
    return part == 0 ? slot_of(rank).input : call_of(rank).parts[part].input;
  }
  void* output_of(int rank, std::size_t part) noexcept {
    return part == 0 ? slot_of(rank).output : call_of(rank).parts[part].output;
  }
  sync::Share& share_of(int rank) noexcept { return of(rank).shares[set_]; }
  // What a rank sends inside its slot, at an offset.
  const std::byte* payload_of(int rank, std::size_t offset = 0) noexcept { return slot_of(rank).payload() + offset; }
  RankState::Set& set_of(int rank) noexcept { return of(rank).sets[set_]; }

  // Allocates one shared result per part unless there are outputs, and a scratch buffer per part whose result has
  // another type than its input if the algorithm wants one. Before arriving, by one rank that all agree on.
  void announce_results(bool with_scratch);
  // Allocates one result for all ranks, or for this one alone.
  void announce_result(std::size_t bytes, bool is_for_all);
  // Allocates results of these sizes, one for each rank, which alone takes its own.
  void announce_for_each(std::span<const std::size_t> sizes);
  std::byte* result_of(int announcer, std::size_t index) noexcept { return of(announcer).sets[set_].results[index]; }

  // Publishes this rank's call, waits for all others, and compares. Afterwards other ranks' slots may be read.
  void arrive();
  // The same; afterwards other ranks' buffers may be read and written until the work is done, so no rank may leave
  // before that.
  void arrive_for_work();

  // Ends a call that took place: raises what interrupted the wait for it, if anything did.
  void finish();

  // This rank's hold on the results that `announcer` allocated, without the scratch buffers.
  Results take_results(int announcer);

  // Takes chunks until none is left, then waits until all are finished. `work` handles the chunk of a number.
  template <class Work>
  void share_work(std::size_t num_chunks, Work&& work);
  template <class Work>
  void share_work(const Chunks& chunks, Work&& work) {
    share_work(chunks.size(), [&](std::size_t chunk) {
      for (const Run& run : chunks[chunk]) work(run);
    });
  }
  template <class Work>
  void share_work(const Ranges& ranges, Work&& work) {
    share_work(ranges.size(), [&](std::size_t chunk) { work(ranges[chunk]); });
  }

  // Ring steps: waits until `rank` has finished `steps` of them since the group was made.
  void wait_for_steps(int rank, std::uint64_t steps);
  void finish_step();

  // Fails the group on account of an argument that every rank finds wrong. Before any work.
  [[noreturn]] void refuse(const std::string& problem);

 private:
  bool all_have_arrived() const noexcept;
  bool misses_departed() const noexcept;
  bool is_hopeless() noexcept;  // no use waiting any longer: failed, or somebody who is missing has departed
  void publish();
  bool propose_to_leave();  // false if the call goes all the same
  void compare();
  bool is_finished(std::size_t chunks) const noexcept;
  [[noreturn]] void give_up(bool timed_out);
  std::string name_of_call() const;
  std::string missing_ranks() const;

  // False if the time was over first. An interruption ends the wait, too: finish() raises it.
  template <class Ready>
  bool wait_for_arrivals(Ready&& is_ready) {
    try {
      return sync::wait_until(group_.shared_->event, group_.patience_, group_.options_.timeout, poll_, is_ready);
    } catch (...) {
      interruption_ = std::current_exception();
      return true;
    }
  }

  // For what is sure to come, because all ranks are in the call.
  template <class Ready>
  void wait_to_the_end(Ready&& is_ready) {
    sync::wait_until(group_.shared_->event, group_.patience_, sync::kForever, nullptr, is_ready);
  }

  Group& group_;
  int rank_;
  sync::Poll* poll_;
  std::uint64_t sequence_;
  std::size_t set_;
  bool saw_departed_ = false;
  std::exception_ptr interruption_;
};

template <class Work>
void Round::share_work(std::size_t num_chunks, Work&& work) {
  const auto first_of = [&](int rank) { return share_begin(num_chunks, rank, num_ranks()); };
  std::size_t finished = 0;
  for (int i = 0; i < num_ranks(); ++i) {  // the own share first, then what others have not begun
    const int owner = (rank_ + i) % num_ranks();
    const std::size_t first = first_of(owner);
    const std::size_t share = first_of(owner + 1) - first;
    for (std::size_t taken = 0; (taken = share_of(owner).take(share)) < share; ++finished) work(first + taken);
  }
  share_of(rank_).publish_done(finished);
  if (is_finished(num_chunks)) {
    group_.shared_->event.notify();
  } else {
    wait_to_the_end([&] { return is_finished(num_chunks); });
  }
}

}  // namespace ringlet::collectives

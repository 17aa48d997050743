// What one rank sees of a call: its own state, and what the other ranks publish.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ringlet/collectives/group/control.hpp"
#include "ringlet/collectives/group/group.hpp"
#include "ringlet/collectives/group/rank_state.hpp"
#include "ringlet/collectives/transport/buffer_name.hpp"

namespace ringlet::collectives {

// Holds the rank while it exists: another thread that drives the same rank gets an error.
class CallView {
 public:
  CallView(const CallView&) = delete;
  CallView& operator=(const CallView&) = delete;

  int rank() const noexcept { return rank_; }
  int num_ranks() const noexcept { return group_.num_ranks(); }
  // Whether ranks belong to several processes.
  bool is_between_processes() const noexcept { return group_.world_ != nullptr; }
  // The process of a rank: equal names of private memory in different processes are different memory.
  int process_of(int rank) const noexcept { return group_.process_of(rank); }

  RankState& mine() noexcept { return *state_; }
  RankState& state_of(int rank) noexcept { return *group_.states_[static_cast<std::size_t>(rank)]; }
  RankState::Set& set_of(int rank) noexcept { return state_of(rank).sets[set_]; }
  // The record of this rank's call; begin() empties it first.
  Call& begin(Kind kind);
  Call& call() noexcept { return own_set().call; }
  const Call& call() const noexcept { return own_set().call; }

  // After all ranks have arrived, until the end of the call: the call of any rank, in which buffers of a remote rank
  // have no addresses, and the payload in its slot, from an offset on.
  const Call& call_of(int rank) { return group_.is_here(rank) ? set_of(rank).call : remote_call(rank).call; }
  const std::byte* payload_of(int rank, std::size_t offset = 0) noexcept { return slot_of(rank).payload() + offset; }
  sync::Slot& slot_of(int rank) noexcept { return board_of(rank).slots[set_]; }

 protected:
  CallView(Group& group, int rank);
  ~CallView() { mine().is_busy.set(false); }

  ControlBlock& block() const noexcept { return *group_.control_; }
  Control& control() const noexcept { return *block(); }
  World& world() const noexcept { return *group_.world_; }
  RankBoard& board_of(int rank) const noexcept { return block().board(rank); }
  RankBoard& own_board() const noexcept { return board_of(rank_); }
  RankState::Set& own_set() noexcept { return state_->sets[set_]; }
  const RankState::Set& own_set() const noexcept { return state_->sets[set_]; }
  RemoteCall& remote_call(int rank) { return group_.remote_call(mine(), rank, sequence_); }

  bool has_arrived(const RankBoard& board) const noexcept { return board.slots[set_].has_arrived(sequence_); }
  bool all_have_arrived() const noexcept;

  Group& group_;
  int rank_;
  RankState* state_;
  std::uint64_t sequence_ = 0;
  std::size_t set_ = 0;
};

}  // namespace ringlet::collectives

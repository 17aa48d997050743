// The control block of a group: the state that all its ranks share.
//
// It lies on the heap (ranks that are threads of one process) or in shared memory, which processes map at different
// addresses (see world.hpp). It therefore contains no pointers and owns nothing. The private state of a rank is in its
// RankState.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>

#include "ringlet/collectives/group/fixed_text.hpp"
#include "ringlet/sync/counters.hpp"
#include "ringlet/sync/event.hpp"
#include "ringlet/sync/failure_word.hpp"
#include "ringlet/sync/gate.hpp"
#include "ringlet/sync/slot.hpp"

namespace ringlet::collectives {

// Calls alternate between two sets of all state. A rank that begins call s has seen all ranks arrive at call s - 1, so
// all ranks have left call s - 2, whose set it reuses.
inline constexpr std::size_t kSets = 2;

// State that a rank publishes. Other ranks read it between its arrival and its next call but one.
struct alignas(sync::kCacheLine) RankBoard {
  std::array<sync::Slot, kSets> slots;
  std::array<sync::WorkQueue, kSets> queues;
  sync::SequenceNumber read_seq;  // the last call in which it has read the private buffers of others
  sync::SequenceNumber left_seq;  // the last call whose buffers it no longer works on: see RankWaits::wait_to_the_end
  sync::SequenceNumber over;      // the last call whose memory it no longer accesses: see Group::retire
  sync::SequenceNumber located;   // the last call of which `call_site` is the place in the program
  FixedText<184> call_site;
  alignas(sync::kCacheLine) sync::RelaxedNumber core;  // core on which it began its last call, plus 1; 0 while it moves
  sync::Flag has_departed;
  FixedText<184> departure;  // the reason; written before has_departed is set
};

// Text of a failure, which a process writes before it claims the failure word.
struct FailureNote {
  FixedText<3832> text;
  FixedText<248> reason;  // how the lost process ended
};

// The stacks of the ranks of a process, which it writes at the request of another process.
struct StackNote {
  FixedText<8120> texts;         // one for each of its ranks, separated by kStackSeparator
  sync::SequenceNumber answers;  // number of requests that it has answered
  sync::RelaxedNumber signal;    // signal that makes it print its stacks: see ThreadReports; 0 for none
};
inline constexpr char kStackSeparator = '\x1e';

// The record of a call for ranks of other processes: see call_record.hpp.
using RecordArea = std::array<std::uint64_t, 1024>;

struct alignas(sync::kCacheLine) Control {
  static constexpr std::uint64_t kMagic = 0x72696E676C657431;  // "ringlet1"

  std::uint64_t magic = kMagic;
  std::uint64_t size_bytes = 0;
  std::int32_t num_ranks = 0;
  std::int32_t num_processes = 0;
  std::uint64_t identity = 0;  // for the flight recorder: 64 bits that no other group of this host should have
  std::array<sync::Gate, kSets> gates;
  sync::Event event;
  sync::Flag has_leavers;  // a rank intends to leave a call: see Gate
  sync::Flag has_departures;
  sync::FailureWord failure;
  sync::ClaimedSequence stalled;   // the last call that a rank reports as stalled
  sync::SequenceNumber described;  // the last call of which `stacks` is written: by the rank that has claimed `stalled`
  FixedText<3056> stacks;          // what all ranks executed
};
static_assert(std::is_trivially_destructible_v<Control> && std::is_trivially_destructible_v<RankBoard>);

// The block: Control, a RankBoard for each rank; between processes also a FailureNote and a StackNote for each
// process and kSets RecordAreas for each rank.
class ControlBlock {
 public:
  ControlBlock() = default;
  // Creates a block in `memory`, which is aligned to a cache line and has bytes_for() bytes. With num_processes 0, for
  // the threads of one process.
  static ControlBlock make(std::byte* memory, int num_ranks, int num_processes);
  // Finds the block that another process has created; throws core::MismatchError if it is not a control block of this
  // shape.
  static ControlBlock find(std::byte* memory, int num_ranks, int num_processes);
  static std::size_t bytes_for(int num_ranks, int num_processes);

  Control* operator->() const noexcept { return control_; }
  Control& operator*() const noexcept { return *control_; }
  RankBoard& board(int rank) const noexcept { return boards_[rank]; }
  std::span<RankBoard> boards() const noexcept { return {boards_, static_cast<std::size_t>(control_->num_ranks)}; }
  FailureNote& note(int process) const noexcept { return notes_[process]; }
  StackNote& stacks(int process) const noexcept { return stacks_[process]; }
  RecordArea& record(int rank, std::size_t set) const noexcept {
    return records_[static_cast<std::size_t>(rank) * kSets + set];
  }

 private:
  ControlBlock(std::byte* memory, int num_ranks, int num_processes);

  Control* control_ = nullptr;
  RankBoard* boards_ = nullptr;
  FailureNote* notes_ = nullptr;
  StackNote* stacks_ = nullptr;
  RecordArea* records_ = nullptr;
};

}  // namespace ringlet::collectives

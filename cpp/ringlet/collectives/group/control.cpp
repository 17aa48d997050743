#include "ringlet/collectives/group/control.hpp"

#include <unistd.h>

#include <chrono>
#include <new>
#include <string>

#include "ringlet/core/error.hpp"

namespace ringlet::collectives {

namespace {

std::size_t boards_end(int num_ranks) {
  return sizeof(Control) + static_cast<std::size_t>(num_ranks) * sizeof(RankBoard);
}

std::size_t notes_end(int num_ranks, int num_processes) {
  return boards_end(num_ranks) + static_cast<std::size_t>(num_processes) * sizeof(FailureNote);
}

std::size_t stacks_end(int num_ranks, int num_processes) {
  return notes_end(num_ranks, num_processes) + static_cast<std::size_t>(num_processes) * sizeof(StackNote);
}

std::uint64_t new_identity() {
  static sync::Tally made;
  std::uint64_t bits = static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
  bits = (bits ^ static_cast<std::uint64_t>(getpid()) << 40 ^ made.add() << 20) * 0x9E3779B97F4A7C15;
  return bits ^ bits >> 32;
}

}  // namespace

std::size_t ControlBlock::bytes_for(int num_ranks, int num_processes) {
  const std::size_t end = stacks_end(num_ranks, num_processes);
  return num_processes == 0 ? end : end + static_cast<std::size_t>(num_ranks) * kSets * sizeof(RecordArea);
}

ControlBlock::ControlBlock(std::byte* memory, int num_ranks, int num_processes)
    : control_(reinterpret_cast<Control*>(memory)),
      boards_(reinterpret_cast<RankBoard*>(memory + sizeof(Control))),
      notes_(reinterpret_cast<FailureNote*>(memory + boards_end(num_ranks))),
      stacks_(reinterpret_cast<StackNote*>(memory + notes_end(num_ranks, num_processes))),
      records_(reinterpret_cast<RecordArea*>(memory + stacks_end(num_ranks, num_processes))) {}

ControlBlock ControlBlock::make(std::byte* memory, int num_ranks, int num_processes) {
  const ControlBlock block(memory, num_ranks, num_processes);
  for (int rank = 0; rank < num_ranks; ++rank) new (&block.board(rank)) RankBoard;
  for (int process = 0; process < num_processes; ++process) {
    new (&block.note(process)) FailureNote;
    new (&block.stacks(process)) StackNote;
  }
  new (memory) Control;
  block->size_bytes = bytes_for(num_ranks, num_processes);
  block->num_ranks = num_ranks;
  block->num_processes = num_processes;
  block->identity = new_identity();
  return block;
}

ControlBlock ControlBlock::find(std::byte* memory, int num_ranks, int num_processes) {
  const ControlBlock block(memory, num_ranks, num_processes);
  if (block->magic == Control::kMagic && block->size_bytes == bytes_for(num_ranks, num_processes) &&
      block->num_ranks == num_ranks && block->num_processes == num_processes) {
    return block;
  }
  throw core::MismatchError("the first process of this group created it for " + std::to_string(block->num_ranks) +
                            " ranks in " + std::to_string(block->num_processes) +
                            " processes, but this process expects " + std::to_string(num_ranks) + " ranks in " +
                            std::to_string(num_processes) +
                            ". Use the same ranks and the same version of ringlet in every process.");
}

}  // namespace ringlet::collectives

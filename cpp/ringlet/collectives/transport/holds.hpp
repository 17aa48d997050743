// Blocks of shared memory, and which processes hold them.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "ringlet/memory/pool.hpp"
#include "ringlet/memory/shared_heap.hpp"
#include "ringlet/sync/counters.hpp"
#include "ringlet/sync/process/process.hpp"
#include "ringlet/sync/process/process_refcount.hpp"
#include "ringlet/sync/time_mark.hpp"

namespace ringlet::collectives {

// What stands before the data of a block. A block is given out with one hold of its owner, who adds the holds of others
// before it tells them; each hold is let go of once, when the Block that stands for it dies.
struct BlockHeader {
  static constexpr int kMostProcesses = 1000;

  std::uint64_t bytes = 0;
  std::array<sync::HoldWord, kMostProcesses> holds;
};
static_assert(sizeof(BlockHeader) <= memory::SharedBlock::kHeaderBytes);

inline BlockHeader& header_of(std::byte* data) {
  return *reinterpret_cast<BlockHeader*>(data - memory::SharedBlock::kHeaderBytes);
}

// Those who may hold blocks of this process. One that has ended holds nothing any more. That is told by whoever watches
// the processes; blocks may be lent for longer than that, and then this looks for itself, now and then. It keeps no
// handles for that: arrays may be kept for ever.
class Borrowers final : public memory::Lender {
 public:
  Borrowers(int own_index, int num_processes)
      : own_index_(own_index),
        has_ended_(static_cast<std::size_t>(num_processes)),
        processes_(static_cast<std::size_t>(num_processes)) {}

  void lend(const memory::SharedBlock& block) const noexcept override;
  bool has_back(const memory::SharedBlock& block) const noexcept override;

  bool has_ended(int process) const noexcept;
  void set_ended(int process) noexcept { has_ended_[static_cast<std::size_t>(process)].set(true); }
  int own_index() const noexcept { return own_index_; }

  // Which process that is, by one who knows it. Before watch_alone().
  void set_process(int process, const sync::Pidfd& handle) noexcept;
  // From now on nobody else tells which processes have ended.
  void watch_alone() noexcept { is_alone_.set(true); }

 private:
  static constexpr std::chrono::milliseconds kBetweenLooks{100};

  void look() const noexcept;

  int own_index_;
  mutable std::vector<sync::Flag> has_ended_;
  std::vector<sync::LivingProcess> processes_;
  sync::Flag is_alone_;
  mutable sync::TimeMark next_look_;
};

// A Block that lets go of one hold of this process. `keeper` keeps the mapping.
memory::Block hold(std::byte* data, int own_index, std::shared_ptr<const void> keeper);

// A new block that this process holds once, from its own shared memory. Throws core::SharedMemoryError.
memory::Block allocate_shared(std::size_t bytes, const std::shared_ptr<const Borrowers>& borrowers);

// The same of a process that shares it with nobody yet.
memory::Block allocate_shared(std::size_t bytes);

}  // namespace ringlet::collectives

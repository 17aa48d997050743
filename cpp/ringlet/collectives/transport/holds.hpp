// Blocks of shared memory, and their reference counts per process.
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

// Header before the data of a block. A block is allocated with one hold of its owner, which adds the holds of other
// processes before it sends them the name; each hold is released once, when its Block is destroyed. The header ends at
// the data, and the memory of a block has only its last bytes_for(processes) bytes.
struct BlockHeader {
  static constexpr int kMostProcesses = 1000;

  std::array<sync::ProcessRefcount, kMostProcesses> holds;  // the last process first
  std::uint64_t bytes = 0;

  sync::ProcessRefcount& holds_of(int process) { return holds[static_cast<std::size_t>(kMostProcesses - 1 - process)]; }
  static constexpr std::size_t bytes_for(std::size_t processes) {
    return sizeof(std::uint64_t) + processes * sizeof(sync::ProcessRefcount);
  }
};
static_assert(sizeof(BlockHeader) <= memory::SharedBlock::kMostHeaderBytes);
static_assert(sizeof(BlockHeader) == BlockHeader::bytes_for(BlockHeader::kMostProcesses));

inline BlockHeader& header_of(std::byte* data) { return *reinterpret_cast<BlockHeader*>(data - sizeof(BlockHeader)); }

// Reclaims a block once every process that holds it has released it or ended. The peer monitor reports ended processes;
// blocks may outlive the monitor, and then this class checks the processes itself, at intervals. It keeps no process
// handles for this, because arrays may be kept for ever.
class ProcessReclaimPolicy final : public memory::ReclaimPolicy {
 public:
  ProcessReclaimPolicy(int own_index, int num_processes)
      : own_index_(own_index),
        has_ended_(static_cast<std::size_t>(num_processes)),
        processes_(static_cast<std::size_t>(num_processes)) {}

  void lend(const memory::SharedBlock& block) const noexcept override;
  bool is_reclaimable(const memory::SharedBlock& block) const noexcept override;

  bool has_ended(int process) const noexcept;
  void set_ended(int process) noexcept { has_ended_[static_cast<std::size_t>(process)].set(true); }
  int own_index() const noexcept { return own_index_; }
  std::size_t num_processes() const noexcept { return has_ended_.size(); }

  // Sets the pid to check for a process. Before watch_alone().
  void set_process(int process, const sync::Pidfd& handle) noexcept;
  // Makes this object detect ended processes itself from now on.
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

// Return a Block that releases one hold of this process when destroyed. `keeper` keeps the mapping.
memory::Block hold(std::byte* data, int own_index, std::shared_ptr<const void> keeper);

// A new block that this process holds once, from its own shared memory. Throws core::SharedMemoryError.
memory::Block allocate_shared(std::size_t bytes, const std::shared_ptr<const ProcessReclaimPolicy>& reclaim_policy);

// A new block of a process that belongs to no group yet.
memory::Block allocate_shared(std::size_t bytes);

}  // namespace ringlet::collectives

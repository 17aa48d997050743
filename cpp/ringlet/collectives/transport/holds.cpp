#include "ringlet/collectives/transport/holds.hpp"

#include <new>
#include <utility>

#include "ringlet/memory/poison.hpp"
#include "ringlet/sync/process/fork.hpp"

namespace ringlet::collectives {

namespace {

// The object behind a Block of shared memory.
class Hold {
 public:
  Hold(std::byte* data, int own_index, std::shared_ptr<const void> keeper)
      : region_(data, header_of(data).bytes), own_index_(own_index), keeper_(std::move(keeper)) {}
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
  // The hold belongs to the process that took it, not to its forked children.
  ~Hold() {
    if (generation_ != sync::fork_generation()) return;
    const bool is_last = header_of(region_.data()).holds_of(own_index_).release() == 0;
    if (is_last && keeper_ == nullptr) memory::SharedHeap::of_this_process().note_released(region_.data());
  }

  memory::Region* region() { return &region_; }

 private:
  memory::Region region_;
  int own_index_;
  std::shared_ptr<const void> keeper_;  // null for a block of this process
  std::uint64_t generation_ = sync::fork_generation();
};

}  // namespace

void ProcessReclaimPolicy::lend(const memory::SharedBlock& block) const noexcept {
  BlockHeader& header = header_of(block.data);
  header.bytes = block.bytes;
  for (int process = 0; process < static_cast<int>(num_processes()); ++process) header.holds_of(process).clear();
  header.holds_of(own_index_).add(1);
}

bool ProcessReclaimPolicy::is_reclaimable(const memory::SharedBlock& block) const noexcept {
  BlockHeader& header = header_of(block.data);
  for (int process = 0; process < static_cast<int>(num_processes()); ++process) {
    if (header.holds_of(process).is_held() && !has_ended(process)) return false;
  }
  return true;
}

bool ProcessReclaimPolicy::has_ended(int process) const noexcept {
  const sync::Flag& flag = has_ended_[static_cast<std::size_t>(process)];
  if (flag.is_set()) return true;
  if (process == own_index_ || !is_alone_.is_set()) return false;
  if (next_look_.pass(kBetweenLooks)) look();
  return flag.is_set();
}

void ProcessReclaimPolicy::set_process(int process, const sync::Pidfd& handle) noexcept {
  const auto index = static_cast<std::size_t>(process);
  try {
    processes_[index] = sync::LivingProcess(handle.pid());
  } catch (const std::bad_alloc&) {  // its holds then stay in place
  }
  if (handle.has_ended()) has_ended_[index].set(true);  // the pid may have belonged to another process
}

void ProcessReclaimPolicy::look() const noexcept {
  try {
    for (std::size_t process = 0; process < processes_.size(); ++process) {
      if (!has_ended_[process].is_set() && processes_[process].has_ended()) has_ended_[process].set(true);
    }
  } catch (const std::bad_alloc&) {  // checked again by the next call
  }
}

memory::Block hold(std::byte* data, int own_index, std::shared_ptr<const void> keeper) {
  auto held = std::make_shared<Hold>(data, own_index, std::move(keeper));
  memory::Region* const region = held->region();
  return {std::move(held), region};
}

memory::Block allocate_shared(std::size_t bytes, const std::shared_ptr<const ProcessReclaimPolicy>& reclaim_policy) {
  const memory::SharedBlock block = memory::SharedHeap::of_this_process().allocate(
      bytes, reclaim_policy, BlockHeader::bytes_for(reclaim_policy->num_processes()));
  memory::poison(block.data, bytes);
  return hold(block.data, reclaim_policy->own_index(), nullptr);
}

memory::Block allocate_shared(std::size_t bytes) {
  // Never destroyed: blocks may outlive static objects.
  static const auto& only_this_process =
      *new std::shared_ptr<const ProcessReclaimPolicy>(std::make_shared<ProcessReclaimPolicy>(0, 1));
  return allocate_shared(bytes, only_this_process);
}

}  // namespace ringlet::collectives

// Reclaiming of memory that remote ranks may still access when this process no longer uses it.
#include <algorithm>
#include <cstdint>
#include <exception>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "ringlet/collectives/group/control.hpp"
#include "ringlet/collectives/group/group.hpp"
#include "ringlet/collectives/group/rank_state.hpp"
#include "ringlet/collectives/transport/holds.hpp"
#include "ringlet/collectives/transport/world.hpp"

namespace ringlet::collectives {

namespace {

// Reclaims blocks that remote ranks (slow or stopped) may still use after this process has left the call or the group.
// A block is reclaimable once each rank has left the last call, or its process has ended.
class CallReclaimPolicy final : public memory::ReclaimPolicy {
 public:
  // If a group has ended in this process, other ranks may also copy results from staged memory and read records; if a
  // call failed, they only work on buffers.
  enum class Use { kAll, kBuffers };

  CallReclaimPolicy(std::shared_ptr<const memory::ReclaimPolicy> before,
                    std::shared_ptr<const ProcessReclaimPolicy> reclaim_policy, memory::Block memory,
                    ControlBlock control, std::vector<int> process_of, std::uint64_t last, Use use)
      : before_(std::move(before)),
        reclaim_policy_(std::move(reclaim_policy)),
        memory_(std::move(memory)),
        control_(control),
        process_of_(std::move(process_of)),
        last_(last),
        use_(use) {}

  bool is_over() const noexcept {
    for (std::size_t rank = 0; rank < process_of_.size(); ++rank) {
      if (reclaim_policy_->has_ended(process_of_[rank])) continue;
      const RankBoard& board = control_.board(static_cast<int>(rank));
      const bool has_left = use_ == Use::kBuffers && board.left_seq.has_reached(last_);
      if (!has_left && !board.over.has_reached(last_)) return false;
    }
    return true;
  }

  void lend(const memory::SharedBlock& block) const noexcept override { before_->lend(block); }
  bool is_reclaimable(const memory::SharedBlock& block) const noexcept override {
    return is_over() && before_->is_reclaimable(block);
  }

 private:
  std::shared_ptr<const memory::ReclaimPolicy> before_;
  std::shared_ptr<const ProcessReclaimPolicy> reclaim_policy_;
  memory::Block memory_;  // memory of the control block
  ControlBlock control_;
  std::vector<int> process_of_;  // process of each rank
  std::uint64_t last_;
  Use use_;
};

}  // namespace

void Group::retire() noexcept {
  std::uint64_t last = 0;
  std::vector<memory::Block*> blocks;
  try {
    for (int rank = 0; rank < num_ranks(); ++rank) {
      if (!is_here(rank)) continue;
      RankState& state = *states_[static_cast<std::size_t>(rank)];
      last = std::max(last, state.sequence);
      control_->board(rank).over.publish(std::numeric_limits<std::uint64_t>::max());
      for (RankState::Set& set : state.sets) {
        blocks.insert(blocks.end(), {&set.staged_inputs, &set.staged_outputs, &set.record});
        for (memory::Block& block : set.kept) blocks.push_back(&block);
      }
    }
    const auto policy =
        std::make_shared<const CallReclaimPolicy>(world_->reclaim_policy(), world_->reclaim_policy(), memory_,
                                                  *control_, process_of_, last, CallReclaimPolicy::Use::kAll);
    if (policy->is_over()) return;
    for (const memory::Block* block : blocks) {
      if (*block != nullptr) memory::SharedHeap::of_this_process().hand_over((*block)->data(), policy);
    }
  } catch (const std::exception&) {  // out of memory: the blocks are never reused
    for (const memory::Block* block : blocks) {
      if (*block != nullptr) header_of((*block)->data()).holds_of(world_->index()).add(1);
    }
  }
}

void Group::keep_memory(int rank, std::uint64_t sequence) noexcept {
  memory::SharedHeap& heap = memory::SharedHeap::of_this_process();
  const auto keep = [&](const std::byte* address) {
    try {
      heap.hand_over(address, [&](std::shared_ptr<const memory::ReclaimPolicy> before) {
        return std::make_shared<const CallReclaimPolicy>(std::move(before), world_->reclaim_policy(), memory_,
                                                         *control_, process_of_, sequence,
                                                         CallReclaimPolicy::Use::kBuffers);
      });
    } catch (const std::exception&) {  // out of memory: the block is never reused
      heap.give_up(address);
    }
  };
  const RankState::Set& set = states_[static_cast<std::size_t>(rank)]->sets[sequence % kSets];
  for (std::size_t part = 0; part < set.outputs.size(); ++part) {
    if (!set.outputs[part].is_shared() || set.outputs[part].is_staged()) continue;
    keep(static_cast<const std::byte*>(set.call.buffers[part].output));
  }
  for (const memory::Block& block : set.kept) {
    if (block != nullptr) keep(block->data());
  }
}

}  // namespace ringlet::collectives

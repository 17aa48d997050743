// What becomes of the memory of a group that ends here before it ends elsewhere.
#include <algorithm>
#include <cstdint>
#include <exception>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "ringlet/collectives/control.hpp"
#include "ringlet/collectives/group.hpp"
#include "ringlet/collectives/holds.hpp"
#include "ringlet/collectives/notes.hpp"
#include "ringlet/collectives/world.hpp"

namespace ringlet::collectives {

namespace {

// Lends blocks of a group that has ended here. Ranks elsewhere may be slow: they still take results from staged memory,
// read records, or work on results of a call that failed, until they have done with the last call of this process.
class Remains final : public memory::Lender {
 public:
  Remains(std::shared_ptr<const Borrowers> borrowers, memory::Block memory, ControlBlock control,
          std::vector<int> process_of, std::uint64_t last)
      : borrowers_(std::move(borrowers)),
        memory_(std::move(memory)),
        control_(control),
        process_of_(std::move(process_of)),
        last_(last) {}

  bool is_over() const noexcept {
    for (std::size_t rank = 0; rank < process_of_.size(); ++rank) {
      if (borrowers_->has_ended(process_of_[rank])) continue;
      if (!control_.board(static_cast<int>(rank)).over.has_reached(last_)) return false;
    }
    return true;
  }

  void lend(const memory::SharedBlock& block) const noexcept override { borrowers_->lend(block); }
  bool has_back(const memory::SharedBlock& block) const noexcept override {
    return is_over() && borrowers_->has_back(block);
  }

 private:
  std::shared_ptr<const Borrowers> borrowers_;
  memory::Block memory_;  // of the control block
  ControlBlock control_;
  std::vector<int> process_of_;  // of each rank
  std::uint64_t last_;
};

}  // namespace

void Group::retire() noexcept {
  std::uint64_t last = 0;
  std::vector<memory::Block*> blocks;
  try {
    for (int rank = 0; rank < num_ranks(); ++rank) {
      if (!is_here(rank)) continue;
      RankNotes& notes = *notes_[static_cast<std::size_t>(rank)];
      last = std::max(last, notes.sequence);
      control_->board(rank).over.publish(std::numeric_limits<std::uint64_t>::max());
      for (RankNotes::Set& set : notes.sets) {
        blocks.insert(blocks.end(), {&set.staged_inputs, &set.staged_outputs, &set.record});
        for (memory::Block& block : set.kept) blocks.push_back(&block);
      }
    }
    const auto remains = std::make_shared<const Remains>(world_->borrowers(), memory_, *control_, process_of_, last);
    if (remains->is_over()) return;
    for (const memory::Block* block : blocks) {
      if (*block != nullptr) memory::SharedHeap::of_this_process().hand_over((*block)->data(), remains);
    }
  } catch (const std::exception&) {  // no memory for that: the blocks are never used again
    for (const memory::Block* block : blocks) {
      if (*block != nullptr) header_of((*block)->data()).holds[static_cast<std::size_t>(world_->index())].add(1);
    }
  }
}

}  // namespace ringlet::collectives

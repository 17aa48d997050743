// Thousands of live blocks of the shared heap: each keeps its bytes, a new one costs as much as with few, and what has
// come back is used again and leaves nothing behind.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "check.hpp"
#include "ringlet/memory/shared_heap.hpp"

namespace {

using namespace ringlet;
using memory::SharedBlock;
using memory::SharedHeap;
using stress::check;

// The first byte of a header says whether the block is lent.
class CountingPolicy final : public memory::ReclaimPolicy {
 public:
  void lend(const SharedBlock& block) const noexcept override { *block.header() = std::byte{1}; }
  bool is_reclaimable(const SharedBlock& block) const noexcept override {
    ++looks;
    return *block.header() == std::byte{0};
  }

  mutable std::size_t looks = 0;
};

void give_back(const SharedBlock& block) { *block.header() = std::byte{0}; }

constexpr std::size_t kBlocks = 10'000;
constexpr std::size_t kBytes = 4096;

void many_blocks_keep_their_bytes_and_cost_no_walk() {
  SharedHeap heap;
  const auto policy = std::make_shared<CountingPolicy>();
  std::vector<SharedBlock> blocks;
  for (std::size_t i = 0; i < kBlocks; ++i) {
    blocks.push_back(heap.allocate(kBytes, policy));
    std::memset(blocks.back().data, static_cast<int>(i % 251), kBytes);
  }
  check(policy->looks < kBlocks * 100, "looks at a few blocks, and at all of them once a second");
  check(heap.statistics().lent_blocks == kBlocks, "all are lent");
  for (std::size_t i = 0; i < 100; ++i) {
    const SharedBlock block = heap.allocate(kBytes, policy);
    std::memset(block.data, 255, kBytes);
    give_back(block);
  }
  check(heap.statistics().lent_blocks == kBlocks, "one that has come back is used again");
  for (std::size_t i = 0; i < kBlocks; ++i) {
    const std::byte expected{static_cast<unsigned char>(i % 251)};
    check(std::all_of(blocks[i].data, blocks[i].data + kBytes, [&](std::byte one) { return one == expected; }),
          "a block keeps its bytes");
    give_back(blocks[i]);
  }
  heap.trim();
  const memory::SharedHeapStatistics left = heap.statistics();
  check(left.lent_blocks == 0 && left.idle_bytes == 0, "everything is given back");
}

// Blocks that come back in the order in which they were lent, or in any: memory does not grow without limit.
void blocks_that_come_back_in_any_order_are_used_again(bool oldest_first) {
  SharedHeap heap;
  const auto policy = std::make_shared<CountingPolicy>();
  constexpr std::size_t kAlive = 500;
  std::vector<SharedBlock> alive;
  std::vector<std::byte*> seen;
  stress::Random random(1);
  for (std::size_t i = 0; i < 20'000; ++i) {
    alive.push_back(heap.allocate(kBytes, policy));
    seen.push_back(alive.back().data);
    if (alive.size() <= kAlive) continue;
    const auto gone = alive.begin() + static_cast<std::ptrdiff_t>(oldest_first ? 0 : random.below(kAlive));
    give_back(*gone);
    alive.erase(gone);
  }
  std::sort(seen.begin(), seen.end());
  const auto different = static_cast<std::size_t>(std::unique(seen.begin(), seen.end()) - seen.begin());
  check(different < 2 * kAlive, "few more blocks are made than are alive: " + std::to_string(different));
}

}  // namespace

int main() {
  many_blocks_keep_their_bytes_and_cost_no_walk();
  blocks_that_come_back_in_any_order_are_used_again(true);
  blocks_that_come_back_in_any_order_are_used_again(false);
}

// Many live blocks of the shared heap: each keeps its bytes, a new one costs as much as with few, and released blocks
// are used again and return their memory.
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
  void lend(const SharedBlock& block) const noexcept override { *(block.data - 1) = std::byte{1}; }
  bool is_reclaimable(const SharedBlock& block) const noexcept override {
    ++looks;
    return *(block.data - 1) == std::byte{0};
  }

  mutable std::size_t looks = 0;
};

void give_back(SharedHeap& heap, const SharedBlock& block) {
  *(block.data - 1) = std::byte{0};
  heap.note_released(block.data);
}

void many_blocks_keep_their_bytes_and_cost_no_walk(std::size_t bytes, std::size_t header_bytes, std::size_t count) {
  SharedHeap heap;
  const auto policy = std::make_shared<CountingPolicy>();
  std::vector<SharedBlock> blocks;
  for (std::size_t i = 0; i < count; ++i) {
    blocks.push_back(heap.allocate(bytes, policy, header_bytes));
    std::memset(blocks.back().data, static_cast<int>(i % 251), bytes);
  }
  check(policy->looks == 0, "live blocks are not checked");
  check(heap.statistics().lent_blocks == count, "all are lent");
  policy->looks = 0;
  for (std::size_t i = 0; i < 100; ++i) {
    const SharedBlock block = heap.allocate(bytes, policy, header_bytes);
    std::memset(block.data, 255, bytes);
    give_back(heap, block);
  }
  check(policy->looks < 1000, "an allocation checks a few blocks");
  check(heap.statistics().lent_blocks == count, "a released block is used again");
  for (std::size_t i = 0; i < count; ++i) {
    const std::byte expected{static_cast<unsigned char>(i % 251)};
    check(std::all_of(blocks[i].data, blocks[i].data + bytes, [&](std::byte one) { return one == expected; }),
          "a block keeps its bytes");
    if (i % 2 == 0)
      give_back(heap, blocks[i]);
    else
      *(blocks[i].data - 1) = std::byte{0};  // no report: a trim finds it all the same
  }
  heap.trim();
  const memory::SharedHeapStatistics left = heap.statistics();
  check(left.lent_blocks == 0 && left.idle_bytes == 0, "all blocks are returned");
}

// Whatever the order in which blocks are released, memory does not grow without limit.
void blocks_released_in_any_order_are_used_again(std::size_t bytes, std::size_t header_bytes, bool oldest_first) {
  SharedHeap heap;
  const auto policy = std::make_shared<CountingPolicy>();
  constexpr std::size_t kAlive = 500;
  std::vector<SharedBlock> alive;
  std::vector<std::byte*> seen;
  stress::Random random(1);
  for (std::size_t i = 0; i < 20'000; ++i) {
    alive.push_back(heap.allocate(bytes, policy, header_bytes));
    seen.push_back(alive.back().data);
    if (alive.size() <= kAlive) continue;
    const auto gone = alive.begin() + static_cast<std::ptrdiff_t>(oldest_first ? 0 : random.below(kAlive));
    give_back(heap, *gone);
    alive.erase(gone);
  }
  std::sort(seen.begin(), seen.end());
  const auto different = static_cast<std::size_t>(std::unique(seen.begin(), seen.end()) - seen.begin());
  check(different < kAlive + 10, "few more blocks are made than are alive: " + std::to_string(different));
}

// Blocks that this process has released and others have not: reused once all have, in any order.
void blocks_that_others_hold_are_used_later() {
  SharedHeap heap;
  const auto policy = std::make_shared<CountingPolicy>();
  std::vector<SharedBlock> held;
  for (int i = 0; i < 100; ++i) held.push_back(heap.allocate(64, policy, 64));
  for (const SharedBlock& block : held) heap.note_released(block.data);
  for (int i = 0; i < 100; ++i) held.push_back(heap.allocate(64, policy, 64));
  std::vector<std::byte*> places;
  for (const SharedBlock& block : held) places.push_back(block.data);
  std::sort(places.begin(), places.end());
  check(std::unique(places.begin(), places.end()) == places.end(), "no block is lent twice");
  for (const SharedBlock& block : held) *(block.data - 1) = std::byte{0};
  for (int i = 0; i < 50; ++i) {
    std::byte* const data = heap.allocate(64, policy, 64).data;
    check(i < 1 || std::binary_search(places.begin(), places.end(), data), "blocks that are free are used first");
  }
}

}  // namespace

int main() {
  for (const std::size_t header_bytes : {std::size_t{64}, SharedBlock::kMostHeaderBytes}) {
    many_blocks_keep_their_bytes_and_cost_no_walk(64, header_bytes, 10'000);
    many_blocks_keep_their_bytes_and_cost_no_walk(4096, header_bytes, 10'000);
    blocks_released_in_any_order_are_used_again(200, header_bytes, true);
    blocks_released_in_any_order_are_used_again(4096, header_bytes, false);
  }
  blocks_that_others_hold_are_used_later();
}

// Blocks allocated and released by many threads: memory is never handed out twice, and the counts come back to nothing.
#include <cstring>
#include <vector>

#include "check.hpp"
#include "ringlet/memory/pool.hpp"

int main(int argc, char** argv) {
  using ringlet::stress::check;
  const std::size_t rounds = ringlet::stress::calls_of(argc, argv, 100'000) / 8;
  ringlet::memory::Pool& pool = ringlet::memory::result_pool();
  ringlet::stress::on_ranks(8, [&](int rank) {
    ringlet::stress::Random random(static_cast<std::uint64_t>(rank));
    for (std::size_t round = 0; round < rounds; ++round) {
      const std::size_t bytes = random.below(round % 500 == 0 ? 5'000'000 : 20'000);
      const ringlet::memory::Block block = pool.allocate(bytes);
      check(block->size() >= bytes, "a block holds what was asked for");
      std::memset(block->data(), rank + 1, bytes);
      for (std::size_t i = 0; i < bytes; i += 997) {
        check(block->data()[i] == static_cast<std::byte>(rank + 1), "nobody else writes to a live block");
      }
    }
  });
  for (const int beside : {-65, -64, -63, -1, 0, 1, 64}) {
    const auto bytes = static_cast<std::size_t>(static_cast<int>(ringlet::memory::Region::kHugePage) + beside);
    const ringlet::memory::Region region(bytes);
    std::memset(region.data(), 1, region.size());
  }
  check(pool.statistics().live_blocks == 0, "released blocks are not live");
  check(pool.statistics().idle_bytes > 0, "released blocks are kept");
  check(pool.trim() > 0 && pool.statistics().idle_blocks == 0, "trim gives all of them back");
}

// All collectives in random order, of all dtypes and operations, on more ranks than cores, with every result checked.
#include <chrono>
#include <cstdint>

#include "caller.hpp"
#include "check.hpp"
#include "plan.hpp"
#include "ringlet/collectives/group/member.hpp"

namespace {

using namespace ringlet;

void run(int num_ranks, std::size_t calls, bool from_interpreter) {
  collectives::Group group(num_ranks, {.timeout = std::chrono::seconds(60), .from_interpreter = from_interpreter});
  stress::on_ranks(num_ranks, [&](int rank) {
    stress::Caller caller(group.member(rank));
    stress::Random random(static_cast<std::uint64_t>(num_ranks) + (from_interpreter ? 100 : 0));
    stress::Planner planner(random, num_ranks);
    for (std::size_t number = 0; number < calls; ++number) caller.make(planner.draw(number % 64 == 0));
  });
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t calls = stress::calls_of(argc, argv, 100'000);
  run(8, calls / 4 * 3, false);
  run(8, calls / 4, true);
  run(2, calls / 8, false);
  for (const int num_ranks : {1, 3, 5, 17}) run(num_ranks, calls / 32, num_ranks == 3);
  stress::check(memory::result_pool().statistics().live_blocks == 0, "no result outlives its last holder");
}

// Ends one of two processes at every single store of the protocols, one after the other: the other one gets right
// results as far as calls go, and is told of the loss. In builds with RINGLET_FAULT.
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>

#include "caller.hpp"
#include "check.hpp"
#include "plan.hpp"
#include "processes.hpp"
#include "ringlet/collectives/group/member.hpp"
#include "ringlet/core/error.hpp"

namespace {

using namespace ringlet;
using collectives::Group;
using stress::Caller;
using stress::check;
using stress::Layout;
using stress::Memory;
using stress::Plan;
using stress::Planner;
using stress::Processes;
using stress::Random;

constexpr std::int64_t kSecond = 1'000'000'000;

// One call of each kind, small and large, then some at random: the same in every run.
void make_calls(Group& group, int rank, std::uint64_t seed) {
  Random random(seed);
  Planner planner(random, group.num_ranks());
  Caller caller(group.member(rank));
  caller.use_arrays([number = 0](std::size_t bytes) mutable {
    return number++ % 2 == 0 ? Memory(stress::new_array(bytes)) : Memory(collectives::allocate_shared(bytes));
  });
  for (const bool is_large : {false, true}) {
    for (const collectives::Kind kind : stress::kAllKinds) caller.make(planner.draw(kind, is_large));
  }
  for (const auto algorithm : {collectives::Algorithm::kRing, collectives::Algorithm::kDirect}) {
    Plan plan = planner.draw(collectives::Kind::kAllReduce);
    plan.algorithm = algorithm;
    caller.make(plan);
  }
}

void check_loss(const core::WorkerLostError& error, const Layout& layout, int victim) {
  check(error.rank == layout.ranks_of(victim).front() && error.reason == "was killed by SIGKILL (signal 9)",
        std::string("who was lost, and how, is told: ") + error.what());
}

// False once the victim lives through all calls.
bool run(const Layout& layout, int victim, std::uint64_t fault, std::uint64_t seed) {
  Processes processes(layout);
  processes.start([&](int process) {
    if (process == victim) setenv("RINGLET_FAULT", std::to_string(fault).c_str(), 1);
    try {
      Group group(layout.num_ranks(), {.timeout = std::chrono::seconds(30)}, processes.world(process));
      const std::vector<int> ranks = layout.ranks_of(process);
      stress::on_ranks(static_cast<int>(ranks.size()), [&](int index) {
        const int rank = ranks[static_cast<std::size_t>(index)];
        try {
          make_calls(group, rank, seed);
          group.member(rank).depart("closed its group");
        } catch (const core::WorkerLostError& error) {
          check_loss(error, layout, victim);
        }
      });
    } catch (const core::WorkerLostError& error) {
      check_loss(error, layout, victim);
    }
  });
  const int status = processes.wait_for(victim, 60);
  const std::int64_t ended_at = stress::nanoseconds_now();
  check(status == 0 || status == -SIGKILL, "the victim ends as it shall");
  for (int process = 0; process < layout.num_processes(); ++process) {
    if (process == victim) continue;
    check(processes.wait_for(process, 60) == 0, "the others end well");
  }
  check(status == 0 || stress::nanoseconds_now() - ended_at < kSecond, "a loss is told within a second");
  return status != 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t step = argc > 1 && std::strtoull(argv[1], nullptr, 10) < 10'000 ? 7 : 1;
  std::uint64_t stores = 0;
  for (const bool may_use_cma : {true, false}) {
    for (const int victim : {0, 1}) {
      std::uint64_t fault = 1;
      while (run({.ranks = {1, 1}, .may_use_cma = may_use_cma}, victim, fault, 11)) fault += step;
      stores += fault;
    }
  }
  std::cout << "ended at " << stores / step << " of " << stores << " stores" << std::endl;
}

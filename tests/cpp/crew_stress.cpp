// Runs opened in quick succession: every replica of every run is claimed once, and no run is slept through.
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "check.hpp"
#include "ringlet/sync/crew.hpp"

int main(int argc, char** argv) {
  using ringlet::stress::check;
  using ringlet::sync::Crew;
  const std::size_t runs = ringlet::stress::calls_of(argc, argv, 100'000);
  constexpr int kReplicas = 4;
  Crew crew(kReplicas);
  std::atomic<bool> waits_for_all{false};
  std::vector<std::atomic<std::size_t>> claims(kReplicas);
  std::atomic<int> num_begun{0};
  const auto serve = [&](int replica) {
    claims[static_cast<std::size_t>(replica)].fetch_add(1);
    num_begun.fetch_add(1);
    // As in a collective: a replica that has begun needs all others to begin.
    while (waits_for_all.load() && num_begun.load() < kReplicas) std::this_thread::yield();
    crew.finish(replica);
  };
  {
    std::vector<std::jthread> helpers;
    for (int helper = 1; helper < kReplicas; ++helper) {
      helpers.emplace_back([&] {
        while (crew.wait_for_work()) {
          if (const int replica = crew.claim(); replica != Crew::kNone) serve(replica);
        }
      });
    }
    for (std::size_t run = 0; run < runs; ++run) {
      num_begun.store(0);
      waits_for_all.store(run % 4 == 1);
      if (run % 64 == 0) std::this_thread::sleep_for(std::chrono::microseconds(run % 300));  // some helpers park
      crew.open();
      // In every other run the opener takes one replica only, so that helpers must come for the rest.
      for (int replica = crew.claim(); replica != Crew::kNone; replica = run % 2 == 0 ? crew.claim() : Crew::kNone) {
        serve(replica);
      }
      check(crew.wait_finished(std::chrono::seconds(30), nullptr), "helpers come for what is unclaimed");
      check(crew.running().empty(), "nothing runs after the end");
    }
    crew.close();
  }
  const int cores = ringlet::sync::usable_cores();
  for (const int replicas : {cores, cores + 1}) {
    Crew other(replicas);
    other.open();
    check(!other.takes_turns(), "until all are summoned, threads take no turns");
    other.summon_all();
    check(other.takes_turns() == (replicas == cores), "then they do, if each replica can have a core");
  }
  for (const auto& count : claims) check(count.load() == runs, "every replica of every run is claimed once");
}

// Stops one or two ranks at the stores of the protocols and between chunks of work. The others raise, free all that
// they had, take the memory again and fill it; the stopped ranks are continued, end, have changed no byte, and have
// returned no wrong value. In builds with RINGLET_FAULT.
#include <sys/socket.h>

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

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

constexpr int kPattern = 0x5A;
// The survivors' patience: calls between running ranks take far less, and closed connections are noticed earlier.
constexpr std::chrono::milliseconds kTimeout{400};
constexpr std::chrono::milliseconds kTimeoutWithCuts{sync::kHangUpGraceMs + 700};

// Large all-reduces and copies to outputs, in shared and in private arrays, and small all-reduces. Returns what was
// allocated for them.
void make_calls(collectives::Member member, std::uint64_t seed, std::vector<std::size_t>& sizes) {
  Random random(seed);
  Planner planner(random, member.group().num_ranks());
  Caller caller(member);
  caller.use_arrays([&sizes, number = 0](std::size_t bytes) mutable {
    sizes.push_back(bytes);
    return number++ % 2 == 0 ? Memory(stress::new_array(bytes)) : Memory(collectives::allocate_shared(bytes));
  });
  for (const collectives::Kind kind : stress::kAllKinds) {
    Plan plan = planner.draw(kind, true);
    plan.output = random.below(3) == 0 ? stress::Output::kInPlace : stress::Output::kApart;
    if (!plan.counts.empty()) plan.counts = {120'000};
    if (kind == collectives::Kind::kAllReduce) plan.algorithm = collectives::Algorithm::kDirect;
    caller.make(plan);
  }
  for (const auto algorithm :
       {collectives::Algorithm::kRing, collectives::Algorithm::kSmall, collectives::Algorithm::kAuto}) {
    Plan plan = planner.draw(collectives::Kind::kAllReduce, true);
    plan.algorithm = algorithm;
    if (algorithm != collectives::Algorithm::kRing) plan.counts = {100};
    if (algorithm == collectives::Algorithm::kAuto) plan.output = stress::Output::kApart;  // an exchange of shares
    caller.make(plan);
  }
}

// As the calls took it.
std::vector<Memory> take_all_again(const std::vector<std::size_t>& sizes) {
  std::vector<Memory> taken;
  for (const std::size_t bytes : sizes) {
    for (const bool is_shared : {true, true, false}) {
      taken.push_back(is_shared ? Memory(collectives::allocate_shared(bytes)) : Memory(stress::new_array(bytes)));
      std::memset(taken.back().get(), kPattern, bytes);
    }
  }
  return taken;
}

bool is_untouched(const Memory& memory, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) {
    if (memory.get()[i] != std::byte{kPattern}) return false;
  }
  return true;
}

// The exit status of a victim that has made all calls.
constexpr int kMadeAll = 3;

// False if f() raises what ranks raise because one is stopped.
template <class F>
bool succeeds(F&& f) {
  try {
    f();
    return true;
  } catch (const core::DeadlineError&) {
  } catch (const core::AbortedError&) {
  } catch (const core::WorkerLostError&) {
  } catch (const core::MismatchError&) {
  }
  return false;
}

struct Case {
  Layout layout;
  bool in_part = false;      // ranks 0 and 1 call in a part of the group, then all in the group
  bool keeps_group = false;  // the survivors use the memory again while their group is still there
  bool stops_two = false;    // the last rank is stopped, too, while it waits for the victim
  bool cuts = false;         // the survivors lose their connections to the victim once it is stopped
};

// False once the victim makes all calls without a stop.
bool run(const Case& which, int victim, std::uint64_t fault, std::atomic<std::uint64_t>& stops) {
  Processes processes(which.layout);
  const int last = which.layout.num_processes() - 1;
  const auto is_to_stop = [&](int process) { return process == victim || (which.stops_two && process == last); };
  std::atomic<std::uint64_t>& num_done = processes.board().calls;
  std::atomic<std::int64_t>& is_over = processes.board().killed_at;
  processes.start([&](int process) {
    if (process == victim) {
      setenv("RINGLET_FAULT", std::to_string(fault).c_str(), 1);
      setenv("RINGLET_FAULT_STOPS", "1", 1);
    }
    if (which.cuts && process != victim) {
      std::thread([&processes, victim, fd = processes.socket(process, victim)] {
        while (!sync::is_stopped(processes.board().pids[victim].load())) usleep(500);
        shutdown(fd, SHUT_RDWR);
      }).detach();
    }
    std::optional<Group> group;
    std::vector<std::size_t> sizes;
    const bool made_all = succeeds([&] {
      const auto timeout = which.cuts ? kTimeoutWithCuts : kTimeout;
      group.emplace(which.layout.num_ranks(), collectives::Options{.timeout = timeout}, processes.world(process));
      collectives::Member member = group->member(process);
      if (!which.in_part) return make_calls(member, fault, sizes);
      const collectives::SubgroupMember part = member.split(process < 2 ? 0 : 1);
      make_calls(part.group->member(part.rank), fault, sizes);
      make_calls(member, fault, sizes);
    });
    if (process == victim && made_all) std::_Exit(kMadeAll);
    if (is_to_stop(process)) return;
    if (!which.keeps_group) group.reset();
    const std::vector<Memory> again = take_all_again(sizes);
    num_done.fetch_add(1);
    while (is_over.load() == 0) usleep(200);
    for (std::size_t i = 0; i < again.size(); ++i) check(is_untouched(again[i], sizes[i / 3]), "memory is left alone");
  });
  const auto others = static_cast<std::uint64_t>(which.stops_two ? last - 1 : last);
  bool stops_last = which.stops_two;
  for (int waited = 0; num_done.load() < others; ++waited) {
    check(waited < 60'000, "the others raise in time");
    usleep(1000);
    if (!stops_last || !sync::is_stopped(processes.pid(victim))) continue;
    usleep(20'000);  // in which the last rank does its part of the call
    kill(processes.pid(last), SIGSTOP);
    stops_last = false;
  }
  const bool is_stopped = sync::is_stopped(processes.pid(victim));
  processes.go_on(victim);
  const int status = processes.wait_for(victim, 60);
  check(status == 0 || status == kMadeAll, "the stopped rank ends");
  if (which.stops_two) {
    processes.go_on(last);
    check(processes.wait_for(last, 60) == 0, "the other stopped rank returns no wrong value");
  }
  is_over.store(1);
  for (int process = 0; process < which.layout.num_processes(); ++process) {
    if (!is_to_stop(process)) check(processes.wait_for(process, 60) == 0, "the others find their memory as it was");
  }
  stops += is_stopped ? 1 : 0;
  return is_stopped || status != kMadeAll;
}

// Stops one victim at every place of its own, `step` stores apart.
void run_all(const Case& which, int victim, std::uint64_t first, std::uint64_t step,
             std::atomic<std::uint64_t>& stops) {
  const std::uint64_t stride = which.stops_two || which.cuts ? (step + 8) / 9 : step;
  for (std::uint64_t fault = 1 + first % stride; run(which, victim, fault, stops);) fault += stride;
}

}  // namespace

int main(int argc, char** argv) {
  constexpr int kAtOnce = 4;  // they sleep most of the time
  const std::uint64_t calls = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 100'000;
  const std::uint64_t step = calls >= 500'000 ? 1 : calls >= 10'000 ? 37 : 61;
  const Case kCases[] = {
      {.layout = {.ranks = {1, 1}}},
      {.layout = {.ranks = {1, 1}, .may_use_cma = false}, .keeps_group = true},
      {.layout = {.ranks = {1, 1}}, .cuts = true},
      {.layout = {.ranks = {1, 1, 1}}, .keeps_group = true},
      {.layout = {.ranks = {1, 1, 1}, .may_use_cma = false}},
      {.layout = {.ranks = {1, 1, 1}}, .in_part = true},
      {.layout = {.ranks = {1, 1, 1}, .may_use_cma = false}, .in_part = true, .keeps_group = true},
      {.layout = {.ranks = {1, 1, 1}}, .stops_two = true},
  };
  void* const shared =
      mmap(nullptr, sizeof(std::atomic<std::uint64_t>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  check(shared != MAP_FAILED, "memory can be mapped");
  auto& stops = *new (shared) std::atomic<std::uint64_t>{0};
  int running = 0;
  const auto wait_for_one = [&] {
    int status = 0;
    check(wait(&status) > 0 && status == 0, "every place is passed well");
    --running;
  };
  std::uint64_t number = 0;
  for (const Case& which : kCases) {
    for (int victim = 0; victim < which.layout.num_processes() - (which.stops_two ? 1 : 0); ++victim) {
      if (running == kAtOnce) wait_for_one();
      number += 11;
      const int pid = fork();
      check(pid >= 0, "a process can be made");
      if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        run_all(which, victim, number, step, stops);
        std::_Exit(0);
      }
      ++running;
    }
  }
  while (running > 0) wait_for_one();
  check(stops > 20, "ranks were stopped");
  std::cout << "stopped at " << stops << " places" << std::endl;
}

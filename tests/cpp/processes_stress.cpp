// Ranks in processes: every kind of call over private and shared memory, in parts of groups, with every result checked;
// then processes that are killed, or fail, at random moments.
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "caller.hpp"
#include "check.hpp"
#include "plan.hpp"
#include "processes.hpp"
#include "ringlet/collectives/group/control.hpp"
#include "ringlet/collectives/group/member.hpp"
#include "ringlet/collectives/group/subgroups.hpp"
#include "ringlet/collectives/transport/holds.hpp"
#include "ringlet/collectives/transport/world.hpp"
#include "ringlet/core/error.hpp"

namespace {

using namespace ringlet;
using collectives::Group;
using collectives::SubgroupMember;
using stress::Caller;
using stress::check;
using stress::Layout;
using stress::Memory;
using stress::Planner;
using stress::Processes;
using stress::Random;

constexpr auto kTimeout = std::chrono::seconds(60);
constexpr std::int64_t kSecond = 1'000'000'000;

// What a rank passes is private or shared as it likes: the others need not know.
void mix_memory(Caller& caller, std::uint64_t seed) {
  caller.use_arrays([random = Random(seed)](std::size_t bytes) mutable {
    if (random.below(2) == 0) return Memory(stress::new_array(bytes));
    return Memory(collectives::allocate_shared(bytes));
  });
}

// One rank's calls: the same on all, drawn from `seed`; parts are used and dropped.
void make_calls(Group& group, int rank, std::uint64_t seed, std::size_t times, stress::Board* board,
                sync::Poll* poll = nullptr) {
  Random random(seed);
  Planner planner(random, group.num_ranks());
  Caller caller(group.member(rank));
  mix_memory(caller, seed * 31 + static_cast<std::uint64_t>(rank));
  for (std::size_t number = 0; number < times; ++number) {
    const stress::Plan plan = planner.draw(number % 8 == 0);
    if (plan.kind != collectives::Kind::kSplit) {
      caller.make(plan, poll);
    } else {
      const SubgroupMember part = caller.split(plan, poll);
      const auto color = plan.colors[static_cast<std::size_t>(rank)];
      if (part.group != nullptr && times > 3) {
        make_calls(*part.group, part.rank, plan.seed + static_cast<std::uint64_t>(*color + 2), 3, nullptr);
      }
    }
    if (board != nullptr && rank == 0) board->calls.fetch_add(1);
  }
}

template <class Body>
void on_ranks_of(const Layout& layout, int process, Body&& body) {
  const std::vector<int> ranks = layout.ranks_of(process);
  stress::on_ranks(static_cast<int>(ranks.size()), [&](int index) { body(ranks[static_cast<std::size_t>(index)]); });
}

void results_are_right(const Layout& layout, std::size_t calls, std::uint64_t seed) {
  Processes processes(layout);
  processes.start([&](int process) {
    const int descriptors = stress::count_descriptors();
    {
      auto group = std::make_unique<Group>(layout.num_ranks(), collectives::Options{.timeout = kTimeout},
                                           processes.world(process));
      on_ranks_of(layout, process, [&](int rank) { make_calls(*group, rank, seed, calls, nullptr); });
      check(!group->failure().has_value(), "nothing fails");
      on_ranks_of(layout, process, [&](int rank) { group->member(rank).barrier("last"); });
      // A peer that is done first has left, not died.
      on_ranks_of(layout, process, [&](int rank) { group->member(rank).depart("closed its group"); });
    }
    check(stress::count_descriptors() < descriptors + 4, "descriptors are closed, but those of the own segments");
  });
  for (int process = 0; process < layout.num_processes(); ++process) {
    check(processes.wait_for(process) == 0, "every process ends well");
  }
}

// Makes calls until a process is lost, and checks what is told of it.
void live_until_loss(Group& group, int rank, const Layout& layout, Processes& processes, int victim,
                     std::uint64_t seed) {
  const auto is_right = [&](const core::WorkerLostError& error) {
    return error.rank == layout.ranks_of(victim).front() && error.pid == processes.board().pids[victim].load() &&
           (error.reason == "was killed by SIGKILL (signal 9)" || !layout.has_pidfds);
  };
  try {
    for (std::uint64_t turn = 0;; ++turn) make_calls(group, rank, seed + turn, 20, &processes.board());
  } catch (const core::WorkerLostError& error) {
    const std::int64_t killed_at = processes.board().killed_at.load();
    check(killed_at != 0 && stress::nanoseconds_now() - killed_at < kSecond, "a loss is told within a second");
    check(is_right(error), std::string("who was lost, and how, is told: ") + error.what() + " (" + error.reason + ")");
  } catch (const core::AbortedError& error) {
    check(false, std::string("a loss is told as a loss: ") + error.what());
  }
  try {
    group.member(rank).barrier();
    check(false, "a group that has lost a rank makes no more calls");
  } catch (const core::WorkerLostError& error) {
    check(is_right(error) && group.failure() == error.what(), "a group states its first cause for ever");
  }
}

void a_loss_is_told(const Layout& layout, std::uint64_t seed) {
  Random random(seed);
  const int victim = static_cast<int>(random.below(layout.ranks.size()));
  const std::size_t calls = 1 + random.below(60);
  const auto microseconds = static_cast<unsigned>(random.below(3000));
  Processes processes(layout);
  processes.start([&](int process) {
    const int descriptors = stress::count_descriptors();
    {
      const auto group = std::make_unique<Group>(layout.num_ranks(), collectives::Options{.timeout = kTimeout},
                                                 processes.world(process));
      on_ranks_of(layout, process, [&](int rank) { live_until_loss(*group, rank, layout, processes, victim, seed); });
    }
    check(stress::count_descriptors() < descriptors + 4, "descriptors are closed, but those of the own segments");
  });
  while (processes.board().calls.load() < calls) usleep(100);
  usleep(microseconds);
  processes.kill(victim);
  for (int process = 0; process < layout.num_processes(); ++process) {
    check(processes.wait_for(process, 20) == (process == victim ? -SIGKILL : 0), "only who is killed ends badly");
  }
}

enum class Fate { kAbort, kDepart, kDisagree, kDeadline, kExit, kInterrupt };
constexpr std::uint64_t kNumFates = 6;

// What a handler of signals may raise in a wait.
class Interruption {};

class Interrupt final : public sync::Poll {
 public:
  void operator()() override { throw Interruption(); }
};

// Signals to the thread that makes this, until its end, so that it does not sleep through its waits.
class Alarm {
 public:
  Alarm() {
    struct sigaction action{};
    action.sa_handler = [](int) {};  // and no SA_RESTART
    sigaction(SIGUSR1, &action, nullptr);
    thread_ = std::jthread([this, sleeper = pthread_self()] {
      while (!is_over_.load()) {
        pthread_kill(sleeper, SIGUSR1);
        std::this_thread::sleep_for(std::chrono::microseconds(200));
      }
    });
  }
  ~Alarm() { is_over_.store(true); }

 private:
  std::atomic<bool> is_over_{false};
  std::jthread thread_;
};

// Whether a rank that met its end by this error has met its fate.
template <class Error>
bool is_end_of(Fate fate) {
  switch (fate) {
    case Fate::kAbort:
    case Fate::kInterrupt:
      return std::is_same_v<Error, core::AbortedError>;
    case Fate::kDepart:
    case Fate::kDisagree:
      return std::is_same_v<Error, core::MismatchError>;
    case Fate::kDeadline:
      return std::is_same_v<Error, core::DeadlineError>;
    case Fate::kExit:
      return std::is_same_v<Error, core::WorkerLostError>;
  }
  return false;
}

// Calls that go well, until the last rank does something else.
template <class Strike>
void live_until_strike(Group& group, int rank, Fate fate, std::uint64_t seed, Strike&& strike) {
  const auto check_end = [&]<class Error>(const Error& error) {
    check(is_end_of<Error>(fate), std::string("every rank ends by its fate: ") + error.what());
    try {
      group.member(rank).barrier();
      check(false, "a group that has failed makes no more calls");
    } catch (const std::exception& again) {
      check(group.failure() == again.what(), "a group states its first cause for ever");
    }
  };
  try {
    make_calls(group, rank, seed, 1 + seed % 20, nullptr);
    if (rank == group.num_ranks() - 1) strike();
    const bool is_interrupted = fate == Fate::kInterrupt && rank == group.num_ranks() - 1;
    Interrupt interrupt;
    std::optional<Alarm> alarm;
    if (is_interrupted) alarm.emplace();
    for (std::uint64_t turn = 0;; ++turn)
      make_calls(group, rank, turn, 5, nullptr, is_interrupted ? &interrupt : nullptr);
  } catch (const Interruption&) {
    check(fate == Fate::kInterrupt && group.failure().has_value(), "an interruption fails the group");
    check(group.failure()->find("interrupted") != std::string::npos, "and says so");
  } catch (const core::AbortedError& error) {
    if (fate == Fate::kInterrupt) {
      check(std::string(error.what()).find("interrupted") != std::string::npos, "an interruption is told to all");
    }
    check_end(error);
  } catch (const core::MismatchError& error) {
    check_end(error);
  } catch (const core::DeadlineError& error) {
    check_end(error);
  } catch (const core::WorkerLostError& error) {
    check(error.reason == "exited with status 3", std::string("how a process ended is told: ") + error.what());
    check_end(error);
  }
}

void failures_reach_all_processes(const Layout& layout, std::uint64_t seed) {
  const auto fate = static_cast<Fate>(seed % kNumFates);
  const auto timeout = fate == Fate::kDeadline ? std::chrono::milliseconds(300) : std::chrono::milliseconds(kTimeout);
  Processes processes(layout);
  const int last = layout.num_processes() - 1;
  processes.start([&](int process) {
    Group group(layout.num_ranks(), {.timeout = timeout}, processes.world(process));
    on_ranks_of(layout, process, [&](int rank) {
      bool is_gone = false;
      live_until_strike(group, rank, fate, seed, [&] {
        if (fate == Fate::kAbort) group.abort("the last rank gave up");
        if (fate == Fate::kDisagree) group.member(rank).barrier("of nobody else");
        if (fate == Fate::kDepart) group.member(rank).depart("returned");
        if (fate == Fate::kDeadline) std::this_thread::sleep_for(std::chrono::seconds(1));
        if (fate == Fate::kExit) std::_Exit(3);
        is_gone = fate == Fate::kDepart;
        if (is_gone) std::this_thread::sleep_for(std::chrono::milliseconds(100));
        if (is_gone) throw core::MismatchError(group.failure().value_or(""));
      });
    });
  });
  for (int process = 0; process < layout.num_processes(); ++process) {
    const int wanted = fate == Fate::kExit && process == last ? 3 : 0;
    check(processes.wait_for(process, 30) == wanted, "every process ends by its fate");
  }
}

// Rank 2 exits, and rank 0 ends once it has been told. Rank 1 makes a part of the group with rank 0 when both are gone:
// it must take rank 2 for the lost one, not rank 0, which ended for that reason.
void a_late_part_knows_the_first_cause() {
  Processes processes({.ranks = {1, 1, 1}});
  processes.start([&](int process) {
    Group group(3, {.timeout = kTimeout}, processes.world(process));
    const auto is_told = [](const core::WorkerLostError& error) {
      check(error.rank == 2 && error.reason == "exited with status 3", std::string("told: ") + error.what());
    };
    try {
      group.member(process).barrier();
      if (process == 2) std::_Exit(3);
      for (;;) group.member(process).barrier();
    } catch (const core::WorkerLostError& error) {
      is_told(error);
    }
    if (process == 0) return;
    collectives::World& world = *group.world();
    while (!world.is_gone(0) || !world.is_gone(2)) usleep(100);
    const std::vector<int> ranks{0, 1};
    memory::Block memory = world.allocate(collectives::ControlBlock::bytes_for(2, 3));
    collectives::ControlBlock::make(memory->data(), 2, 3);
    Group part(Group::SubgroupOf{group, ranks, std::move(memory)});
    try {
      part.member(1).barrier();
      check(false, "a part of a group that has failed makes no calls");
    } catch (const core::WorkerLostError& error) {
      is_told(error);
    }
  });
  for (int process = 0; process < 3; ++process) {
    check(processes.wait_for(process, 20) == (process == 2 ? 3 : 0), "each process is told the first cause");
  }
}

// Rank 2 exits, and then rank 0, when both have made their part of the meeting. Rank 1 makes the group when both are
// gone: it takes the one that ended first for the lost one.
void a_late_group_knows_who_ended_first() {
  Processes processes({.ranks = {1, 1, 1}});
  processes.start([&](int process) {
    const std::shared_ptr<collectives::World> world = processes.world(process);
    world->rendezvous(collectives::JoinLimit::after(kTimeout, kTimeout));
    if (process == 2) std::_Exit(3);
    if (process == 0) {
      const memory::Block memory = world->allocate(collectives::ControlBlock::bytes_for(3, 3));
      collectives::ControlBlock::make(memory->data(), 3, 3);
      collectives::header_of(memory->data()).holds_of(1).add(1);
      world->send_control(world->buffer_name_of(memory->data()));
      while (!world->is_gone(2) || processes.board().calls.load() == 0) usleep(100);
      std::_Exit(0);
    }
    processes.board().calls.store(1);
    while (!world->is_gone(0) || !world->is_gone(2)) usleep(100);
    Group group(3, {.timeout = kTimeout}, world);
    try {
      group.member(1).barrier();
      check(false, "a group whose ranks have ended makes no calls");
    } catch (const core::WorkerLostError& error) {
      check(error.rank == 2 && error.reason == "exited with status 3", std::string("told: ") + error.what());
    }
  });
  for (int process = 0; process < 3; ++process) {
    check(processes.wait_for(process, 20) == (process == 2 ? 3 : 0), "each process ends as it shall");
  }
}

// Rank 1 sleeps and rank 2 is gone while rank 0 makes the group: it does not wait for rank 1 before it tells of rank 2.
void a_loss_is_told_whoever_else_is_late() {
  Processes processes({.ranks = {1, 1, 1}});
  processes.start([&](int process) {
    if (process == 2) std::_Exit(3);
    if (process == 1) {
      while (processes.board().calls.load() == 0) usleep(1000);
      return;
    }
    try {
      const Group group(3, {.timeout = kTimeout}, processes.world(process));
      check(false, "no group is made without a rank");
    } catch (const core::WorkerLostError& error) {
      check(error.rank == 2, std::string("told: ") + error.what());
    }
    processes.board().calls.fetch_add(1);
  });
  for (int process = 0; process < 3; ++process) {
    check(processes.wait_for(process, 20) == (process == 2 ? 3 : 0), "a loss is told while another rank is late");
  }
}

// Rank 2 fails when all others have made their part of the rendezvous, and its World lives on: the others are told at
// once, with its reason.
void a_rank_that_leaves_is_lost_although_its_world_lives() {
  Processes processes({.ranks = {1, 1, 1}});
  processes.start([&](int process) {
    const std::shared_ptr<collectives::World> world = processes.world(process);
    if (process == 2) {
      world->rendezvous(collectives::JoinLimit::after(kTimeout, kTimeout));
      world->leave("was interrupted");
      while (processes.board().calls.load() < 2) usleep(100);
      return;
    }
    try {
      Group group(3, {.timeout = kTimeout}, world);
      group.member(process).barrier();
      check(false, "no call takes place without a rank");
    } catch (const core::WorkerLostError& error) {
      check(error.rank == 2 && error.reason == "was interrupted", std::string("told: ") + error.what());
    }
    processes.board().calls.fetch_add(1);
  });
  for (int process = 0; process < 3; ++process) {
    check(processes.wait_for(process, 20) == 0, "the others do not wait until their time-outs");
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t calls = stress::calls_of(argc, argv, 100'000) / 100;
  const std::vector<std::vector<int>> homes{{1, 1}, {2, 2}, {1, 1, 1}, {1, 2, 1}, {1, 1, 1, 1, 1}, {3}, {1}};
  for (const bool may_use_cma : {true, false}) {
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      for (const auto& ranks : homes) results_are_right({.ranks = ranks, .may_use_cma = may_use_cma}, calls / 8, seed);
    }
  }
  for (std::uint64_t failure = 0; failure < calls / 20; ++failure) {
    failures_reach_all_processes({.ranks = homes[failure % 5], .may_use_cma = failure / kNumFates % 2 == 0}, failure);
  }
  for (int time = 0; time < 5; ++time) a_late_part_knows_the_first_cause();
  a_loss_is_told_whoever_else_is_late();
  a_rank_that_leaves_is_lost_although_its_world_lives();
  for (int time = 0; time < 5; ++time) a_late_group_knows_who_ended_first();
  for (std::uint64_t kill = 0; kill < calls / 10; ++kill) {
    const auto& ranks = homes[kill % 5];
    a_loss_is_told({.ranks = ranks, .may_use_cma = kill % 3 != 0, .has_pidfds = kill % 7 != 0}, kill);
  }
}

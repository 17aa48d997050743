// What becomes of shared memory when groups end, calls fail and processes die: nothing is used again too early, and
// everything is in the end.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "check.hpp"
#include "processes.hpp"
#include "ringlet/collectives/group/member.hpp"
#include "ringlet/collectives/transport/holds.hpp"
#include "ringlet/core/error.hpp"

namespace {

using namespace ringlet;
using collectives::Buffer;
using collectives::Group;
using collectives::Member;
using collectives::Results;
using stress::check;
using stress::Processes;

constexpr std::size_t kCount = 5000;  // so small that private arrays are staged

// The processes and their parent wait for each other's steps by a number on the board.
void wait_for(stress::Board& board, std::uint64_t step) {
  while (board.calls.load() < step) usleep(100);
}

// The group of a process of one rank.
struct Life {
  Life(Processes& processes, int process, std::chrono::seconds timeout = std::chrono::seconds(50))
      : group(std::make_unique<Group>(processes.layout().num_ranks(), collectives::Options{.timeout = timeout},
                                      processes.world(process))),
        member(group->member(process)) {}

  void close() {
    if (group != nullptr) member.depart("closed its group");
    group.reset();
  }

  std::unique_ptr<Group> group;
  Member member;
};

struct Vector {
  explicit Vector(std::size_t count, float value = 0)
      : values(count, value), length(static_cast<std::int64_t>(count)) {}
  Buffer part(Vector* output = nullptr) {
    return {.input = values.data(),
            .output = output == nullptr ? nullptr : output->values.data(),
            .count = values.size(),
            .dtype = core::DType::kFloat32,
            .shape = {&length, 1}};
  }
  bool holds_only(float value) const {
    for (const float each : values) {
      if (each != value) return false;
    }
    return true;
  }

  std::vector<float> values;
  std::int64_t length;
};

Results all_reduce(Member& member, const Buffer& part) { return member.all_reduce({&part, 1}, core::Op::kSum); }

// Whether somebody holds so many blocks of the shared memory of this process, soon.
bool has_lent(std::size_t blocks) {
  for (int i = 0; i < 5000; ++i) {
    if (memory::SharedHeap::of_this_process().statistics().lent_blocks == blocks) return true;
    usleep(1000);
  }
  return false;
}

bool has_all_back() { return has_lent(0); }

void end_well(Processes& processes) {
  for (int process = 0; process < processes.layout().num_processes(); ++process) {
    check(processes.wait_for(process) == 0, "every process ends well");
  }
}

// Process 1 sleeps in a call that process 0 brings to its end; then process 0 ends its group and uses memory again.
void a_slow_rank_takes_its_result_from_a_group_that_has_ended() {
  Processes processes({.ranks = {1, 1}});
  processes.start([&](int process) {
    stress::Board& board = processes.board();
    Life life(processes, process);
    Vector input(kCount, 1);
    Vector output(2 * kCount);
    Buffer part = input.part(&output);
    part.output_length = output.length;
    // All outputs are copied from the one that stands for that of rank 0.
    life.member.all_gather(part, 0);
    if (process == 1) {
      board.calls.store(1);
      life.member.all_gather(part, 0);
      check(output.holds_only(1), "what is staged for a slow rank is not used again before it has taken it");
      life.close();
      return;
    }
    wait_for(board, 2);
    life.member.all_gather(part, 0);
    check(output.holds_only(1), "the fast rank has its result");
    life.close();
    std::vector<memory::Block> others;
    for (int i = 0; i < 12; ++i) {
      others.push_back(collectives::allocate_shared(2 * kCount * sizeof(float)));
      std::fill_n(reinterpret_cast<float*>(others.back()->data()), 2 * kCount, 77.0F);
    }
    board.calls.store(3);
    others.clear();
    check(has_all_back(), "what was staged comes back once the slow rank has done with it");
  });
  wait_for(processes.board(), 1);
  usleep(50'000);  // for it to be asleep in the call
  processes.stop(1);
  processes.board().calls.store(2);
  wait_for(processes.board(), 3);
  processes.go_on(1);
  end_well(processes);
}

// Process 1 has done with all calls, but its group lives on: it holds the control block, and nothing else.
void who_has_done_with_a_call_holds_nothing_of_it() {
  Processes processes({.ranks = {1, 1}});
  processes.start([&](int process) {
    Life life(processes, process);
    Vector input(kCount, 1);
    Vector output(kCount);
    for (int turn = 0; turn < 3; ++turn) all_reduce(life.member, input.part(&output));
    if (process == 0) {
      life.close();
      check(has_lent(1), "the memory of calls comes back although the other group lives");
      processes.board().calls.store(1);
    }
    wait_for(processes.board(), 1);
    life.close();
    check(has_all_back(), "and the rest with the other group");
  });
  end_well(processes);
}

// `calls` are made by both ranks; after both groups have ended, all memory is back.
template <class Calls>
void everything_comes_back_after(const std::string& what, Calls&& calls) {
  Processes processes({.ranks = {1, 1}});
  processes.start([&](int process) {
    Life life(processes, process);
    calls(life);
    check(life.group != nullptr, "the group lives as long as its member");
    life.close();
    check(has_all_back(), "nothing stays lent after " + what);
  });
  end_well(processes);
}

void results_of_calls_that_do_no_work_come_back() {
  everything_comes_back_after("all-gathers of pieces of different lengths", [](Life& life) {
    // Each is called off, as lengths differ, and made again.
    for (int turn = 0; turn < 30; ++turn) {
      Vector input(kCount + static_cast<std::size_t>(life.member.rank()), 1);
      check(life.member.all_gather(input.part(), 0).size() == 1, "there is a result");
    }
    const auto lent = memory::SharedHeap::of_this_process().statistics().lent_blocks;
    check(lent < 12, "results that nobody takes do not add up: " + std::to_string(lent));
  });
  everything_comes_back_after("a mismatch", [](Life& life) {
    Vector input(kCount, 1);
    try {
      if (life.member.rank() == 0) all_reduce(life.member, input.part());
      life.member.barrier();
      check(false, "different calls are a mismatch");
    } catch (const core::MismatchError&) {
    }
  });
  everything_comes_back_after("a call that is refused", [](Life& life) {
    // Its one output would be written while it is still read.
    Vector input(2 * kCount, 1);
    Buffer part = input.part();
    part.output = input.values.data() + 1;
    part.count = kCount;
    const std::int64_t length = kCount;
    part.shape = {&length, 1};
    const Buffer parts[] = {part, part};
    try {
      life.member.all_reduce(parts, core::Op::kSum);
      check(false, "outputs that overlap are refused, staged or not");
    } catch (const core::ArgumentError&) {
    }
  });
}

// Process 1 dies at some moment of the calls, or of splits that give ranks 0 and 2 a group of their own.
void everything_comes_back_after_a_loss(useconds_t microseconds, bool splits) {
  Processes processes({.ranks = {1, 1, 1}});
  processes.start([&](int process) {
    Life life(processes, process);
    Results kept;
    try {
      for (std::size_t turn = 0;; ++turn) {
        if (splits) {
          (void)life.member.split(process % 2, 0);
          processes.board().calls.fetch_add(1);
          continue;
        }
        Vector input(turn % 3 == 0 ? 60'000 : kCount, 1);
        Vector output(input.values.size());
        kept = all_reduce(life.member, input.part(turn % 2 == 0 ? &output : nullptr));
        processes.board().calls.fetch_add(1);
      }
    } catch (const core::WorkerLostError&) {
    }
    kept.clear();
    life.close();
    check(has_all_back(), "nothing stays lent after a loss");
  });
  wait_for(processes.board(), 20);
  usleep(microseconds);
  processes.kill(1);
  for (const int process : {0, 1, 2}) {
    check(processes.wait_for(process) == (process == 1 ? -SIGKILL : 0), "only who is killed ends badly");
  }
}

// Process 1 keeps a result of process 0 when both groups have ended, and then dies.
void what_a_process_held_comes_back_with_its_end_after_that_of_the_group() {
  Processes processes({.ranks = {1, 1}});
  processes.start([&](int process) {
    stress::Board& board = processes.board();
    const int before = stress::count_descriptors() - 1;  // its end of the connection
    Life life(processes, process);
    Vector input(kCount, 1);
    Results results = all_reduce(life.member, input.part());
    life.close();
    board.calls.fetch_add(1);
    wait_for(board, 2);
    if (process == 1) {
      check(has_all_back(), "the other one has nothing of this");
      board.calls.store(3);
      pause();
    }
    wait_for(board, 3);
    results.clear();
    usleep(300'000);
    const auto lent = memory::SharedHeap::of_this_process().statistics().lent_blocks;
    check(lent == 1, "what another process holds stays lent, and nothing else: " + std::to_string(lent));
    const int descriptors = stress::count_descriptors();
    check(descriptors < before + 2, "of a group that has ended, a segment alone is left");
    board.calls.store(4);
    check(has_all_back(), "what a dead process held comes back");
    check(stress::count_descriptors() == descriptors, "for which no handle had to be kept");
  });
  wait_for(processes.board(), 4);
  processes.kill(1);
  check(processes.wait_for(1) == -SIGKILL && processes.wait_for(0) == 0, "the other one ends well");
}

}  // namespace

int main() {
  a_slow_rank_takes_its_result_from_a_group_that_has_ended();
  who_has_done_with_a_call_holds_nothing_of_it();
  results_of_calls_that_do_no_work_come_back();
  for (useconds_t kill = 0; kill < 20; ++kill) {
    for (const bool splits : {false, true}) everything_comes_back_after_a_loss(kill * 97 % 1000, splits);
  }
  what_a_process_held_comes_back_with_its_end_after_that_of_the_group();
}

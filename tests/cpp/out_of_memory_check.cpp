// Lets one rank run out of memory at every single allocation of a call, one after the other: either all ranks get the
// right result, when that rank calls again, or all of them get an error. None waits for ever, none ends the program.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <new>
#include <span>
#include <thread>
#include <vector>

#include "check.hpp"
#include "processes.hpp"
#include "ringlet/collectives/group/member.hpp"

namespace {

// Of this thread: how many allocations are still made before one fails; 0: none fails.
thread_local std::uint64_t allocations_left = 0;

void* allocate(std::size_t bytes, std::size_t alignment) {
  if (allocations_left > 0 && --allocations_left == 0) throw std::bad_alloc();
  void* const memory = std::aligned_alloc(alignment, (std::max<std::size_t>(bytes, 1) + alignment - 1) & -alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t bytes) { return allocate(bytes, alignof(std::max_align_t)); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace {

using namespace ringlet;
using collectives::Algorithm;
using collectives::Group;
using collectives::Kind;
using collectives::Member;
using collectives::Results;
using stress::check;
using stress::Layout;
using stress::Processes;

constexpr std::chrono::seconds kTimeout{60};

struct Case {
  Kind kind;
  Algorithm algorithm;
  std::size_t num_parts;
  std::size_t count;  // of float32 that a rank passes in each part
  bool has_outputs;
};

constexpr Case kCases[] = {
    {Kind::kAllReduce, Algorithm::kSmall, 2, 20, true},        {Kind::kAllReduce, Algorithm::kDirect, 3, 20'000, true},
    {Kind::kAllReduce, Algorithm::kDirect, 1, 20'000, false},  {Kind::kAllReduce, Algorithm::kDirect, 1, 300'000, true},
    {Kind::kAllReduce, Algorithm::kRing, 2, 20'000, true},     {Kind::kReduce, Algorithm::kAuto, 1, 20'000, true},
    {Kind::kReduceScatter, Algorithm::kAuto, 1, 24'000, true}, {Kind::kBroadcast, Algorithm::kAuto, 3, 20'000, true},
    {Kind::kBroadcast, Algorithm::kAuto, 2, 20'000, false},    {Kind::kScatter, Algorithm::kAuto, 1, 24'000, true},
    {Kind::kScatter, Algorithm::kAuto, 1, 24'000, false},      {Kind::kAllGather, Algorithm::kAuto, 1, 20'000, true},
    {Kind::kGather, Algorithm::kAuto, 1, 20'000, true},        {Kind::kAllToAll, Algorithm::kAuto, 1, 24'000, true},
};

// The arrays of one rank, filled with its number + 1.
class Caller {
 public:
  Caller(const Case& kase, Member member)
      : case_(kase), member_(member), ranks_(static_cast<std::size_t>(member.group().num_ranks())) {
    const bool gathers = collectives::is_gather(kase.kind);
    const bool cuts = kase.kind == Kind::kReduceScatter || kase.kind == Kind::kScatter;
    result_count_ = gathers ? kase.count * ranks_ : cuts ? kase.count / ranks_ : kase.count;
    // A receiver of a scatter describes its own rows.
    const std::size_t count = kase.kind == Kind::kScatter && member.rank() != 0 ? result_count_ : kase.count;
    length_ = static_cast<std::int64_t>(count);
    rows_.assign(ranks_, static_cast<std::int64_t>(kase.count / ranks_));
    inputs_.assign(kase.num_parts, std::vector<float>(count, static_cast<float>(member.rank() + 1)));
    outputs_.assign(kase.num_parts, std::vector<float>(result_count_));
    for (std::size_t part = 0; part < kase.num_parts; ++part) {
      parts_.push_back({.input = inputs_[part].data(),
                        .output = kase.has_outputs ? outputs_[part].data() : nullptr,
                        .count = count,
                        .dtype = core::DType::kFloat32,
                        .shape = {&length_, 1},
                        .output_length = static_cast<std::int64_t>(result_count_)});
    }
  }

  void call() {
    const Results results = results_of_call();
    const bool has_result = member_.rank() == 0 || (case_.kind != Kind::kReduce && case_.kind != Kind::kGather);
    if (!has_result) return;
    check_results(results);
    if (case_.has_outputs) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(3));  // until a rank that had no memory has left
    check_results(results);
  }

 private:
  void check_results(const Results& results) const {
    for (std::size_t part = 0; part < case_.num_parts; ++part) {
      const auto* const result =
          case_.has_outputs ? outputs_[part].data() : reinterpret_cast<const float*>(results[part]->data());
      for (std::size_t i = 0; i < result_count_; ++i) check(result[i] == expected(i), "results are right");
    }
  }

  Results results_of_call() {
    switch (case_.kind) {
      case Kind::kAllReduce:
        return member_.all_reduce(parts_, core::Op::kSum, case_.algorithm);
      case Kind::kReduce:
        return member_.reduce(parts_.front(), core::Op::kSum, 0);
      case Kind::kReduceScatter:
        return member_.reduce_scatter(parts_.front(), core::Op::kSum);
      case Kind::kBroadcast:
        return member_.broadcast(parts_, true, 0);
      case Kind::kScatter:
        return member_.scatter(parts_.front(), member_.rank() == 0 ? std::span(rows_) : std::span<std::int64_t>(), 0);
      case Kind::kAllToAll:
        return member_.all_to_all(parts_.front(), rows_, true);
      case Kind::kAllGather:
        return member_.all_gather(parts_.front(), 0);
      default:
        return member_.gather(parts_.front(), 0, 0);
    }
  }

  float expected(std::size_t index) const {
    if (collectives::is_gather(case_.kind)) return static_cast<float>(index / case_.count + 1);
    if (case_.kind == Kind::kAllToAll) return static_cast<float>(index / (case_.count / ranks_) + 1);
    return collectives::is_reduction(case_.kind) ? static_cast<float>(ranks_ * (ranks_ + 1) / 2) : 1.0F;
  }

  Case case_;
  Member member_;
  std::size_t ranks_;
  std::size_t result_count_ = 0;
  std::int64_t length_ = 0;
  std::vector<std::int64_t> rows_;
  std::vector<std::vector<float>> inputs_;
  std::vector<std::vector<float>> outputs_;
  std::vector<collectives::Buffer> parts_;
};

// What the ranks did, counted over all of them.
struct Outcome {
  std::atomic<int> num_failed = 0;       // some call raised for good
  std::atomic<bool> is_reached = false;  // the allocation that was to fail took place
};

// `num_before` calls, the call, once more if it had no memory, and a barrier that tells whether the ranks still agree.
void run_rank(const Case& kase, Member member, int num_before, std::uint64_t failing, Outcome& outcome) {
  Caller caller(kase, member);
  bool has_failed = false;
  try {
    for (int i = 0; i < num_before; ++i) caller.call();
    allocations_left = failing;
    try {
      caller.call();
    } catch (const std::bad_alloc&) {
      check(allocations_left == 0 && failing > 0, "memory lasts but for the one allocation");
      allocations_left = 0;
      outcome.is_reached = true;
      caller.call();
    }
    if (failing > 0 && allocations_left == 0) outcome.is_reached = true;
    allocations_left = 0;
    member.barrier("the end");
  } catch (const std::exception& error) {
    check(dynamic_cast<const std::bad_alloc*>(&error) == nullptr, "a group that has failed says so");
    if (failing > 0 && allocations_left == 0) outcome.is_reached = true;
    allocations_left = 0;
    has_failed = true;
  }
  if (has_failed) ++outcome.num_failed;
}

// False once the call makes fewer allocations.
bool run_threads(const Case& kase, int num_before, int victim, std::uint64_t failing) {
  constexpr int kRanks = 3;
  Group group(kRanks, {.timeout = kTimeout});
  Outcome outcome;
  stress::on_ranks(
      kRanks, [&](int rank) { run_rank(kase, group.member(rank), num_before, rank == victim ? failing : 0, outcome); });
  check(outcome.num_failed == 0 || outcome.num_failed == kRanks, "all ranks fail, or none");
  return outcome.is_reached;
}

bool run_processes(const Layout& layout, const Case& kase, int victim, std::uint64_t failing) {
  Processes processes(layout);
  void* const shared = mmap(nullptr, sizeof(Outcome), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  check(shared != MAP_FAILED, "memory can be mapped");
  auto* const outcome = new (shared) Outcome;
  processes.start([&](int process) {
    Group group(layout.num_ranks(), {.timeout = kTimeout}, processes.world(process));
    const std::vector<int> ranks = layout.ranks_of(process);
    stress::on_ranks(static_cast<int>(ranks.size()), [&](int index) {
      const int rank = ranks[static_cast<std::size_t>(index)];
      run_rank(kase, group.member(rank), 0, rank == victim ? failing : 0, *outcome);
      group.member(rank).depart("closed its group");
    });
  });
  for (int process = 0; process < layout.num_processes(); ++process) {
    check(processes.wait_for(process) == 0, "all end well");
  }
  check(outcome->num_failed == 0 || outcome->num_failed == layout.num_ranks(), "all ranks fail, or none");
  const bool is_reached = outcome->is_reached;
  munmap(shared, sizeof(Outcome));
  return is_reached;
}

}  // namespace

int main() {
  const Layout layouts[] = {{.ranks = {1, 1}}, {.ranks = {2, 1}, .may_use_cma = false}};
  std::uint64_t runs = 0;
  for (const int victim : {0, 1}) {
    for (const Case& kase : kCases) {
      for (std::uint64_t failing = 1; run_processes(layouts[victim], kase, victim, failing); ++failing) ++runs;
    }
  }
  for (const int victim : {0, 1}) {
    for (const Case& kase : kCases) {
      // After two calls, what is kept from call to call is there.
      for (const int num_before : {0, 2}) {
        for (std::uint64_t failing = 1; run_threads(kase, num_before, victim, failing); ++failing) ++runs;
      }
    }
  }
  std::cout << "ran out of memory at " << runs << " allocations" << std::endl;
}

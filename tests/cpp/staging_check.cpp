// Shared memory that stands for private arrays: results that are wider than their inputs, in the place of these, and
// what is kept once a large call is over.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "check.hpp"
#include "processes.hpp"
#include "ringlet/collectives/group/group.hpp"
#include "ringlet/collectives/group/member.hpp"
#include "ringlet/core/error.hpp"
#include "ringlet/memory/shared_heap.hpp"

namespace {

using namespace ringlet;
using collectives::Group;
using collectives::Kind;
using stress::check;
using stress::Layout;
using stress::Processes;

constexpr auto kTimeout = std::chrono::seconds(60);

template <class Body>
void on_ranks(const Layout& layout, Body&& body) {
  Processes processes(layout);
  processes.start([&](int process) {
    Group group(layout.num_ranks(), {.timeout = kTimeout}, processes.world(process));
    stress::on_ranks(layout.ranks[static_cast<std::size_t>(process)],
                     [&](int index) { body(group.member(layout.ranks_of(process)[static_cast<std::size_t>(index)])); });
  });
  for (int process = 0; process < layout.num_processes(); ++process) {
    check(processes.wait_for(process) == 0, "all end well");
  }
}

void call(collectives::Member& member, Kind kind, const collectives::Buffer& part, core::Op op) {
  if (kind == Kind::kAllReduce) {
    member.all_reduce({&part, 1}, op, collectives::Algorithm::kAuto, nullptr);
  } else if (kind == Kind::kReduce) {
    member.reduce(part, op, 0, nullptr);
  } else {
    member.reduce_scatter(part, op, nullptr);
  }
}

// The mean of numbers of 16 bits, as float32 that begin where the numbers do: refused, or right.
void a_wider_result_in_place_is_right_or_refused(const Layout& layout, Kind kind, std::size_t count) {
  on_ranks(layout, [&](collectives::Member member) {
    const auto ranks = static_cast<std::size_t>(layout.num_ranks());
    const auto rank = static_cast<std::size_t>(member.rank());
    std::vector<float> memory(count);
    auto* const numbers = reinterpret_cast<std::int16_t*>(memory.data());
    const auto number = [](std::size_t i, std::size_t of_rank) { return static_cast<int>(i % 1000 + of_rank * 7); };
    for (std::size_t i = 0; i < count; ++i) numbers[i] = static_cast<std::int16_t>(number(i, rank));
    const auto length = static_cast<std::int64_t>(count);
    collectives::Buffer part{.input = numbers,
                             .output = memory.data(),
                             .count = count,
                             .dtype = core::DType::kInt16,
                             .shape = {&length, 1},
                             .output_length = 0};
    if (kind == Kind::kReduce && rank != 0) part.output = nullptr;
    try {
      call(member, kind, part, core::Op::kMean);
    } catch (const core::ArgumentError&) {
      return;
    }
    if (part.output == nullptr) return;
    const std::size_t share = kind == Kind::kReduceScatter ? count / ranks : count;
    const std::size_t begin = kind == Kind::kReduceScatter ? share * rank : 0;
    for (std::size_t i = 0; i < share; ++i) {
      int sum = 0;
      for (std::size_t other = 0; other < ranks; ++other) sum += number(begin + i, other);
      const float mean = static_cast<float>(sum) / static_cast<float>(ranks);
      check(memory[i] - mean < 1e-3F && mean - memory[i] < 1e-3F, "a result that replaces its input is right");
    }
  });
}

// Of private arrays that are too large to be staged for ever: after the next call, the heap has the memory, and gives
// it back.
void stages_of_large_calls_go_with_the_next_call(Kind kind) {
  constexpr std::size_t kCount = std::size_t{4} << 20;
  on_ranks({.ranks = {1, 1}, .may_use_cma = false}, [&](collectives::Member member) {
    const std::vector<std::int32_t> input(kCount, member.rank() + 1);
    std::vector<std::int32_t> output(kCount);
    const std::int64_t length = kCount;
    for (int times = 0; times < 3; ++times) {
      call(member, kind,
           {.input = input.data(),
            .output = output.data(),
            .count = kCount,
            .dtype = core::DType::kInt32,
            .shape = {&length, 1},
            .output_length = 0},
           core::Op::kSum);
    }
    check(output.front() == (kind == Kind::kReduce && member.rank() != 0 ? 0 : 3), "the sum is right");
    member.barrier("", nullptr);
    memory::SharedHeap& heap = memory::SharedHeap::of_this_process();
    heap.trim();
    check(heap.statistics().lent_bytes < std::size_t{8} << 20, "no large memory is kept");
    check(heap.statistics().idle_bytes == 0, "nor idle");
  });
}

}  // namespace

int main() {
  for (const Kind kind : {Kind::kAllReduce, Kind::kReduce, Kind::kReduceScatter}) {
    for (const Layout& layout : {Layout{.ranks = {1, 1}}, Layout{.ranks = {1, 1}, .may_use_cma = false},
                                 Layout{.ranks = {2, 1}}, Layout{.ranks = {1, 1, 1}}}) {
      for (const std::size_t count : {12u, 6000u, 120'000u, 600'000u}) {
        a_wider_result_in_place_is_right_or_refused(layout, kind, count);
      }
    }
    stages_of_large_calls_go_with_the_next_call(kind);
  }
}

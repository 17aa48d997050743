// Several controlling threads reduce at the same time with the help of one team, or without where another has it: every
// result is right, every chunk is done once, and a forked child starts helpers of its own.
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "check.hpp"
#include "expected.hpp"
#include "palette.hpp"
#include "plan.hpp"
#include "ringlet/collectives/algorithms/single_controller.hpp"
#include "ringlet/core/error.hpp"
#include "ringlet/sync/team.hpp"

namespace {

using namespace ringlet;
using stress::Array;
using stress::check;

// Buffers of a few ranks, of about so many bytes, to one result or one for each of them, sometimes in their place.
void reduce(stress::Random& random, std::size_t bytes, int workers) {
  const int num_ranks = 1 + static_cast<int>(random.below(9));
  stress::Plan plan = stress::Planner(random, num_ranks).draw(collectives::Kind::kReduce);
  const std::size_t count = bytes / core::size_of(plan.dtype);
  const core::DType result = core::result_dtype(plan.op, plan.dtype);
  std::vector<Array> inputs;
  std::vector<const void*> from;
  for (int rank = 0; rank < num_ranks; ++rank) {
    inputs.push_back(stress::new_array(count * core::size_of(plan.dtype)));
    stress::Palette::of(plan.dtype).copy_to(inputs.back().get(), stress::first_of(plan.seed, rank), count);
    from.push_back(inputs.back().get());
  }
  std::vector<Array> outputs;
  std::vector<void*> to;
  for (int rank = 0; rank < (plan.describes ? num_ranks : 1); ++rank) {
    const bool in_place = plan.output == stress::Output::kInPlace && result == plan.dtype;
    if (!in_place) outputs.push_back(stress::new_array(count * core::size_of(result)));
    to.push_back(in_place ? inputs[static_cast<std::size_t>(rank)].get() : outputs.back().get());
  }
  collectives::reduce_buffers(from, count, plan.dtype, plan.op, to, workers);
  for (void* const output : to) {
    stress::Expected(plan, num_ranks).check_reduction(static_cast<const std::byte*>(output), 0, count);
  }
}

// Sizes on both sides of what is worth sharing, and now and then far larger ones.
void reduce_often(std::uint64_t seed, std::size_t times) {
  constexpr std::array<std::size_t, 8> kBytes{0, 100, 5001, 20'000, 32'768, 60'001, 300'000, 1'200'000};
  stress::Random random(seed);
  for (std::size_t i = 0; i < times; ++i) {
    const std::size_t bytes = kBytes[random.below(random.below(64) == 0 ? 8 : 6)];
    if (random.below(16) == 0)
      std::this_thread::sleep_for(std::chrono::microseconds(random.below(500)));  // helpers park
    reduce(random, bytes, 1 + static_cast<int>(random.below(4)));
  }
}

// Counts how often each chunk is done, with other callers at the same time.
void share(std::size_t num_chunks, int helpers) {
  std::vector<std::atomic<int>> times(num_chunks);
  sync::Team::shared().share(
      num_chunks, helpers,
      [](void* context, std::size_t chunk) noexcept {
        static_cast<std::atomic<int>*>(context)[chunk].fetch_add(1, std::memory_order_relaxed);
      },
      times.data());
  // relaxed: that the work is over must be enough to see all of it.
  for (const auto& count : times) {
    check(count.load(std::memory_order_relaxed) == 1, "every chunk is done once, before share() returns");
  }
}

// Two chunks that wait for each other need two threads.
struct Meeting {
  std::atomic<int> num_begun{0};
  std::atomic<bool> have_met{false};

  void attend() noexcept {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    num_begun.fetch_add(1);
    while (num_begun.load() < 2 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    if (num_begun.load() == 2) have_met.store(true);
  }
};

bool a_helper_comes() {
  Meeting meeting;
  sync::Team::shared().share(
      2, 1, [](void* context, std::size_t) noexcept { static_cast<Meeting*>(context)->attend(); }, &meeting);
  return meeting.have_met.load();
}

void many_threads_share_one_team(std::size_t times) {
  stress::on_ranks(4, [&](int thread) {
    const auto seed = static_cast<std::uint64_t>(thread);
    reduce_often(seed, times);
    stress::Random random(seed);
    for (std::size_t i = 0; i < 20 * times; ++i) share(random.below(20), static_cast<int>(random.below(4)));
  });
}

// Nobody is inside when the process forks.
void a_forked_child_has_a_team_of_its_own(int turn) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(120);
    reduce_often(1000 + static_cast<std::uint64_t>(turn), 8);
    _exit(a_helper_comes() ? 0 : 1);
  }
  int status = -1;
  check(child > 0 && waitpid(child, &status, 0) == child, "a child comes and goes");
  check(WIFEXITED(status) && WEXITSTATUS(status) == 0, "it reduces with helpers of its own");
  check(a_helper_comes(), "the parent's helpers are still there");
}

void wrong_numbers_are_refused() {
  for (const std::size_t num_inputs : {std::size_t{0}, std::size_t{4097}}) {
    const std::vector<const void*> inputs(num_inputs);
    try {
      collectives::reduce_buffers(inputs, 1, core::DType::kInt8, core::Op::kSum, {});
      check(false, "none, or too many inputs, are refused");
    } catch (const core::ArgumentError&) {
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t calls = stress::calls_of(argc, argv, 100'000);
  wrong_numbers_are_refused();
  a_forked_child_has_a_team_of_its_own(0);  // before the first helper, too
  for (int turn = 1; turn <= 10; ++turn) {
    many_threads_share_one_team(calls / 1000);
    check(a_helper_comes(), "helpers come, however long they slept");
    a_forked_child_has_a_team_of_its_own(turn);
  }
  many_threads_share_one_team(calls / 250);  // whose helpers are asleep when the program ends
}

// Ranks that leave, disagree, are aborted or come too late, at random moments: all end, with a named error, and no rank
// touches memory that another has freed.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "check.hpp"
#include "ringlet/collectives/group.hpp"
#include "ringlet/core/error.hpp"

namespace {

using namespace ringlet;
using collectives::Part;
using stress::check;

enum class Fate { kAbort, kDepart, kDisagree, kDeadline, kOverlap, kInterrupt };
constexpr std::size_t kNumFates = 6;

class Interruption {};

class Interrupt final : public sync::Poll {
 public:
  void operator()() override { throw Interruption(); }
};

void reduce(collectives::Member& member, std::size_t count, float* shared_output, sync::Poll* poll = nullptr) {
  std::vector<float> input(count, 1.0F);  // freed as soon as the call has returned or raised
  const std::int64_t shape = static_cast<std::int64_t>(count);
  const Part part{.input = input.data(), .output = shared_output, .count = count, .shape = {&shape, 1}};
  const auto results = member.all_reduce({&part, 1}, core::Op::kSum, collectives::Algorithm::kAuto, poll);
  if (shared_output == nullptr) {
    check(*reinterpret_cast<const float*>(results.front()->data()) == static_cast<float>(member.group().num_ranks()),
          "a call that returns has the right sum");
  }
}

// A call that is refused before it begins has no part in the count of calls: the next one meets those of the others.
void be_refused(collectives::Member& member) {
  const std::vector<float> input(1000, 1000.0F);
  const std::int64_t shape = 1000;
  const Part part{.input = input.data(), .count = input.size(), .shape = {&shape, 1}};
  try {
    member.all_reduce({&part, 1}, core::Op::kSum, collectives::Algorithm::kSmall);
    check(false, "SMALL refuses 4,000 bytes");
  } catch (const core::ArgumentError&) {
  }
}

// Makes calls until `fate` strikes at call `last`; true if it ended with an error.
bool live(collectives::Group& group, int rank, std::size_t last, Fate fate, std::size_t count, float* shared) {
  const bool is_culprit = rank == 0;
  collectives::Member member = group.member(rank);
  try {
    for (std::size_t number = 0;; ++number) {
      const bool strikes = number == last;
      if (strikes && is_culprit && fate == Fate::kAbort) group.abort("rank 0 gave up");
      if (strikes && is_culprit && fate == Fate::kDepart) return member.depart("returned"), true;
      if (strikes && is_culprit && fate == Fate::kDeadline) return true;
      if (number % 2 == 1 && rank == static_cast<int>(number / 2) % 2) be_refused(member);
      if (strikes && is_culprit && fate == Fate::kInterrupt) {
        Interrupt interrupt;
        std::this_thread::sleep_for(std::chrono::microseconds(50));
        reduce(member, count, nullptr, &interrupt);
        group.abort("nothing to interrupt: all had come");
        continue;
      }
      if (strikes && fate == Fate::kInterrupt) std::this_thread::sleep_for(std::chrono::milliseconds(60));
      const bool differs = strikes && is_culprit && fate == Fate::kDisagree;
      const bool overlaps = strikes && fate == Fate::kOverlap;
      reduce(member, differs ? count + 1 : count, overlaps ? shared : nullptr);
    }
  } catch (const core::MismatchError& error) {
    return fate == Fate::kDisagree || fate == Fate::kDepart;
  } catch (const core::AbortedError& error) {
    return fate == Fate::kAbort || fate == Fate::kInterrupt;
  } catch (const core::DeadlineError& error) {
    return fate == Fate::kDeadline;
  } catch (const core::ArgumentError& error) {
    return fate == Fate::kOverlap;
  } catch (const Interruption&) {
    return fate == Fate::kInterrupt;
  }
}

void run(int num_ranks, std::size_t round, stress::Random& random) {
  const auto fate = static_cast<Fate>(round % kNumFates);
  const std::size_t count = random.below(2) == 0 ? 5 : 3000;
  const std::size_t last = random.below(6);
  const auto timeout = fate == Fate::kDeadline ? std::chrono::milliseconds(5) : std::chrono::seconds(60);
  collectives::Group group(num_ranks, {.timeout = timeout});
  std::vector<float> shared(count);
  stress::on_ranks(num_ranks, [&](int rank) {
    check(live(group, rank, last, fate, count, shared.data()), "every rank ends with the error of its fate");
  });
  if (fate != Fate::kOverlap) check(group.failure().has_value() || num_ranks == 1, "the group states its first cause");
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t rounds = stress::calls_of(argc, argv, 100'000) / 50;
  stress::Random random(1);
  for (std::size_t round = 0; round < rounds; ++round) run(2 + static_cast<int>(random.below(4)), round, random);
  check(memory::result_pool().statistics().live_blocks == 0, "a failed group gives its results back");
}

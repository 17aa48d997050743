// Ranks that leave, disagree, are interrupted, aborted or late, at random moments of all collectives: all end, with a
// named error, and no rank touches memory that another has freed.
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "caller.hpp"
#include "check.hpp"
#include "plan.hpp"
#include "ringlet/collectives/group/member.hpp"
#include "ringlet/core/error.hpp"

namespace {

using namespace ringlet;
using collectives::Group;
using collectives::Kind;
using stress::Caller;
using stress::check;
using stress::Plan;
using stress::Planner;
using stress::Random;

enum class Fate { kAbort, kAbortFromOutside, kDepart, kDisagree, kDeadline, kLate, kOverlap, kInterrupt };
constexpr std::size_t kNumFates = 8;
constexpr auto kShortTimeout = std::chrono::milliseconds(5);

class Interruption {};

class Interrupt final : public sync::Poll {
 public:
  void operator()() override { throw Interruption(); }
};

template <class F>
void check_refused(F&& call) {
  try {
    call();
    check(false, "an argument that cannot be accepted is refused");
  } catch (const core::ArgumentError&) {
  }
}

// Calls that are refused before they begin have no part in the count of calls: the next meets those of the others.
void be_refused(collectives::Member& member) {
  const std::vector<float> input(1000);
  const int num_ranks = member.group().num_ranks();
  const std::int64_t length = 1000;
  const collectives::Buffer part{.input = input.data(), .count = input.size(), .shape = {&length, 1}};
  collectives::Buffer odd = part;
  odd.count = static_cast<std::size_t>(num_ranks) + 1;
  const std::int64_t pairs[] = {0, 1, 0, 0};
  const std::vector<std::int64_t> rows(static_cast<std::size_t>(num_ranks), 1000);
  check_refused([&] { member.all_reduce({&part, 1}, core::Op::kSum, collectives::Algorithm::kSmall); });
  check_refused([&] { member.all_reduce({&part, 1}, core::Op::kXor); });
  check_refused([&] { member.reduce(part, core::Op::kSum, num_ranks); });
  check_refused([&] { member.reduce_scatter(odd, core::Op::kSum); });
  check_refused([&] { member.exclusive_scan(part, core::Op::kMean); });
  check_refused([&] { member.all_gather(part, 1); });
  check_refused([&] { member.gather(part, -1, 0); });
  check_refused([&] { member.scatter(part, rows, member.rank()); });
  check_refused([&] { member.all_to_all(part, rows, true); });
  check_refused([&] { member.permute(part, pairs); });
  check_refused([&] { member.broadcast({}, false, member.rank()); });
}

// A call that no other rank makes.
Plan differ(const Plan& plan, Random& random, int num_ranks) {
  Plan other = plan;
  const bool counts_are_compared = !plan.counts.empty() && plan.kind != Kind::kBroadcast;
  if (counts_are_compared && plan.algorithm != collectives::Algorithm::kSmall && random.below(2) == 0) {
    other.counts.front() += static_cast<std::size_t>(num_ranks);
    return other;
  }
  while (other.kind == plan.kind) other = Planner(random, num_ranks).draw();
  return other;
}

// A call in which the results of all ranks, and what the others give to a root, share memory.
Plan overlap(Random& random, int num_ranks) {
  const auto kind = stress::kAllKinds[random.below(stress::kAllKinds.size() - 2)];  // neither barrier nor split
  Plan plan = Planner(random, num_ranks).draw(kind);
  const auto ranks = static_cast<std::size_t>(num_ranks);
  plan.output = stress::Output::kApart;
  plan.algorithm = collectives::Algorithm::kAuto;
  for (std::size_t& count : plan.counts) count = kind == Kind::kReduce ? 3000 : 12 * ranks;  // not by way of the slots
  for (std::int64_t& length : plan.shape) length = 2;
  for (std::int64_t& length : plan.lengths) length += 1;
  for (std::int64_t& number : plan.rows) number += 1;
  return plan;
}

// What strikes, when, and in which calls.
struct Story {
  Fate fate;
  std::size_t last;  // the number of the call at which it strikes
  std::uint64_t seed;
  std::byte* shared_memory;
};

class Rank {
 public:
  Rank(Group& group, int rank, const Story& story)
      : group_(group), story_(story), caller_(group.member(rank)), is_culprit_(rank == 0), random_(story.seed) {}

  // Makes calls until something ends them.
  void live() {
    Planner planner(random_, group_.num_ranks());
    for (std::size_t number = 0;; ++number) {
      if (number % 2 == 1 && caller_.member().rank() == static_cast<int>(number / 2) % 2) be_refused(caller_.member());
      const Plan plan = planner.draw(number % 16 == 0);
      if (number < story_.last) {
        caller_.make(plan);
      } else if (!(is_culprit_ ? strike(plan) : suffer(plan))) {
        return;
      }
    }
  }

 private:
  // False if this rank makes no more calls.
  bool strike(const Plan& plan) {
    switch (story_.fate) {
      case Fate::kAbort:
        group_.abort("rank 0 gave up");
        break;
      case Fate::kDepart:
        caller_.member().depart("returned");
        return false;
      case Fate::kDeadline:
        return false;
      case Fate::kLate:
        std::this_thread::sleep_for(std::chrono::microseconds(random_.below(2) * 4000 + random_.below(2000)));
        break;
      case Fate::kDisagree:
        caller_.make(differ(plan, random_, group_.num_ranks()));
        break;
      case Fate::kInterrupt: {
        Interrupt interrupt;
        caller_.make(plan, &interrupt);
        group_.abort("nothing to interrupt: all had come");
        return true;
      }
      default:
        return suffer(plan);
    }
    caller_.make(plan);
    if (story_.fate == Fate::kLate) group_.abort("rank 0 came in time");
    return true;
  }

  bool suffer(const Plan& plan) {
    if (story_.fate == Fate::kInterrupt) std::this_thread::sleep_for(std::chrono::milliseconds(60));
    if (story_.fate == Fate::kOverlap) {
      caller_.use_shared_memory(story_.shared_memory);
      caller_.make(overlap(random_, group_.num_ranks()));
      check(false, "no call takes place whose buffers overlap");
    }
    caller_.make(plan);
    return true;
  }

  Group& group_;
  const Story& story_;
  Caller caller_;
  bool is_culprit_;
  Random random_;
};

// How a rank may end.
enum class End { kMismatch, kAborted, kDeadline, kArgument, kInterruption, kReturn };

bool is_end_of(Fate fate, End end, bool is_culprit) {
  switch (fate) {
    case Fate::kAbort:
    case Fate::kAbortFromOutside:
      return end == End::kAborted;
    case Fate::kDepart:
      return end == (is_culprit ? End::kReturn : End::kMismatch);
    case Fate::kDisagree:
      return end == End::kMismatch;
    case Fate::kDeadline:
      return end == End::kDeadline || (is_culprit && end == End::kReturn);
    case Fate::kLate:
      return end == End::kDeadline || end == End::kAborted;
    case Fate::kOverlap:
      return end == End::kArgument;
    case Fate::kInterrupt:
      return end == End::kAborted || (is_culprit && end == End::kInterruption);
  }
  return false;
}

End end_of(Group& group, int rank, const Story& story, std::string& text) {
  try {
    Rank(group, rank, story).live();
    return End::kReturn;
  } catch (const core::MismatchError& error) {
    text = error.what();
    return End::kMismatch;
  } catch (const core::AbortedError& error) {
    text = error.what();
    return End::kAborted;
  } catch (const core::DeadlineError& error) {
    text = error.what();
    return End::kDeadline;
  } catch (const core::ArgumentError& error) {
    text = error.what();
    return End::kArgument;
  } catch (const Interruption&) {
    return End::kInterruption;
  }
}

bool stays_failed(Group& group, int rank) {
  try {
    group.member(rank).barrier();
    return false;
  } catch (const std::exception& error) {
    return group.failure() == error.what();
  }
}

void run(int num_ranks, std::size_t round, Random& random) {
  // Large enough for what overlap() draws.
  const stress::Array shared_memory = stress::new_array(std::size_t{1} << 18);
  const Story story{.fate = static_cast<Fate>(round % kNumFates),
                    .last = random.below(8),
                    .seed = round,
                    .shared_memory = shared_memory.get()};
  const bool is_short = story.fate == Fate::kDeadline || story.fate == Fate::kLate;
  const auto pause = std::chrono::microseconds(random.below(3000));
  Group group(num_ranks, {.timeout = is_short ? kShortTimeout : std::chrono::seconds(60)});
  std::jthread outsider;
  if (story.fate == Fate::kAbortFromOutside) {
    outsider = std::jthread([&group, pause] {
      std::this_thread::sleep_for(pause);
      group.abort("somebody outside gave up");
    });
  }
  const bool has_no_strike = story.fate == Fate::kAbortFromOutside;
  const Story endless{.fate = story.fate, .last = SIZE_MAX, .seed = round, .shared_memory = nullptr};
  stress::on_ranks(num_ranks, [&](int rank) {
    std::string text;
    const End end = end_of(group, rank, has_no_strike ? endless : story, text);
    check(is_end_of(story.fate, end, rank == 0), "rank " + std::to_string(rank) +
                                                     " ends with the error of its fate: not of fate " +
                                                     std::to_string(static_cast<int>(story.fate)) + " is end " +
                                                     std::to_string(static_cast<int>(end)) + ", " + text);
    check(end == End::kReturn || stays_failed(group, rank), "a group that has failed states its first cause for ever");
  });
  check(group.failure().has_value(), "the group states its first cause");
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t rounds = stress::calls_of(argc, argv, 100'000) / 100;
  Random random(1);
  for (std::size_t round = 0; round < rounds; ++round) run(2 + static_cast<int>(random.below(4)), round, random);
  check(memory::result_pool().statistics().live_blocks == 0, "a failed group gives its results back");
}

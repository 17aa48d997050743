// Groups split into parts that are split again, all of them at work at the same time: every result is right, failures
// go from a group down to its parts and not up, and nobody hangs.
#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>
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
using collectives::SubgroupMember;
using stress::Caller;
using stress::check;
using stress::Planner;
using stress::Random;

constexpr auto kTimeout = std::chrono::seconds(60);

// Kinds of calls in a part: all but another split, which the programs below make themselves.
Kind draw_kind(Random& random) { return stress::kAllKinds[random.below(stress::kAllKinds.size() - 1)]; }

// A rank of a group or of a part of it. All ranks of one part draw alike.
struct Place {
  SubgroupMember member;  // keeps a part alive; of the group that everything began with, empty
  Caller caller;
  Random random;
  int num_ranks;

  Place(Group& group, int rank, std::uint64_t seed)
      : member{nullptr, rank, {}, {}}, caller(group.member(rank)), random(seed), num_ranks(group.num_ranks()) {}
  Place(SubgroupMember part, std::uint64_t seed)
      : member(std::move(part)),
        caller(member.group->member(member.rank)),
        random(seed),
        num_ranks(member.group->num_ranks()) {}

  void call(std::size_t times) {
    Planner planner(random, num_ranks);
    for (std::size_t i = 0; i < times; ++i) caller.make(planner.draw(draw_kind(random)));
  }
  // The parts of one split draw apart.
  std::unique_ptr<Place> split() {
    const stress::Plan plan = Planner(random, num_ranks).draw(Kind::kSplit);
    const auto rank = static_cast<std::size_t>(caller.member().rank());
    SubgroupMember part = caller.split(plan);
    if (part.group == nullptr) return nullptr;
    return std::make_unique<Place>(std::move(part), plan.seed * 8 + static_cast<std::uint64_t>(*plan.colors[rank] + 1));
  }
};

using Places = std::vector<std::unique_ptr<Place>>;

// Parts within parts, used before and after calls of what they are parts of. `kept` gets them, from large to small.
void live(Place& place, int depth, Places& kept) {
  place.call(place.random.below(3));
  Place* part = nullptr;
  if (std::unique_ptr<Place> made = place.split(); made != nullptr) part = kept.emplace_back(std::move(made)).get();
  if (part != nullptr) {
    part->call(part->random.below(4));
    if (depth > 1) live(*part, depth - 1, kept);
  }
  place.call(place.random.below(2));
  if (part != nullptr) part->call(1);
}

void parts_work_at_the_same_time(int num_ranks, std::size_t number) {
  std::vector<Places> parts(static_cast<std::size_t>(num_ranks));
  {
    Group group(num_ranks, {.timeout = kTimeout, .from_interpreter = number % 4 == 0});
    stress::on_ranks(num_ranks, [&](int rank) {
      Place place(group, rank, number);
      live(place, 1 + static_cast<int>(number % 3), parts[static_cast<std::size_t>(rank)]);
    });
  }
  stress::on_ranks(num_ranks, [&](int rank) {
    for (std::unique_ptr<Place>& part : parts[static_cast<std::size_t>(rank)]) {
      part->call(2);  // by now, what it is a part of is gone
      part.reset();
    }
  });
}

enum class Fate { kAbort, kAbortFromOutside, kDepart, kDisagree };

// Calls in the group and in parts of parts of it until something raises; whether it is what the fate leads to.
bool live_until_failure(Group& group, int rank, Fate fate, std::size_t last, std::uint64_t seed) {
  try {
    Place whole(group, rank, seed);
    for (std::size_t number = 0;; ++number) {
      const std::unique_ptr<Place> part = whole.split();
      const std::unique_ptr<Place> inner = part != nullptr ? part->split() : nullptr;
      const bool strikes = rank == 0 && number == last;
      if (strikes && fate == Fate::kAbort) group.abort("rank 0 gave up");
      if (strikes && fate == Fate::kDepart) return whole.caller.member().depart("returned"), true;
      for (int turn = 0; turn < 2; ++turn) {
        if (inner != nullptr) inner->call(2);
        if (part != nullptr) part->call(1);
      }
      if (strikes && fate == Fate::kDisagree) whole.caller.member().barrier("of nobody else");
      whole.call(1);
    }
  } catch (const core::AbortedError&) {
    return true;  // of a part, because the group has failed; or of the group
  } catch (const core::MismatchError&) {
    return fate == Fate::kDepart || fate == Fate::kDisagree;
  }
}

// A rank that waits in a part learns that a rank of the whole is gone, wherever that is.
void failures_reach_the_parts(int num_ranks, std::size_t number, Random& random) {
  const auto fate = static_cast<Fate>(number % 4);
  const std::size_t last = random.below(4);
  const auto pause = std::chrono::microseconds(random.below(2000));
  Group group(num_ranks, {.timeout = kTimeout});
  std::jthread outsider;
  if (fate == Fate::kAbortFromOutside) {
    outsider = std::jthread([&group, pause] {
      std::this_thread::sleep_for(pause);
      group.abort("somebody outside gave up");
    });
  }
  stress::on_ranks(num_ranks, [&](int rank) {
    check(live_until_failure(group, rank, fate, last, number), "every rank ends with the error of its fate");
  });
  // Where all others were in parts with the one that departed, those have failed.
  check(group.failure().has_value() || fate == Fate::kDepart, "the group states its first cause");
}

// What goes wrong in a part is no business of the whole: others go on, and those of the part can make a new one.
void failures_stay_in_their_part(int num_ranks, std::size_t number) {
  Group group(num_ranks, {.timeout = kTimeout});
  stress::on_ranks(num_ranks, [&](int rank) {
    Place whole(group, rank, number);
    for (int turn = 0; turn < 2; ++turn) {
      const std::unique_ptr<Place> part = whole.split();
      if (part != nullptr) part->call(1);
      if (part != nullptr && part->num_ranks > 1) {
        try {
          if (part->member.rank == 0) part->caller.member().group().abort("rank 0 of the part gave up");
          for (;;) part->call(1);
        } catch (const core::AbortedError&) {
        }
      }
      whole.call(2);
    }
  });
  check(!group.failure().has_value(), "a group outlives its parts");
}

// A rank that has departed may come back, and with it in its parts.
void who_departed_may_rejoin(int num_ranks, std::size_t number) {
  Group group(num_ranks, {.timeout = kTimeout});
  std::vector<std::unique_ptr<Place>> places(static_cast<std::size_t>(num_ranks));
  std::vector<std::unique_ptr<Place>> parts(static_cast<std::size_t>(num_ranks));
  for (int turn = 0; turn < 3; ++turn) {
    stress::on_ranks(num_ranks, [&](int rank) {
      const auto mine = static_cast<std::size_t>(rank);
      if (turn == 0) places[mine] = std::make_unique<Place>(group, rank, number);
      if (turn > 0) places[mine]->caller.member().rejoin();
      parts[mine] = turn == 0 ? places[mine]->split() : std::move(parts[mine]);
    });
    stress::on_ranks(num_ranks, [&](int rank) {
      const auto mine = static_cast<std::size_t>(rank);
      if (parts[mine] != nullptr) parts[mine]->call(2);
      places[mine]->call(2);
      places[mine]->caller.member().depart("returned");
    });
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t rounds = stress::calls_of(argc, argv, 100'000) / 100;
  Random random(3);
  for (std::size_t round = 0; round < rounds; ++round) {
    const int num_ranks = 2 + static_cast<int>(random.below(7));
    parts_work_at_the_same_time(num_ranks, round);
    failures_reach_the_parts(num_ranks, round, random);
    if (round % 4 == 0) failures_stay_in_their_part(num_ranks, round);
    if (round % 4 == 1) who_departed_may_rejoin(num_ranks, round);
  }
  check(memory::result_pool().statistics().live_blocks == 0, "no result outlives its last holder");
}

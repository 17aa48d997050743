#include "ringlet/collectives/split.hpp"

#include <algorithm>
#include <utility>

namespace ringlet::collectives {

namespace {

// What stands in Call::numbers of a split.
struct Choice {
  bool has_color;
  std::int64_t color;
  std::int64_t key;

  static Choice of(const Call& call) { return {call.numbers[0] != 0, call.numbers[1], call.numbers[2]}; }
};

}  // namespace

Ranks find_part(Round& round, std::optional<int> color, std::int64_t key) {
  round.call().numbers = {color.has_value() ? 1 : 0, color.value_or(0), key};
  round.arrive();
  Ranks part;
  if (!color.has_value()) return part;
  for (int rank = 0; rank < round.num_ranks(); ++rank) {
    const Choice choice = Choice::of(round.call_of(rank));
    if (choice.has_color && choice.color == *color) part.push_back(rank);
  }
  std::stable_sort(part.begin(), part.end(), [&](int one, int other) {
    return Choice::of(round.call_of(one)).key < Choice::of(round.call_of(other)).key;
  });
  return part;
}

std::shared_ptr<Group> share_part(Round& round, const Ranks& part, std::shared_ptr<Group> made) {
  round.set_of(round.rank()).part = std::move(made);
  round.arrive();
  return part.empty() ? nullptr : round.set_of(part.front()).part;
}

}  // namespace ringlet::collectives

// Results that one rank allocates for others: see Round::announce_results.
#include <exception>
#include <utility>
#include <vector>

#include "ringlet/collectives/call/round.hpp"
#include "ringlet/collectives/transport/holds.hpp"
#include "ringlet/collectives/transport/world.hpp"

namespace ringlet::collectives {

void Round::announce_results() {
  const Call& own = call();
  std::vector<std::size_t> sizes;
  for (const Buffer& part : own.buffers) sizes.push_back(own.has_outputs ? 0 : own.result_bytes(part));
  RankState::Set& set = mine().sets[set_];
  if (is_between_processes()) {
    announce_blocks(sizes);
    add_holds(own.has_outputs ? Takers::kNone : Takers::kAll);
    return;
  }
  Results blocks;
  for (const std::size_t bytes : sizes) blocks.push_back(memory::result_pool().allocate(bytes));
  set.results.clear();
  for (const memory::Block& block : blocks) set.results.push_back(block->data());
  set.holds.assign(static_cast<std::size_t>(num_ranks()), blocks);
}

void Round::announce_result(std::size_t bytes, bool is_for_all) {
  RankState::Set& set = mine().sets[set_];
  if (is_between_processes()) {
    announce_blocks({&bytes, 1});
    add_holds(is_for_all ? Takers::kAll : Takers::kOwn);
    return;
  }
  const memory::Block block = memory::result_pool().allocate(bytes);
  set.results.assign(1, block->data());
  set.holds.assign(static_cast<std::size_t>(num_ranks()), is_for_all ? Results{block} : Results{});
  set.holds[static_cast<std::size_t>(rank_)] = {block};
}

void Round::announce_for_each(std::span<const std::size_t> sizes) {
  RankState::Set& set = mine().sets[set_];
  if (is_between_processes()) {
    announce_blocks(sizes);
    add_holds(Takers::kEachItsOwn);
    return;
  }
  set.results.clear();
  set.holds.clear();
  for (const std::size_t bytes : sizes) {
    set.holds.push_back({memory::result_pool().allocate(bytes)});
    set.results.push_back(set.holds.back().front()->data());
  }
}

Results Round::take_results(int announcer) {
  if (!is_between_processes()) {
    RankState::Set& set = set_of(announcer);
    Results hold = std::move(set.holds[static_cast<std::size_t>(rank_)]);
    return hold;
  }
  has_taken_ = true;
  Results taken;
  const auto own = static_cast<std::size_t>(rank_);
  const std::size_t begin = call().kind == Kind::kScatter ? own : 0;
  const std::size_t end = call().kind == Kind::kScatter ? own + 1 : call().has_outputs ? 0 : mine().results.size();
  for (std::size_t index = begin; index < end; ++index) {
    taken.push_back(group_.world_->take_hold(mine().results[index].name));
  }
  if (announcer == rank_) mine().sets[set_].kept.clear();
  return taken;
}

// Between processes, results are in shared memory of the announcer, which keeps them until every rank holds its
// results.
void Round::announce_blocks(std::span<const std::size_t> sizes) {
  RankState::Set& set = mine().sets[set_];
  set.kept.clear();
  set.result_names.clear();
  for (const std::size_t bytes : sizes) {
    set.kept.push_back(bytes == 0 && sizes.size() > 1 && call().has_outputs ? nullptr : group_.world_->allocate(bytes));
  }
  or_fail([&] {
    for (const memory::Block& block : set.kept) {
      set.result_names.push_back(block == nullptr ? BufferName()
                                                  : group_.world_->buffer_name_of(block->data(), interruption_.poll()));
    }
  });
}

// Calls f(hold word) for each hold on results that this rank has announced.
template <class F>
void Round::for_each_hold(F&& f) {
  if (takers_ == Takers::kNone) return;
  const Results& kept = mine().sets[set_].kept;
  for (std::size_t index = 0; index < kept.size(); ++index) {
    for (int rank = 0; rank < num_ranks(); ++rank) {
      if (takers_ == Takers::kOwn && rank != rank_) continue;
      if (takers_ == Takers::kEachItsOwn && static_cast<std::size_t>(rank) != index) continue;
      f(header_of(kept[index]->data()).holds_of(process_of(rank)));
    }
  }
}

void Round::add_holds(Takers takers) {
  takers_ = takers;
  for_each_hold([](sync::ProcessRefcount& word) { word.add(1); });
}

// Whether a hold on the results of this call was added for this rank.
bool Round::takes_results() {
  const Call& own = call();
  switch (own.kind) {
    case Kind::kAllReduce:
    case Kind::kBroadcast:
    case Kind::kAllGather:
    case Kind::kScatter:
      return !own.has_outputs;
    case Kind::kGather:
      return !own.has_outputs && rank_ == own.root;
    default:
      return false;
  }
}

// At the end of a call, even if it failed. No rank takes the results of a call that does no work, so the announcer
// releases all holds on them; if a call failed in progress, each rank releases its own hold.
void Round::let_go() noexcept {
  if (!goes_) {
    for_each_hold([](sync::ProcessRefcount& word) { word.release(); });
    if (takers_ != Takers::kNone) mine().sets[set_].kept.clear();
  } else if (!has_taken_ && announcer_.has_value() && takes_results()) {
    try {
      (void)take_results(*announcer_);
    } catch (const std::exception&) {  // the announcer then cannot reuse the memory
    }
  }
  if (mine().sequence == sequence_) own_board().over.publish_before_reuse(sequence_);
}

}  // namespace ringlet::collectives

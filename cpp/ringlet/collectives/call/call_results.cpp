#include "ringlet/collectives/call/call_results.hpp"

#include <exception>
#include <utility>
#include <vector>

#include "ringlet/collectives/transport/holds.hpp"
#include "ringlet/collectives/transport/world.hpp"

namespace ringlet::collectives {

namespace {

// The rank that allocates the shared results.
int announcer_of(const Call& call) { return is_from_root(call.kind) || call.kind == Kind::kGather ? call.root : 0; }

}  // namespace

void CallResults::announce_results() {
  const Call& own = call();
  std::vector<std::size_t> sizes;
  for (const Buffer& part : own.buffers) sizes.push_back(own.has_outputs ? 0 : own.result_bytes(part));
  RankState::Set& set = own_set();
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

void CallResults::announce_result(std::size_t bytes, bool is_for_all) {
  RankState::Set& set = own_set();
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

void CallResults::announce_for_each(std::span<const std::size_t> sizes) {
  RankState::Set& set = own_set();
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

std::byte* CallResults::announced_by(int rank) { return world().address_of(BufferName(slot_of(rank).result)); }

void CallResults::resolve() {
  try {
    const Call& own = call();
    const int announcer = announcer_of(own);
    const std::size_t num_buffers = is_from_root(own.kind) ? call_of(own.root).buffers.size() : own.buffers.size();
    map_buffers(num_buffers);
    map_results(announcer, num_buffers);
    // Reads the records that the checks of this call need, because reading one may allocate memory.
    if (is_gather(own.kind)) call_of(announcer);
    const bool looks_at_all = own.kind == Kind::kScatter || may_overlap_unseen();
    for (int rank = 0; looks_at_all && rank < num_ranks(); ++rank) call_of(rank);
    announcer_ = announcer;
  } catch (const sync::Interrupted&) {
    fail_interrupted();
    leave_together();
  } catch (const std::exception& error) {
    group_.fail(Group::Cause::kAborted, name_of_call() + " failed: " + error.what());
    leave_together();
  }
}

void CallResults::map_results(int announcer, std::size_t num_buffers) {
  mine().results.clear();
  if (num_buffers <= 1 && call().kind != Kind::kScatter) {
    mine().results.push_back(map_buffer(announcer, BufferName(slot_of(announcer).result)));
    return;
  }
  const std::vector<BufferName>& places =
      group_.is_here(announcer) ? set_of(announcer).result_names : remote_call(announcer).results;
  for (const BufferName place : places) mine().results.push_back(map_buffer(announcer, place));
}

Results CallResults::take_results(int announcer) {
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
    taken.push_back(world().take_hold(mine().results[index].name));
  }
  if (announcer == rank_) own_set().kept.clear();
  return taken;
}

// Between processes, results are in shared memory of the announcer, which keeps them until every rank holds its
// results.
void CallResults::announce_blocks(std::span<const std::size_t> sizes) {
  RankState::Set& set = own_set();
  set.kept.clear();
  set.result_names.clear();
  for (const std::size_t bytes : sizes) {
    set.kept.push_back(bytes == 0 && sizes.size() > 1 && call().has_outputs ? nullptr : world().allocate(bytes));
  }
  or_fail([&] {
    for (const memory::Block& block : set.kept) {
      set.result_names.push_back(block == nullptr ? BufferName()
                                                  : world().buffer_name_of(block->data(), interruption_.poll()));
    }
  });
}

// Calls f(hold word) for each hold on results that this rank has announced.
template <class F>
void CallResults::for_each_hold(F&& f) {
  if (takers_ == Takers::kNone) return;
  const Results& kept = own_set().kept;
  for (std::size_t index = 0; index < kept.size(); ++index) {
    for (int rank = 0; rank < num_ranks(); ++rank) {
      if (takers_ == Takers::kOwn && rank != rank_) continue;
      if (takers_ == Takers::kEachItsOwn && static_cast<std::size_t>(rank) != index) continue;
      f(header_of(kept[index]->data()).holds_of(process_of(rank)));
    }
  }
}

void CallResults::add_holds(Takers takers) {
  takers_ = takers;
  for_each_hold([](sync::ProcessRefcount& word) { word.add(1); });
}

// Whether a hold on the results of this call was added for this rank.
bool CallResults::takes_results() {
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

// Called at the end of a call, even if it failed. No rank takes the results of a call that does no work, so the
// announcer releases all holds on them; if a call failed in progress, each rank releases its own hold.
void CallResults::let_go() noexcept {
  if (!goes_) {
    for_each_hold([](sync::ProcessRefcount& word) { word.release(); });
    if (takers_ != Takers::kNone) own_set().kept.clear();
  } else if (!has_taken_ && announcer_.has_value() && takes_results()) {
    try {
      (void)take_results(*announcer_);
    } catch (const std::exception&) {  // the announcer cannot reuse the memory in this case
    }
  }
  if (mine().sequence == sequence_) own_board().over.publish_before_reuse(sequence_);
}

}  // namespace ringlet::collectives

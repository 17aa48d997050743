#include "ringlet/collectives/direct.hpp"

#include "ringlet/collectives/bytes.hpp"
#include "ringlet/collectives/overlap.hpp"
#include "ringlet/kernels/kernels.hpp"

namespace ringlet::collectives {

namespace {

// Where the bytes from `offset` on of a part's result go: the root's output, the shared result, or the output of every
// rank.
void find_outputs(Round& round, int announcer, std::size_t part, std::size_t offset) {
  auto& outputs = round.mine().outputs;
  outputs.clear();
  if (round.call().kind == Kind::kReduce) {
    outputs.push_back(at(round.output_of(round.call().root, part), offset));
  } else if (!round.call().has_outputs) {
    outputs.push_back(at(round.result_of(announcer, part), offset));
  } else {
    for (int rank = 0; rank < round.num_ranks(); ++rank) outputs.push_back(at(round.output_of(rank, part), offset));
  }
}

// Lines that were just read are in the cache, so results that replace their inputs are stored plainly.
kernels::Store store_of(Round& round, std::size_t part) {
  const int root = round.call().root;
  std::size_t bytes = round.call().result_bytes(round.call().parts[part]);
  if (round.call().kind == Kind::kReduce) {
    if (round.input_of(root, part) == round.output_of(root, part)) return kernels::Store::kPlain;
  } else if (round.call().has_outputs) {
    for (int rank = 0; rank < round.num_ranks(); ++rank) {
      if (round.input_of(rank, part) == round.output_of(rank, part)) return kernels::Store::kPlain;
    }
    bytes *= static_cast<std::size_t>(round.num_ranks());
  }
  return store_for(bytes);
}

void reduce_run(Round& round, const Run& run) {
  const Call& call = round.call();
  const Part& part = call.parts[run.part];
  const std::size_t offset = run.begin * core::size_of(part.dtype);
  auto& inputs = round.mine().inputs;
  inputs.clear();
  for (int rank = 0; rank < round.num_ranks(); ++rank) inputs.push_back(at(round.input_of(rank, run.part), offset));
  find_outputs(round, 0, run.part, run.begin * core::size_of(call.result_dtype(part)));
  kernels::active().reduce(call.op, part.dtype, inputs, run.count, round.mine().outputs, store_of(round, run.part));
}

void copy_run(Round& round, const Run& run) {
  const int root = round.call().root;
  const Part& part = round.call_of(root).parts[run.part];
  const std::size_t offset = run.begin * core::size_of(part.dtype);
  const std::size_t bytes = run.count * core::size_of(part.dtype);
  find_outputs(round, root, run.part, offset);
  for (void* const output : round.mine().outputs) {
    copy(at(part.input, offset), bytes, output, store_for(part.input_bytes()));
  }
}

}  // namespace

Results direct_all_reduce(Round& round) {
  const bool is_shared = !round.call().has_outputs;
  if (is_shared && round.rank() == 0) round.announce_results(false);
  Chunks& chunks = round.mine().chunks;
  chunks.plan(round.call(), round.num_ranks());
  round.arrive_for_work();
  if (!is_shared) check_overlap(round);
  round.share_work(chunks, [&](const Run& run) { reduce_run(round, run); });
  return is_shared ? round.take_results(0) : Results{};
}

void direct_reduce(Round& round) {
  Chunks& chunks = round.mine().chunks;
  chunks.plan(round.call(), round.num_ranks());
  round.arrive_for_work();
  check_overlap(round);
  round.share_work(chunks, [&](const Run& run) { reduce_run(round, run); });
}

Results direct_broadcast(Round& round) {
  const int root = round.call().root;
  const bool is_shared = !round.call().has_outputs;
  if (is_shared && round.rank() == root) round.announce_results(false);
  round.arrive_for_work();
  if (!is_shared) check_overlap(round);
  Chunks& chunks = round.mine().chunks;
  // noexcept, as in check_overlap: from here on this rank cannot leave before the work is done.
  [&]() noexcept { chunks.plan(round.call_of(root), round.num_ranks()); }();
  round.share_work(chunks, [&](const Run& run) { copy_run(round, run); });
  return is_shared ? round.take_results(root) : Results{};
}

}  // namespace ringlet::collectives

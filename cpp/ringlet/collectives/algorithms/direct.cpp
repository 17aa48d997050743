#include "ringlet/collectives/algorithms/direct.hpp"

#include <algorithm>

#include "ringlet/collectives/call/bytes.hpp"
#include "ringlet/collectives/call/overlap.hpp"
#include "ringlet/kernels/kernels.hpp"

namespace ringlet::collectives {

namespace {

// Finds the destinations of the bytes from `offset` on of a buffer's result: the root's output, the shared result, or
// the output of every rank.
void find_outputs(Round& round, int announcer, std::size_t part, std::size_t offset) {
  auto& outputs = round.mine().outputs;
  outputs.clear();
  const auto add = [&](MappedBuffer output) { outputs.push_back(output.here + offset); };
  if (round.call().kind == Kind::kReduce) {
    add(round.output(round.call().root, part));
  } else if (!round.call().has_outputs) {
    add(round.mapped_result(announcer, part));
  } else {
    for (int rank = 0; rank < round.num_ranks(); ++rank) {
      if (round.is_written(rank, part)) add(round.output(rank, part));
    }
  }
}

// The inputs' lines are in the cache, so results that replace inputs use ordinary stores.
kernels::Store store_of(Round& round, std::size_t part) {
  const int root = round.call().root;
  std::size_t bytes = round.call().result_bytes(round.call().buffers[part]);
  if (round.call().kind == Kind::kReduce) {
    if (round.input_name(root, part) == round.output_name(root, part)) return kernels::Store::kPlain;
  } else if (round.call().has_outputs) {
    for (int rank = 0; rank < round.num_ranks(); ++rank) {
      if (round.input_name(rank, part) == round.output_name(rank, part)) return kernels::Store::kPlain;
    }
    bytes *= static_cast<std::size_t>(round.num_ranks());
  }
  return store_for(bytes);
}

struct RingPiece {
  std::size_t number;
  std::size_t end;  // the element of the buffer that follows the piece
};

// The piece of an element. Piece c of a segment of n elements starts at element c * n / P of the segment.
RingPiece ring_piece_of(const Buffer& part, std::size_t element, std::size_t num_ranks) {
  const std::size_t segment = num_ranks * (kRingPieceBytes / core::size_of(part.dtype));
  const std::size_t begin = element / segment * segment;
  const std::size_t size = std::min(segment, part.count - begin);
  std::size_t number = (element - begin) * num_ranks / size;
  while (begin + (number + 1) * size / num_ranks <= element) ++number;
  return {number, begin + (number + 1) * size / num_ranks};
}

// Combines the inputs one after the other, starting with the input of rank `first`, and writes the result to all
// outputs.
void reduce_in_ring_order(core::Op op, core::DType dtype, std::size_t first, std::size_t count,
                          std::span<const void* const> inputs, std::span<void* const> outputs, kernels::Store store) {
  constexpr std::size_t kBlockBytes = 8192;  // stays in the first-level cache with a block of each array
  alignas(64) std::byte partial[kBlockBytes];
  alignas(64) std::byte result[kBlockBytes];
  const kernels::Kernels& kernels = kernels::active();
  const std::size_t element = core::size_of(dtype);
  const std::size_t result_element = core::size_of(core::result_dtype(op, dtype));
  const std::size_t block = kBlockBytes / std::max(core::size_of(core::partial_dtype(dtype)), result_element);
  for (std::size_t begin = 0; begin < count; begin += block) {
    const std::size_t size = std::min(block, count - begin);
    kernels.widen(dtype, at(inputs[first], begin * element), size, partial);
    for (std::size_t i = 1; i < inputs.size(); ++i) {
      kernels.combine(op, dtype, partial, at(inputs[(first + i) % inputs.size()], begin * element), size, partial);
    }
    if (store == kernels::Store::kStream) kernels.finish(op, dtype, partial, size, inputs.size(), result);
    for (void* const output : outputs) {
      std::byte* const to = at(output, begin * result_element);
      if (store == kernels::Store::kStream) {
        kernels.copy(result, size * result_element, to, store);
      } else {
        kernels.finish(op, dtype, partial, size, inputs.size(), to);
      }
    }
  }
}

// `first` is the rank at which RING begins.
void reduce_block(Round& round, const Run& block, std::size_t first, kernels::Store store) {
  const Call& call = round.call();
  const Buffer& part = call.buffers[block.part];
  const auto num_ranks = static_cast<std::size_t>(round.num_ranks());
  const std::size_t offset = block.begin * core::size_of(part.dtype);
  const std::size_t bytes = block.count * core::size_of(part.dtype);
  const std::size_t result_element = core::size_of(call.result_dtype(part));
  auto& inputs = round.mine().inputs;
  inputs.clear();
  for (std::size_t rank = 0; rank < num_ranks; ++rank) {
    inputs.push_back(round.fetch(round.input(static_cast<int>(rank), block.part) + offset, bytes, rank, num_ranks));
  }
  find_outputs(round, 0, block.part, block.begin * result_element);
  if (call.algorithm == Algorithm::kRing) {
    return reduce_in_ring_order(call.op, part.dtype, first, block.count, inputs, round.mine().outputs, store);
  }
  kernels::active().reduce(call.op, part.dtype, inputs, block.count, round.mine().outputs, store);
}

void reduce_run(Round& round, const Run& run) {
  const Call& call = round.call();
  const Buffer& part = call.buffers[run.part];
  const std::size_t element = std::max(core::size_of(part.dtype), core::size_of(call.result_dtype(part)));
  const kernels::Store store = round.is_all_here() ? store_of(round, run.part) : kernels::Store::kPlain;
  const auto num_ranks = static_cast<std::size_t>(round.num_ranks());
  const std::size_t block = round.block_bytes(num_ranks) / element;
  const std::size_t end = run.begin + run.count;
  for (std::size_t begin = run.begin; begin < end;) {
    std::size_t count = std::min(block, end - begin);
    std::size_t first = 0;
    if (call.algorithm == Algorithm::kRing) {
      const RingPiece piece = ring_piece_of(part, begin, num_ranks);
      first = piece.number;
      count = std::min(count, piece.end - begin);
    }
    reduce_block(round, {run.part, begin, count}, first, store);
    begin += count;
  }
}

// Copies the bytes from `offset` on of one of the root's arrays.
void copy_bytes(Round& round, std::size_t part, std::size_t offset, std::size_t bytes, kernels::Store store) {
  const int root = round.call().root;
  const MappedBuffer input = round.input(root, part) + offset;
  if (!round.call().has_outputs) {
    return round.copy(input, bytes, round.mapped_result(root, part) + offset, store);
  }
  for (int rank = 0; rank < round.num_ranks(); ++rank) {
    if (round.is_written(rank, part)) round.copy(input, bytes, round.output(rank, part) + offset, store);
  }
}

}  // namespace

Results direct_all_reduce(Round& round) {
  const bool is_shared = !round.call().has_outputs;
  if (is_shared && round.rank() == 0) round.announce_results();
  Chunks& chunks = round.mine().chunks;
  chunks.plan(round.call(), round.num_ranks());
  round.arrive_for_work();
  if (!is_shared) check_overlap(round);
  round.process_chunks(chunks, [&](const Run& run) { reduce_run(round, run); });
  return is_shared ? round.take_results(0) : Results{};
}

void direct_all_reduce_of_arrived(Round& round) {
  round.process_chunks(round.mine().chunks, [&](const Run& run) { reduce_run(round, run); });
}

void direct_reduce(Round& round) {
  Chunks& chunks = round.mine().chunks;
  chunks.plan(round.call(), round.num_ranks());
  round.arrive_for_work();
  check_overlap(round);
  round.process_chunks(chunks, [&](const Run& run) { reduce_run(round, run); });
}

Results direct_broadcast(Round& round) {
  const int root = round.call().root;
  const bool is_shared = !round.call().has_outputs;
  if (is_shared && round.rank() == root) round.announce_results();
  round.arrive_for_work();
  if (!is_shared) check_overlap(round);
  const Call& call = round.call_of(root);
  const auto size_of = [&](std::size_t part) { return call.buffers[part].input_bytes(); };
  Cursor cursor;
  round.process_chunks(Ranges(call.total_input_bytes(), 1, round.num_ranks()), [&](Range range) {
    visit(range, cursor, size_of, [&](std::size_t part, std::size_t begin, std::size_t size) {
      copy_bytes(round, part, begin, size, store_for(size_of(part)));
    });
  });
  return is_shared ? round.take_results(root) : Results{};
}

}  // namespace ringlet::collectives

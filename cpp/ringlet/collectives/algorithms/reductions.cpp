#include "ringlet/collectives/algorithms/reductions.hpp"

#include <algorithm>

#include "ringlet/collectives/algorithms/exchange.hpp"
#include "ringlet/collectives/algorithms/identities.hpp"
#include "ringlet/collectives/algorithms/small.hpp"
#include "ringlet/collectives/algorithms/tuning.hpp"
#include "ringlet/collectives/call/bytes.hpp"
#include "ringlet/collectives/call/overlap.hpp"
#include "ringlet/kernels/kernels.hpp"

namespace ringlet::collectives {

namespace {

constexpr std::size_t kScanBlockBytes = 4096;

// Combines a range of all inputs inside the share of `owner`.
void reduce_block(Round& round, std::size_t owner, Range range, std::size_t share) {
  const Call& call = round.call();
  const Buffer& part = call.buffers.front();
  const std::size_t element = core::size_of(part.dtype);
  const std::size_t result_element = core::size_of(call.result_dtype(part));
  const MappedBuffer target = round.output(static_cast<int>(owner), 0) + (range.begin - owner * share) * result_element;
  if (!round.may_write(target)) return;
  const auto num_ranks = static_cast<std::size_t>(round.num_ranks());
  const std::size_t count = range.end - range.begin;
  auto& inputs = round.mine().inputs;
  inputs.clear();
  for (std::size_t rank = 0; rank < num_ranks; ++rank) {
    const MappedBuffer input = round.input(static_cast<int>(rank), 0) + range.begin * element;
    inputs.push_back(round.fetch(input, count * element, rank, num_ranks));
  }
  void* const output = target.here;
  // The inputs are in the cache, so a result in their place uses ordinary stores.
  const bool is_plain = output == inputs[owner];
  kernels::active().reduce(call.op, part.dtype, inputs, count, {&output, 1},
                           is_plain ? kernels::Store::kPlain : store_for(part.count * result_element));
}

// Combines a range of the inputs, which may begin and end inside the shares of two ranks.
void reduce_range(Round& round, Range range, std::size_t share) {
  const Buffer& part = round.call().buffers.front();
  const std::size_t element = std::max(core::size_of(part.dtype), core::size_of(round.call().result_dtype(part)));
  const std::size_t block = round.block_bytes(static_cast<std::size_t>(round.num_ranks())) / element;
  while (range.begin < range.end) {
    const std::size_t owner = range.begin / share;
    const std::size_t count = std::min({block, range.end - range.begin, (owner + 1) * share - range.begin});
    reduce_block(round, owner, {range.begin, range.begin + count}, share);
    range.begin += count;
  }
}

// Scans some elements, at the addresses `input_of(rank)` and `output_of(rank)`; a null output is skipped.
template <class InputOf, class OutputOf>
void scan_block(const Call& call, int num_ranks, std::size_t count, InputOf&& input_of, OutputOf&& output_of) {
  const kernels::Kernels& kernels = kernels::active();
  const core::DType dtype = call.buffers.front().dtype;
  alignas(64) std::byte first[kScanBlockBytes];
  alignas(64) std::byte second[kScanBlockBytes];
  std::byte* so_far = first;
  std::byte* next = second;
  for (int rank = 0; rank < num_ranks; ++rank) {
    // The input is read before the output is written, which may be the same memory.
    if (rank == 0) {
      kernels.widen(dtype, input_of(rank), count, next);
    } else if (rank + 1 < num_ranks) {
      kernels.combine(call.op, dtype, so_far, input_of(rank), count, next);
    }
    if (std::byte* const output = output_of(rank); output != nullptr) {
      if (rank == 0) {
        write_identities(call.op, dtype, count, output);
      } else {
        kernels.finish(call.op, dtype, so_far, count, 1, output);
      }
    }
    std::swap(so_far, next);
  }
}

// Calls f(begin, count) for blocks of elements whose partial results fit the scratch of scan_block.
template <class F>
void for_each_block(core::DType dtype, Range range, F&& f) {
  const std::size_t block = kScanBlockBytes / core::size_of(core::partial_dtype(dtype));
  for (std::size_t begin = range.begin; begin < range.end; begin += block) f(begin, std::min(block, range.end - begin));
}

void small_scan(Round& round) {
  const Buffer& part = round.call().buffers.front();
  const std::size_t element = core::size_of(part.dtype);
  for_each_block(part.dtype, {0, part.count}, [&](std::size_t begin, std::size_t count) {
    scan_block(
        round.call(), round.rank() + 1, count, [&](int rank) { return round.payload_of(rank, begin * element); },
        [&](int rank) { return rank == round.rank() ? at(part.output, begin * element) : nullptr; });
  });
}

// Scans elements of all ranks in blocks that fit the lanes, if inputs must be read through them.
void scan_lanes(Round& round, Range range) {
  const Buffer& part = round.call().buffers.front();
  const std::size_t element = core::size_of(part.dtype);
  const auto num_ranks = static_cast<std::size_t>(round.num_ranks());
  const std::size_t bytes = (range.end - range.begin) * element;
  auto& inputs = round.mine().inputs;
  auto& outputs = round.mine().outputs;
  inputs.clear();
  outputs.clear();
  for (std::size_t rank = 0; rank < num_ranks; ++rank) {
    const MappedBuffer input = round.input(static_cast<int>(rank), 0) + range.begin * element;
    const MappedBuffer output = round.output(static_cast<int>(rank), 0) + range.begin * element;
    inputs.push_back(round.fetch(input, bytes, rank, num_ranks));
    outputs.push_back(output.here);
  }
  for_each_block(part.dtype, {0, range.end - range.begin}, [&](std::size_t begin, std::size_t count) {
    scan_block(
        round.call(), round.num_ranks(), count,
        [&](int rank) { return at(inputs[static_cast<std::size_t>(rank)], begin * element); },
        [&](int rank) { return at(outputs[static_cast<std::size_t>(rank)], begin * element); });
  });
}

void scan_range(Round& round, Range range) {
  const std::size_t element = core::size_of(round.call().buffers.front().dtype);
  const std::size_t block = round.block_bytes(static_cast<std::size_t>(round.num_ranks())) / element;
  while (range.begin < range.end) {
    const std::size_t end = std::min(range.end - range.begin, block) + range.begin;
    scan_lanes(round, {range.begin, end});
    range.begin = end;
  }
}

// Checks that outputs and inputs of all ranks are disjoint, except for an output in place of its input.
void check_places(Round& round, std::size_t share) {
  const Call& call = round.call();
  const Buffer& part = call.buffers.front();
  const std::size_t bytes = share * core::size_of(call.result_dtype(part));
  const bool may_be_in_place = call.result_dtype(part) == part.dtype;
  OverlapCheck overlap(round);
  for (int rank = 0; rank < round.num_ranks(); ++rank) {
    const BufferName output = round.own_output_name(rank, 0);
    overlap.add_output(rank, output, bytes);
    overlap.add_input_around(rank, round.own_input_name(rank, 0), part.input_bytes(),
                             may_be_in_place ? output : BufferName(), static_cast<std::size_t>(rank) * bytes, bytes);
  }
  overlap.check();
}

}  // namespace

void reduce_scatter(Round& round) {
  const Call& call = round.call();
  const Buffer& part = call.buffers.front();
  const std::size_t share = part.count / static_cast<std::size_t>(round.num_ranks());
  if (fits_slot(call)) {
    send_payload(round);
    round.arrive();
    check_places(round, share);
    return small_reduce_scatter(round);
  }
  const Ranges ranges(part.count, core::size_of(part.dtype), round.num_ranks());
  round.arrive_for_work();
  check_places(round, share);
  round.process_chunks(ranges, [&](Range range) { reduce_range(round, range, share); });
}

bool may_go_in_pieces(const Group& group, const Buffer& part) {
  return part.input_bytes() > kLargestCrossed && have_own_processes(group);
}

bool learn_private_inputs(Round& round) {
  const Buffer& part = round.call().buffers.front();
  round.arrive_to_tell();
  check_places(round, part.count / static_cast<std::size_t>(round.num_ranks()));
  for (int rank = 0; rank < round.num_ranks(); ++rank) {
    if (!round.input_name(rank, 0).is_shared()) return true;
  }
  return false;
}

void reduce_scatter_piece(Round& round, std::size_t begin, std::size_t count) {
  const Call& call = round.call();
  const Buffer& part = call.buffers.front();
  const int num_ranks = round.num_ranks();
  const std::size_t element = core::size_of(part.dtype);
  const std::size_t bytes = count * element;
  const auto own = [&](int rank) {
    const std::size_t share = part.count / static_cast<std::size_t>(num_ranks);
    return at(part.input, (static_cast<std::size_t>(rank) * share + begin) * element);
  };
  round.arrive_for_work([&] {
    RankState::Set& set = round.set_of(round.rank());
    set.inputs.front() = round.stage(set.staged_inputs, bytes * static_cast<std::size_t>(num_ranks));
    set.outputs.front() = BufferName();
    for (int rank = 0; rank < num_ranks; ++rank) {
      std::byte* const staged = set.staged_inputs->data() + static_cast<std::size_t>(rank) * bytes;
      if (rank != round.rank()) copy(own(rank), bytes, staged, kernels::Store::kPlain);
    }
  });
  const auto combine = [&] {
    auto& inputs = round.mine().inputs;
    inputs.clear();
    for (int rank = 0; rank < num_ranks; ++rank) {
      const std::size_t offset = static_cast<std::size_t>(round.rank()) * bytes;
      inputs.push_back(rank == round.rank() ? own(rank) : round.input(rank, 0).here + offset);
    }
    const std::size_t result_element = core::size_of(call.result_dtype(part));
    void* const output = static_cast<std::byte*>(part.output) + begin * result_element;
    const bool is_plain = output == own(round.rank());
    kernels::active().reduce(call.op, part.dtype, inputs, count, {&output, 1},
                             is_plain ? kernels::Store::kPlain : store_for(part.count * result_element));
  };
  round.process_shares(false, combine, [] {});
}

void exclusive_scan(Round& round) {
  const Buffer& part = round.call().buffers.front();
  if (fits_slot(round.call())) {
    send_payload(round);
    round.arrive();
    check_overlap(round);
    return small_scan(round);
  }
  const Ranges ranges(part.count, core::size_of(part.dtype), round.num_ranks());
  round.arrive_for_work();
  check_overlap(round);
  round.process_chunks(ranges, [&](Range range) { scan_range(round, range); });
}

}  // namespace ringlet::collectives
